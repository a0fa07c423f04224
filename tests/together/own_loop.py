"""A server of a test, on a loop and a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Self

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
LIMIT = 65_536  # bytes of a head
WITHIN_S = 10.0


class OwnLoop:
    """`with` it, it listens at `port`. What serves a connection ends when it is cancelled."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise AssertionError("whoever listens says what to do")

    def __enter__(self) -> Self:
        self._thread.start()
        opening = asyncio.start_server(self.serve, "127.0.0.1", 0, limit=LIMIT)
        self._server = asyncio.run_coroutine_threadsafe(opening, self._loop).result(WITHIN_S)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(WITHIN_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WITHIN_S)
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()  # type: ignore[union-attr]
        await asyncio.gather(*others, return_exceptions=True)  # type: ignore[arg-type]
        await asyncio.sleep(0)
