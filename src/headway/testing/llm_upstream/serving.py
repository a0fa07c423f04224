"""HTTP/1.1 for the upstream: connections that stay open, and paths to steer it by."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, NamedTuple, cast
from urllib.parse import parse_qs, urlsplit

import httptools
import msgspec

from headway.testing.llm_upstream import shapes
from headway.testing.llm_upstream.answering import Exchange, Upstream
from headway.testing.llm_upstream.settings import Settings

HOST = "127.0.0.1"
BACKLOG = 4096  # many clients may come at once
LARGEST_BODY = 64 * 1024 * 1024
CALLS = frozenset({shapes.CHAT, shapes.EMBEDDINGS})
KEPT_HEADERS = frozenset({b"authorization", b"x-request-id", b"idempotency-key"})
_REASONS = {status.value: status.phrase for status in HTTPStatus}


class Request(NamedTuple):
    method: str
    path: str
    query: str
    headers: dict[bytes, str]
    body: bytes
    keep_alive: bool

    @property
    def key(self) -> str | None:
        scheme, _, key = self.headers.get(b"authorization", "").partition(" ")
        return key.strip() if scheme.lower() == "bearer" else None


class Connection(asyncio.Protocol):
    """Answers one request after the other, in the order in which they came."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[Request] = deque()
        self._current: Exchange | None = None
        self._keep_alive = True
        self._answering = False  # somebody further up will look for what waits

    # ------------------------------------------------------------------ bytes in

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop has its own class

    def connection_lost(self, error: Exception | None) -> None:
        self._waiting.clear()
        if self._current is not None:
            self._current.lost()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._give_up(400, "This server speaks HTTP/1.1 only.")
        except httptools.HttpParserError as error:
            self._give_up(400, f"This is no HTTP request: {error}.")

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers: dict[bytes, str] = {}
        self._body: list[bytes] = []
        self._length = 0

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name in KEPT_HEADERS:
            self._headers[name] = value.decode("latin-1")
        elif name == b"expect":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._length += len(body)
        if self._length > LARGEST_BODY:
            self._give_up(413, f"The body is larger than {LARGEST_BODY} bytes.")
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        if self._transport.is_closing():
            return
        address = urlsplit(self._url.decode("latin-1"))
        self._waiting.append(
            Request(
                self._parser.get_method().decode("latin-1"),
                address.path,
                address.query,
                self._headers,
                b"".join(self._body),
                self._parser.should_keep_alive(),
            )
        )
        if self._current is None:
            self.next_request()

    # ------------------------------------------------------------------ requests

    def next_request(self) -> None:
        self._current = None
        if self._answering:
            return
        self._answering = True
        while self._current is None and self._waiting and not self._transport.is_closing():
            self._answer(self._waiting.popleft())
        self._answering = False

    def _answer(self, request: Request) -> None:
        self._keep_alive = request.keep_alive
        upstream, path = self._upstream, request.path
        if request.method == "POST" and path in CALLS:
            call = upstream.call(path, request.key, request.headers)
            self._current = Exchange(upstream, self, call)
            self._current.begin(path, request.body)
        elif request.method == "GET" and path == shapes.MODELS:
            if upstream.settings.keys and request.key not in upstream.settings.keys:
                self.send(401, "", shapes.WRONG_KEY)
            else:
                self.send(200, "", shapes.models_body(upstream.settings, time.time()))
        elif (control := _CONTROLS.get((request.method, path))) is not None:
            try:
                self.send(200, "", msgspec.json.encode(control(upstream, request)))
            except (ValueError, msgspec.DecodeError) as error:
                self._refuse(400, str(error))
        else:
            self._refuse(404, f"There is no {request.method} {path} here.")

    def _refuse(self, status: int, message: str) -> None:
        self.send(status, "", shapes.error_body(message, "invalid_request_error"))

    def _give_up(self, status: int, message: str) -> None:
        """What follows on this connection cannot be understood."""
        if self._transport.is_closing():
            return
        self._waiting.clear()
        if self._current is None:
            self._refuse(status, message)
        self._transport.close()

    # ------------------------------------------------------------------ bytes out

    def send(self, status: int, extra: str, body: bytes, *, cut: bool = False) -> None:
        head = self._head(status, "application/json", f"content-length: {len(body)}\r\n{extra}")
        self._transport.write(head + (body[: len(body) // 2] if cut else body))
        if cut or not self._keep_alive:
            self._transport.close()

    def start_stream(self, extra: str) -> None:
        extra = f"transfer-encoding: chunked\r\ncache-control: no-cache\r\n{extra}"
        self._transport.write(self._head(200, "text/event-stream; charset=utf-8", extra))

    def send_chunk(self, data: bytes) -> None:
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def end_stream(self) -> None:
        self._transport.write(b"0\r\n\r\n")
        if not self._keep_alive:
            self._transport.close()

    def hang_up(self) -> None:
        self._transport.close()

    def _head(self, status: int, content_type: str, extra: str) -> bytes:
        connection = "" if self._keep_alive else "connection: close\r\n"
        reason = _REASONS.get(status, "Unknown")
        return (
            f"HTTP/1.1 {status} {reason}\r\ncontent-type: {content_type}\r\n{connection}{extra}\r\n"
        ).encode("latin-1")


# ---------------------------------------------------------------------- steering


def _calls(upstream: Upstream, request: Request) -> Any:
    since = parse_qs(request.query).get("since", ["0"])[0]
    return upstream.log.since(int(since))


def _set(upstream: Upstream, request: Request) -> Any:
    changes = msgspec.json.decode(request.body)
    if not isinstance(changes, dict):
        raise ValueError("send the settings to change as a JSON object")
    upstream.change(changes)
    return upstream.settings


def _reset(upstream: Upstream, _: Request) -> Any:
    upstream.reset()
    return {}


_CONTROLS: dict[tuple[str, str], Callable[[Upstream, Request], Any]] = {
    ("GET", "/_control/stats"): lambda upstream, _: upstream.stats(),
    ("GET", "/_control/settings"): lambda upstream, _: upstream.settings,
    ("GET", "/_control/calls"): _calls,
    ("POST", "/_control/set"): _set,
    ("POST", "/_control/reset"): _reset,
}


async def serve(settings: Settings, port: int, listening: Callable[[int], None]) -> None:
    """Until cancelled. `listening` hears the port."""
    upstream = Upstream(settings)
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(upstream), HOST, port, backlog=BACKLOG
    )
    listening(server.sockets[0].getsockname()[1])
    async with server:
        await server.serve_forever()
