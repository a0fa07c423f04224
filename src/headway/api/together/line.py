"""The line between two servers: HTTP over connections that are kept, with as little as it takes.

A client of general use costs more than all that the leader does for a slot. Both ends are ours,
answers are passed on as they come, and nothing is redirected, decoded or retried here.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Iterable
from time import monotonic
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httptools

CONNECT_S = 1.0
IDLE_S = 30.0  # before the other side would hang up
MANY_IDLE = 200
FULL = 262_144  # bytes that are read ahead of whoever takes them

# A machine that is off says nothing: so it is asked, and has to take what it is sent.
NOTICE = (
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1), (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 5),
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 2), (socket.IPPROTO_TCP, "TCP_KEEPCNT", 3),
    (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", 10_000),
)  # fmt: skip

T = TypeVar("T")
Header = tuple[bytes, bytes]
Content = bytes | AsyncIterator[bytes]


class NotReached(Exception):
    """Nothing of the request was sent."""


class Broken(Exception):
    """The line has ended before the answer did."""


class Answer:
    """What comes back: its head, and its body piece by piece. Must be closed."""

    def __init__(self, connection: Connection, status: int, headers: list[Header]) -> None:
        self._connection = connection
        self.status = status
        self.headers = headers

    async def pieces(self) -> AsyncIterator[bytes]:
        while (piece := await self._connection.piece()) is not None:
            yield piece

    def close(self) -> None:
        self._connection.end()


class Line:
    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self._tls = ssl.create_default_context() if place.scheme == "https" else None
        self._host = place.hostname or ""
        self._port = place.port or (443 if self._tls else 80)
        self._idle: deque[tuple[float, Connection]] = deque()

    async def ask(
        self, method: str, target: str, headers: Iterable[Header], content: Content
    ) -> Answer:
        connection = self._kept() or await self._connect()
        try:
            status, answered = await connection.ask(method, target, headers, content)
        except BaseException:
            connection.abort()
            raise
        return Answer(connection, status, answered)

    def _kept(self) -> Connection | None:
        while self._idle:
            since, connection = self._idle.pop()
            if connection.is_open and monotonic() - since < IDLE_S:
                return connection
            connection.abort()
        return None

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_S):
                _, connection = await loop.create_connection(
                    lambda: Connection(self), self._host, self._port, ssl=self._tls
                )
        except (OSError, TimeoutError) as error:
            raise NotReached from error
        return connection

    def keep(self, connection: Connection) -> None:
        self._idle.append((monotonic(), connection))
        if len(self._idle) > MANY_IDLE:
            self._idle.popleft()[1].abort()

    def close(self) -> None:
        while self._idle:
            self._idle.pop()[1].abort()


class Connection(asyncio.Protocol):
    """One request at a time."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._transport: Any
        self._parser = httptools.HttpResponseParser(self)
        self.is_open = False
        self._headers: list[Header] = []
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._sent_whole = False  # the rest of a request would be taken for the next one
        self._over = True  # the answer is whole
        self._may_stay = False  # and the other side does not hang up after it
        self._has_no_body = False
        self._head: asyncio.Future[int] | None = None
        self._more: asyncio.Future[None] | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()

    # ------------------------------------------------------------------ asking

    async def ask(
        self, method: str, target: str, headers: Iterable[Header], content: Content
    ) -> tuple[int, list[Header]]:
        self._parser = httptools.HttpResponseParser(self)
        self._headers, self._over, self._may_stay = [], False, False
        self._has_no_body = method == "HEAD"
        self._head = asyncio.get_running_loop().create_future()
        lines = [f"{method} {target} HTTP/1.1".encode("latin-1")]
        lines += [name + b": " + value for name, value in headers]
        self._sent_whole = isinstance(content, bytes)
        if isinstance(content, bytes):
            self._transport.write(b"\r\n".join([*lines, b"", content]))
        else:
            await self._upload(lines, content)
        return await self._head, self._headers

    async def _upload(self, lines: list[bytes], content: AsyncIterator[bytes]) -> None:
        """In chunks, whatever its length is said to be, and no faster than it is taken. It may be
        answered, or the line may break, before it has ended; then no more of it is sent.
        """
        lines.append(b"transfer-encoding: chunked")
        self._transport.write(b"\r\n".join([*lines, b"", b""]))
        while (piece := await self._unless_answered(anext(content, None))) is not None:
            if piece:
                self._transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                await self._unless_answered(self._may_write.wait())
        if not self._is_answered:
            self._transport.write(b"0\r\n\r\n")
            self._sent_whole = True

    @property
    def _is_answered(self) -> bool:
        """Or it never will be."""
        return self._head is None or self._head.done() or not self.is_open

    async def _unless_answered(self, something: Awaitable[T]) -> T | None:
        """What it gives, or None as soon as there is an answer."""
        assert self._head is not None
        waiting = asyncio.ensure_future(something)
        either: set[asyncio.Future[Any]] = {waiting, self._head}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            return None if self._is_answered else waiting.result()
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    async def piece(self) -> bytes | None:
        """The next of the body. None: that was all."""
        while not self._pieces:
            if self._over:
                return None
            if not self.is_open:
                raise Broken
            self._more = asyncio.get_running_loop().create_future()
            await self._more
        piece = self._pieces.popleft()
        self._size -= len(piece)
        if self._size < FULL and self.is_open:
            self._transport.resume_reading()
        return piece

    def end(self) -> None:
        """Whoever has asked wants no more of it."""
        if self._may_stay and self._sent_whole and self.is_open and not self._pieces:
            self._line.keep(self)
        else:
            self.abort()

    def abort(self) -> None:
        self.is_open = False
        self._transport.abort()

    # ------------------------------------------------------------------ from the line

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self.is_open = True
        line: socket.socket | None = transport.get_extra_info("socket")
        if line is not None:
            for level, name, value in NOTICE:
                if hasattr(socket, name):
                    line.setsockopt(level, getattr(socket, name), value)

    def eof_received(self) -> None:
        """Nothing more can be sent, though it takes a moment until it is lost."""
        self.is_open = False

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        self._may_write.set()
        if self._head is not None and not self._head.done():
            self._head.set_exception(Broken())
            self._head.exception()  # whoever has asked may have gone
        self._tell()

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.abort()
        if self._size > FULL and self.is_open:
            self._transport.pause_reading()

    # ------------------------------------------------------------------ from the parser

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:  # the answer is still to come
            self._headers = []
            return
        if self._has_no_body:
            self._over = True
        if self._head is not None and not self._head.done():
            self._head.set_result(status)

    def on_body(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._size += len(piece)
        self._tell()

    def on_message_complete(self) -> None:
        if self._head is not None and self._head.done():
            self._over = True
            self._may_stay = not self._has_no_body and self._parser.should_keep_alive()
            self._tell()

    def _tell(self) -> None:
        more, self._more = self._more, None
        if more is not None and not more.done():
            more.set_result(None)
