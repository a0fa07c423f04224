"""The config.json of the fair queue: it loads as it stands, holds, and outlives the program."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.fairqueue_kit import (
    INTERNAL,
    QUEUE,
    Queue,
    Service,
    granted,
    new_host,
    pending,
    service_on,
    shared_service,
)
from tests.contract.kit import JSON, problem_in
from tests.servers import STORES, Server
from tests.stores import postgres_place

KEY = "shared-word-of-the-clients"
ROUTES = ("acquire", "release", "cancel", "report")
# As somebody has it who runs the slot handler that this service takes the place of.
FULL: JSON = {
    "listen": "127.0.0.1:0",
    "logLevel": "info",
    "auth": {"enabled": True, "header": "X-FQ-Auth", "token": KEY},
    "backend": {
        "mode": "postgres",
        "postgrest": {"baseUrl": "https://db.example.com", "authHeader": "Bearer x"},
    },
    "fairQueue": {
        "maxWaitMs": 20_000, "pollIntervalMs": 500, "pollWindowMs": 6_000, "minSlotHoldMs": 0,
        "sessionIdleSeconds": 90, "maxSlotPerHost": 5, "maxSlotPerIp": 1, "maxWaitersPerIp": 2,
        "maxWaitersPerHost": 50, "zombieTimeoutSeconds": 30, "ipCooldownSeconds": 0,
        "cleanup": {"enabled": True, "intervalSeconds": 1_800, "queueDepthZombieTtlSeconds": 20},
        "defaultGrantedCleanupDelay": 5,
        "weightedScheduler": {
            "enabled": True, "hotPendingFactor": 4, "hotPendingMin": 16, "coldAvgWaitMs": 500,
            "hotAvgWaitMs": 1_500, "maxProbesPerCycle": 5, "baseWeight": 1.0, "weightPerWait": 1.0,
        },
    },
    "rpc": {"tryAcquire": "download_try_acquire_slot"},
    "internalApiToken": INTERNAL,
}  # fmt: skip


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    """Its file is changed by the tests."""
    with service_on(internalApiToken=INTERNAL, fairQueue={}) as started:
        yield started


@pytest.fixture
def changed(service: Service) -> Iterator[Service]:
    yield service
    service.document = {"internalApiToken": INTERNAL, "fairQueue": {}}
    service.write()
    service.refresh("all")


def set_to(service: Service, **document: Any) -> None:
    service.write(**document)
    service.refresh("config")


# ---------------------------------------------------------------------- the whole file


def test_the_file_of_the_slot_handler_starts_the_server_as_it_stands(tmp_path: Path) -> None:
    """Where it listens, who may come in, and the database: all of it is in there."""
    document = json.loads(json.dumps(FULL))
    document["backend"]["postgres"] = {"dsn": postgres_place(tmp_path)}
    file = tmp_path / "config.json"
    file.write_text(json.dumps(document))

    class AsItStands(Server):
        def _command(self) -> list[str]:
            return [sys.executable, "-m", "headway", "serve", "--config", str(file),
                    "--data", str(self.data)]  # fmt: skip

    server = AsItStands(tmp_path)
    server.start()
    try:
        queue = Queue(server.url, **{"X-FQ-Auth": KEY})
        host = new_host("any")
        queue.release(host, queue.hold(host))
        assert queue.api.get("/api/info")["store"] == "postgresql"
        said = server.printed()
        for key in ("backend.postgrest", "rpc", *(f"fairQueue.weightedScheduler.{name}" for name in
                    ("hotPendingFactor", "hotPendingMin", "coldAvgWaitMs", "hotAvgWaitMs",
                     "maxProbesPerCycle"))):  # fmt: skip
            assert f"{key} is not needed" in said
        for key in ("baseWeight", "weightPerWait", "pollIntervalMs", "maxWaitMs"):
            assert f"{key} is" not in said  # these are heeded
        queue.close()
    finally:
        server.close()


# ---------------------------------------------------------------------- the shared key


@pytest.mark.parametrize("route", ROUTES)
def test_without_the_shared_key_nobody_gets_in(changed: Service, route: str) -> None:
    set_to(changed, auth={"enabled": True, "token": KEY})
    api = changed.queue.api
    body = {"hostname": new_host("any"), "status": 200}
    for headers in (
        {}, {"X-FQ-Auth": "wrong"}, {"X-FQ-Auth": KEY[:-1]}, {"X-FQ-Auth": KEY + "x"},
        {"X-FQ-Auth": KEY.upper()}, {"X-FQ-Auth": f"Bearer {KEY}"}, {"X-Other": KEY},
        {"Authorization": f"Bearer {KEY}"}, {"X-FQ-Auth": INTERNAL},
    ):  # fmt: skip
        for method in ("POST", "GET"):
            answer = api.send(method, f"{QUEUE}/{route}", json=body, headers=headers)
            assert answer.status_code == 401
            assert "X-FQ-Auth" in problem_in(answer, "no-token")["detail"]
    # Whoever is not let in need not have sent anything sensible.
    assert api.send("POST", f"{QUEUE}/{route}", content=b"{").status_code == 401
    answer = api.send("POST", f"{QUEUE}/{route}", json=body, headers={"x-fq-auth": KEY})
    assert answer.status_code == 200


def test_the_header_may_have_another_name(changed: Service) -> None:
    set_to(changed, auth={"enabled": True, "token": KEY, "header": "X-Slots"})
    api, body = changed.queue.api, {"hostname": new_host("any")}
    answer = api.send("POST", f"{QUEUE}/acquire", json=body, headers={"X-FQ-Auth": KEY})
    assert answer.status_code == 401
    assert "X-Slots" in problem_in(answer)["detail"]
    answer = api.send("POST", f"{QUEUE}/acquire", json=body, headers={"X-Slots": KEY})
    assert answer.json()["result"] == "granted"


def test_a_key_that_is_not_enabled_is_not_asked_for(changed: Service) -> None:
    set_to(changed, auth={"enabled": False, "token": KEY})
    changed.queue.hold(new_host("any"))


def test_without_an_internal_token_there_is_no_control_api() -> None:
    api = shared_service().queue.api
    for method, what in (("GET", "health"), ("POST", "refresh"), ("POST", "flush")):
        for headers in ({}, {"Authorization": "Bearer"}, {"Authorization": "Bearer x"}):
            answer = api.send(method, f"/api/v0/{what}", headers=headers)
            assert answer.status_code == 404
            problem_in(answer, "not-found")


# ---------------------------------------------------------------------- limits


def test_beyond_max_sessions_the_service_is_overloaded(changed: Service) -> None:
    queue, host = changed.queue, new_host("any")
    before = queue.api.get("/api/slots", kind="fairqueue")["total"]
    limits = {"maxSessions": before + 3, "maxSlotPerHost": 1, "pollWindowMs": 100}
    set_to(changed, fairQueue=limits)
    slot = queue.hold(host)
    tokens = [queue.must_wait(host, f"192.0.2.{n}/32") for n in (2, 3)]
    overloaded = {"result": "overloaded", "reason": "slot_handler_overloaded", "retryAfter": 30}
    assert queue.ask(host, "192.0.2.4/32") == overloaded
    assert queue.ask(new_host("any")) == overloaded
    assert queue.poll(tokens[0]) == pending(tokens[0])  # who is in stays in
    queue.release(host, slot)
    assert queue.ask(host, "192.0.2.4/32")["result"] == "pending"
    for token in tokens:
        queue.cancel(token)
    assert queue.ask(new_host("any"))["result"] == "granted"


def test_a_host_goes_by_the_profile_that_names_it_best(changed: Service) -> None:
    profiles = {
        "*": {"maxSlotPerHost": 2},
        "*.example.com": {"maxSlotPerHost": 3},
        "*.cdn.example.com": {"maxSlotPerHost": 4},
        "files.cdn.example.com": {"maxSlotPerHost": 1},
    }
    set_to(changed, fairQueue={"maxSlotPerHost": 9, "profiles": profiles, "pollWindowMs": 50})
    queue = changed.queue
    for host, cap in (
        ("files.cdn.example.com", 1), ("FILES.cdn.example.com.", 1), ("x.cdn.example.com", 4),
        ("y.x.cdn.example.com", 4), ("cdn.example.com", 3), ("www.example.com", 3),
        ("example.com", 2), ("other.test", 2), ("notexample.com", 2),
    ):  # fmt: skip
        name = host.lower().rstrip(".")
        slots = [queue.wait(host, f"192.0.2.{n}/32")["slotToken"] for n in range(cap)]
        queue.cancel(queue.must_wait(host, "192.0.2.99/32"))
        assert queue.holders(name) == queue.gate(name)["limit"] == cap
        for slot in slots:
            queue.release(host, slot)


def test_the_weighted_scheduler_is_heeded_and_what_it_does_not_need_is_noted(
    changed: Service,
) -> None:
    weighted = {"enabled": True, "hotPendingMin": 16, "weightPerWait": 2.0}
    set_to(changed, fairQueue={"weightedScheduler": weighted, "maxSlotPerHost": 1})
    changed.printed("fairQueue.weightedScheduler.hotPendingMin is not needed")
    assert "weightPerWait is" not in changed.server.printed()
    queue, host = changed.queue, new_host("any")
    slot = queue.hold(host, "192.0.2.1/32")
    waiting = {f"192.0.2.{n}/32": queue.begin(queue.wait, host, f"192.0.2.{n}/32") for n in (2, 3)}
    queue.attached(host, 2)
    assert set(queue.hand_on(host, slot, waiting)) == set(waiting)


# ---------------------------------------------------------------------- the program is killed

KILLED = {
    "pollWindowMs": 100, "maxSlotPerHost": 1,
    "profiles": {
        "*.held.test": {"minSlotHoldMs": 60_000, "pollWindowMs": 100},
        "*.cool.test": {"ipCooldownSeconds": 60, "maxSlotPerHost": 5},
        "*.zombie.test": {"zombieTimeoutSeconds": 2, "pollWindowMs": 6_000},
    },
}  # fmt: skip


@pytest.mark.parametrize("store", STORES)
def test_sessions_and_slots_outlive_the_program(store: str) -> None:
    with service_on(store, fairQueue=KILLED) as service:
        queue, host = service.queue, new_host("any")
        slot = queue.hold(host)
        first = queue.must_wait(host, "192.0.2.2/32")
        second = queue.must_wait(host, "192.0.2.3/32")
        zombie_at = new_host("zombie")
        queue.hold(zombie_at)
        held, cool, shut = new_host("held"), new_host("cool"), new_host("any")
        queue.release(held, queue.hold(held))
        queue.release(cool, queue.hold(cool))
        queue.report(shut, 503, 4)

        service.server.kill()
        service.server.start()
        service.reopen()
        queue = service.queue

        assert queue.holders(host) == 1  # the slot is held
        assert queue.poll(second) == pending(second)
        assert queue.poll(first) == pending(first)
        newcomer = queue.must_wait(host, "192.0.2.4/32")
        queue.release(host, slot)  # by its old token
        last = {each: queue.begin(queue.wait_on, pending(each)) for each in (newcomer, second)}
        queue.attached(host, 2)
        said = queue.wait_on(pending(first))  # whoever has waited longest goes first
        assert said["result"] == "granted"
        assert queue.hand_on(host, said["slotToken"], last) == [second, newcomer]

        queue.must_wait(held, "192.0.2.2/32")  # what was to be held is still held
        queue.must_wait(cool)  # who was to rest still rests
        queue.hold(cool, "192.0.2.2/32")
        assert queue.ask(shut)["result"] == "throttled"
        assert queue.wait(zombie_at, "192.0.2.2/32")["result"] == "granted"  # its time is over


@pytest.mark.soak
def test_stopping_answers_who_waits_and_forgets_nobody(changed: Service) -> None:
    set_to(changed, fairQueue={"maxSlotPerHost": 1})
    queue, host = changed.queue, new_host("any")
    slot = queue.hold(host)
    waiting = queue.begin(queue.ask, host, "192.0.2.2/32")
    queue.attached(host, 1)
    assert changed.server.stop() == 0
    said = waiting.result().said
    assert said["result"] == "pending"
    changed.server.start()
    changed.reopen()
    back = changed.queue.begin(changed.queue.wait_on, said)
    changed.queue.attached(host, 1)
    changed.queue.release(host, slot)
    assert granted(back).said["queryToken"] == said["queryToken"]
