"""How the feeds are put together, and what a server has of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from fastapi import APIRouter

from headway.api.attention import Attention
from headway.api.bodies import reserve
from headway.api.config import Config
from headway.api.metrics import Counts
from headway.api.site import Site
from headway.api.tokens import reserve_tenants
from headway.apps.feeds import applying, filling, importing, refreshing, tidying
from headway.apps.feeds.applying import APPLY, Applier
from headway.apps.feeds.attention import FeedAttention
from headway.apps.feeds.counting import Counting
from headway.apps.feeds.filling import Filler
from headway.apps.feeds.greader import editing, login, reading
from headway.apps.feeds.importing import TAKE_IN, Importer
from headway.apps.feeds.previewing import Previews
from headway.apps.feeds.refreshing import Refresher
from headway.apps.feeds.register import FILL, TIDY, Register
from headway.apps.feeds.rounds import Rounds
from headway.apps.feeds.routes import articles, feeds, folders, opml, queue, rounds, rss, rules
from headway.apps.feeds.ruling import Ruling
from headway.apps.feeds.scheduling import COUNTED_FOR, LANE, PREFIX, REFRESH
from headway.apps.feeds.settings import TABLE, feed_settings
from headway.apps.feeds.tables import APP, MIGRATIONS
from headway.apps.feeds.tidying import Tidier
from headway.apps.feeds.visiting import Visitor
from headway.engine.brain import Brain
from headway.net.addresses import Allowed
from headway.sdk.app import App

KEPT_S = 26 * 3_600.0  # completed refreshes, of which there are very many

reserve(PREFIX)
reserve_tenants(COUNTED_FOR)


class Feeds:
    name = APP
    routers: Sequence[APIRouter] = (
        feeds.router, folders.router, queue.router, articles.router,
        rounds.router, opml.router, rss.router, rules.router, login.router, reading.router,
        editing.router,
    )  # fmt: skip

    def prepare(self, app: App, config: Config, settings_file: str | None) -> None:
        self.settings = feed_settings(settings_file)
        app.settings.foreign.add(TABLE)
        store = app.store
        store.install(APP, MIGRATIONS)
        self.store = store
        self.register = Register(store)
        self.counting = Counting(self.register)
        self.attentive = FeedAttention(self.register)
        self.ruling = Ruling(store)
        self.rules = self.ruling.active
        allowed = Allowed(config.outbound_allow)
        self.visitor = Visitor(app, self.register, self.settings, allowed)
        self.refresher = Refresher(
            store, self.register, self.visitor.fetch, self.visitor.parse, asyncio.to_thread,
            self.rules,
        )  # fmt: skip
        self.filler = Filler(store, self.register, self.rules)
        self.previews = Previews(self.visitor)
        self.rounds = Rounds(store, self.register)
        self.importer = Importer(app, self.register, self.rounds, self.settings, allowed)
        self.applier = Applier(store, self.register, self.ruling)
        self.tidier = Tidier(store, self.register, self.settings.keep_days)
        self.register.schedule.heard.append(self.tidier.heard)
        self._register_jobs(app)
        app.settings.declare("code", "lane", LANE, {"limit": self.settings.at_once})
        app.preparing.append(self._meet)

    def _register_jobs(self, app: App) -> None:
        app.job(type=REFRESH, policy=refreshing.RULES, keep_result="2d")(self.refresher.refresh)
        app.retention.sooner[REFRESH] = KEPT_S
        known = app.registry.types[REFRESH]
        known.arrived = self.register.schedule.arrived
        known.ended = self.register.schedule.ended
        app.job(type=FILL, policy=filling.RULES)(self.filler.fill)
        app.job(type=TIDY, policy=tidying.RULES)(self.tidier.tidy)
        app.job(type=TAKE_IN, policy=importing.RULES)(self.importer.take_in)
        app.registry.types[TAKE_IN].ended = self.importer.ended
        app.job(type=APPLY, policy=applying.POLICY, keep_result="2d")(self.applier.apply)

    def _meet(self, brain: Brain) -> None:
        self.register.meet(brain)
        self.refresher.brain = brain
        self.filler.brain = brain
        self.tidier.brain = brain
        self.rounds.meet(brain)
        self.importer.brain = brain
        self.ruling.meet(brain)
        self.applier.brain = brain

    def counts(self) -> Iterable[Counts]:
        return self.counting.counts()

    def attention(self, tenant: str | None, now: float) -> Iterable[Attention]:
        return self.attentive.attention(tenant)

    def serve(self, site: Site) -> None:
        self.site = site

    async def start(self) -> None:
        """Nothing is to be done in the server's loop."""

    def stop_waiting(self) -> None:
        """Nobody waits for long."""

    async def stop(self) -> None:
        await self.visitor.close()
