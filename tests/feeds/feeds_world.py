"""Feeds in a world with a clock of its own: sites that do as they are told, weeks in a moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from headway import App
from headway.api.config import Config
from headway.apps.feeds.application import Feeds
from headway.apps.feeds.fetching_answers import Fetched, Kind
from headway.apps.feeds.model import Source, Subscription
from headway.apps.feeds.parsing import FeedUnreadable, ParsedEntry, ParsedFeed
from headway.apps.feeds.register import Wanted, wanted_feed
from headway.store.tables import Write
from headway.testing import World
from headway.testing.world import VirtualEngine
from tests.engine.kit import takes

T = TypeVar("T")


def entry(number: int, **more: Any) -> ParsedEntry:
    facts: dict[str, Any] = {
        "guid": f"g{number}",
        "link": f"https://blog.example/{number}",
        "title": f"Article {number}",
        "content": f"<p>Text of {number}</p>",
    }
    return ParsedEntry(**{**facts, **more})


def dated(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


@dataclass
class Site:
    """One address. What it has to say is in `entries`; or it fails with `failure`."""

    entries: list[ParsedEntry] = field(default_factory=list)
    failure: Fetched | None = None
    unreadable: str = ""
    etag: str | None = None
    moved_to: str | None = None
    fresh_for_s: float | None = None
    takes_s: float = 0.5
    about: dict[str, Any] = field(default_factory=dict)  # more of its ParsedFeed


@dataclass
class Visited:
    at: float
    url: str
    etag: str | None
    subscribers: int


class Web:
    """All sites, and who was there when."""

    def __init__(self, world: FeedsWorld) -> None:
        self._world = world
        self.sites: dict[str, Site] = {}
        self.visits: list[Visited] = []
        self.under_way: dict[str, int] = {}
        self.most_at_once = 0

    def times(self, url: str) -> list[float]:
        return [each.at for each in self.visits if each.url == url]

    async def fetch(
        self, url: str, *, etag: str | None, modified: str | None, validators_of: str | None,
        subscribers: int,
    ) -> Fetched:  # fmt: skip
        site = self.sites.get(url)
        self.visits.append(Visited(self._world.now, url, etag, subscribers))
        self.under_way[url] = self.under_way.get(url, 0) + 1
        self.most_at_once = max(self.most_at_once, self.under_way[url])
        try:
            await takes(0.5 if site is None else site.takes_s)
        finally:
            self.under_way[url] -= 1
        if site is None:
            return failed(Kind.NOT_FOUND, 404, url=url)
        if site.failure is not None:
            return replace(site.failure, url=url)
        if site.etag is not None and site.etag == etag:
            return Fetched(kind=Kind.NOT_MODIFIED, url=url, status=304, etag=etag)
        fresh = None if site.fresh_for_s is None else self._world.now + site.fresh_for_s
        return Fetched(
            kind=Kind.FETCHED, url=site.moved_to or url, status=200, body=url.encode(),
            body_hash=str(hash((tuple(site.entries), str(site.about), site.unreadable))),
            etag=site.etag, moved_to=site.moved_to, fresh_until=fresh,
        )  # fmt: skip

    async def parse(self, fetched: Fetched) -> ParsedFeed:
        site = self.sites[fetched.body.decode()]
        if site.unreadable:
            raise FeedUnreadable(site.unreadable)
        about = {"format": "rss20", "title": "A blog", **site.about}
        return ParsedFeed(**about, entries=tuple(site.entries))


def failed(kind: Kind, status: int | None = None, **more: Any) -> Fetched:
    facts = {"url": "https://blog.example/", "error": f"it answered {status or kind}"}
    return Fetched(kind=kind, status=status, **{**facts, **more})


async def here(call: Callable[..., T], /, *args: Any) -> T:
    """In the place of a thread, which would let the clock run on."""
    return call(*args)


class FeedsWorld(World):
    def __init__(self, app: App | None = None, **more: Any) -> None:
        super().__init__(App() if app is None else app, **more)
        self.feeds = Feeds()
        self.web = Web(self)
        self._prepared = False

    def _start(self) -> VirtualEngine:
        if not self._prepared:
            self._prepared = True
            self.feeds.prepare(self.app, Config(data=self._directory or ""), None)
            refresher = self.feeds.refresher
            refresher._fetch = self.web.fetch  # type: ignore[assignment]
            refresher._parse = self.web.parse
            refresher._in_thread = here
        return super()._start()

    # ------------------------------------------------------------------ what tests do

    def turn(self, call: Callable[[float], T]) -> T:
        engine = self.app.engine
        assert engine is not None
        return engine.ask(call).result()

    def subscribe(
        self, url: str, tenant: str = "ann", id: str | None = None, **more: Any
    ) -> Subscription:
        return self.subscribe_all([(url, id or url, more)], tenant)[0]

    def subscribe_all(
        self, feeds: list[tuple[str, str, dict[str, Any]]], tenant: str = "ann"
    ) -> list[Subscription]:
        wanted: list[Wanted] = [wanted_feed(id, url, **more) for url, id, more in feeds]
        return self.turn(lambda now: self.feeds.register.subscribe(tenant, wanted, now))

    def source(self, url: str) -> Source:
        found = self.feeds.register.source_at(url)
        assert found is not None, f"nobody subscribes to {url}"
        return found

    def force(self, url: str) -> None:
        self.turn(lambda now: self.feeds.register.schedule.want(self.source(url), now))

    def steer(self, verb: str, job: int, *args: Any) -> None:
        """What an operator does to a job."""
        engine = self.app.engine
        assert engine is not None
        self.turn(lambda now: engine.brain.controls.steer(verb, job, args, now, "operator"))

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.app.store.rows(query, values)

    def rows_written(self, statement: str) -> None:
        """What somebody else changes in the store. The rows that a statement needs are none."""
        write = Write(
            sqlite=f"{statement} and ?1 is not null", postgres=f"{statement} and $1 is not null"
        )
        self.app.store.write([(write, [(1,)])])

    def titles(self, tenant: str = "ann") -> list[str]:
        """What a tenant can see, the newest first."""
        rows = self.rows(
            "select a.title from feed_entries e join feed_articles a on a.id = e.article "
            "where e.tenant = ? order by e.at desc, e.id desc",
            tenant,
        )
        return [title for (title,) in rows]

    def open_jobs(self) -> dict[str, int]:
        """How many open jobs each source has, by its address."""
        found = {row.url: 0 for row in self.feeds.register.sources.values()}
        names = {f"feed:{row.id}": row.url for row in self.feeds.register.sources.values()}
        for (key,) in self.rows(
            "select key from jobs where type = 'feeds.refresh' and "
            "state not in ('completed', 'failed', 'cancelled')"
        ):
            found[names.get(key, key)] = found.get(names.get(key, key), 0) + 1
        return found
