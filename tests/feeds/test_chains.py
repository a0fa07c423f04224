"""What breaks no chain: strange errors, jobs of others, operators, clocks, and engines that come
while another one is still there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headway.apps.feeds import hosts, refreshing
from headway.apps.feeds.fetching_answers import Fetched, Kind
from headway.apps.feeds.model import new_source
from headway.apps.feeds.scheduling import LANE, REFRESH
from headway.apps.feeds.tables import PUT_SOURCE, PUT_SUBSCRIPTION
from headway.store.records import Brain as Seat
from headway.store.records import Candidate, NewJob, Unique
from tests.feeds.feeds_world import FeedsWorld, Site, entry, failed
from tests.stores import second_store_in_the_soak

BLOG = "https://blog.example/feed"
NEWS = "https://news.example/feed"
HALF_HOUR = 1_800.0

pytestmark = [pytest.mark.usefixtures("worlds"), second_store_in_the_soak]


@pytest.fixture
def world() -> Iterator[FeedsWorld]:
    with FeedsWorld() as world:
        world.web.sites[BLOG] = Site([entry(1), entry(2)])
        world.web.sites[NEWS] = Site([entry(3)])
        yield world


def jobs_in(world: FeedsWorld, state: str) -> list[int]:
    query = "select id from jobs where type = 'feeds.refresh' and state = ? order by id"
    return [number for (number,) in world.rows(query, state)]


# ---------------------------------------------------------------------- strange values


def test_an_error_that_no_store_would_take_is_kept_as_it_can_be(world: FeedsWorld) -> None:
    async def fetch(*_: object, **__: object) -> Fetched:
        raise RuntimeError("half \ud800 a character and \0" + 100_000 * "x")

    world.feeds.refresher._fetch = fetch
    world.subscribe(BLOG)
    world.run_for("1h")
    assert world.open_jobs() == {BLOG: 1}
    error = world.source(BLOG).error or ""
    assert "half ? a character and" in error
    assert len(error) <= 500


def test_what_the_end_cannot_store_fails_the_run_and_nothing_else(world: FeedsWorld) -> None:
    world.subscribe(BLOG)
    world.subscribe(NEWS)
    world.web.sites[BLOG].about["title"] = "half \ud800 a character"
    world.run_for("1h")
    assert world.open_jobs() == {BLOG: 1, NEWS: 1}
    assert world.source(BLOG).status == "error"
    assert world.source(NEWS).status == "ok"
    world.web.sites[BLOG].about["title"] = "A whole one"
    world.run_for("3h")
    assert world.source(BLOG).title == "A whole one"
    assert sorted(world.titles()) == ["Article 1", "Article 2", "Article 3"]


# ---------------------------------------------------------------------- jobs of others


def put(world: FeedsWorld, type: str = REFRESH, **more: Any) -> None:
    job = NewJob(type, '{"source": 1}', created_at=world.now, lane=LANE, **more)
    world.app.store.insert([job])
    world.run_for("1m")


@pytest.mark.parametrize("key", [None, "", "feed:", "feed:x", "feed:" + 5_000 * "9", "feed:٣"])
def test_a_job_that_is_of_no_source_is_cancelled(world: FeedsWorld, key: str | None) -> None:
    put(world, key=key)
    world.restart()
    world.subscribe(BLOG)
    world.run_for("1m")
    assert world.open_jobs() == {BLOG: 1}
    assert len(jobs_in(world, "cancelled")) == 1


def test_nobody_else_can_have_the_unique_key_of_a_source(world: FeedsWorld) -> None:
    feed = world.subscribe(BLOG, paused=True)
    put(world, "feed", unique=Unique(f"feed:{feed.source}"), not_before=world.now + 1e6)
    world.turn(lambda now: world.feeds.register.change(feed.name, now, paused=0))
    world.run_for("3h")
    assert len(world.web.visits) > 4


def test_a_second_job_of_a_source_makes_the_first_one_go(world: FeedsWorld) -> None:
    feed = world.subscribe(BLOG)
    world.run_for("1m")
    put(world, key=f"feed:{feed.source}")
    assert len(world.web.visits) == 2
    assert world.open_jobs() == {BLOG: 1}


# ---------------------------------------------------------------------- operators


def test_retrying_all_that_has_failed_is_one_more_visit(world: FeedsWorld) -> None:
    world.web.sites[BLOG].failure = failed(Kind.NOT_FOUND, 404)
    world.subscribe(BLOG)
    world.run_for("1d")
    world.web.sites[BLOG].failure = None
    before = len(world.web.visits)
    assert len(jobs_in(world, "failed")) == before > 4
    for job in jobs_in(world, "failed"):
        world.steer("retry", job)
        assert world.open_jobs() == {BLOG: 1}
    world.run_for("10s")
    assert len(world.web.visits) == before + 1
    assert world.source(BLOG).status == "ok"
    assert world.open_jobs() == {BLOG: 1}


def test_what_is_retried_goes_where_its_feed_is_now(world: FeedsWorld) -> None:
    world.web.sites[BLOG].failure = failed(Kind.NOT_FOUND, 404)
    world.subscribe(BLOG)
    world.run_for("1m")
    world.web.sites[BLOG].failure = None
    world.web.sites[BLOG].moved_to = NEWS
    world.force(BLOG)
    world.run_for("1m")

    def retry_before_the_next_one_is_here(now: float) -> None:
        engine = world.app.engine
        assert engine is not None
        (open_job,) = world.feeds.register.schedule.jobs.values()
        engine.brain.controls.cancel(open_job, now)
        engine.brain._settle(now)
        (old,) = jobs_in(world, "failed")
        engine.brain.controls.retry(old, now)
        assert engine.brain.core.tickets[old].upstreams == ("news.example",)

    world.turn(retry_before_the_next_one_is_here)
    world.run_for("1m")
    assert world.open_jobs() == {NEWS: 1}


# ---------------------------------------------------------------------- time


@pytest.mark.parametrize("back_s", [3_600.0, 365 * 86_400.0])
def test_a_clock_that_was_set_back_does_not_put_feeds_to_sleep(
    world: FeedsWorld, back_s: float
) -> None:
    feed = world.subscribe(BLOG)
    paused = world.subscribe(NEWS)
    world.run_for("1m")
    world.turn(lambda now: world.feeds.register.change(paused.name, now, paused=1))
    world.crash()
    world.clock.at -= back_s
    world.restart()
    world.turn(lambda now: world.feeds.register.change(paused.name, now, paused=0))
    began = len(world.web.visits)
    world.run_for("2h")
    visited = Counter(each.url for each in world.web.visits[began:])
    assert 3 <= visited[BLOG] <= 5
    assert 3 <= visited[NEWS] <= 5
    assert world.source(BLOG).id == feed.source


# ---------------------------------------------------------------------- engines


def test_what_another_engine_has_stored_until_it_went_is_known(
    world: FeedsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This process is prepared while the other one still works."""
    feed = world.subscribe(BLOG)
    world.run_for("1m")
    store = world.app.store
    enter = store.enter

    def enter_late(heard: Callable[[], None], candidate: Candidate) -> Seat:
        row = new_source(feed.source + 1, NEWS, world.now)
        other = feed._replace(id="other", source=row.id, url=NEWS)
        store.write([(PUT_SOURCE, [row]), (PUT_SUBSCRIPTION, [other])])
        return enter(heard, candidate)

    monkeypatch.setattr(store, "enter", enter_late)
    world.restart()
    assert [each.id for each in world.feeds.register.of_tenant("ann")] == [BLOG, "other"]
    world.run_for("1m")
    assert world.open_jobs() == {BLOG: 1, NEWS: 1}
    assert world.source(NEWS).status == "ok"


# ---------------------------------------------------------------------- what is left


def test_feeds_that_go_one_after_the_other_are_tidied_up_after_once(world: FeedsWorld) -> None:
    for number in range(20):
        world.subscribe(f"https://site{number}.example/feed")
    world.run_for("1s")
    for name in list(world.feeds.register.subscriptions):
        world.turn(lambda now, name=name: world.feeds.register.unsubscribe(name, now))
        world.run_for("1s")
    world.run_for("10m")
    done = "select count(*) from jobs where type = 'feeds.tidy' and state = 'completed'"
    assert world.rows(done) == [(1,)]


def test_asking_and_going_in_the_turn_that_ends_a_run_leaves_nothing(world: FeedsWorld) -> None:
    """Between the end of a job and the turn's last word on it."""
    register = world.feeds.register
    feed = world.subscribe(BLOG)
    world.run_for("1m")
    engine = world.app.engine
    assert engine is not None

    def end_ask_and_go(now: float) -> None:
        engine.brain.controls.cancel(register.schedule.jobs[feed.source], now)
        register.refresh_now(feed.name, now)
        register.change(feed.name, now, paused=1)

    world.turn(end_ask_and_go)
    world.run_for("1h")
    assert world.open_jobs() == {BLOG: 0}
    assert len(world.web.visits) == 1
    world.turn(lambda now: register.unsubscribe(feed.name, now))
    schedule = register.schedule
    assert [schedule._again, schedule._coming, schedule.jobs, schedule.found] == [set(), {}, {}, {}]


def test_hosts_that_somebody_was_led_to_are_not_kept_for_ever(
    world: FeedsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "MOST_GUESTS", 10)
    register = world.feeds.register
    world.subscribe(BLOG)
    engine = world.app.engine
    assert engine is not None
    given = engine.brain.policies.hosts._given
    for number in range(30):
        world.turn(lambda now, n=number: register.lend_pace(f"site{n}.example", now))
        world.turn(lambda now: register.lend_pace("blog.example", now))
    assert len(given) == 10
    assert {"blog.example", "site29.example"} <= set(given)
    world.run_for("25h")
    world.turn(lambda now: register.lend_pace("late.example", now))
    assert set(given) == {"blog.example", "late.example"}


# ---------------------------------------------------------------------- many readers


def test_whoever_has_no_room_in_the_turn_has_the_articles_a_moment_later(
    world: FeedsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refreshing, "AT_ONCE", 5)
    tenants = [f"t{number}" for number in range(6)]
    for tenant in tenants:
        world.subscribe(BLOG, tenant)
    paused = world.subscribe(BLOG, "paused")
    world.run_for("1m")
    world.turn(lambda now: world.feeds.register.change(paused.name, now, paused=1))
    world.web.sites[BLOG].entries += [entry(number) for number in range(3, 10)]
    world.run_for("1h")
    for tenant in tenants:
        assert len(world.titles(tenant)) == 9
    assert len(world.titles("paused")) == 2


def test_all_of_another_feed_is_there_though_only_what_was_missed_is_on_its_way(
    world: FeedsWorld,
) -> None:
    register = world.feeds.register
    feed = world.subscribe(BLOG)
    world.subscribe(NEWS, "bob")
    world.run_for("1m")
    world.turn(lambda now: register.change(feed.name, now, paused=1))
    world.run_for("1m")

    def go_on_elsewhere(now: float) -> None:
        register.change(feed.name, now, paused=0)
        register.repoint(feed.name, NEWS, now)

    world.turn(go_on_elsewhere)
    world.run_for("1m")
    assert "Article 3" in world.titles()
