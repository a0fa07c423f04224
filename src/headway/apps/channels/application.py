"""How the channels are put together, and what a server has of them."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from fastapi import APIRouter

from headway.api.attention import Attention
from headway.api.bodies import reserve
from headway.api.config import Config
from headway.api.metrics import Counts
from headway.api.site import Site
from headway.api.turns import in_turn
from headway.apps.channels.attention import attention
from headway.apps.channels.batches import jobs as batch_jobs
from headway.apps.channels.batches.files import Files
from headway.apps.channels.batches.life import Batches
from headway.apps.channels.declared import TABLE, declared_channels
from headway.apps.channels.directory import FILE, Directory
from headway.apps.channels.money.billing import Billing
from headway.apps.channels.money.budgets import Budgets
from headway.apps.channels.online.gateway import Gateway
from headway.apps.channels.queue.callbacks import Callbacks
from headway.apps.channels.queue.jobs import CALL_BACK, LANE, LINE, PREFIX, Ended, QueuedCalls
from headway.apps.channels.routes import batches, calls, channels, costs, files, openai
from headway.apps.channels.tables import APP, MIGRATIONS
from headway.engine.brain import Brain
from headway.errors import HeadwayError
from headway.net.addresses import Allowed
from headway.net.sealing import Vault
from headway.sdk.app import App

RESCAN_S = 600.0

reserve(PREFIX)


class Channels:
    name = APP
    routers: Sequence[APIRouter] = (
        calls.router, channels.router, costs.router, openai.router, files.router, batches.router,
    )  # fmt: skip

    def prepare(self, app: App, config: Config, settings_file: str | None) -> None:
        if not config.dsn:
            Path(config.data).mkdir(mode=0o700, parents=True, exist_ok=True)
        self.settings_file = settings_file
        store = app.store
        store.install(APP, MIGRATIONS)
        self.vault = cache(partial(Vault.made_at, config.data))
        self.directory = Directory(store, self.vault)
        self.billing = Billing()
        self.budgets = Budgets(store, self.directory)
        self.billing.charged.append(self.budgets.hear)
        self.directory.settled.append(self.budgets.look_again)
        self.gateway = Gateway(self.directory, self.billing)
        self.gateway.may_spend = self.budgets.why_not
        instance = store.secret("instance", secrets.token_urlsafe(9))
        self.queued = QueuedCalls(self.directory, self.billing, instance)
        self.files = Files(store)
        self.batches = Batches(app)
        self.queued.kept = self.batches.answer_kept
        self.callbacks = Callbacks(store, self.vault, Allowed(config.outbound_allow), instance)
        self.callbacks.register(app)
        ended: dict[str, Ended] = {LINE: self.batches.line_ended, CALL_BACK: self.callbacks.ended}
        self.queued.register(app, ended)
        batch_jobs.register(app, self.batches, self.files, self.directory, config)
        self._declared = declared_channels(settings_file)
        app.settings.foreign.add(TABLE)
        app.settings.declare("code", "lane", LANE, {})
        self.directory.load()
        app.preparing.append(self._meet)

    def _meet(self, brain: Brain) -> None:
        self.directory.load()  # another server may have led until now
        self.directory.meet(brain)
        self.billing.brain = brain
        self.budgets.brain = brain
        self.queued.brain = brain
        self.callbacks.brain = brain
        self.batches.meet(brain)

    def resealed(self, renewed: Mapping[str, str]) -> None:
        self.directory.resealed(renewed)

    def counts(self) -> Iterable[Counts]:
        return self.billing.counts()

    def attention(self, tenant: str | None, now: float) -> Iterable[Attention]:
        if self.site.app.engine is None:
            return ()  # nothing is known here of keys that are refused, or of what is spent
        return attention(self.directory, self.budgets, tenant, now)

    def serve(self, site: Site) -> None:
        self.site = site
        if site.app.engine is not None:
            site.wait(site.engine.ask(self._begin))

    def _begin(self, now: float) -> None:
        """The engine runs: what the settings file declares, and where names lead."""
        self.budgets.begin(now)
        if self.site.engine.brain.granting:  # else a command asks, who knows nothing of a file
            self._declare(now)
        self.directory.settle(now)

    def _declare(self, now: float) -> None:
        for channel, key in self._declared:
            self.directory.put(channel, key, FILE, now)
        declared = {channel.code for channel, _ in self._declared}
        for code, entry in list(self.directory.entries.items()):
            if entry.source == FILE and code not in declared:
                self.directory.remove(code, now)

    async def start(self) -> None:
        self._rescanning = asyncio.create_task(self._rescan())

    def stop_waiting(self) -> None:
        self.gateway.send_home()

    async def stop(self) -> None:
        await self.gateway.stop()
        self._rescanning.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._rescanning

    async def _rescan(self) -> None:
        while True:
            await asyncio.sleep(RESCAN_S)
            with contextlib.suppress(HeadwayError):  # the store is away: next time
                await in_turn(self.site.engine, self.directory.rescan)
