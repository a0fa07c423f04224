"""How the archive is put together, and what a server has of it."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from fastapi import APIRouter

from headway.api.attention import Attention
from headway.api.bodies import reserve
from headway.api.config import Config
from headway.api.metrics import Counts
from headway.api.site import Site
from headway.api.tokens import reserve_tenants
from headway.apps.media import starting
from headway.apps.media.accounts.checking import Checker
from headway.apps.media.accounts.checking import Visitor as CheckVisitor
from headway.apps.media.accounts.cookie_file import sweep
from headway.apps.media.accounts.notifying import Notifier, Sign
from headway.apps.media.accounts.register import Accounts
from headway.apps.media.accounts.schedule import COUNTED_FOR
from headway.apps.media.attention import ArchiveAttention
from headway.apps.media.counting import Counter, Looker
from headway.apps.media.downloading import Downloader
from headway.apps.media.healing import heal
from headway.apps.media.jobs import (
    COUNT,
    DOWNLOAD,
    LANE,
    LIBRARY,
    LIST,
    LOOK,
    PREFIX,
    REFRESH,
    START,
    TYPES,
    YT_DLP,
    rules,
)
from headway.apps.media.listing import Lister
from headway.apps.media.ordering import UserAgents
from headway.apps.media.podcast import Podcasts
from headway.apps.media.presets import account_site, preset_of_site
from headway.apps.media.reconciling import COUNTED_FOR as LOOKED_AT_FOR
from headway.apps.media.reconciling import RECONCILE, Reconciler
from headway.apps.media.reconciling import RULES as RECONCILE_RULES
from headway.apps.media.register import Register
from headway.apps.media.requesting import makers
from headway.apps.media.routes import (
    accounts,
    actions,
    failures,
    files,
    items,
    overview,
    podcasts,
    reconciling,
    subscriptions,
)
from headway.apps.media.running import fetch
from headway.apps.media.settings import MB, TABLE, MediaSettings, media_settings
from headway.apps.media.shelf import Shelf
from headway.apps.media.starting import Starter
from headway.apps.media.tables import APP, MIGRATIONS
from headway.apps.media.tallying import Tally
from headway.apps.media.visiting import Fetch, Visitor
from headway.engine.brain import Brain
from headway.engine.hands.context import job
from headway.errors import BadSettings
from headway.net.addresses import Allowed
from headway.net.redaction import SECRETS
from headway.net.sealing import Vault
from headway.net.webhooks import check_secret, signature
from headway.sdk.app import App

reserve(PREFIX)
reserve_tenants(COUNTED_FOR)
reserve_tenants(LOOKED_AT_FOR)


class Media:
    name = APP
    routers: Sequence[APIRouter] = (
        # Actions go first: one of them has a name where others have a number.
        actions.router, subscriptions.router, items.router, failures.router,
        accounts.router, overview.router, reconciling.router, files.router, podcasts.router,
    )  # fmt: skip

    def prepare(self, app: App, config: Config, settings_file: str | None) -> None:
        self.settings = media_settings(settings_file)
        app.settings.foreign.add(TABLE)
        self.is_on = self.settings.is_on
        if not self.is_on:
            return
        store = app.store
        store.install(APP, MIGRATIONS)
        self.store = store
        self.allowed = Allowed(config.outbound_allow)
        self.register = Register(store)
        self.accounts = Accounts(
            store, cache(partial(Vault.made_at, config.data)), self._needs_account
        )
        agents = UserAgents(tuple(self.settings.ua_profiles.split(",")))
        self.check_visitor = CheckVisitor(
            self.allowed, {"User-Agent": agents.choose(with_cookie=True)}, app.now
        )
        self.checker = Checker(self.accounts, self.check_visitor.visit)
        self.notifier = Notifier(
            self.accounts, lambda: self.settings.notify_url or None, self.allowed,
            instance=store.secret("instance", secrets.token_urlsafe(9)),
            sign=_sign_with(self.settings.notify_secret),
        )  # fmt: skip
        cookies = Path(config.data) / "cookies"
        self.visitor = Visitor(
            self.settings, self.accounts, tuple(config.outbound_allow), cookies,
            _fetch_with(self.settings),
        )  # fmt: skip
        root = Path(self.settings.library or Path(config.data) / "archive").expanduser().absolute()
        self.library = Shelf(root, store, min_free_bytes=self.settings.min_free_mb * MB)
        in_thread = asyncio.to_thread
        common = (store, self.register, self.visitor, self.settings, in_thread)
        self.lister = Lister(*common)
        self.counter = Counter(*common)
        self.looker = Looker(self.register, self.visitor, self.settings)
        self.downloader = Downloader(
            store, self.register, self.visitor, self.library, self.settings, in_thread,
            has_ffmpeg=shutil.which("ffmpeg") is not None,
        )  # fmt: skip
        self.starter = Starter(store, self.register, in_thread)
        self.reconciler = Reconciler(store, self.register, self.library, in_thread)
        self.podcasts = Podcasts(store, self.register)
        self.tally = Tally(store, self.register, self.accounts)
        self.attentive = ArchiveAttention(store, self.accounts, self.tally, self.library)
        self._register_jobs(app)
        app.settings.declare("code", "tool", YT_DLP, {"limit": self.settings.at_once})
        app.settings.declare("code", "lane", LANE, {})
        app.preparing.append(self._meet)
        self._cookies = cookies

    def _register_jobs(self, app: App) -> None:
        settings = self.settings
        tools = (YT_DLP,)
        app.job(
            type=COUNT, policy=rules(settings.count_timeout_s, 2, 5.0, 2.0), tools=tools,
            keep_result="2d",
        )(self.counter.expected_total)  # fmt: skip
        app.job(
            type=LOOK, policy=rules(settings.meta_timeout_s, 2, 5.0, 2.0), tools=tools,
            keep_result="2d",
        )(self.looker.parse)  # fmt: skip
        app.job(
            type=LIST, policy=rules(settings.list_timeout_s, 3, 30.0, 2.0), tools=tools,
            keep_result="2d",
        )(self.lister.list_fetch)  # fmt: skip
        app.job(
            type=DOWNLOAD, policy=rules(settings.download_timeout_s, 3, 60.0, 2.0),
            tools=(YT_DLP, LIBRARY), keep_result="2d",
        )(self.downloader.download)  # fmt: skip
        app.job(type=REFRESH, policy=starting.RULES)(self.starter.refresh)
        app.job(type=START, policy=starting.RULES)(self.starter.start)
        app.job(type=RECONCILE, policy=RECONCILE_RULES, keep_result="30d")(
            self.reconciler.reconcile
        )
        types = app.registry.types
        for type in TYPES:
            types[type].filled_in = self.register.fill_in
        types[DOWNLOAD].ended = self.downloader.ended
        types[LIST].ended = self.lister.ended
        self.checker.register(app)
        self.notifier.register(app)

    def _meet(self, brain: Brain) -> None:
        self.accounts.meet(brain)
        self.checker.meet(brain)
        self.notifier.meet(brain)
        self.register.meet(brain)
        self.reconciler.meet(brain)
        self.podcasts.meet(brain)
        brain.loaded.append(partial(heal, self.store, brain))
        for part in (self.visitor, self.lister, self.downloader, self.starter):
            part.brain = brain

    def _needs_account(self, site: str) -> bool:
        return preset_of_site(site).needs_account or bool(self.accounts.list(account_site(site)))

    def resealed(self, renewed: Mapping[str, str]) -> None:
        if self.is_on:
            self.accounts.resealed(renewed)

    def counts(self) -> Iterable[Counts]:
        return self.tally.counts(self.site.now()) if self.is_on else ()

    def attention(self, tenant: str | None, now: float) -> Iterable[Attention]:
        return self.attentive.attention(tenant, now) if self.is_on else ()

    def serve(self, site: Site) -> None:
        self.site = site
        if self.is_on:
            site.request_makers |= makers(self.register, self.allowed, site.now)
            if site.app.engine is not None and site.engine.brain.granting:
                sweep(self._cookies)  # what a server left that was killed

    async def start(self) -> None:
        """Nothing is to be done in the server's loop."""

    def stop_waiting(self) -> None:
        """Nobody waits for long."""

    async def stop(self) -> None:
        if self.is_on:
            await self.check_visitor.close()
            await self.notifier.close()


def _sign_with(secret: str) -> Sign | None:
    """How messages are signed. None: nobody has said with what."""
    if not secret:
        return None
    try:
        check_secret(secret)
    except ValueError as error:
        raise BadSettings(f"notify_secret of [media] cannot be used: {error}") from None
    SECRETS.add(secret)
    return partial(signature, secret)


def _fetch_with(settings: MediaSettings) -> Fetch:
    python = settings.python or sys.executable
    call: Fetch = partial(fetch, job, python=python, memory_mb=settings.memory_mb)
    return call
