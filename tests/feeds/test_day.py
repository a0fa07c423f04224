"""A day in the life of many feeds: every host is left alone for its second, every feed has its turn
in time, a restart is no stampede, and no article is there twice.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from random import Random

import pytest

from headway.apps.feeds.fetching_answers import Fetched
from headway.apps.feeds.pacing import CATCH_UP_S
from tests.feeds.feeds_world import FeedsWorld, Site, entry

INTERVAL_S = 1_800.0
HOUR_S = 3_600.0


class Day:
    """Feeds on hosts, some busy and some silent, and what the sites see of us."""

    def __init__(self, world: FeedsWorld, feeds: int, hosts: int, seed: int) -> None:
        self.world = world
        self.random = Random(seed)
        self.urls = [f"https://h{number % hosts}.example/{number}" for number in range(feeds)]
        self.late_s: list[float] = []
        self.hits: dict[str, list[float]] = defaultdict(list)
        self.busy = set(self.random.sample(self.urls, feeds // 10))
        for number, url in enumerate(self.urls):
            site = Site([entry(1)], takes_s=0.2)
            site.etag = '"1"' if number % 2 else None
            world.web.sites[url] = site
        self._ask = world.web.fetch
        world.feeds.refresher._fetch = self.fetch
        world.web.visits = _Nothing()

    async def fetch(
        self, url: str, *, etag: str | None, modified: str | None, validators_of: str | None,
        subscribers: int,
    ) -> Fetched:  # fmt: skip
        world = self.world
        row = world.source(url)
        self.hits[row.host].append(world.now)
        if row.tried_at is not None:
            self.late_s.append(world.now - row.due_at)
        site = world.web.sites[url]
        if url in self.busy and self.random.random() < 0.2:
            site.entries = [entry(len(site.entries) + 1), *site.entries]
            site.etag = None if site.etag is None else f'"{len(site.entries)}"'
        return await self._ask(
            url, etag=etag, modified=modified, validators_of=validators_of,
            subscribers=subscribers,
        )  # fmt: skip

    def subscribe(self) -> None:
        """In lists of a hundred, a second apart, as an import would."""
        for start in range(0, len(self.urls), 100):
            some = self.urls[start : start + 100]
            self.world.subscribe_all([(url, url, {"interval_s": INTERVAL_S}) for url in some])
            self.world.run_for("1s")

    def most_within(self, window_s: float, since: float) -> int:
        """The most requests that all sites together have seen in any such time."""
        every = (at for times in self.hits.values() for at in times if at > since)
        return max(Counter(int(at / window_s) for at in every).values())

    def check(self) -> None:
        for host, times in self.hits.items():
            soonest = min((b - a for a, b in pairwise(times)), default=9.0)
            assert soonest >= 0.999, f"{host} was asked twice within {soonest} s"
        doubles = self.world.rows(
            "select source, identity, count(*) from feed_articles group by 1, 2 having count(*) > 1"
        )
        assert doubles == []
        seen = self.world.rows(
            "select tenant, feed, article, count(*) from feed_entries group by 1, 2, 3 "
            "having count(*) > 1"
        )
        assert seen == []
        (articles,) = self.world.rows("select count(*) from feed_articles")[0]
        published = sum(len(self.world.web.sites[url].entries) for url in self.urls)
        assert articles <= published
        assert published - articles <= len(self.busy)  # what came since the last visit
        assert set(self.world.open_jobs().values()) == {1}


class _Nothing(list):  # type: ignore[type-arg]
    """Half a million visits need not be remembered twice."""

    def append(self, _: object) -> None:
        return


def a_day(feeds: int, hosts: int, hours: float, seed: int = 0) -> None:
    with FeedsWorld(seed=seed) as world:
        day = Day(world, feeds, hosts, seed)
        day.subscribe()
        world.run_for(HOUR_S)
        day.late_s.clear()
        world.run_for(hours / 2 * HOUR_S)
        assert max(day.late_s) <= 0.05 * INTERVAL_S
        expected = feeds * hours / 2 * HOUR_S / INTERVAL_S
        assert 0.93 * expected <= len(day.late_s) <= 1.07 * expected
        world.crash()
        world.clock.at += 2 * HOUR_S  # and all of them are late
        before = sum(map(len, day.hits.values()))
        world.restart()
        world.run_for("1m")
        rush = sum(map(len, day.hits.values())) - before
        assert rush <= 3 * feeds * 60 / min(INTERVAL_S, CATCH_UP_S) + 20
        world.run_for(HOUR_S)
        day.late_s.clear()
        world.run_for((hours / 2 - 3) * HOUR_S)
        assert max(day.late_s) <= 0.05 * INTERVAL_S
        day.check()
        if hours >= 24:  # by then each has found its own place in its interval
            assert day.most_within(60.0, since=world.now - HOUR_S) <= 2 * feeds / 30


def test_a_day_of_many_feeds() -> None:
    a_day(feeds=150, hosts=30, hours=8)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_a_day_of_ten_thousand_feeds_on_two_thousand_hosts() -> None:
    a_day(feeds=10_000, hosts=2_000, hours=24)
