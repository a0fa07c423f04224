"""How the keys are put together with a server. They have no tables and no jobs of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fastapi import APIRouter

from headway.api.attention import Attention
from headway.api.config import Config
from headway.api.metrics import Counts
from headway.api.site import Site
from headway.apps.keys import routes
from headway.apps.keys.ring import Ring
from headway.sdk.app import App


class Keys:
    name = "keys"
    routers: Sequence[APIRouter] = (routes.router,)

    def prepare(self, app: App, config: Config, settings_file: str | None) -> None:
        """Nothing is to be done before there are secrets."""

    def serve(self, site: Site) -> None:
        self.ring = Ring(site)

    def counts(self) -> Iterable[Counts]:
        return ()

    def attention(self, tenant: str | None, now: float) -> Iterable[Attention]:
        return ()

    async def start(self) -> None:
        """Nothing runs by itself."""

    def stop_waiting(self) -> None:
        """Nobody waits."""

    async def stop(self) -> None:
        """Nothing is left to end."""
