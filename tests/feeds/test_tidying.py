"""What is removed, and what stays for as long as anybody may want it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headway.apps.feeds.articles import Wanted, counted, listed, mark_read, mark_some
from headway.apps.feeds.marking import Marks
from headway.apps.feeds.posting import Poster, Posting
from headway.apps.feeds.storing import Document
from headway.apps.feeds.tables import ADD_ENTRY, PUT_ROUND, PUT_ROUND_ITEM
from tests.feeds.feeds_world import FeedsWorld, Site, entry
from tests.stores import second_store_in_the_soak

BLOG = "https://blog.example/feed"
NEWS = "https://news.example/feed"
DAY = 86_400.0

pytestmark = pytest.mark.usefixtures("worlds")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[FeedsWorld]:
    """A world that keeps what is read for five days."""
    monkeypatch.setenv("HEADWAY_FEEDS_KEEP_DAYS", "5")
    with FeedsWorld() as world:
        world.web.sites[BLOG] = Site([entry(1), entry(2), entry(3), entry(4)])
        world.subscribe(BLOG, interval_s=43_200.0)
        world.run_for("10s")
        yield world


def titles(world: FeedsWorld, tenant: str = "ann") -> list[str | None]:
    return [each.title for each in listed(world.app.store, tenant, Wanted(), "arrived", size=100)]


def read_all(world: FeedsWorld, tenant: str = "ann") -> None:
    mark_read(world.app.store, tenant, Wanted(), world.now)


def count(world: FeedsWorld, table: str) -> int:
    ((found,),) = world.rows(f"select count(*) from {table}")
    return int(found)


def tidy(world: FeedsWorld) -> None:
    world.turn(world.feeds.register.tidy)
    world.run_for("10s")
    failed = "select count(*) from jobs where type = 'feeds.tidy' and state = 'failed'"
    assert world.rows(failed) == [(0,)]


@second_store_in_the_soak
def test_it_happens_each_day_by_itself(world: FeedsWorld) -> None:
    world.run_for("5d")
    done = "select count(*) from jobs where type = 'feeds.tidy' and state = ?"
    assert world.rows(done, "completed")[0][0] in (4, 5)
    assert world.rows(done, "pending") == [(1,)]
    world.crash()
    world.restart()
    world.run_for("1d")
    assert world.rows(done, "pending") == [(1,)]


@second_store_in_the_soak
def test_what_is_read_goes_when_it_is_old_and_unread_and_starred_stay(world: FeedsWorld) -> None:
    newest = listed(world.app.store, "ann", Wanted(), "newest", size=2)
    first, second = (each.id for each in newest)
    read_all(world)
    mark_some(world.app.store, "ann", [first], Marks(is_starred=True), world.now)
    mark_some(world.app.store, "ann", [second], Marks(is_read=False), world.now)
    world.run_for("4d")
    assert len(titles(world)) == 4
    world.run_for("3d")
    assert titles(world) == ["Article 2", "Article 1"]


@second_store_in_the_soak
def test_what_is_still_in_the_document_does_not_come_back(world: FeedsWorld) -> None:
    read_all(world)
    world.run_for("7d")
    assert titles(world) == []
    world.web.sites[BLOG].entries = [
        entry(number, content="<p>Edited</p>") for number in range(1, 6)
    ]
    world.run_for("2d")
    assert titles(world) == ["Article 5"]
    world.run_for("7d")
    assert titles(world) == ["Article 5"]
    assert count(world, "feed_articles") == 5


@second_store_in_the_soak
def test_and_is_there_for_whoever_subscribes_then(world: FeedsWorld) -> None:
    read_all(world)
    world.run_for("7d")
    world.subscribe(BLOG, "bob")
    world.run_for("1m")
    assert len(titles(world, "bob")) == 4
    assert counted(world.app.store, "bob", Wanted(search="text")) == 4
    assert titles(world) == []


def test_what_the_site_has_dropped_goes_for_good(world: FeedsWorld) -> None:
    read_all(world)
    world.run_for("1d")
    world.web.sites[BLOG].entries = [entry(4), entry(5)]
    world.run_for("7d")
    assert titles(world) == ["Article 5"]
    assert world.rows("select title from feed_articles order by title") == [
        ("Article 4",), ("Article 5",),
    ]  # fmt: skip
    assert count(world, "feed_search") == 2
    world.subscribe(BLOG, "bob")
    world.run_for("1m")
    assert titles(world, "bob") == ["Article 4", "Article 5"]


@second_store_in_the_soak
def test_a_site_that_is_empty_for_a_week_brings_nothing_back_as_new(world: FeedsWorld) -> None:
    read_all(world)
    world.run_for("7d")
    everything = world.web.sites[BLOG].entries
    world.web.sites[BLOG].entries = []
    world.run_for("6d")
    assert count(world, "feed_articles") == 4
    world.web.sites[BLOG].entries = [*everything, entry(5)]
    world.run_for("1d")
    assert titles(world) == ["Article 5"]
    world.web.sites[BLOG].entries = [entry(5)]
    world.run_for("13d")
    assert count(world, "feed_articles") == 5
    world.run_for("3d")  # that is long enough
    assert count(world, "feed_articles") == 1


def test_a_busy_feed_leaves_no_long_list_behind() -> None:
    document, now = Document({}), 20_000 * DAY
    for hour in range(24 * 30):  # twenty articles, and each is gone after twenty hours
        document = document.then(
            [str(number) for number in range(hour, hour + 20)], now + hour * 3_600
        )
    assert len(document.there) == 20
    assert document.lost == {}


@second_store_in_the_soak
def test_others_keep_what_one_has_read(world: FeedsWorld) -> None:
    world.subscribe(BLOG, "bob", interval_s=43_200.0)
    world.run_for("10s")
    read_all(world)
    world.run_for("7d")
    assert titles(world) == []
    assert len(titles(world, "bob")) == 4
    assert count(world, "feed_articles") == 4


def test_articles_go_with_the_last_subscription(world: FeedsWorld) -> None:
    world.web.sites[NEWS] = Site([entry(9)])
    world.subscribe(NEWS)
    world.run_for("10s")
    poster = Poster(world.app.store, world.feeds.register.subscriptions["ann", BLOG], (), 5.0)
    poster.post([Posting(entry(7))], world.now)
    assert count(world, "feed_articles") == 6
    world.turn(lambda now: world.feeds.register.unsubscribe(("ann", BLOG), now))
    world.run_for("2m")
    assert titles(world) == ["Article 9"]
    for table in ("feed_articles", "feed_search", "feed_documents"):
        assert count(world, table) == 1


@second_store_in_the_soak
def test_what_a_client_posts_again_and_again_stays_known(world: FeedsWorld) -> None:
    store = world.app.store
    feed = world.feeds.register.subscriptions["ann", BLOG]

    def post() -> Any:
        return Poster(store, feed, (), 5.0).post([Posting(entry(7))], world.now)

    assert post().saved == 1
    read_all(world)
    for _ in range(10):
        world.run_for("2d")
        assert post() == (0, 0, 1, 0)
    assert titles(world) == []
    world.run_for("7d")
    assert world.rows("select count(*) from feed_articles where owner <> ''") == [(0,)]
    assert post().saved == 1  # nobody has sent it for so long


def test_entries_of_nothing_and_old_rounds_go_too(world: FeedsWorld) -> None:
    store, now = world.app.store, world.now
    store.write([(ADD_ENTRY, [("ann", BLOG, 987_654, now, now, 0, 0, now)])])
    for name, finished in (("old", now - 31 * DAY), ("new", now - DAY), ("open", None)):
        row = (name, "ann", "all", 1, 1, 0, 0, 0, "[]", now - 40 * DAY, finished)
        store.write([(PUT_ROUND, [row]), (PUT_ROUND_ITEM, [(name, BLOG, 1, "done", 0, None)])])
    tidy(world)
    assert count(world, "feed_entries") == 4
    assert world.rows("select id from feed_rounds order by id") == [("new",), ("open",)]
    assert world.rows("select round from feed_round_items order by round") == [("new",), ("open",)]


def test_it_goes_through_many_in_parts(world: FeedsWorld) -> None:
    store, now = world.app.store, world.now
    rows = [("ann", BLOG, 1_000_000 + number, now, now, 0, 0, now) for number in range(2_500)]
    store.write([(ADD_ENTRY, rows)])
    tidy(world)
    assert count(world, "feed_entries") == 4


@second_store_in_the_soak
def test_nothing_goes_where_all_is_kept_for_ever(world: FeedsWorld) -> None:
    world.feeds.tidier._keep_days = 0.0
    read_all(world)
    world.web.sites[BLOG].entries = [entry(5)]
    world.run_for("10d")
    assert len(titles(world)) == 5


@second_store_in_the_soak
def test_hosts_that_were_asked_once_are_forgotten(world: FeedsWorld) -> None:
    brain = world.feeds.register.brain
    world.turn(lambda now: world.feeds.register.lend_pace("guest.example", now))
    assert "guest.example" in brain.policies.hosts.profiles
    world.run_for("3d")
    assert not brain.policies.hosts.profiles.get("guest.example")
    assert brain.policies.hosts.profiles.get("blog.example")
