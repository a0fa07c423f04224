"""The control API beside the fair queue, and the controller that uses it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.fairqueue_kit import (
    INTERNAL,
    SOON_S,
    LittleController,
    Service,
    granted,
    little_controller,
    new_host,
    pending,
    service_on,
)
from tests.contract.kit import problem_in

HOLD_S = 0.8
PROFILES = {
    "*.one.test": {"maxSlotPerHost": 1},
    "*.smooth.test": {"maxSlotPerHost": 2, "minSlotHoldMs": int(HOLD_S * 1000)},
}
ROUTES = [("GET", "health"), ("POST", "refresh"), ("POST", "flush")]


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    """Without a controller: settings come from the file."""
    queue = {"pollWindowMs": 80, "profiles": PROFILES}
    who = {"appName": "slots", "appVersion": "2.5", "env": "prod", "instanceId": "slots-1"}
    with service_on(internalApiToken=INTERNAL, fairQueue=queue, controller=who) as started:
        yield started


@pytest.fixture(scope="module")
def controller() -> Iterator[LittleController]:
    with little_controller() as started:
        started.settings = {"fairQueue": {"maxSlotPerHost": 2}}
        yield started


@pytest.fixture(scope="module")
def governed(controller: LittleController) -> Iterator[Service]:
    queue = {"pollWindowMs": 80, "maxSlotPerHost": 1}
    with service_on(
        internalApiToken=INTERNAL, fairQueue=queue, controller=controller.section()
    ) as started:
        yield started


# ---------------------------------------------------------------------- who may


@pytest.mark.parametrize(("method", "what"), ROUTES)
@pytest.mark.parametrize("token", ["", "wrong", INTERNAL[:-1], f"{INTERNAL}x", INTERNAL.upper()])
def test_without_the_internal_token_there_is_nothing_here(
    service: Service, method: str, what: str, token: str
) -> None:
    answer = service.control(method, what, token)
    assert answer.status_code == 404
    problem_in(answer, "not-found")
    for scheme in ("Basic", "bearer", ""):
        headers = {"Authorization": f"{scheme} {INTERNAL}".strip()}
        sent = service.queue.api.send(method, f"/api/v0/{what}", headers=headers)
        assert sent.status_code == 404


# ---------------------------------------------------------------------- health


def test_health_says_who_answers(service: Service) -> None:
    answer = service.control("GET", "health")
    assert (answer.status_code, answer.content) == (204, b"")
    assert {name: answer.headers[name] for name in answer.headers if name.startswith("x-")} == {
        "x-app-name": "slots", "x-app-version": "2.5", "x-env": "prod", "x-role": "slot-handler",
        "x-instance-id": "slots-1", "x-config-version": "local",
        "x-content-type-options": "nosniff", "x-frame-options": "DENY",
    }  # fmt: skip


# ---------------------------------------------------------------------- refresh from the file


@pytest.mark.parametrize("targets", [["all"], ["fairqueue"], ["config", "fairqueue"], None])
def test_all_and_fairqueue_reset_who_waits_and_keep_what_is_held(
    service: Service, targets: list[str] | None
) -> None:
    queue, host = service.queue, new_host("one")
    slot = queue.hold(host)
    away = queue.must_wait(host, "192.0.2.2/32")
    body = {} if targets is None else {"json": {"targets": targets}}
    assert service.control("POST", "refresh", **body).status_code == 204
    assert queue.poll(away) == {"result": "timeout"}
    assert queue.sessions(host) == []
    assert queue.holders(host) == 1
    token = queue.must_wait(host, "192.0.2.2/32")
    queue.release(host, slot)
    assert queue.poll(token)["result"] == "granted"


@pytest.mark.parametrize("target", ["config", "bootstrap"])
def test_config_and_bootstrap_keep_them(service: Service, target: str) -> None:
    queue, host = service.queue, new_host("one")
    slot = queue.hold(host)
    token = queue.must_wait(host, "192.0.2.2/32")
    service.refresh(target)
    assert queue.poll(token) == pending(token)
    queue.release(host, slot)
    assert queue.poll(token)["result"] == "granted"


def test_a_poll_that_waits_hears_of_the_reset(service: Service) -> None:
    service.write(fairQueue={"pollWindowMs": 6_000})
    service.refresh("config")
    queue, host = service.queue, new_host("one")
    queue.hold(host)
    waiting = queue.begin(queue.ask, host, "192.0.2.2/32")
    queue.attached(host, 1)
    reset = time.monotonic()
    service.refresh("fairqueue")
    assert waiting.result().said == {"result": "timeout"}
    assert waiting.result().at - reset < SOON_S
    service.write(fairQueue={"pollWindowMs": 80})
    service.refresh("config")


def test_a_refresh_resets_smoothing(service: Service) -> None:
    """Of those that wait for nobody: what was given back early is held as long as it must be."""
    queue, host = service.queue, new_host("smooth")
    slots = [queue.hold(host, f"192.0.2.{n}/32") for n in (1, 2)]
    began = time.monotonic()
    queue.release(host, slots[0])
    service.refresh("fairqueue")
    queue.release(host, slots[1])
    waiting = [queue.begin(queue.wait, host, f"192.0.2.{n}/32") for n in (3, 4)]
    first, second = sorted(granted(each).at for each in waiting)
    assert first - began >= HOLD_S - 0.05
    assert second - first < HOLD_S / 2


@pytest.mark.parametrize("target", ["config", "all"])
def test_a_new_cap_in_the_file_holds_after_a_refresh(service: Service, target: str) -> None:
    queue, host = service.queue, new_host("changed")
    service.write(fairQueue={"profiles": {**PROFILES, "*.changed.test": {"maxSlotPerHost": 1}}})
    service.refresh(target)
    first = queue.hold(host)
    token = queue.must_wait(host, "192.0.2.2/32")
    service.write(fairQueue={"profiles": {**PROFILES, "*.changed.test": {"maxSlotPerHost": 3}}})
    assert queue.gate(host)["limit"] == 1  # nobody has asked for it yet
    service.refresh(target)
    assert queue.gate(host)["limit"] == 3
    assert queue.poll(token)["result"] == "granted"
    queue.hold(host, "192.0.2.3/32")
    # A lowered one counts those who hold more than that.
    service.write(fairQueue={"profiles": {**PROFILES, "*.changed.test": {"maxSlotPerHost": 1}}})
    service.refresh(target)
    queue.release(host, first)
    queue.must_wait(host, "192.0.2.4/32")
    assert queue.holders(host) == 2


def test_a_file_that_is_broken_changes_nothing_and_is_502(service: Service) -> None:
    good = service.file.read_text()
    host = new_host("one")
    for wrong in ("{", '{"fairQueue": {"maxSlotPerHost": "many"}}', '{"auth": {"enabled": true}}'):
        service.file.write_text(wrong)
        answer = service.control("POST", "refresh", json={"targets": ["config"]})
        assert answer.status_code == 502
        problem_in(answer)
    service.file.unlink()
    assert service.control("POST", "refresh", json={}).status_code == 502
    service.queue.hold(host)
    service.queue.must_wait(host, "192.0.2.2/32")
    service.file.write_text(good)
    service.refresh("all")


@pytest.mark.parametrize("body", [
    {"targets": ["nothing"]}, {"targets": "all"}, {"targets": ["all"] * 11}, [], {"targets": [5]},
])  # fmt: skip
def test_targets_that_nobody_knows_are_400(service: Service, body: Any) -> None:
    answer = service.control("POST", "refresh", json=body)
    assert answer.status_code == 400
    problem_in(answer, "wrong-input")


def test_flush_without_a_controller_only_cleans_up(service: Service) -> None:
    host = new_host("one")
    slot = service.queue.hold(host)
    assert service.control("POST", "flush").status_code == 204
    assert service.queue.holders(host) == 1
    service.queue.release(host, slot)


# ---------------------------------------------------------------------- a controller


def test_settings_come_from_the_controller_at_the_start(
    governed: Service, controller: LittleController
) -> None:
    # It listens before it has asked, and answers nobody until then.
    assert governed.control("GET", "health").headers["x-config-version"] == "v1"
    path, token, body = controller.heard[0]
    assert path == "/api/v0/bootstrap"
    assert token == f"Bearer {controller.TOKEN}"
    assert body == {"role": "slot-handler", "env": "test", "instance_id": "slots-7"}
    queue, host = governed.queue, new_host("any")
    queue.hold(host, "192.0.2.1/32")
    queue.hold(host, "192.0.2.2/32")
    began = time.monotonic()
    queue.must_wait(host, "192.0.2.3/32")
    assert time.monotonic() - began < SOON_S  # what it did not send is as it stands in the file


@pytest.mark.parametrize("target", ["all", "bootstrap", "config"])
def test_a_refresh_asks_the_controller_again(
    governed: Service, controller: LittleController, target: str
) -> None:
    queue, host = governed.queue, new_host("any")
    asked = len(controller.of("bootstrap"))
    controller.version = f"v-{target}"
    controller.settings = {"fairQueue": {"maxSlotPerHost": 3}}
    governed.refresh(target)
    assert len(controller.of("bootstrap")) == asked + 1
    assert governed.control("GET", "health").headers["x-config-version"] == f"v-{target}"
    for n in range(3):
        queue.hold(host, f"192.0.2.{n}/32")
    queue.must_wait(host, "192.0.2.9/32")
    controller.settings = {"fairQueue": {"maxSlotPerHost": 2}}
    governed.refresh(target)


def test_fairqueue_alone_does_not_ask_it(governed: Service, controller: LittleController) -> None:
    asked = len(controller.of("bootstrap"))
    governed.refresh("fairqueue")
    assert len(controller.of("bootstrap")) == asked


def test_flush_reports_at_once_what_has_happened_since_the_last_time(
    governed: Service, controller: LittleController
) -> None:
    queue, host = governed.queue, new_host("any")
    governed.refresh("fairqueue")
    assert governed.control("POST", "flush").status_code == 204
    before = controller.of("metrics")[-1]["events"][0]["sessions"]["granted"]
    slots = [queue.hold(host, f"192.0.2.{n}/32") for n in range(2)]
    queue.must_wait(host, "192.0.2.8/32")
    queue.release(host, slots[0])
    shut = new_host("any")
    queue.report(shut, 503, 4)
    assert queue.ask(shut)["result"] == "throttled"
    began = time.time()
    assert governed.control("POST", "flush").status_code == 204
    told = controller.of("metrics")[-1]
    ((_, token, _),) = [each for each in controller.heard if each[2] is told]
    assert token == f"Bearer {controller.TOKEN}"
    version = governed.control("GET", "health").headers["x-config-version"]
    ts = told["events"][0].pop("ts")
    assert began - 5 <= ts / 1000 <= time.time()
    assert isinstance(ts, int)
    assert told == {
        "source": "slot-handler", "env": "test", "instance_id": "slots-7",
        "events": [{
            "type": "slot_handler.snapshot", "configVersion": version,
            "counts": {"session_created": 3, "granted": 3, "throttled": 1, "timeout": 0,
                       "released": 1},
            "sessions": {"total": before + 2, "pending": 0, "granted": before + 2,
                         "throttled": 0, "timeout": 0},
            "appName": "slots", "appVersion": "2.5", "role": "slot-handler",
            "instanceId": "slots-7",
        }],
    }  # fmt: skip


@pytest.mark.parametrize("status", [401, 500])
def test_a_controller_that_fails_is_502_and_changes_nothing(
    governed: Service, controller: LittleController, status: int
) -> None:
    queue, host = governed.queue, new_host("any")
    queue.hold(host)
    token = queue.begin(queue.ask, host).result().said["queryToken"]
    version = governed.control("GET", "health").headers["x-config-version"]
    controller.status, controller.version = status, "never"
    try:
        for what in ("refresh", "flush"):
            answer = governed.control("POST", what)
            assert answer.status_code == 502, answer.text
            assert controller.TOKEN not in problem_in(answer, "controller")["detail"]
    finally:
        controller.status = 200
    assert queue.poll(token)["result"] == "pending"  # not even who waits is forgotten
    assert governed.control("GET", "health").headers["x-config-version"] == version


def test_settings_that_cannot_be_are_502_and_change_nothing(
    governed: Service, controller: LittleController
) -> None:
    good = controller.settings
    controller.settings = {"fairQueue": {"maxSlotPerHost": "many"}}
    try:
        answer = governed.control("POST", "refresh")
        assert answer.status_code == 502
        assert "maxSlotPerHost" in problem_in(answer)["detail"]
    finally:
        controller.settings = good
    host = new_host("any")
    for n in range(2):
        governed.queue.hold(host, f"192.0.2.{n}/32")


@pytest.mark.soak
def test_without_its_controller_it_starts_with_the_file(controller: LittleController) -> None:
    section = controller.section(url="http://127.0.0.1:9")
    queue = {"maxSlotPerHost": 1, "pollWindowMs": 80}
    with service_on(internalApiToken=INTERNAL, fairQueue=queue, controller=section) as alone:
        alone.printed("going on with the settings that are here")
        host = new_host("any")
        alone.queue.hold(host)
        alone.queue.must_wait(host, "192.0.2.2/32")
        answer = alone.control("GET", "health")
        assert answer.headers["x-config-version"] == "local"
        assert controller.TOKEN not in alone.server.printed()
