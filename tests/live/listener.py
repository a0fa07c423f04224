"""A client of the live stream that is cut off again and again, and comes back with its number."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from random import Random
from typing import Any
from urllib.parse import urlsplit


class Listener:
    """Keeps what it was told. `until` is the number of the last event that it waits for."""

    def __init__(
        self, url: str, path: str = "/api/events", *, seed: int = 0, reads: bool = True
    ) -> None:
        self.address = urlsplit(url)
        self.path = path
        self.seen: list[int] = []
        self.events: list[dict[str, Any]] = []
        self.resets: list[dict[str, Any]] = []
        self.connections = 0
        self.connected = asyncio.Event()  # for the first time
        self.reset = asyncio.Event()
        self.last: str | None = None
        self._reads = reads  # what the events say; else only their numbers are kept
        self._random = Random(seed)

    async def listen(self, until: int, *, cuts: bool = True) -> None:
        while not self.seen or self.seen[-1] < until:
            try:
                await self._connection(until, cuts=cuts)
            except (ConnectionError, asyncio.IncompleteReadError):
                # The server is away for a moment; whoever starts it takes longer than this.
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.05 + 0.1 * self._random.random()):
                        await asyncio.Event().wait()

    async def _connection(self, until: int, *, cuts: bool) -> None:
        host, port = self.address.hostname, self.address.port
        reader, writer = await asyncio.open_connection(host, port, limit=1 << 20)
        try:
            resume = "" if self.last is None else f"Last-Event-ID: {self.last}\r\n"
            ask = f"GET {self.path} HTTP/1.1\r\nHost: {host}:{port}\r\n{resume}\r\n"
            writer.write(ask.encode())
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in head:
                raise AssertionError(head.decode())
            self.connections += 1
            self.connected.set()
            enough = self._random.randrange(1, 2_000) if cuts else None
            await self._read(reader, until, enough)
        finally:
            writer.transport.abort()

    async def _read(self, reader: asyncio.StreamReader, until: int, enough: int | None) -> None:
        """Until the last event, or until it has had enough, in the middle of whatever comes."""
        text, heard = b"", 0
        while True:
            text += await self._chunk(reader)
            while b"\n\n" in text:
                message, _, text = text.partition(b"\n\n")
                heard += self._take(message.decode())
                if (self.seen and self.seen[-1] >= until) or (enough and heard >= enough):
                    return

    async def _chunk(self, reader: asyncio.StreamReader) -> bytes:
        size = int((await reader.readuntil(b"\r\n")).strip(), 16)
        if size == 0:
            raise ConnectionError("the stream has ended")
        chunk = await reader.readexactly(size)
        await reader.readexactly(2)
        return chunk

    def _take(self, message: str) -> int:
        fields = dict(line.split(": ", 1) for line in message.split("\n") if ": " in line)
        self.last = fields.get("id", self.last)
        if "data" not in fields:
            return 0
        if fields.get("event") == "reset":
            self.resets.append(json.loads(fields["data"]))
            self.reset.set()
        else:
            self.seen.append(int(fields["id"]))
            if self._reads:
                self.events.append(json.loads(fields["data"]))
        return 1
