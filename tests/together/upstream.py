"""An upstream that writes down who calls it, and from when to when."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass

from tests.together.own_loop import OwnLoop

INF = float("inf")
DONE = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@dataclass(slots=True, eq=False)
class Visit:
    job: int
    fence: int
    process: str
    began_at: float
    ended_at: float = INF


class Upstream(OwnLoop):
    """`with Upstream() as upstream:` listens at `upstream.port`. Times are those of the wall clock,
    as in the trail.
    """

    def __init__(self) -> None:
        super().__init__()
        self.visits: list[Visit] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A visit ends when it is answered, or when its client hangs up."""
        visit: Visit | None = None
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = await reader.readuntil(b"\r\n\r\n")
            job, fence, process, hold_ms = head.split()[1].decode().strip("/").split("/")
            visit = Visit(int(job), int(fence), process, time.time())
            self.visits.append(visit)
            with suppress(TimeoutError):
                async with asyncio.timeout(int(hold_ms) / 1000):
                    await reader.read()
                    raise ConnectionError
            visit.ended_at = time.time()
            writer.write(DONE)
            await writer.drain()
        if visit is not None and visit.ended_at == INF:
            visit.ended_at = time.time()
        writer.close()
