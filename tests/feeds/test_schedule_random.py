"""Whatever people do to feeds, and whenever the server dies: each source that is wanted has exactly
one open job, nobody is asked twice at once, and no article is there twice.
"""

from __future__ import annotations

import random
from contextlib import suppress
from itertools import pairwise

import pytest

from headway.apps.feeds.fetching_answers import Kind
from headway.apps.feeds.model import Subscription
from headway.apps.feeds.register import Duplicates
from headway.core import IllegalTransition
from tests.feeds.feeds_world import FeedsWorld, Site, entry, failed
from tests.stores import second_store_in_the_soak

pytestmark = [pytest.mark.usefixtures("worlds"), second_store_in_the_soak]

URLS = [f"https://{host}.example/{path}" for host in "abc" for path in "12"]
TENANTS = ("ann", "bob")
WAITS_S = (0.0, 0.1, 0.5, 0.6, 1.0, 5.0, 60.0, 900.0, 1_800.0, 7_200.0)
FAILURES = (
    None, None, None, failed(Kind.NOT_FOUND, 404), failed(Kind.SERVER_ERROR, 500),
    failed(Kind.PUSHBACK, 429, retry_after_s=600.0), failed(Kind.GONE, 410),
    failed(Kind.TIMED_OUT),
)  # fmt: skip


class People:
    """Do something to feeds, whatever comes to their minds."""

    def __init__(self, world: FeedsWorld, seed: int) -> None:
        self.world = world
        self.random = random.Random(seed)
        self.numbers = 0
        for url in URLS:
            world.web.sites[url] = Site([entry(1)])

    def step(self) -> str:
        name = self.random.choice(
            ("subscribe", "subscribe", "unsubscribe", "pause", "resume", "interval", "force",
             "refresh", "repoint", "publish", "site", "move", "crash", "cancel", "operate",
             "retry", "pass", "pass", "pass")
        )  # fmt: skip
        getattr(self, name)()
        return name

    def _some(self) -> tuple[str, str] | None:
        names = list(self.world.feeds.register.subscriptions)
        return self.random.choice(names) if names else None

    def subscribe(self) -> None:
        url = self.random.choice(URLS)
        with suppress(Duplicates):
            self.world.subscribe(url, self.random.choice(TENANTS), interval_s=1_800.0)

    def unsubscribe(self) -> None:
        name = self._some()
        if name is not None:
            self.world.turn(lambda now: self.world.feeds.register.unsubscribe(name, now))

    def _change(self, **changes: object) -> None:
        name = self._some()
        if name is not None:
            self.world.turn(lambda now: self.world.feeds.register.change(name, now, **changes))

    def pause(self) -> None:
        self._change(paused=1)

    def resume(self) -> None:
        self._change(paused=0)

    def interval(self) -> None:
        self._change(interval_s=self.random.choice((600.0, 1_800.0, 86_400.0)))

    def force(self) -> None:
        rows = list(self.world.feeds.register.sources.values())
        if rows:
            self.world.force(self.random.choice(rows).url)

    def refresh(self) -> None:
        name = self._some()
        if name is not None:
            self.world.turn(lambda now: self.world.feeds.register.refresh_now(name, now))

    def repoint(self) -> None:
        name = self._some()
        if name is None:
            return
        url = self.random.choice(URLS)
        with suppress(Duplicates):
            self.world.turn(lambda now: self.world.feeds.register.repoint(name, url, now))

    def publish(self) -> None:
        self.numbers += 1
        self.world.web.sites[self.random.choice(URLS)].entries.append(entry(100 + self.numbers))

    def site(self) -> None:
        site = self.world.web.sites[self.random.choice(URLS)]
        site.failure = self.random.choice(FAILURES)
        site.takes_s = self.random.choice((0.1, 0.5, 3.0))

    def move(self) -> None:
        site = self.world.web.sites[self.random.choice(URLS)]
        site.moved_to = self.random.choice((None, None, *URLS))

    def crash(self) -> None:
        self.world.crash()
        if self.random.random() < 0.3:
            self.world.clock.at += self.random.choice(WAITS_S)
        self.world.restart()

    def cancel(self) -> None:
        """An operator cancels whatever is open."""
        jobs = list(self.world.feeds.register.schedule.jobs.values())
        if jobs:
            job = self.random.choice(jobs)
            self.world.steer("cancel", job)

    def operate(self) -> None:
        """Or does something else to a refresh."""
        jobs = list(self.world.feeds.register.schedule.jobs.values())
        if not jobs:
            return
        job, now = self.random.choice(jobs), self.world.now
        act, args = self.random.choice((
            ("pause", ()), ("resume", ()), ("pin", ()), ("prioritise", (2,)), ("prioritise", (7,)),
            ("reschedule", (now + 60,)), ("reschedule", (now + 1e6,)), ("reschedule", (0.0,)),
        ))  # fmt: skip
        with suppress(IllegalTransition):
            self.world.steer(act, job, *args)

    def retry(self) -> None:
        """Or tries again what has failed or was cancelled."""
        query = (
            "select id from jobs where type = 'feeds.refresh' and state in ('failed', 'cancelled') "
            "order by id desc limit 20"
        )
        for (job,) in self.random.sample(rows := self.world.rows(query), min(len(rows), 3)):
            self.world.steer("retry", job)

    def let_go(self) -> None:
        """Of all that operators hold back."""
        for job in list(self.world.feeds.register.schedule.jobs.values()):
            for act, args in (("resume", ()), ("reschedule", (0.0,))):
                with suppress(IllegalTransition):
                    self.world.steer(act, job, *args)

    def __getattr__(self, name: str) -> object:
        if name == "pass":
            return lambda: self.world.run_for(self.random.choice(WAITS_S))
        raise AttributeError(name)


def check(world: FeedsWorld) -> None:
    register = world.feeds.register
    world.run_for(0)  # what was told to stop has stopped
    jobs = world.open_jobs()
    for row in register.sources.values():
        here = jobs.pop(row.url)
        if register.is_wanted(row):
            assert here == 1, f"{row.url} has {here} open jobs"
        else:
            assert here <= 1
    assert not any(jobs.values()), "a job of a source that nobody has"
    stored = world.rows("select id, url, status, due_at from feed_sources order by id")
    known = sorted((row.id, row.url, row.status, row.due_at) for row in register.sources.values())
    assert stored == known
    pairs = world.rows("select tenant, id, source, paused from feed_subscriptions")
    assert sorted(pairs) == sorted(
        (each.tenant, each.id, each.source, each.paused) for each in register.subscriptions.values()
    )
    assert {each.source for each in register.subscriptions.values()} == set(register.sources)


def published(world: FeedsWorld, source: int) -> set[str | None]:
    row = world.feeds.register.sources[source]
    return set() if row.has_ended else {each.title for each in world.web.sites[row.url].entries}


def seen_in(world: FeedsWorld, feed: Subscription) -> set[str | None]:
    rows = world.rows(
        "select a.title from feed_entries e join feed_articles a on a.id = e.article "
        "where e.tenant = ? and e.feed = ?",
        *feed.name,
    )
    return {title for (title,) in rows}


def run(seed: int, steps: int) -> None:
    with FeedsWorld(seed=seed) as world:
        people = People(world, seed)
        for _ in range(steps):
            people.step()
            check(world)
        for site in world.web.sites.values():
            site.failure, site.moved_to = None, None
        people.let_go()
        world.run_for("25h")
        check(world)
        register = world.feeds.register
        for row in register.sources.values():
            if register.is_wanted(row):
                assert row.status == "ok", f"{row.url} has not come back"
        for each in register.subscriptions.values():
            missing = published(world, each.source) - seen_in(world, each)
            assert each.paused or not missing, f"{each.name} has no {missing}"
        assert world.web.most_at_once <= 1
        seen = world.rows(
            "select e.tenant, e.feed, a.identity, count(*) from feed_entries e "
            "join feed_articles a on a.id = e.article group by 1, 2, 3 having count(*) > 1"
        )
        assert seen == []
        for host in "abc":
            times = sorted(
                each.at for each in world.web.visits if each.url.startswith(f"https://{host}.")
            )
            # A site that moves sends us to another host in the same visit; here that is not seen.
            quick = [(a, b) for a, b in pairwise(times) if b - a < 0.999]
            assert not quick, f"{host} was asked too soon: {quick}"


@pytest.mark.parametrize("seed", range(8))
def test_one_schedule_for_each_source_whatever_happens(seed: int) -> None:
    run(seed, steps=60)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 140))
def test_the_same_for_longer(seed: int) -> None:
    run(seed, steps=400)
