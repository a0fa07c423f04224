"""Asking sites at their pace. A job has its turn at the host of its source when it starts; whoever
asks for anything else, a hop of a redirect or a page that a user names, waits here for one.
"""

from __future__ import annotations

import asyncio

from headway.api.turns import in_turn
from headway.apps.feeds.fetching import FEEDS, Fetched, Fetcher
from headway.apps.feeds.model import host_of
from headway.apps.feeds.parsing import FeedParser, ParsedFeed
from headway.apps.feeds.register import Register
from headway.apps.feeds.settings import FeedSettings
from headway.errors import EngineStopped
from headway.net.addresses import Allowed
from headway.sdk.app import App

# Apart from the lane of the jobs: one that waits for a hop must not wait for its own place.
HOPS = "feeds.hops"


class Visitor:
    """For any number of loops; each has connections of its own."""

    def __init__(
        self, app: App, register: Register, settings: FeedSettings, allowed: Allowed
    ) -> None:
        self._app = app
        self._register = register
        self._settings = settings
        self._allowed = allowed
        self._fetchers: dict[asyncio.AbstractEventLoop, Fetcher] = {}
        self.parser = FeedParser(workers=settings.parsers)

    async def fetch(
        self, url: str, *, etag: str | None, modified: str | None, validators_of: str | None,
        subscribers: int,
    ) -> Fetched:  # fmt: skip
        """For a job, which has had its turn."""
        return await self._fetcher().fetch(
            url, etag=etag, modified=modified, validators_of=validators_of,
            subscribers=subscribers, before_hop=self.turn,
        )  # fmt: skip

    async def look(self, url: str, *, accept: str = FEEDS, wait_s: float = 30.0) -> Fetched:
        """For somebody who asks now. TimeoutError: others are before him for longer than this."""
        async with asyncio.timeout(wait_s):
            await self.turn(url)
        return await self._fetcher().fetch(url, accept=accept, before_hop=self.turn)

    async def parse(self, fetched: Fetched) -> ParsedFeed:
        return await self.parser.parse(
            fetched.body, url=fetched.url, content_type=fetched.content_type
        )

    async def turn(self, url: str) -> None:
        """Wait for a turn at the host of an address, in line with the jobs there."""
        engine = self._app.engine
        if engine is None:
            raise EngineStopped("the engine has stopped; try again when it is back")
        host = host_of(url)
        await in_turn(engine, lambda now: self._register.lend_pace(host, now))
        async with self._app.slot(host, lane=HOPS):
            pass

    async def close(self) -> None:
        """From any loop, when nothing is asked any more."""
        await self.parser.close()
        fetcher = self._fetchers.pop(asyncio.get_running_loop(), None)
        if fetcher is not None:
            await fetcher.close()

    def _fetcher(self) -> Fetcher:
        loop = asyncio.get_running_loop()
        fetcher = self._fetchers.get(loop)
        if fetcher is None:
            fetcher = Fetcher(self._allowed, introduction=self._settings.introduction())
            self._fetchers[loop] = fetcher
        return fetcher
