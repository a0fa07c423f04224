"""Talking to a server: what is asked again, what is not, and how its answers become errors."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2
import pytest

from headway import errors
from headway.core import IllegalTransition
from headway.core.change import UnknownTicket
from headway.remote.address import checked_address, checked_token
from headway.remote.client import Ask, Backoff, Client
from tests.remote.kit import URL, problem, sync_client

Answer = Callable[[httpx2.Request], httpx2.Response]
PUT = Ask("POST", "/api/work/put", {"jobs": []})
LOOK = Ask("GET", "/api/jobs/1")


class Script:
    """Answers in order: responses are given, errors raised; the last one again and again."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.requests: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, httpx2.Response)
        return answer


def good(**body: Any) -> httpx2.Response:
    return httpx2.Response(200, json=body)


# ---------------------------------------------------------------------- addresses and tokens


@pytest.mark.parametrize(
    "url", ["http://", "ftp://x", "http://x?y=1", "http://x#y", "http://[", "x", "http://x:port"]
)
def test_an_address_that_makes_no_sense_is_refused(url: str) -> None:
    with pytest.raises(errors.StoreError, match="no address of a server"):
        checked_address(url)


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(errors.StoreError) as caught:
        Client("http://me:geheim@host:8000")
    assert "geheim" not in str(caught.value)


def test_the_token_comes_from_the_call_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_TOKEN", "hw_env\n")
    assert checked_token(None) == "hw_env"
    assert checked_token("hw_said") == "hw_said"
    assert checked_token("") == ""
    with pytest.raises(errors.StoreError, match="damaged"):
        checked_token("a\r\nX-Evil: 1")


def test_the_token_goes_with_every_request_and_nowhere_else() -> None:
    script = Script(good())
    client = sync_client(script)
    client.call(LOOK)
    assert script.requests[0].headers["Authorization"] == "Bearer hw_secret"
    assert "hw_secret" not in repr(client)


def test_no_redirect_is_followed() -> None:
    script = Script(httpx2.Response(307, headers={"Location": "http://evil.example/"}))
    with pytest.raises(errors.StoreError, match="307"):
        sync_client(script).call(LOOK)
    assert [request.url.host for request in script.requests] == ["headway.example"]


def test_a_server_below_a_path_is_asked_there() -> None:
    script = Script(good())
    Client(f"{URL}/queue/", transport=httpx2.MockTransport(script)).call(LOOK)
    assert script.requests[0].url.path == "/queue/api/jobs/1"


# ---------------------------------------------------------------------- asking again


@pytest.mark.parametrize("ask", [PUT, LOOK])
def test_what_never_arrived_is_sent_again(ask: Ask) -> None:
    script = Script(httpx2.ConnectError("refused"), httpx2.ConnectTimeout("slow"), good(id=1))
    assert sync_client(script).call(ask) == {"id": 1}
    assert len(script.requests) == 3


@pytest.mark.parametrize("lost", [httpx2.ReadError("cut"), httpx2.ReadTimeout("slow"),
                                  httpx2.WriteError("cut"), httpx2.WriteTimeout("slow"),
                                  httpx2.RemoteProtocolError("hung up")])  # fmt: skip
def test_an_order_whose_answer_was_lost_is_not_repeated(lost: Exception) -> None:
    script = Script(lost)
    with pytest.raises(errors.OutcomeUnknown, match="unique=") as caught:
        sync_client(script).call(PUT)
    assert len(script.requests) == 1
    assert isinstance(caught.value, errors.StoreUnavailable)


@pytest.mark.parametrize("trouble", [httpx2.ReadError("cut"), problem(503, "unavailable"),
                                     problem(502, ""), problem(429, "busy")])  # fmt: skip
def test_a_question_is_asked_again(trouble: Any) -> None:
    script = Script(trouble, trouble, good(status="queued"))
    assert sync_client(script).call(LOOK) == {"status": "queued"}


def test_patience_has_an_end() -> None:
    script = Script(httpx2.ConnectError("refused"))
    with pytest.raises(errors.StoreUnavailable, match="start the server") as caught:
        sync_client(script, patience_s=0.2).call(PUT)
    assert not isinstance(caught.value, errors.OutcomeUnknown)
    assert len(script.requests) > 1


# ---------------------------------------------------------------------- several servers

FIRST, SECOND = "http://first.example", "http://second.example"


def test_each_server_that_is_named_is_tried_before_anybody_gives_up() -> None:
    """To find out that the first one is off has taken longer than anybody is patient."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.host == "first.example":
            raise httpx2.ConnectTimeout("off")
        return good(id=1)

    client = Client(f"{FIRST},{SECOND}", patience_s=0.0, transport=httpx2.MockTransport(answer))
    assert client.call(PUT) == {"id": 1}
    assert client.url == SECOND


def test_an_error_names_the_server_that_was_asked_last() -> None:
    script = Script(httpx2.ConnectTimeout("off"))
    client = Client(f"{FIRST},{SECOND}", patience_s=0.0, transport=httpx2.MockTransport(script))
    with pytest.raises(errors.StoreUnavailable, match=SECOND):
        client.call(PUT)
    assert [each.url.host for each in script.requests] == ["first.example", "second.example"]


def test_two_who_notice_that_a_server_is_off_do_not_lead_back_to_it() -> None:
    client = Client(f"{FIRST},{SECOND}")
    client.call_another(FIRST)
    client.call_another(FIRST)
    assert client.url == SECOND


def test_the_same_holds_in_a_loop() -> None:
    script = Script(httpx2.ConnectError("refused"), good(id=1), httpx2.ReadError("cut"))
    client = Client(URL, patience_s=0.5, async_transport=httpx2.MockTransport(script))

    async def main() -> None:
        assert await client.acall(PUT) == {"id": 1}
        with pytest.raises(errors.OutcomeUnknown):
            await client.acall(PUT)

    asyncio.run(main())


def test_waits_grow_and_differ_and_have_a_limit() -> None:
    backoff = Backoff(longest_s=5.0)
    waits = [backoff.next_s() for _ in range(200)]
    assert waits[0] <= 0.05
    assert max(waits) <= 5.0
    assert min(waits[20:]) >= 2.5
    assert len(set(waits)) > 150
    backoff.reset()
    assert backoff.next_s() <= 0.05


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (problem(401, "no-token"), errors.NotAllowed),
        (problem(403, "scope"), errors.NotAllowed),
        (problem(421, "wrong-host"), errors.NotAllowed),
        (problem(404, "unknown-job"), errors.UnknownJob),
        (problem(404, "unknown-batch"), errors.UnknownJob),
        (problem(404, "about:blank"), errors.StoreError),
        (problem(404, "unknown-schedule"), ValueError),
        (problem(404, "expired"), errors.ResultExpired),
        (problem(409, "ended"), UnknownTicket),
        (problem(413, "too-large"), errors.PayloadTooLarge),
        (problem(400, "no-json"), errors.BadJob),
        (problem(422, "wrong-input"), errors.BadJob),
        (problem(422, "bad-settings"), ValueError),
        (problem(429, "queue-full"), errors.StoreUnavailable),
        (problem(503, "unavailable"), errors.StoreUnavailable),
        (problem(503, "outcome-unknown"), errors.OutcomeUnknown),
        (problem(500, "bug"), errors.OutcomeUnknown),
        (problem(502, ""), errors.OutcomeUnknown),
        (problem(504, ""), errors.OutcomeUnknown),
        (httpx2.Response(200, text="<html>"), errors.StoreError),
        (httpx2.Response(418, text="a teapot"), errors.StoreError),
    ],
)
def test_each_refusal_has_its_error(answer: httpx2.Response, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        sync_client(Script(answer)).call(PUT)
    assert str(caught.value)
    if error is not errors.OutcomeUnknown:
        assert not isinstance(caught.value, errors.OutcomeUnknown)


def test_a_question_that_fails_leaves_nothing_unknown() -> None:
    with pytest.raises(errors.StoreError) as caught:
        sync_client(Script(problem(500, "bug")), patience_s=0.0).call(LOOK)
    assert not isinstance(caught.value, errors.OutcomeUnknown)


def test_a_wrong_state_says_which() -> None:
    script = Script(problem(409, "wrong-state", state="completed"))
    with pytest.raises(IllegalTransition) as caught:
        sync_client(script).call(Ask("POST", "/api/jobs/1/cancel", verb="cancel"))
    assert (caught.value.state, caught.value.event) == ("completed", "cancel")


def test_a_duplicate_says_of_what() -> None:
    with pytest.raises(errors.DuplicateJob) as caught:
        sync_client(Script(problem(409, "duplicate", job=42))).call(PUT)
    assert caught.value.job_id == 42


# ---------------------------------------------------------------------- real connections


@contextmanager
def listening(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def says_who(handler: BaseHTTPRequestHandler) -> None:
    """The port that the question came from."""
    body = str(handler.client_address[1]).encode()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def test_a_forked_process_connects_anew() -> None:
    with listening(says_who) as url:
        client = Client(url)
        own = client.call(LOOK)
        assert client.call(LOOK) == own  # the connection is kept
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(write, str(client.call(LOOK)).encode())
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            theirs = int(pipe.read())
        os.waitpid(child, 0)
        assert theirs != own
        assert client.call(LOOK) == own
        client.close()
        assert client.call(LOOK) != own  # and may be used again after it was closed
        client.close()


def test_each_loop_has_connections_of_its_own_and_leaves_none_behind() -> None:
    with listening(says_who) as url:
        client = Client(url)

        async def twice() -> tuple[int, int]:
            return await client.acall(LOOK), await client.acall(LOOK)

        first, second = asyncio.run(twice()), asyncio.run(twice())
        assert first[0] == first[1]
        assert second[0] == second[1]
        assert first[0] != second[0]
        client.close()  # an open socket would be a warning, and warnings are errors


def test_many_threads_share_it() -> None:
    with listening(says_who) as url:
        client = Client(url)
        answers: list[int] = []
        threads = [
            threading.Thread(target=lambda: answers.extend(client.call(LOOK) for _ in range(5)))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == 40
        client.close()


def test_a_server_that_never_answers_is_not_waited_for_without_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(f"http://127.0.0.1:{silent.getsockname()[1]}", patience_s=0.0)
        with pytest.raises(errors.OutcomeUnknown, match="ReadTimeout"):
            client.call(Ask("POST", "/api/work/put", {}, answer_s=0.2))
        client.close()


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    client = Client(f"http://127.0.0.1:{port}", patience_s=0.1)
    with pytest.raises(errors.StoreUnavailable, match="cannot be reached"):
        client.call(PUT)
    client.close()
