"""A source has one open job for as long as somebody wants it, whatever happens to it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from headway.apps.feeds.fetching_answers import Kind
from tests.feeds.feeds_world import FeedsWorld, Site, entry, failed

BLOG = "https://blog.example/feed"
HALF_HOUR = 1_800.0

pytestmark = pytest.mark.usefixtures("worlds")


@pytest.fixture
def world() -> Iterator[FeedsWorld]:
    with FeedsWorld() as world:
        world.web.sites[BLOG] = Site([entry(1), entry(2)])
        yield world


def gaps(times: list[float]) -> list[float]:
    return [round(after - before) for before, after in pairwise(times)]


def test_a_feed_is_fetched_at_once_and_then_every_half_hour_for_a_week(world: FeedsWorld) -> None:
    world.subscribe(BLOG)
    world.run_for("1s")
    assert world.titles() == ["Article 1", "Article 2"]
    assert world.open_jobs() == {BLOG: 1}
    world.run_for("7d")
    times = world.web.times(BLOG)
    assert 330 < len(times) < 340
    assert all(1_700 < gap < 1_900 for gap in gaps(times))
    assert world.titles() == ["Article 1", "Article 2"]
    assert world.open_jobs() == {BLOG: 1}


def test_pausing_and_resuming_at_any_moment_leaves_one(world: FeedsWorld) -> None:
    register = world.feeds.register
    feed = world.subscribe(BLOG)
    for wait_s in (0, 0.2, 0.4, 0.7, 900):
        world.run_for(wait_s)
        world.turn(lambda now: register.change(feed.name, now, paused=1))
        world.turn(lambda now: register.change(feed.name, now, paused=0))
        assert world.open_jobs() == {BLOG: 1}

    def both(now: float) -> None:
        register.change(feed.name, now, paused=1)
        register.change(feed.name, now, paused=0)

    world.turn(both)
    world.run_for("3h")
    assert world.open_jobs() == {BLOG: 1}
    assert all(gap >= 900 for gap in gaps(world.web.times(BLOG))[-4:])


def test_a_paused_feed_has_none(world: FeedsWorld) -> None:
    feed = world.subscribe(BLOG)
    world.run_for("10s")
    world.turn(lambda now: world.feeds.register.change(feed.name, now, paused=1))
    assert world.open_jobs() == {BLOG: 0}
    world.run_for("2d")
    assert len(world.web.visits) == 1


def test_failing_for_good_does_not_end_the_chain(world: FeedsWorld) -> None:
    world.web.sites[BLOG].failure = failed(Kind.NOT_FOUND, 404)
    world.subscribe(BLOG)
    world.run_for("7d")
    assert world.open_jobs() == {BLOG: 1}
    waits = gaps(world.web.times(BLOG))
    assert waits[:6] == sorted(waits[:6])
    assert all(wait > 80_000 for wait in waits[6:])  # a day by now
    assert world.source(BLOG).failures == len(world.web.visits)
    world.web.sites[BLOG].failure = None
    world.run_for("2d")
    assert world.source(BLOG).status == "ok"
    assert world.titles() == ["Article 1", "Article 2"]


def test_a_restart_keeps_the_schedule(world: FeedsWorld) -> None:
    world.subscribe(BLOG)
    world.run_for("10s")
    for _ in range(5):
        world.crash()
        world.restart()
        assert world.open_jobs() == {BLOG: 1}
        world.run_for("29m")
    assert 4 <= len(world.web.visits) <= 7
