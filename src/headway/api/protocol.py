"""The wire: how much a client may send, and in which time, before anything else looks at it.

A server that reads whatever comes can be filled by one endless header, and occupied by clients that
send half of a request and wait.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from headway.api.config import Config
from headway.api.problems import MEDIA_TYPE, Problem, details

SPARE_FILES = 256  # for the store, the logs and the programs of jobs
IDLE, HEAD, BODY = range(3)  # what of a request is still to come


class Protocol(HttpToolsProtocol):
    """One connection. A subclass of `limited` says what it may do."""

    request_s = 60.0  # for a client to send a request
    max_headers = 32_768
    max_connections = 10_000

    _late: asyncio.TimerHandle | None = None  # ends the connection, unless the request is whole
    _part = IDLE
    _quiet = 0  # bytes since the last that belonged to a body, or since a request has begun

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            self._refuse(Problem(503, "too many connections; try again later", kind="busy",
                                 headers={"Retry-After": "5"}))  # fmt: skip
            return
        self._late = self.loop.call_later(self.request_s, self._too_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._in_time()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._quiet += len(data)
        super().data_received(data)
        if self._part == IDLE and self._answering():
            return
        if self._quiet > self.max_headers and not self.transport.is_closing():
            self._refuse(Problem(431, "the headers are too large", kind="too-large"))
        elif self._late is None and not self.transport.is_closing():
            self._late = self.loop.call_later(self.request_s, self._too_late)

    # ------------------------------------------------------------------ from the parser

    def on_message_begin(self) -> None:
        self._part = HEAD
        self._quiet = 0
        super().on_message_begin()
        # Lets an answer drop its connection at once, when the client does not read.
        self.scope["headway.abort"] = self.transport.abort  # type: ignore[typeddict-unknown-key]

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._part == HEAD:  # what comes behind a body was not seen by the guard
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._part = BODY
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._quiet = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._part = IDLE
        self._quiet = 0
        self._in_time()
        super().on_message_complete()

    # ------------------------------------------------------------------ saying no

    def _in_time(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _too_late(self) -> None:
        self._late = None
        if self.flow.read_paused:  # it is we who do not read
            self._late = self.loop.call_later(self.request_s, self._too_late)
        elif not self.transport.is_closing():
            self._refuse(Problem(408, f"the request was not whole within {self.request_s:g} s",
                                 kind="too-slow"))  # fmt: skip

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def send_400_response(self, msg: str) -> None:
        self._refuse(Problem(400, "this is no HTTP/1.1 request; check the client", kind="no-http"))

    def _refuse(self, problem: Problem) -> None:
        """The last word on this connection."""
        self._in_time()
        if self._answering():
            if self._part != BODY or self.pipeline or self.cycle.response_started:
                self.transport.abort()  # it would be taken for the answer to another request
                return
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        body = msgspec.json.encode(details(problem))
        headers = {
            "content-type": MEDIA_TYPE, "content-length": str(len(body)), "connection": "close",
            "x-content-type-options": "nosniff", **(problem.headers or {}),
        }  # fmt: skip
        lines = (f"{name}: {value}\r\n".encode() for name, value in headers.items())
        self.transport.write(b"".join((STATUS_LINE[problem.status], *lines, b"\r\n", body)))
        self.transport.close()


def limited(config: Config) -> type[Protocol]:
    """The protocol of a server with these settings."""
    values: dict[str, Any] = {
        "request_s": config.request_s,
        "max_headers": config.max_headers,
        "max_connections": _room_for(config.max_connections),
    }
    return type("LimitedProtocol", (Protocol,), values)


def _room_for(connections: int) -> int:
    """As many as there can be: each needs a file, and systems allow few until they are asked."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return connections
    return max(1, min(connections, soft - SPARE_FILES))
