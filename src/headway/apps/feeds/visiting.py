"""Asking sites at their pace. A job has its turn at the host of its source when it starts; whoever
asks for anything else, a hop of a redirect or a page that a user names, waits here for one.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import replace

import httpx2

from headway.api.turns import in_turn
from headway.apps.feeds.fetching import FEEDS, Fetched, Fetcher, Kind
from headway.apps.feeds.fetching_answers import NoTurn
from headway.apps.feeds.parsing import Candidate, FeedParser, ParsedFeed, ParserDied
from headway.apps.feeds.register import Register
from headway.apps.feeds.settings import FeedSettings
from headway.apps.feeds.spacing import Spacing
from headway.errors import EngineStopped, SlotLost
from headway.net.addresses import Allowed
from headway.net.outbound import Refused, check_url
from headway.net.urls import host_of
from headway.outcomes import Snooze
from headway.sdk.app import App
from headway.sdk.slot import Slot

# Apart from the lane of the jobs: one that waits for a hop must not wait for its own place.
HOPS = "feeds.hops"
AGAIN_S = 1.0  # until a job is tried again that the stop of this server has interrupted
HOP_S = 30.0  # for a turn where a redirect leads to; others need the place that waits for it
CLOSE_S = 5.0  # for the connections of another loop

FRESH_S = 60.0
MOST_REMEMBERED = 100
MOST_REMEMBERED_BYTES = 32_000_000


class Remembered:
    """What somebody has looked at a moment ago, so that checking an address, reading it and
    subscribing to it ask the site once. For any thread.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, str], tuple[float, Fetched]] = {}  # the oldest first
        self._bytes = 0

    def get(self, url: str, accept: str) -> Fetched | None:
        with self._lock:
            at, fetched = self._kept.get((url, accept), (0.0, None))
            return fetched if fetched is not None and self._clock() < at + FRESH_S else None

    def put(self, url: str, accept: str, fetched: Fetched) -> None:
        """Only what a site has sent well: whoever has mended his feed should see it at once."""
        if fetched.kind is not Kind.FETCHED or len(fetched.body) > MOST_REMEMBERED_BYTES // 4:
            return
        now = self._clock()
        with self._lock:
            self._drop((url, accept))
            self._kept[url, accept] = (now, fetched)
            self._bytes += len(fetched.body)
            for name, (at, _) in list(self._kept.items()):
                too_much = len(self._kept) > MOST_REMEMBERED or self._bytes > MOST_REMEMBERED_BYTES
                if now < at + FRESH_S and not too_much:
                    break
                self._drop(name)

    def _drop(self, name: tuple[str, str]) -> None:
        _, fetched = self._kept.pop(name, (0.0, None))
        self._bytes -= 0 if fetched is None else len(fetched.body)


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
        self._remembered = Remembered()
        self._spacing = Spacing()
        self._closing = False
        self.parser = FeedParser(workers=settings.parsers)

    # ------------------------------------------------------------------ for jobs

    async def fetch(
        self, url: str, *, etag: str | None, modified: str | None, validators_of: str | None,
        subscribers: int,
    ) -> Fetched:  # fmt: skip
        """For a job, which has had its turn."""
        if validators_of is None:  # nothing of it was ever fetched, but perhaps looked at just now
            known = self._remembered.get(url, FEEDS)
            if known is not None:
                return known
        fetcher = await self._fetcher()
        self._go_on()
        async with Turns(self, host_of(url)) as turns:
            fetched = await fetcher.fetch(
                url, etag=etag, modified=modified, validators_of=validators_of,
                subscribers=subscribers, before_hop=turns.next, leaving=self.leave,
            )  # fmt: skip
            turns.heard(fetched)
        self._go_on()
        return fetched

    async def parse(self, fetched: Fetched) -> ParsedFeed:
        try:
            return await self.parser.parse(
                fetched.body, url=fetched.url, content_type=fetched.content_type
            )
        except ParserDied:
            self._go_on()
            raise

    def _go_on(self) -> None:
        """What breaks off because this server stops is no fault of any site."""
        if self._closing:
            raise Snooze(AGAIN_S)

    # ------------------------------------------------------------------ for people

    async def look(self, url: str, *, accept: str = FEEDS, wait_s: float = 30.0) -> Fetched:
        """For somebody who asks now. TimeoutError: others are before him for longer than this."""
        known = self._remembered.get(url, accept)
        if known is not None:
            return known
        fetcher = await self._fetcher()
        try:
            check_url(url, self._allowed)
        except Refused:
            return await fetcher.fetch(url)  # which says why; nobody is waited for, nor asked
        async with Turns(self) as turns:
            await turns.next(url, wait_s)
            fetched = await fetcher.fetch(
                url, accept=accept, before_hop=turns.next, leaving=self.leave
            )
            turns.heard(fetched)
        self._remembered.put(url, accept, fetched)
        if fetched.moved_to is not None:
            arrived = replace(fetched, moved_to=None, hops=0)
            self._remembered.put(fetched.moved_to, accept, arrived)
        return fetched

    async def feeds_named_in(self, page: Fetched) -> tuple[Candidate, ...]:
        return await self.parser.discover(
            page.body, url=page.url, content_type=page.content_type
        )  # fmt: skip

    async def turn(self, url: str, wait_s: float) -> Slot:
        """A turn at the host of an address, in line with the jobs there."""
        engine = self._app.engine
        if engine is None:
            raise EngineStopped("the engine has stopped; try again when it is back")
        host = host_of(url)
        await in_turn(engine, lambda now: self._register.lend_pace(host, now))
        return self._app.slot(host, lane=HOPS, timeout=wait_s)

    async def leave(self, url: str) -> None:
        """Wait, if the request before this one has left later than it might have."""
        host = host_of(url)
        known = self._register.brain.policies.hosts.policies.get(host)
        pace = None if known is None else known.pace
        if pace is None or pace.burst > 1:
            return
        while (wait_s := self._spacing.wait_s(host, pace.interval_s)) > 0:
            await asyncio.sleep(wait_s)

    # ------------------------------------------------------------------ the end

    async def close(self) -> None:
        """From any loop. Jobs that are under way go back to wait for the next start."""
        self._closing = True
        await self.parser.close()
        here = asyncio.get_running_loop()
        while self._fetchers:
            loop, fetcher = self._fetchers.popitem()
            if loop is here:
                await fetcher.close()
            else:
                await _close_there(loop, fetcher)

    async def _fetcher(self) -> Fetcher:
        loop = asyncio.get_running_loop()
        if loop not in self._fetchers:
            # All certificates of the system are read, which would hold up everybody on this loop.
            tls = await asyncio.to_thread(httpx2.create_ssl_context)
            introduction = self._settings.introduction()
            made = Fetcher(self._allowed, introduction=introduction, verify=tls)
            self._fetchers.setdefault(loop, made)
        return self._fetchers[loop]


class Turns:
    """The turns of one fetch at the hosts that it is led to. The last one is held until the answer
    is there: it is that host which wants to be left alone, if any does.
    """

    def __init__(self, visitor: Visitor, own: str = "") -> None:
        self._visitor = visitor
        self._own = own  # the host of a job, which hears from the job itself
        self._held = AsyncExitStack()
        self._slot: Slot | None = None

    async def next(self, url: str, wait_s: float = HOP_S) -> None:
        """NoTurn: others are before it for longer than this."""
        await self._held.aclose()
        self._slot = slot = await self._visitor.turn(url, wait_s)
        try:
            await self._held.enter_async_context(slot)
        except TimeoutError:
            raise NoTurn from None

    def heard(self, fetched: Fetched) -> None:
        is_own = host_of(fetched.url) == self._own
        if fetched.kind is Kind.PUSHBACK and self._slot is not None and not is_own:
            self._slot.report(fetched.status or 429, fetched.retry_after_s)

    async def __aenter__(self) -> Turns:
        return self

    async def __aexit__(self, *_: object) -> None:
        with suppress(EngineStopped, SlotLost):  # then nobody keeps it any more
            await self._held.aclose()


async def _close_there(loop: asyncio.AbstractEventLoop, fetcher: Fetcher) -> None:
    """Connections belong to their loop, and are closed by it, if it still runs."""
    closing = fetcher.close()
    if not loop.is_running():
        closing.close()
        return
    with suppress(TimeoutError, RuntimeError):
        async with asyncio.timeout(CLOSE_S):
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(closing, loop))
