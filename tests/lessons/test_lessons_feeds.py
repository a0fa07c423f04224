"""Lessons 17 to 23 of docs/lessons.md: how feed readers failed before us, and ours does not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headway.apps.feeds.fetching_answers import Kind
from tests.feeds.feeds_world import FeedsWorld, Site, dated, entry, failed
from tests.stores import second_store_in_the_soak

pytestmark = [pytest.mark.usefixtures("worlds"), second_store_in_the_soak]

BLOG = "https://blog.example/feed"
HOUR = 3_600.0


@pytest.fixture
def world() -> Iterator[FeedsWorld]:
    with FeedsWorld() as world:
        world.web.sites[BLOG] = Site([entry(1), entry(2)])
        yield world


def test_lesson_17_there_is_one_scheduler_and_sorting_feeds_refreshes_none(
    world: FeedsWorld,
) -> None:
    urls = [f"https://site{number}.example/feed" for number in range(20)]
    for url in urls:
        world.web.sites[url] = Site([entry(1)])
        world.subscribe(url)
        world.subscribe(url, tenant="bob")
    world.run_for("1m")
    assert len(world.web.visits) == 20  # once for both
    register = world.feeds.register
    for place, url in enumerate(reversed(urls)):
        name = ("ann", url)
        world.turn(lambda now, n=name, p=place: register.change(n, now, folder=f"sorted/{p % 3}"))
        world.turn(lambda now, n=name, p=place: register.change(n, now, title=f"{p}. feed"))
    world.run_for("20m")
    assert len(world.web.visits) == 20
    assert set(world.open_jobs().values()) == {1}
    world.run_for("30m")
    assert len(world.web.visits) == 40


def test_lesson_18_a_feed_that_is_slow_is_not_enqueued_again_and_again(world: FeedsWorld) -> None:
    world.web.sites[BLOG].takes_s = 85.0
    world.subscribe(BLOG, interval_s=60.0)
    for _ in range(60):
        world.run_for("1m")
        assert world.open_jobs() == {BLOG: 1}
    assert world.web.most_at_once == 1
    assert 20 < len(world.web.visits) < 45
    (ended,) = world.rows("select count(*) from jobs where state = 'completed'")[0]
    assert ended >= len(world.web.visits) - 1


def test_lesson_19_no_retry_runs_beside_another_and_the_chain_outlives_the_last_one(
    world: FeedsWorld,
) -> None:
    world.web.sites[BLOG].failure = failed(Kind.SERVER_ERROR, 500)
    world.subscribe(BLOG)
    world.run_for("10s")
    world.force(BLOG)
    world.run_for("20m")
    assert len(world.web.visits) == 4  # three retries
    assert world.web.most_at_once == 1
    assert world.source(BLOG).failures == 1
    assert world.open_jobs() == {BLOG: 1}
    world.web.sites[BLOG].failure = None
    world.run_for("1h")
    assert world.source(BLOG).status == "ok"
    assert world.titles() == ["Article 1", "Article 2"]


def test_lesson_20_a_week_is_no_delay_that_anything_delivers_twice(world: FeedsWorld) -> None:
    world.subscribe(BLOG, interval_s=7 * 24 * HOUR)
    world.run_for("1m")
    for _ in range(5 * 7):
        world.crash()
        world.restart()
        world.run_for("1d")
    assert 5 <= len(world.web.visits) <= 6
    assert world.open_jobs() == {BLOG: 1}


def test_lesson_21_saving_again_keeps_marks_and_dates(world: FeedsWorld) -> None:
    site = world.web.sites[BLOG]
    site.entries = [
        entry(1, published=dated(world.now - 5 * HOUR)),
        entry(2),  # undated
        entry(3, link=None),
    ]
    world.subscribe(BLOG)
    world.run_for("1m")
    world.rows_written("update feed_entries set is_read = 1, is_starred = 1 where tenant = 'ann'")
    before = world.rows("select id, at, is_read, is_starred, article from feed_entries order by id")
    assert len(before) == 3
    for day in range(3):
        # The same guids, with other words, other links and other places in the document.
        site.entries = [
            entry(2, title=f"Second {day}", link=f"https://blog.example/new/{day}"),
            entry(3, content=f"<p>{day}</p>", link=f"https://blog.example/3?utm_source={day}"),
            entry(1, published=dated(world.now), title=f"First {day}"),
        ]
        world.run_for("1d")
    assert before == world.rows(
        "select id, at, is_read, is_starred, article from feed_entries order by id"
    )
    titles = world.rows("select title from feed_articles order by id")
    assert {title for (title,) in titles} == {"First 2", "Second 2", "Article 3"}


def test_lesson_22_a_page_of_errors_is_a_failure_and_empties_nothing(world: FeedsWorld) -> None:
    world.subscribe(BLOG)
    world.run_for("1m")
    site = world.web.sites[BLOG]
    site.unreadable = "This is a web page, and no feed."
    world.run_for("31m")
    row = world.source(BLOG)
    assert (row.status, row.failures) == ("error", 1)
    assert row.error == "This is a web page, and no feed."
    assert world.titles() == ["Article 1", "Article 2"]
    site.unreadable, site.failure = "", failed(Kind.TIMED_OUT)
    world.run_for("3h")
    assert world.source(BLOG).failures >= 2
    site.failure = failed(Kind.REFUSED, error="127.0.0.1:80 leads to this machine")
    world.run_for("1d")
    assert "leads to this machine" in (world.source(BLOG).error or "")
    site.failure = None
    world.force(BLOG)
    world.run_for("1m")
    assert world.source(BLOG).status == "ok"


def test_lesson_23_one_failing_feed_fails_no_batch(world: FeedsWorld) -> None:
    urls = [f"https://site{number}.example/feed" for number in range(40)]
    for number, url in enumerate(urls):
        world.web.sites[url] = Site([entry(number)])
        world.subscribe(url)
    world.run_for("1m")
    for number, failure in enumerate((
        failed(Kind.NOT_FOUND, 404), failed(Kind.SERVER_ERROR, 500), failed(Kind.TIMED_OUT),
        failed(Kind.GONE, 410),
    )):  # fmt: skip
        world.web.sites[urls[number]].failure = failure
    world.web.sites[urls[4]].unreadable = "This is no feed."
    for url in urls[10:22]:
        world.web.sites[url].entries.append(entry(1_000))
    rounds = world.feeds.rounds

    def begin(now: float) -> str:
        made = rounds.begin("ann", "refresh", now, total=0)
        rounds.refresh(made.id, urls, False, now)
        rounds.grown(made.id, now)
        return made.id

    id = world.turn(begin)
    world.run_for("1m")
    row = rounds.row("ann", id)
    assert (row.total, row.done + row.failed, row.finished_at) == (40, 38, None)  # two are retried
    world.run_for("30m")
    row = rounds.row("ann", id)
    assert (row.total, row.done, row.failed, row.new_count) == (40, 35, 5, 12)
    assert row.finished_at is not None
