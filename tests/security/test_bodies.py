"""What is inside of requests: JSON that is deep, large or none, and more jobs than there may be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from time import monotonic

import pytest

from headway.api.guard import too_deep
from tests.contract.kit import PATIENCE_S, Api, new_name
from tests.hands.kit import eventually
from tests.security.kit import Guarded, guarded_on, send
from tests.servers import Server

JSON_TYPE = "application/json"
ROUTES = ("/api/jobs", "/api/work/put", "/api/requests/enqueue", "/api/schedules", "/api/batches",
          "/api/work/hello", "/api/work/complete", "/api/jobs/bulk", "/api/tokens")  # fmt: skip


def status_of(server: Server, path: str, body: bytes) -> int:
    answer = send(server.url, "POST", path, body, content_type=JSON_TYPE)
    if answer.status >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert json.loads(answer.body)["detail"]
    return answer.status


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("body", [
    b"[" * 100_000, b"{" * 100_000, b'{"a":' * 100_000, b'[{"a":' * 50_000,
    b"[" * 100_000 + b"]" * 100_000, b'{"type":"x","args":' + b'{"a":' * 64 + b"1" + b"}" * 65,
    b'["\\"",' + b"[" * 100_000,
])  # fmt: skip
def test_deep_json_is_refused(open_server: Server, path: str, body: bytes) -> None:
    answer = send(open_server.url, "POST", path, body, content_type=JSON_TYPE)
    assert answer.status == 400
    assert json.loads(answer.body)["type"] == "too-deep"


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("body", [
    b"{", b"\xff\xfe", b'{"type": "\\ud800"}', b'{"\\udc00": 1}', b"'x'", b" ",
    b'{"type": "x"}}', b'{"type": "x",}', b"\x00", b'{"type": "\x00"}', b"-", b'"' + b"\\" * 9_999,
    b'{"type": "x", "priority": ' + b"9" * 5_000 + b"}", b"9" * 100_000,
])  # fmt: skip
def test_what_is_no_json_is_refused(open_server: Server, path: str, body: bytes) -> None:
    assert status_of(open_server, path, body) in (400, 422)


@pytest.mark.parametrize("number", ["1e999999", "-1e999999", "NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_does_not_have_are_refused(open_server: Server, number: str) -> None:
    for text in ('{"type": "x", "args": {"n": %s}}', '{"type": "x", "args": {"n": [[%s]]}}',
                 '{"type": "x", "delay_s": %s}', '{"type": "x", "weight": %s}',
                 '{"type": "x", "priority": %s}', '{"type": "x", "at": %s}'):  # fmt: skip
        assert status_of(open_server, "/api/jobs", (text % number).encode()) in (400, 422)


def test_large_numbers_come_back_as_they_went_in(open_server: Server) -> None:
    with Api(open_server.url) as api:
        for number in (2**63, 2**64, -(2**64), 10**300, int("9" * 4_000)):
            id = api.enqueue(new_name(), args={"n": number})
            text = api.http.get(f"/api/jobs/{id}/payload").text
            assert f'"n":{number}' in text.replace(" ", "")
            api.post(f"/api/jobs/{id}/cancel")


def test_odd_text_comes_back_as_it_went_in(open_server: Server) -> None:
    odd = {"a\x00b": "\x00", "\x1b[31m": "\u202e", "": "\ufffe", "__proto__": {"constructor": 1}}
    with Api(open_server.url) as api:
        id = api.enqueue(new_name(), args=odd)
        assert api.get(f"/api/jobs/{id}/payload")["value"] == odd
        api.post(f"/api/jobs/{id}/cancel")


@pytest.mark.parametrize("value", [
    '{"a": "\\ud800"}', '{"\\ud800": 1}', '{"a": "\\u0000"}', '{"a": 1e999}', '{"a": NaN}', "[]",
    '{"self": 1}', '{"target": 1}', '{"what": 1}', '{"limit": "\\ud800"}', '{"limit": 1e999}',
    '{"limit": -1}', '{"limit": {}}', '{"": 1}', "null", '{"a": {}}', "5",
])  # fmt: skip
def test_settings_that_make_no_sense_are_refused(open_server: Server, value: str) -> None:
    hello = f'{{"settings": [{{"kind": "lane", "name": "x", "value": {value}}}]}}'
    for method, path, body in (
        ("PUT", "/api/lanes/x/settings", value),
        ("PUT", "/api/upstreams/x/settings", value),
        ("POST", "/api/work/hello", hello),
    ):
        answer = send(open_server.url, method, path, body.encode(), content_type=JSON_TYPE)
        assert answer.status in (400, 422), (path, answer.body)
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("value", ['"\\ud800"', '{"\\ud800": 1}', "1e999", "NaN", "9" * 5_000])
def test_reports_that_make_no_sense_are_refused(open_server: Server, value: str) -> None:
    with Api(open_server.url) as api:
        type = new_name()
        id = api.enqueue(type)
        (work,) = api.post("/api/work/take", {"types": [type], "wait_ms": 5_000})["jobs"]
        head = f'{{"fence": {work["fence"]}, '
        for path, said in (("heartbeat", '"checkpoint": %s}'),
                           ("complete", '"status_code": 200, "body": %s}'),
                           ("heartbeat", '"progress": {"done": 1, "note": %s}}'),
                           ("complete", '"status_code": 500, "error": %s}')):  # fmt: skip
            body = (head + said % value).encode()
            answer = send(open_server.url, "POST", f"/api/work/{id}/{path}", body,
                          content_type=JSON_TYPE)  # fmt: skip
            assert answer.status in (400, 422), (path, answer.body)
        api.post(f"/api/work/{id}/complete", {"fence": work["fence"], "status_code": 200})


def test_names_with_a_null_character_are_refused(open_server: Server) -> None:
    for field in ("type", "lane", "tenant", "key", "upstream"):
        body = {"type": "x", field: "a\x00b"}
        assert status_of(open_server, "/api/jobs", json.dumps(body).encode()) == 422
    for path in ("/api/jobs?q=type:%00", "/api/jobs?type=%00", "/api/jobs/%00", "/api/lanes/%00",
                 "/api/schedules/%00", "/api/batches/%00", "/api/tokens/%00"):  # fmt: skip
        assert send(open_server.url, "GET", path).status in (200, 404, 405, 422)


def test_many_keys_do_not_stop_the_server(open_server: Server) -> None:
    """Eight megabytes of the cheapest things that there are: others are answered meanwhile."""
    keys = b",".join(b'"%d":0' % number for number in range(300_000))
    bombs = (
        b'{"type": "x", "args": {' + keys + b"}}",
        b'{"type": "x", "args": {"a": [' + b"[]," * 2_000_000 + b"[]]}}",
        b'{"type": "x", "args": {"a": [' + b"{}," * 2_000_000 + b"{}]}}",
        b'{"type": "x", "args": {"a": ["' + b'","' * 2_000_000 + b'"]}}',
        b'{"type": "x", ' + keys + b"}",
    )
    for bomb in bombs:
        began = monotonic()
        assert status_of(open_server, "/api/jobs", bomb) in (202, 413, 422)
        assert send(open_server.url, "GET", "/healthz").status == 200
        assert monotonic() - began < PATIENCE_S
    with Api(open_server.url) as api:
        api.post(
            "/api/jobs/bulk", {"action": "cancel", "q": "type:x status:open", "dry_run": False}
        )


def test_only_so_much_of_what_is_wrong_is_said(open_server: Server) -> None:
    """A small request must not have a large answer, nor repeat what it was sent."""
    body = {"jobs": [{"typo": "canary-value"} for _ in range(5_000)]}
    answer = send(open_server.url, "POST", "/api/work/put", json.dumps(body).encode())
    assert answer.status == 422
    assert len(answer.body) < 10_000
    assert b"canary-value" not in answer.body


@pytest.mark.parametrize(("body", "deep"), [
    (b"[[[]]]", True), (b"[[]]", False), (b"[][][][]", False), (b'["[[[[[["]', False),
    (b'["\\"[[[[["]', False), (b'["\\\\",[[]]]', True), (b'{"a":{"b":{}}}', True),
    (b'"[[[[', False), (b'["\n[[[["]', False), (b"[[[", True), (b"", False),
])  # fmt: skip
def test_depth_is_counted_outside_of_strings(body: bytes, deep: bool) -> None:
    assert too_deep(body, 2) is deep


# ---------------------------------------------------------------------- as many as may be

MOST = 5


@pytest.fixture(scope="module")
def little() -> Iterator[Guarded]:
    with guarded_on("sqlite", max_open_per_tenant=MOST) as started:
        yield started


def test_a_tenant_has_only_so_many_open_jobs(little: Guarded) -> None:
    with little.as_("alice") as alice, little.as_("bob") as bob:
        ids = [alice.enqueue("x") for _ in range(MOST)]
        eventually(lambda: alice.send("POST", "/api/jobs", json={"type": "x"}).status_code == 429)
        job = {"type": "x"}
        for path, body in (
            ("/api/jobs", job),
            ("/api/work/put", {"jobs": [job]}),
            ("/api/requests/enqueue", {**job, "requires_cookie": False}),
        ):
            answer = alice.send("POST", path, json=body)
            assert answer.status_code == 429
            assert answer.json()["type"] == "queue-full"
            assert int(answer.headers["retry-after"]) > 0
        bob.problem(429, "POST", "/api/work/put", json={"jobs": [{"type": "x"}] * (MOST + 1)})
        mine = bob.enqueue("x")  # another's queue is not full
        for id in (*ids, mine):
            (alice if id != mine else bob).http.post(f"/api/jobs/{id}/cancel")
        eventually(lambda: alice.send("POST", "/api/jobs", json={"type": "x"}).status_code == 202)


def test_pages_are_only_so_long(little: Guarded) -> None:
    with little.as_("operator") as api:
        for path in ("/api/jobs", "/api/requests", "/api/tasks", "/api/batches"):
            api.problem(422, "GET", path, params={"size": 201})
            api.problem(422, "GET", path, params={"page": 10**12})
            assert api.get(path, page=1_000_000, size=200)["items"] == []
        for path in ("/api/trail", "/api/audit"):
            api.problem(422, "GET", path, params={"limit": 1_001})
        api.problem(422, "GET", "/api/jobs", params={"q": "x" * 1_001})
        api.problem(422, "GET", "/api/jobs/1", params={"wait_s": 61})
        api.problem(422, "POST", "/api/work/take", json={"types": ["x"], "wait_ms": 60_001})
        api.problem(422, "POST", "/api/work/take", json={"types": ["x"], "size": 1_001})
        api.problem(422, "POST", "/api/jobs", json={"type": "x", "after": list(range(1, 1_002))})


def test_a_payload_is_only_so_large(little: Guarded) -> None:
    with little.as_("operator") as api:
        api.problem(413, "POST", "/api/jobs", json={"type": "x", "args": {"a": "x" * 1_100_000}})
