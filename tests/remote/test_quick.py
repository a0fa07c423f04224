"""A client for what is asked with each job: the same answers and errors, over kept connections."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from headway.errors import ClaimRefused, OutcomeUnknown, StoreUnavailable
from headway.remote.client import Ask
from headway.remote.quick import QuickClient

ASK = Ask("POST", "/api/celery/claims", {"claims": []}, repeats=False, answer_s=10.0)


class Door(ThreadingHTTPServer):
    """Notes from which port it is asked, and answers as it is told."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.came_from: list[int] = []
        self.tokens: list[str | None] = []
        self.status, self.says = 200, b'{"n": 1}'
        self.does: str = "answer"
        self.hung_up = threading.Event()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Door

    def do_POST(self) -> None:
        door = self.server
        self.rfile.read(int(self.headers["Content-Length"]))
        door.came_from.append(self.client_address[1])
        door.tokens.append(self.headers["Authorization"])
        if door.does == "hang up":
            self.close_connection = True
            return
        self.send_response(door.status)
        self.send_header("Content-Length", str(len(door.says)))
        self.end_headers()
        self.wfile.write(door.says)
        self.close_connection = door.does == "answer and close"

    def finish(self) -> None:
        super().finish()
        self.connection.close()
        self.server.hung_up.set()

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody wants to know."""


@pytest.fixture
def door() -> Iterator[Door]:
    with Door() as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def test_one_connection_is_kept_for_all_requests(door: Door) -> None:
    client = QuickClient(door.url, "secret")
    assert [client.call(ASK) for _ in range(3)] == [{"n": 1}] * 3
    assert len(set(door.came_from)) == 1
    assert set(door.tokens) == {"Bearer secret"}
    client.close()
    assert client.call(ASK) == {"n": 1}, "it may be used again"
    client.close()


def test_a_connection_that_was_closed_meanwhile_is_made_anew(door: Door) -> None:
    client = QuickClient(door.url)
    door.does = "answer and close"
    client.call(ASK, patience_s=0.0)
    assert door.hung_up.wait(30)
    assert client.call(ASK, patience_s=0.0) == {"n": 1}
    assert len(set(door.came_from)) == 2
    client.close()


def test_refusals_are_the_errors_that_they_always_are(door: Door) -> None:
    door.status, door.says = 409, b'{"type": "claim-stale", "detail": "not yours"}'
    client = QuickClient(door.url)
    with pytest.raises(ClaimRefused, match="not yours"):
        client.call(ASK)
    client.close()


def test_a_server_that_hangs_up_leaves_it_open_what_it_has_done(door: Door) -> None:
    door.does = "hang up"
    client = QuickClient(door.url)
    with pytest.raises(OutcomeUnknown):
        client.call(ASK, patience_s=0.0)
    door.does = "answer"
    assert client.call(ASK) == {"n": 1}
    client.close()


def test_a_server_that_is_not_there_was_asked_nothing() -> None:
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        QuickClient("http://127.0.0.1:9").call(ASK, patience_s=0.0)


def test_a_forked_process_makes_connections_of_its_own(door: Door) -> None:
    client = QuickClient(door.url)
    client.call(ASK)
    client.after_fork()
    client.call(ASK)
    assert len(set(door.came_from)) == 2
    client.close()
    for each in client._inherited[-1]:  # there is no other process here that would
        each.line.close()


@pytest.mark.parametrize(
    ("url", "proxy", "plain"),
    [
        ("http://queue.example", "", True),
        ("https://queue.example", "", False),
        ("http://queue.example", "http://proxy.example", False),
        ("http://127.0.0.1:1", "http://proxy.example", True),
    ],
)
def test_what_needs_more_than_a_plain_connection_goes_the_usual_way(
    url: str, proxy: str, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    if proxy:
        monkeypatch.setenv("http_proxy", proxy)
    assert QuickClient(url)._is_plain is plain
