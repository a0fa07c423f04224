"""The front of a server: the one door that stays open while it begins to lead.

Behind it is an application that follows, or one that leads. What a follower has begun to answer it
answers to the end.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import CancelledError
from contextlib import AsyncExitStack, suppress
from typing import Protocol

from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from headway.api.together.forwarding import Forwarder
from headway.api.together.standing import Standing

logger = logging.getLogger("headway.server")

RETIRE_S = 10.0


class Candidate(Protocol):
    """A server that can lead. Each of these may block, and is called in any thread."""

    def lead(self) -> FastAPI:
        """Start an engine. EngineRunning: somebody else leads."""

    def settle(self, app: FastAPI) -> None:
        """All has started, and this answers from now on."""

    def give_up(self) -> None:
        """It has an engine, and cannot use it: somebody else may have more luck."""


class Front:
    def __init__(self) -> None:
        self.app: FastAPI | None = None  # what answers now
        self.standing: Standing | None = None  # None: nobody shares the store
        self.forwarder: Forwarder | None = None
        self.candidate: Candidate | None = None
        self.failure: BaseException | None = None  # why it could not start
        self._running = AsyncExitStack()
        self._retiring = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            assert self.app is not None
            await self.app(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self._loop = asyncio.get_running_loop()
        try:
            await self._start()
        except BaseException as error:
            self.failure = error
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._retire()
        await send({"type": "lifespan.shutdown.complete"})

    def retire(self) -> None:
        """What runs beside the requests ends, though some of them may go on. From another thread;
        nothing happens if the server has ended meanwhile.
        """
        assert self._loop is not None
        with suppress(RuntimeError, TimeoutError, CancelledError):
            asyncio.run_coroutine_threadsafe(self._retire(), self._loop).result(RETIRE_S)

    async def _retire(self) -> None:
        async with self._retiring:
            await self._running.aclose()

    async def _start(self) -> None:
        assert self.app is not None
        await self._enter(self.app)
        if self.forwarder is not None:
            self._running.callback(self.forwarder.close)
        if self.standing is not None:
            watching = asyncio.create_task(self.standing.watch(self._take_over))
            self._running.push_async_callback(self.standing.leave)
            self._running.push_async_callback(_end, watching)

    async def _enter(self, app: FastAPI) -> None:
        await self._running.enter_async_context(app.router.lifespan_context(app))

    async def _take_over(self) -> None:
        candidate = self.candidate
        assert candidate is not None
        app = await asyncio.to_thread(candidate.lead)
        try:
            await self._enter(app)
        except BaseException:  # with its lease, nobody would lead
            await asyncio.to_thread(candidate.give_up)
            raise
        candidate.settle(app)
        self.app = app
        logger.info("this server leads now")


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
