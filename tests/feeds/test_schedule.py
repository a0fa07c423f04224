"""A source has one open job for as long as somebody wants it, whatever happens to it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from headway.apps.feeds.fetching_answers import Kind
from headway.apps.feeds.register import Duplicates, wanted_feed
from headway.core import State
from headway.store.tables import Write
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


# ---------------------------------------------------------------------- another address

OTHER = "https://other.example/feed"
MOMENTS_S = (0.0, 0.2, 0.4, 0.7, 900.0)  # before it is taken in, while it runs, while it waits


def marked(world: FeedsWorld, tenant: str = "ann") -> dict[str, tuple[int, int]]:
    """How often a tenant has each title, and how often it has read it."""
    rows = world.rows(
        "select a.title, count(*), sum(e.is_read) from feed_entries e join feed_articles a "
        "on a.id = e.article where e.tenant = ? group by a.title order by a.title",
        tenant,
    )
    return {title: (many, read) for title, many, read in rows}


def read_all(world: FeedsWorld) -> None:
    world.app.store.write([(READ, [("ann",)])])


READ = Write(
    sqlite="update feed_entries set is_read = 1 where tenant in "
    "(select given.value ->> 0 from jsonb_each(?1) as given)",
    postgres="update feed_entries set is_read = 1 where tenant in "
    "(select given ->> 0 from jsonb_array_elements($1) as given)",
)


@pytest.mark.parametrize("wait_s", MOMENTS_S)
def test_another_address_at_any_moment_leaves_one(world: FeedsWorld, wait_s: float) -> None:
    world.web.sites[OTHER] = Site([entry(2), entry(3)])
    feed = world.subscribe(BLOG)
    world.run_for(wait_s)
    world.turn(lambda now: world.feeds.register.repoint(feed.name, OTHER, now))
    world.run_for("10s")
    assert world.open_jobs() == {OTHER: 1}
    assert len(world.web.times(OTHER)) == 1
    assert {"Article 2", "Article 3"} <= set(world.titles())
    assert len(world.titles()) == len(set(world.titles()))


@pytest.mark.parametrize("shared", [False, True])
def test_marks_go_along_to_another_address_and_back(world: FeedsWorld, shared: bool) -> None:
    world.web.sites[OTHER] = Site([entry(2), entry(3)])
    feed = world.subscribe(BLOG)
    if shared:
        world.subscribe(BLOG, "bob")
    world.run_for("10s")
    read_all(world)
    register = world.feeds.register
    for url in (OTHER, BLOG, OTHER):
        world.turn(lambda now, url=url: register.repoint(feed.name, url, now))
        world.run_for("10s")
        assert world.source(url).status == "ok"
        assert marked(world) == {"Article 1": (1, 1), "Article 2": (1, 1), "Article 3": (1, 0)}
        assert all(many == 1 for many in world.open_jobs().values())
    if shared:
        assert marked(world, "bob") == {"Article 1": (1, 0), "Article 2": (1, 0)}
    else:  # what was published there is known when it is published here
        world.web.sites[OTHER].entries.append(entry(1))
        world.run_for("1h")
        assert marked(world)["Article 1"] == (1, 1)


def test_coming_back_with_articles_of_both_places_does_no_harm(world: FeedsWorld) -> None:
    register = world.feeds.register
    world.web.sites[OTHER] = Site([entry(3)])
    feed = world.subscribe(BLOG)
    world.subscribe(BLOG, "bob")
    world.run_for("10s")
    world.turn(lambda now: register.repoint(feed.name, OTHER, now))
    world.run_for("10s")
    world.web.sites[OTHER].entries.append(entry(1))
    world.run_for("1h")
    world.turn(lambda now: register.repoint(feed.name, BLOG, now))
    world.run_for("1h")
    assert set(world.titles()) == {"Article 1", "Article 2", "Article 3"}
    assert world.open_jobs() == {BLOG: 1}
    assert world.source(BLOG).failures == 0


def test_an_address_that_one_has_is_refused_and_nothing_is_changed(world: FeedsWorld) -> None:
    feed, other = world.subscribe(BLOG), world.subscribe(OTHER)
    with pytest.raises(Duplicates) as refused:
        world.turn(lambda now: world.feeds.register.repoint(feed.name, OTHER, now))
    assert [there.id for _, there in refused.value.found] == [other.id]
    assert world.open_jobs() == {BLOG: 1, OTHER: 1}


# ---------------------------------------------------------------------- by hand


def test_forcing_a_paused_feed_is_one_refresh_whose_articles_are_seen(world: FeedsWorld) -> None:
    register = world.feeds.register
    world.subscribe(BLOG, "bob")
    feed = world.subscribe(BLOG, "ann", paused=True)
    world.run_for("10s")
    world.web.sites[BLOG].entries.insert(0, entry(3))
    world.run_for("1h")  # bob's refresh finds it, and ann's feed is paused
    assert world.titles("bob") == ["Article 3", "Article 1", "Article 2"]
    before = len(world.web.visits)
    world.turn(lambda now: register.refresh_now(feed.name, now))
    world.run_for("10s")
    assert len(world.web.visits) == before + 1
    assert world.titles("ann") == ["Article 3", "Article 1", "Article 2"]
    assert world.open_jobs() == {BLOG: 1}


def test_forcing_a_feed_that_nobody_else_reads_while_it_is_paused(world: FeedsWorld) -> None:
    feed = world.subscribe(BLOG, paused=True)
    world.run_for("10s")
    assert world.open_jobs() == {BLOG: 0}
    world.turn(lambda now: world.feeds.register.refresh_now(feed.name, now))
    assert world.open_jobs() == {BLOG: 1}
    world.run_for("2d")
    assert len(world.web.visits) == 1
    assert world.titles() == ["Article 1", "Article 2"]
    assert world.open_jobs() == {BLOG: 0}


def test_whoever_listens_hears_of_a_run_that_was_given_up_before_it_was_taken_in(
    world: FeedsWorld,
) -> None:
    heard: list[State] = []
    world.feeds.register.schedule.heard.append(lambda _, state, *__: heard.append(state))

    def come_and_go(now: float) -> None:
        (feed,) = world.feeds.register.subscribe("ann", [wanted_feed("a", BLOG)], now)
        world.feeds.register.refresh_now(feed.name, now)
        world.feeds.register.unsubscribe(feed.name, now)

    world.turn(come_and_go)
    world.run_for("10s")
    assert heard == [State.CANCELLED]
    assert not any(world.open_jobs().values())
    assert world.web.visits == []


def test_two_of_the_same_in_one_list_name_the_first(world: FeedsWorld) -> None:
    with pytest.raises(Duplicates) as refused:
        world.subscribe_all([(BLOG, "a", {}), (BLOG, "b", {}), (OTHER, "a", {})])
    assert [(wanted.id, there.id) for wanted, there in refused.value.found] == [
        ("b", "a"), ("a", "a"),
    ]  # fmt: skip
    assert world.open_jobs() == {}
