"""How the feeds are put together, and what a server has of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from fastapi import APIRouter

from headway.api.bodies import reserve
from headway.api.config import Config
from headway.api.metrics import Counts
from headway.api.site import Site
from headway.apps.feeds import filling, refreshing
from headway.apps.feeds.filling import Filler
from headway.apps.feeds.refreshing import Refresher
from headway.apps.feeds.register import FILL, Register
from headway.apps.feeds.rules import Rule
from headway.apps.feeds.scheduling import LANE, PREFIX, REFRESH
from headway.apps.feeds.settings import TABLE, feed_settings
from headway.apps.feeds.tables import APP, MIGRATIONS
from headway.apps.feeds.visiting import Visitor
from headway.engine.brain import Brain
from headway.net.addresses import Allowed
from headway.sdk.app import App

reserve(PREFIX)


class Feeds:
    name = APP
    routers: Sequence[APIRouter] = ()

    def prepare(self, app: App, config: Config, settings_file: str | None) -> None:
        self.settings = feed_settings(settings_file)
        app.settings.foreign.add(TABLE)
        store = app.store
        store.install(APP, MIGRATIONS)
        self.store = store
        self.register = Register(store)
        self.rules: dict[str, tuple[Rule, ...]] = {}
        self.visitor = Visitor(app, self.register, self.settings, Allowed(config.outbound_allow))
        self.refresher = Refresher(
            store, self.register, self.visitor.fetch, self.visitor.parse, asyncio.to_thread,
            self.rules,
        )  # fmt: skip
        self.filler = Filler(store, self.register, self.rules)
        self._register_jobs(app)
        app.settings.declare("code", "lane", LANE, {"limit": self.settings.at_once})
        app.preparing.append(self._meet)

    def _register_jobs(self, app: App) -> None:
        app.job(type=REFRESH, policy=refreshing.RULES, keep_result="2d")(self.refresher.refresh)
        known = app.registry.types[REFRESH]
        known.arrived = self.register.schedule.arrived
        known.ended = self.register.schedule.ended
        app.job(type=FILL, policy=filling.RULES)(self.filler.fill)

    def _meet(self, brain: Brain) -> None:
        self.register.meet(brain)
        self.refresher.brain = brain
        self.filler.brain = brain

    def counts(self) -> Iterable[Counts]:
        return ()

    def serve(self, site: Site) -> None:
        self.site = site

    async def start(self) -> None:
        """Nothing is to be done in the server's loop."""

    def stop_waiting(self) -> None:
        """Nobody waits for long."""

    async def stop(self) -> None:
        await self.visitor.close()
