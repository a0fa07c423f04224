"""What is sent on a connection: requests that can be read in two ways, endless ones, slow ones, and
too many of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from time import monotonic

import psutil
import pytest

from tests.contract.kit import Api
from tests.hands.kit import eventually
from tests.security.kit import Answer, Wire, send
from tests.servers import Server, server_on

REQUEST_S = 1.5
LIMITS = {"request_s": REQUEST_S, "max_connections": 30, "max_body": 100_000, "max_headers": 16_384,
          "max_clients": 3, "max_takers": 2, "max_requests": 6}  # fmt: skip
MEGABYTE = b"a" * 1_048_576
JSON_TYPE = "application/json"


@pytest.fixture(scope="module")
def small() -> Iterator[Server]:
    """One that allows little."""
    with server_on("sqlite", **LIMITS) as started:
        yield started


def is_problem(answer: Answer, status: int, kind: str = "") -> bool:
    problem = json.loads(answer.body)
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["detail"]
    assert (answer.status, problem["status"]) == (status, status), answer.body
    return not kind or problem["type"] == kind


# ---------------------------------------------------------------------- read in two ways


@pytest.mark.parametrize("head", [
    b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    b"Content-Length: 5\r\nContent-Length: 6\r\n",
    b"Content-Length: 5, 6\r\n",
    b"Content-Length: +5\r\n",
    b"Content-Length: -5\r\n",
    b"Content-Length: 0x5\r\n",
    b"Content-Length : 5\r\n",
    b"Transfer-Encoding: xchunked\r\n",
    b"Transfer-Encoding: chunked, identity\r\n",
    b"Transfer-Encoding : chunked\r\n",
    b"X-A: b\r\n folded\r\n",
    b"X-A: b\nHost: evil.example\r\n",
    b"X-A: b\rHost: evil.example\r\n",
    b"X-A: \x00\r\n",
    b"X A: b\r\n",
    b": b\r\n",
])  # fmt: skip
def test_a_request_of_two_meanings_is_refused_and_its_connection_ended(
    open_server: Server, head: bytes
) -> None:
    with Wire(open_server.url) as wire:
        host = f"Host: {wire.host}\r\n".encode()
        after = b"GET /api/info HTTP/1.1\r\n" + host + b"\r\n"
        wire.send(b"POST /api/queue/resume HTTP/1.1\r\n" + host + head + b"\r\n0\r\n\r\n" + after)
        assert is_problem(wire.answer(), 400, "no-http")
        assert wire.is_closed()


@pytest.mark.parametrize("line", [
    b"GET /\xff HTTP/1.1", b"GET / HTTP/9.9", b"\x16\x03\x01\x02\x00",
    b"PRI * HTTP/2.0", b"GET / HTTP/1.1 x", b"CONNECT localhost:80 HTTP/1.1",
])  # fmt: skip
def test_what_is_no_request_is_refused(open_server: Server, line: bytes) -> None:
    with Wire(open_server.url) as wire:
        wire.send(line + f"\r\nHost: {wire.host}\r\n\r\n".encode())
        assert is_problem(wire.answer(), 400)
        assert wire.is_closed()


@pytest.mark.parametrize("name", ["host", "origin", "authorization", "cookie", "content-type"])
def test_a_header_that_decides_comes_once(open_server: Server, name: str) -> None:
    with Wire(open_server.url) as wire:
        twice = f"{name}: localhost\r\n{name.title()}: localhost\r\n".encode()
        known = b"" if name == "host" else f"Host: {wire.host}\r\n".encode()
        wire.send(b"GET /api/jobs HTTP/1.1\r\n" + known + twice + b"\r\n")
        assert is_problem(wire.answer(), 400, "twice")


def test_headers_behind_a_body_do_not_count(open_server: Server) -> None:
    with Wire(open_server.url) as wire:
        head = wire.head("POST", "/api/batches", transfer_encoding="chunked",
                         content_type=JSON_TYPE)  # fmt: skip
        trailer = b"Origin: https://evil.example\r\nContent-Type: text/plain\r\n"
        wire.send(head + b"\r\n2\r\n{}\r\n0\r\n" + trailer + b"\r\n")
        assert wire.answer().status == 201


def test_an_answer_is_never_cut_by_another(open_server: Server) -> None:
    """Rubbish behind a request that is being answered."""
    with Wire(open_server.url) as wire:
        take = b'{"types": ["nothing-of-this"], "wait_ms": 400}'
        head = wire.head("POST", "/api/work/take", content_length=str(len(take)),
                         content_type=JSON_TYPE)  # fmt: skip
        wire.send(head + b"\r\n" + take + b"\x00\x00rubbish\r\n\r\n")
        rest = b""
        while part := _received(wire):
            rest += part
        assert not rest


def _received(wire: Wire) -> bytes:
    try:
        return wire.socket.recv(65_536)
    except ConnectionResetError:
        return b""


def test_answers_cannot_be_split(open_server: Server) -> None:
    """Names go into the Location of an answer."""
    with Api(open_server.url) as api:
        for name in ("a\r\nSet-Cookie: x=y", "ä ö", "a/b?c#d", "\x7f\x1b[31m"):
            body = {"name": name, "every": "30d", "job": {"type": "never"}}
            answer = api.send("POST", "/api/schedules", json=body)
            assert answer.status_code == 201
            assert "set-cookie" not in answer.headers
            assert answer.headers["location"].isascii()


# ---------------------------------------------------------------------- endless, and large


def test_headers_that_are_too_large_are_refused(small: Server) -> None:
    assert is_problem(send(small.url, "GET", "/healthz", x="a" * 16_500), 431)
    assert is_problem(send(small.url, "GET", "/healthz?" + "a" * 16_500), 431)
    assert is_problem(send(small.url, "GET", "/" + "a" * 16_500), 431)
    many = {f"x{number}": "some value of it" for number in range(1_000)}
    assert is_problem(send(small.url, "GET", "/healthz", **many), 431)
    assert send(small.url, "GET", "/healthz", x="a" * 10_000).status == 200


@pytest.mark.parametrize("endless", ["name", "value", "path", "headers", "lines", "trailer"])
def test_what_never_ends_is_cut_off_and_fills_nothing(small: Server, endless: str) -> None:
    before = psutil.Process(small.pid).memory_info().rss
    with Wire(small.url) as wire:
        chunked = wire.head("POST", "/api/jobs", transfer_encoding="chunked") + b"\r\n"
        start = {
            "name": wire.head(), "value": wire.head() + b"x: ", "path": b"GET /",
            "headers": wire.head(), "lines": b"", "trailer": chunked + b"2\r\n{}\r\n0\r\nx: ",
        }[endless]  # fmt: skip
        part = {"headers": b"x: y\r\n" * 170_000, "lines": b"\r\n" * 524_288}.get(endless, MEGABYTE)
        wire.send(start)
        sent = 0
        try:
            for _ in range(200):
                wire.send(part)
                sent += len(part)
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert sent < 100 * len(part)
    assert psutil.Process(small.pid).memory_info().rss - before < 50_000_000
    assert send(small.url, "GET", "/healthz").status == 200


def test_a_body_that_is_too_large_is_refused(small: Server) -> None:
    with Wire(small.url) as wire:  # before any of it was sent
        wire.send(wire.head("POST", "/api/jobs", content_length="999999999") + b"\r\n")
        assert is_problem(wire.answer(), 413, "too-large")
    with Wire(small.url) as wire:  # nobody has said how much it is
        wire.send(wire.head("POST", "/api/jobs", transfer_encoding="chunked") + b"\r\n")
        wire.send(b"".join(b"4e20\r\n" + b" " * 20_000 + b"\r\n" for _ in range(10)))
        assert is_problem(wire.answer(), 413, "too-large")
    assert send(small.url, "POST", "/api/jobs", b" " * 99_999, content_type=JSON_TYPE).status == 400


# ---------------------------------------------------------------------- slow, and many


def test_half_a_request_does_not_occupy_a_connection(small: Server) -> None:
    """Nothing at all, half of a line, half of a header, half of a body, and a second half one."""
    with ExitStack() as stack:
        wires = [stack.enter_context(Wire(small.url)) for _ in range(6)]
        _, line, header, body, chunk, second = wires
        line.send(b"GET /hea")
        header.send(header.head() + b"x: y")
        body.send(body.head("POST", "/api/jobs", content_length="100") + b"\r\n{")
        chunk.send(chunk.head("POST", "/api/jobs", transfer_encoding="chunked") + b"\r\n5\r\n{")
        second.send(second.head() + b"\r\n")
        assert second.answer().status == 200
        second.send(second.head())
        began = monotonic()
        for wire in wires:
            assert is_problem(wire.answer(), 408, "too-slow")
            assert wire.is_closed()
        assert monotonic() - began < REQUEST_S + 3


def test_drop_by_drop_is_too_slow_as_well(small: Server) -> None:
    with Wire(small.url) as wire:
        wire.send(wire.head() + b"x: ")
        wire.socket.settimeout(0.1)
        began = monotonic()
        answer = b""
        while not answer:
            assert monotonic() - began < REQUEST_S + 3
            wire.send(b"a")
            try:
                answer = wire.socket.recv(100)
            except TimeoutError:
                continue
        assert answer.startswith(b"HTTP/1.1 408")


def test_a_whole_request_may_be_answered_slowly(small: Server) -> None:
    """The time is for asking, not for answering."""
    with Api(small.url) as api:
        body = {"types": ["nothing-of-this"], "wait_ms": int(REQUEST_S * 1_000) + 500}
        assert api.post("/api/work/take", body)["jobs"] == []


def test_there_are_only_so_many_connections(small: Server) -> None:
    with ExitStack() as stack:
        refused = None
        for _ in range(LIMITS["max_connections"] + 1):  # type: ignore[operator]
            refused = stack.enter_context(Wire(small.url))
        assert refused is not None
        answer = refused.answer()
        assert is_problem(answer, 503, "busy")
        assert int(answer.headers["retry-after"]) > 0
    eventually(lambda: send(small.url, "GET", "/healthz").status == 200)


def test_there_are_only_so_many_requests_at_once(small: Server) -> None:
    with ExitStack() as stack:
        for _ in range(LIMITS["max_requests"]):  # type: ignore[call-overload]
            wire = stack.enter_context(Wire(small.url))
            wire.send(wire.head("POST", "/api/jobs", content_length="9") + b"\r\n{")
        eventually(lambda: send(small.url, "GET", "/api/jobs").status == 503)
        answer = send(small.url, "GET", "/api/jobs/1/events")
        assert is_problem(answer, 503, "busy")
        assert int(answer.headers["retry-after"]) > 0
        assert send(small.url, "GET", "/healthz").status == 200  # or it would be restarted
    eventually(lambda: send(small.url, "GET", "/api/jobs").status == 200)


def test_there_are_only_so_many_listeners(small: Server) -> None:
    with ExitStack() as stack:
        for path in ("/api/events", "/api/requests/events", "/api/events"):
            wire = stack.enter_context(Wire(small.url))
            wire.send(wire.head("GET", path) + b"\r\n")
            assert wire.socket.recv(15) == b"HTTP/1.1 200 OK"
        for path in ("/api/events", "/api/requests/events"):
            answer = send(small.url, "GET", path)
            assert is_problem(answer, 503, "busy")
            assert int(answer.headers["retry-after"]) > 0
    eventually(lambda: _listens(small))


def _listens(server: Server) -> bool:
    with Wire(server.url) as wire:
        wire.send(wire.head("GET", "/api/events") + b"\r\n")
        return wire.socket.recv(15) == b"HTTP/1.1 200 OK"


def test_there_are_only_so_many_takers_and_waiters(small: Server) -> None:
    take = b'{"types": ["nothing-of-this"], "wait_ms": 60000}'  # as long as the test may take
    with Api(small.url) as api, ExitStack() as stack:
        id = api.enqueue("waited-for")

        def come(method: str, path: str, body: bytes = b"") -> None:
            wire = stack.enter_context(Wire(small.url))
            length = {"content_length": str(len(body))} if body else {}
            wire.send(wire.head(method, path, **length) + b"\r\n" + body)

        def full(method: str, path: str, body: bytes, others: tuple[str, bytes]) -> bool:
            answer = send(small.url, method, path, body)
            if answer.status == 503:
                return is_problem(answer, 503, "busy")
            come(method, *others)  # more of them wait, as long as there is a place
            return False

        brief = take.replace(b"60000", b"0")
        eventually(lambda: full("POST", "/api/work/take", brief, ("/api/work/take", take)))
        waits = f"/api/jobs/{id}?wait_s="
        eventually(lambda: full("GET", f"{waits}0.01", b"", (f"{waits}60", b"")))
        assert send(small.url, "GET", f"/api/jobs/{id}").status == 200
        api.post(f"/api/jobs/{id}/cancel")
