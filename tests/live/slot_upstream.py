"""An upstream that sees who is there: how many at once, from which IP, for how long.

It knows nothing of slots. Whoever calls it says from which IP bucket, and by a name under which the
visit can be found again; it is answered when the time that it has asked for is over.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

INF = float("inf")
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
DONE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

Span = tuple[float, float]


class Call(msgspec.Struct):
    ip: str
    name: str
    hold_s: float


@dataclass(slots=True, eq=False)
class Visit:
    """From the moment that the request was read until it was answered or its client hung up."""

    ip: str
    name: str
    began_at: float
    ended_at: float = INF


class Door(asyncio.Protocol):
    """One connection: one visit at a time."""

    _read = msgspec.json.Decoder(Call).decode

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._visit: Visit | None = None
        self._received = b""
        self._alarm: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self._upstream.doors.add(self)

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return
        length = LENGTH.search(self._received, 0, end + 2)
        assert length is not None
        if len(self._received) >= end + 4 + int(length[1]):
            call = self._read(self._received[end + 4 :])
            self._received = b""
            self._visit = Visit(call.ip, call.name, time.monotonic())
            self._upstream.visits.append(self._visit)
            loop = asyncio.get_running_loop()
            self._alarm = loop.call_later(call.hold_s, self._answer)

    def _answer(self) -> None:
        self._end()
        self.transport.write(DONE)

    def connection_lost(self, error: Exception | None) -> None:
        self._upstream.doors.discard(self)
        if self._alarm is not None:
            self._alarm.cancel()
        self._end()

    def _end(self) -> None:
        if self._visit is not None:
            self._visit.ended_at = time.monotonic()
            self._visit = None


class Upstream:
    """`async with Upstream() as upstream`: it listens at `upstream.url`."""

    def __init__(self) -> None:
        self.visits: list[Visit] = []
        self.doors: set[Door] = set()
        self.url = ""

    async def __aenter__(self) -> Upstream:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Door(self), "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for door in self.doors:
            door.transport.abort()
        while self.doors:
            await asyncio.sleep(0)

    def most(self) -> int:
        """That were ever there at once."""
        return most_at_once((each.began_at, each.ended_at) for each in self.visits)

    def most_of_an_ip(self) -> int:
        spans: dict[str, list[Span]] = defaultdict(list)
        for each in self.visits:
            spans[each.ip].append((each.began_at, each.ended_at))
        return max(most_at_once(several) for several in spans.values())

    def slot_seconds(self, begin: float, end: float) -> dict[str, float]:
        """For how long each IP was there between two moments, each of its visits counted."""
        found: dict[str, float] = defaultdict(float)
        for each in self.visits:
            found[each.ip] += max(0.0, min(each.ended_at, end) - max(each.began_at, begin))
        return dict(found)


def most_at_once(spans: Iterable[Span]) -> int:
    """How many of them overlap at most. One that ends when another begins does not overlap it."""
    steps: list[tuple[float, int]] = []
    for begin, end in spans:
        if begin < end:
            steps += [(begin, 1), (end, -1)]
    most = there = 0
    for _, step in sorted(steps):
        there += step
        most = max(most, there)
    return most
