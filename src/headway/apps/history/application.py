"""How the history is put together, and what a server has of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from fastapi import APIRouter

from headway.api.attention import Attention
from headway.api.config import Config
from headway.api.metrics import Counts
from headway.api.site import Site
from headway.apps.history import routes
from headway.apps.history.recorder import Recorder
from headway.apps.history.sampling import Sampler
from headway.apps.history.tables import APP, MIGRATIONS, stored
from headway.sdk.app import App


class History:
    name = APP
    routers: Sequence[APIRouter] = (routes.router,)

    def prepare(self, app: App, config: Config, settings_file: str | None) -> None:
        app.store.install(APP, MIGRATIONS)
        self._app = app
        self._loading = asyncio.Lock()
        self._recorder: Recorder | None = None
        self._sampler: Sampler | None = None

    def serve(self, site: Site) -> None:
        """Nothing is to be done before the first request."""

    async def recorder(self) -> Recorder:
        """With what was stored. A command that asks without a server has no more than that."""
        async with self._loading:
            if self._recorder is None:
                recorder = Recorder()
                now = self._app.now()
                await asyncio.to_thread(lambda: recorder.load(stored(self._app.store), now))
                self._recorder = recorder
        return self._recorder

    def now(self) -> float:
        return self._app.now()

    def counts(self) -> Iterable[Counts]:
        return ()

    def attention(self, tenant: str | None, now: float) -> Iterable[Attention]:
        return ()

    async def start(self) -> None:
        """Only a server that lets jobs start has a history to write."""
        engine = self._app.engine
        if engine is not None and engine.brain.granting:
            self._sampler = Sampler(self._app, engine, await self.recorder())
            self._sampler.start()

    def stop_waiting(self) -> None:
        """Nobody waits for long."""

    async def stop(self) -> None:
        if self._sampler is not None:
            await self._sampler.stop()
