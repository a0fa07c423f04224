"""A balancer as stands before several servers: each request goes to the next of them, over a
connection of its own. It knows nothing of who leads.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from tests.together.own_loop import LIMIT, OwnLoop

KEEPS = re.compile(rb"\r\nconnection:[^\r]*", re.IGNORECASE)


class Balancer(OwnLoop):
    """`with Balancer([first.url, second.url]) as balancer:` listens at `balancer.url`."""

    def __init__(self, urls: Sequence[str]) -> None:
        super().__init__()
        self._places = [urlsplit(url) for url in urls]
        self._turn = 0
        self.passed: Counter[str] = Counter()  # requests, by the server that got them

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = await reader.readuntil(b"\r\n\r\n")
            head = KEEPS.sub(b"", head)[:-2] + b"Connection: close\r\n\r\n"
            there, back = await self._next()
            up = asyncio.ensure_future(_pump(reader, back))
            down = asyncio.ensure_future(_pump(there, writer))
            try:
                back.write(head)
                await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in (up, down):
                    each.cancel()
                await asyncio.gather(up, down, return_exceptions=True)
                back.transport.abort()
        writer.close()

    async def _next(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The next server that listens."""
        for _ in self._places:
            place = self._places[self._turn % len(self._places)]
            self._turn += 1
            with suppress(ConnectionError):
                opened = await asyncio.open_connection(place.hostname, place.port)
                self.passed[f"http://{place.netloc}"] += 1
                return opened
        raise ConnectionError("no server listens")


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while piece := await reader.read(LIMIT):
            writer.write(piece)
            await writer.drain()
