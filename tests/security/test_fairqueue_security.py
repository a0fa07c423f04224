"""The fair queue and those who should not use it: pages, strangers, and readers of logs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.contract.fairqueue_kit import (
    INTERNAL,
    LittleController,
    Queue,
    little_controller,
    new_host,
    shared_service,
)
from tests.contract.kit import JSON, listening
from tests.hands.kit import eventually
from tests.security.kit import ALL, Answer, Guarded, add_token, guarded_on, prepared, send
from tests.servers import Server

KEY = "shared-word-of-the-clients"
ROUTES = ("acquire", "release", "cancel", "report")
CONTROL = (("GET", "health"), ("POST", "refresh"), ("POST", "flush"))


def call(url: str, route: str, body: JSON, **headers: str) -> Answer:
    return send(url, "POST", f"/api/v0/fairqueue/{route}", json.dumps(body).encode(), **headers)


def sessions_in(url: str, host: str) -> int:
    found = send(url, "GET", f"/api/slots?upstream={host}")
    assert found.status == 200
    return int(json.loads(found.body)["total"])


# ---------------------------------------------------------------------- pages


@pytest.fixture(params=["with a file", "without"])
def on_loopback(request: pytest.FixtureRequest, open_server: Server) -> str:
    """Where nobody needs a key: whether somebody has set up the fair queue or not."""
    return shared_service().server.url if request.param == "with a file" else open_server.url


@pytest.mark.parametrize("headers", [
    {"origin": "https://evil.example"}, {"origin": "null"}, {"origin": "http://localhost:1"},
    {"origin": "http://evil.example:{port}"}, {"sec_fetch_site": "cross-site"},
    {"sec_fetch_site": "same-site"},
])  # fmt: skip
def test_a_page_of_another_origin_takes_no_slots(on_loopback: str, headers: dict[str, str]) -> None:
    port, host = on_loopback.rpartition(":")[2], new_host("one")
    said = {name: value.format(port=port) for name, value in headers.items()}
    body = {"hostname": host, "ipBucket": "192.0.2.1/32", "status": 503}
    for route in ROUTES:
        for kind in ("application/json", "text/plain", "application/x-www-form-urlencoded"):
            answer = call(on_loopback, route, body, content_type=kind, **said)
            assert answer.status == 403, route
            assert json.loads(answer.body)["type"] == "wrong-origin"
            assert "access-control-allow-origin" not in answer.headers
    embedded = send(on_loopback, "GET", "/api/v0/fairqueue/acquire", sec_fetch_dest="image", **said)
    assert embedded.status == 403
    assert sessions_in(on_loopback, host) == 0


@pytest.mark.parametrize("name", ["evil.example", "evil.example:{port}", "127.0.0.1.nip.io", ""])
def test_a_name_that_was_bound_to_loopback_leads_nowhere(on_loopback: str, name: str) -> None:
    port, host = on_loopback.rpartition(":")[2], new_host("one")
    for route in ROUTES:
        named = name.format(port=port)
        answer = call(on_loopback, route, {"hostname": host, "status": 200}, host=named)
        assert answer.status == 421
        assert json.loads(answer.body)["type"] == "wrong-host"
    for method, what in CONTROL:
        assert send(on_loopback, method, f"/api/v0/{what}", host=name).status == 421
    assert sessions_in(on_loopback, host) == 0


def test_programs_on_this_machine_are_let_in(on_loopback: str) -> None:
    assert call(on_loopback, "acquire", {"hostname": new_host("one")}).status == 200


def test_without_a_file_no_proxy_may_forward_to_it(open_server: Server) -> None:
    answer = call(open_server.url, "acquire", {"hostname": "x"}, x_forwarded_for="10.1.2.3")
    assert answer.status == 403


# ---------------------------------------------------------------------- strangers


@pytest.fixture(scope="module")
def cage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cage]:
    """A server whose clients share a key. All secrets were told to it, and it was asked for all
    that it tells.
    """
    file = tmp_path_factory.mktemp("fairqueue") / "config.json"
    with little_controller() as controller:
        document = {
            "auth": {"enabled": True, "token": KEY},
            "internalApiToken": INTERNAL,
            "controller": controller.section(),
            "fairQueue": {"maxSlotPerHost": 1, "pollWindowMs": 100, "profiles": {
                "*.zombie.test": {"zombieTimeoutSeconds": 1}}},
        }  # fmt: skip
        file.write_text(json.dumps(document))
        with guarded_on("sqlite", fairqueue=str(file), log_level="debug") as guarded:
            cage = Cage(guarded, controller)
            speak(cage)
            look(cage)
            yield cage


@dataclass
class Cage:
    guarded: Guarded
    controller: LittleController
    words: dict[str, str] = field(default_factory=dict)  # that are secret
    told: dict[str, str] = field(default_factory=dict)  # to those who should not know them


def speak(cage: Cage) -> None:
    """All that has a secret in it."""
    url, words, controller = cage.guarded.url, cage.words, cage.controller
    words |= {"key": KEY, "internal": INTERNAL, "controller": controller.TOKEN}
    queue = Queue(url, **{"X-FQ-Auth": KEY})
    host = new_host("any")
    first = queue.ask(host)
    words["slot"] = first["slotToken"].rpartition(".")[2]
    words["query"] = queue.must_wait(host, "192.0.2.2/32").partition(".")[2]
    assert queue.cancel(f"1.{words['slot']}x") == "gone"
    queue.release(host, f"1.9.{words['slot']}")
    dead = new_host("zombie")
    slot = queue.hold(dead)
    words["zombie"] = slot.rpartition(".")[2]
    with cage.guarded.as_("operator") as api:
        eventually(lambda: api.get(f"/api/upstreams/{dead}")["running"] == 0)
    queue.release(dead, slot)
    for where, wrong in (("wrong key", "a-key-of-somebody"), ("near miss", KEY[:-1])):
        words[where] = wrong
        answer = call(url, "acquire", {"hostname": host}, x_fq_auth=wrong)
        cage.told[where] = f"{answer.headers} {answer.body!r}"
    for where, body in {
        "bad json": f'{{"slotToken": "{first["slotToken"]}"',
        "bad field": f'{{"slotToken": "{first["slotToken"]}", "status": "{words["slot"]}"}}',
        "bad value": f'{{"queryToken": ["{words["query"]}"], "hostname": {{}}}}',
        "long": f'{{"queryToken": "{words["query"] * 20}"}}',
    }.items():
        for route in ROUTES:
            path = f"/api/v0/fairqueue/{route}"
            answer = send(url, "POST", path, body.encode(), x_fq_auth=KEY)
            cage.told[f"{where} {route}"] = f"{answer.headers} {answer.body!r}"
    operator = {"authorization": f"Bearer {INTERNAL}"}
    controller.status = 500
    for what in ("refresh", "flush"):
        answer = send(url, "POST", f"/api/v0/{what}", **operator)
        assert answer.status == 502
        cage.told[what] = f"{answer.headers} {answer.body!r}"
    controller.status = 200
    answer = send(url, "GET", "/api/v0/health", **operator)
    cage.told["health"] = str(answer.headers)
    queue.close()


def look(cage: Cage) -> None:
    with cage.guarded.as_("admin") as api:
        for path in ("/metrics", "/openapi.json", "/docs", "/", "/api/info", "/api/settings",
                     "/api/slots", "/api/slots?state=waiting", "/api/slots?state=reclaimed",
                     "/api/slots/stats", "/api/upstreams", "/api/lanes", "/api/trail", "/api/audit",
                     "/api/system/resources"):  # fmt: skip
            answer = api.http.get(path)
            assert answer.status_code == 200, path
            cage.told[path] = answer.text
        assert "slot_reclaimed" in cage.told["/api/trail"]
        for each in api.get("/api/slots")["items"]:
            cage.told[f"slot {each['id']}"] = str(api.get(f"/api/slots/{each['id']}"))
        for each in api.get("/api/upstreams")["items"]:
            cage.told[each["name"]] = str(api.get(f"/api/upstreams/{each['name']}"))
        last = api.get("/api/trail")["items"][-1]["id"]
        with listening(api, "/api/events", last=0) as stream:
            seen = 0
            while seen < last:
                event = stream.event()
                seen = event["id"]
                cage.told[f"event {seen}"] = str(event)


def test_no_secret_comes_out_anywhere(cage: Cage) -> None:
    told = {**cage.told, "the log": cage.guarded.server.printed()}
    assert len(cage.words) == 8
    assert "/api/v0/fairqueue/acquire" in told["the log"]
    found = [(word, place) for word, secret in cage.words.items()
             for place, text in told.items() if secret in text]  # fmt: skip
    assert found == []
    assert "Traceback" not in told["the log"]


def test_what_lets_people_into_headway_is_no_key_to_the_fair_queue(cage: Cage) -> None:
    url = cage.guarded.url
    for holder in ("admin", "operator", "submitter"):
        token = cage.guarded.tokens[holder]
        for headers in ({"authorization": f"Bearer {token}"}, {"x_fq_auth": token}):
            for route in ROUTES:
                assert call(url, route, {"hostname": "x", "status": 200}, **headers).status == 401
            for method, what in CONTROL:
                assert send(url, method, f"/api/v0/{what}", **headers).status == 404


def test_nor_the_other_way_round(cage: Cage) -> None:
    url = cage.guarded.url
    for secret in (KEY, INTERNAL, cage.controller.TOKEN):
        headers = {"authorization": f"Bearer {secret}", "x_fq_auth": KEY}
        for path in ("/api/jobs", "/api/slots", "/metrics", "/api/upstreams", "/api/v1/x"):
            assert send(url, "GET", path, **headers).status == 401
    for method, what in CONTROL:
        assert send(url, method, f"/api/v0/{what}", x_fq_auth=KEY).status == 404
    wrong = {"authorization": f"Bearer {INTERNAL}"}
    assert call(url, "acquire", {"hostname": "x"}, **wrong).status == 401


@pytest.mark.parametrize("path", [
    "/api/v0/fairqueue/acquire/", "/api/v0//fairqueue/acquire", "/api/v0/fairqueue/ACQUIRE",
    "/api/v0/fairqueue/acquire%20", "/api//v0/fairqueue/acquire", "//api/v0/fairqueue/acquire",
    "/api/v0/../v0/fairqueue/acquire", "/api%2fv0/fairqueue/acquire", "/API/v0/fairqueue/acquire",
    "/api/v0/health/", "/api/v0/x/../health",
])  # fmt: skip
def test_no_spelling_of_a_path_leads_around_the_key(cage: Cage, path: str) -> None:
    for method in ("POST", "GET", "PUT", "OPTIONS"):
        assert send(cage.guarded.url, method, path, b'{"hostname": "x"}').status in (401, 404, 405)


def test_a_body_of_somebody_without_the_key_is_not_read(cage: Cage) -> None:
    answer = send(cage.guarded.url, "POST", "/api/v0/fairqueue/acquire", content_length="999999")
    assert answer.status == 401  # nothing of it was sent


def test_a_key_that_is_sent_twice_is_not_a_way_in(cage: Cage) -> None:
    url = cage.guarded.url
    twice = f"wrong\r\nX-FQ-Auth: {KEY[:-1]}"
    assert call(url, "acquire", {"hostname": "x"}, x_fq_auth=twice).status == 401


def test_what_a_controller_calls_its_settings_cannot_add_headers(cage: Cage) -> None:
    cage.controller.version = "v2\r\nX-Evil: 1\u2028\u00e9"
    operator = {"authorization": f"Bearer {INTERNAL}"}
    assert send(cage.guarded.url, "POST", "/api/v0/refresh", **operator).status == 204
    answer = send(cage.guarded.url, "GET", "/api/v0/health", **operator)
    assert answer.headers["x-config-version"] == "v2??X-Evil: 1??"
    assert "x-evil" not in answer.headers


# ---------------------------------------------------------------------- reached by others


def headway_lets_in(url: str, tokens: dict[str, str]) -> None:
    """Only whoever may submit, and nobody to the control API."""
    body = {"hostname": new_host("any"), "status": 200, "ipBucket": "192.0.2.1/32"}
    submitter = {"authorization": f"Bearer {tokens['submitter']}"}
    for route in ROUTES:
        assert call(url, route, body).status == 401
        assert call(url, route, body, authorization="Bearer hw_0123456789ab_x").status == 401
        reader = {"authorization": f"Bearer {tokens['reader']}"}
        assert call(url, route, body, **reader).status == 403
        assert call(url, route, body, **submitter).status == 200
    for method, what in CONTROL:
        assert send(url, method, f"/api/v0/{what}", **submitter).status == 404


def test_without_a_file_a_token_of_headway_is_needed(guarded: Guarded) -> None:
    headway_lets_in(guarded.url, guarded.tokens)


@pytest.mark.soak
def test_so_it_is_where_others_can_reach_it() -> None:
    with prepared("sqlite", host="0.0.0.0") as server:
        tokens = {
            "submitter": add_token(server, "a", ALL),
            "reader": add_token(server, "b", ("read",)),
        }
        server.start()
        headway_lets_in(server.url.replace("0.0.0.0", "127.0.0.1"), tokens)


def test_with_a_file_that_asks_for_no_key_others_get_slots_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text("{}")
    with prepared("sqlite", host="0.0.0.0", fairqueue=str(file)) as server:
        server.start()  # without any token
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        assert "may take slots: auth is not enabled" in server.printed()
        assert call(url, "acquire", {"hostname": "files.example.com"}).status == 200
        for path in ("/api/jobs", "/api/slots", "/metrics", "/api/upstreams", "/api/tokens"):
            assert send(url, "GET", path).status == 401
        assert call(url, "acquire", {"hostname": "x"}, origin="https://evil.example").status == 403
        for method, what in CONTROL:
            assert send(url, method, f"/api/v0/{what}").status == 404
