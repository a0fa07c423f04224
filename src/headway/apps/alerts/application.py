"""How alerts are put together with a server."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence

from fastapi import APIRouter

from headway.api.attention import Attention
from headway.api.config import Config
from headway.api.metrics import Counts
from headway.api.site import Site
from headway.apps.alerts import routes
from headway.apps.alerts.alarm import Alarm
from headway.apps.alerts.settings import TABLE, alert_settings
from headway.apps.alerts.tables import APP, MIGRATIONS
from headway.sdk.app import App


class Alerts:
    name = APP
    routers: Sequence[APIRouter] = (routes.router,)

    def prepare(self, app: App, config: Config, settings_file: str | None) -> None:
        self.settings = alert_settings(settings_file)
        app.settings.foreign.add(TABLE)
        app.store.install(APP, MIGRATIONS)
        self.instance = app.store.secret("instance", secrets.token_urlsafe(9))
        self.alarm: Alarm | None = None

    def serve(self, site: Site) -> None:
        self._site = site

    def counts(self) -> Iterable[Counts]:
        return ()

    def attention(self, tenant: str | None, now: float) -> Iterable[Attention]:
        return () if tenant is not None or self.alarm is None else self.alarm.attention(now)

    async def start(self) -> None:
        """Also if nobody is told: what the learner has come down to is noticed all the same."""
        engine = self._site.app.engine
        if engine is not None and engine.brain.granting:
            self.alarm = Alarm(self._site, self.settings, self.instance)
            await self.alarm.start()

    def stop_waiting(self) -> None:
        """Nobody waits."""

    async def stop(self) -> None:
        if self.alarm is not None:
            await self.alarm.stop()
            self.alarm = None
