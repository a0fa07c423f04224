"""What an application on top of the engine brings to a server: tables, jobs, routes.

The server knows no application; whoever starts it names them. An application registers its jobs
and brings its tables up to date before the engine starts, and answers requests while it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from fastapi import APIRouter

from headway.api.attention import Attention
from headway.api.config import Config
from headway.api.metrics import Counts
from headway.sdk.app import App

if TYPE_CHECKING:
    from headway.api.site import Site


class Application(Protocol):
    name: str
    routers: Sequence[APIRouter]

    def prepare(self, app: App, config: Config, settings_file: str | None) -> None:
        """Before the engine starts."""

    def serve(self, site: Site) -> None:
        """The engine runs; requests may come from now on."""

    def counts(self) -> Iterable[Counts]:
        """For the page of metrics, from any thread."""

    def attention(self, tenant: str | None, now: float) -> Iterable[Attention]:
        """What needs somebody's attention: of all (None), or what concerns one tenant. From any
        thread, and often, so from memory.
        """

    async def start(self) -> None:
        """In the server's loop, before the first request."""

    def stop_waiting(self) -> None:
        """The server is to stop: send home who waits. From any thread."""

    async def stop(self) -> None:
        """In the server's loop, after the last one."""
