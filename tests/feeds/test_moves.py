"""Sources that turn out to be one, in whatever direction: one of them is always alive, and nobody
is shown anything that his feed has not published.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.feeds.feeds_world import FeedsWorld, Site, entry
from tests.stores import second_store_in_the_soak

OLD = "http://blog.example/feed"
NEW = "https://blog.example/feed"
EVIL = "https://evil.example/feed"

pytestmark = pytest.mark.usefixtures("worlds")


@pytest.fixture
def world() -> Iterator[FeedsWorld]:
    with FeedsWorld() as world:
        world.web.sites[OLD] = Site([entry(1), entry(2)])
        world.web.sites[NEW] = Site([entry(1), entry(2)])
        yield world


def publish(world: FeedsWorld, number: int, *urls: str) -> None:
    for url in urls or (OLD, NEW):
        world.web.sites[url].entries.insert(0, entry(number))


def lead(world: FeedsWorld, url: str, to: str | None) -> None:
    world.web.sites[url].moved_to = to


def notes(world: FeedsWorld, tenant: str = "ann") -> list[str | None]:
    return [each.note for each in world.feeds.register.of_tenant(tenant)]


# ---------------------------------------------------------------------- one is alive


@second_store_in_the_soak
def test_there_and_back_again(world: FeedsWorld) -> None:
    """A tenant that has both keeps both. One of them goes on, the one that it was sent to last."""
    world.subscribe(OLD)
    world.subscribe(NEW)
    world.subscribe(NEW, "bob")
    world.run_for("1m")
    lead(world, OLD, NEW)
    world.run_for("2h")
    assert (world.source(OLD).status, world.source(NEW).status) == ("moved", "ok")
    assert notes(world) == [f"it has moved to {NEW}, which you have, too", None]
    lead(world, OLD, None)
    lead(world, NEW, OLD)
    world.run_for("2h")
    assert (world.source(OLD).status, world.source(NEW).status) == ("ok", "moved")
    assert notes(world) == [None, f"it has moved to {OLD}, which you have, too"]
    publish(world, 3)
    world.run_for("2h")
    assert world.titles("bob")[0] == "Article 3"
    assert world.titles("ann").count("Article 3") == 1


@second_store_in_the_soak
def test_sites_that_lead_to_each_other_are_asked_no_more_often_than_two(world: FeedsWorld) -> None:
    for tenant, url in (("ann", OLD), ("ann", NEW), ("bob", OLD), ("cat", NEW)):
        world.subscribe(url, tenant)
    world.run_for("1m")
    lead(world, OLD, NEW)
    lead(world, NEW, OLD)
    world.web.visits.clear()
    world.run_for("1d")
    assert len(world.web.visits) <= 2 * 49
    assert sum(world.open_jobs().values()) == 1
    publish(world, 3)
    world.run_for("2h")
    assert world.titles("ann")[:2] == ["Article 3", "Article 3"]  # in each of her feeds
    assert world.titles("bob")[:2] == world.titles("cat")[:2] == ["Article 3", "Article 1"]
    assert len(world.feeds.register.sources) == 2


@second_store_in_the_soak
def test_one_source_that_goes_to_and_fro_is_still_one(world: FeedsWorld) -> None:
    world.subscribe(OLD)
    world.run_for("1m")
    lead(world, OLD, NEW)
    lead(world, NEW, OLD)
    world.run_for("1d")
    assert len(world.feeds.register.sources) == 1
    assert list(world.open_jobs().values()) == [1]
    assert len(world.titles()) == 2


@second_store_in_the_soak
@pytest.mark.parametrize("shared", [False, True])
def test_who_removes_the_one_it_has_moved_to_keeps_the_other(
    world: FeedsWorld, shared: bool
) -> None:
    world.subscribe(OLD, id="old")
    world.subscribe(NEW, id="new")
    if shared:
        world.subscribe(NEW, "bob")
    world.run_for("1m")
    lead(world, OLD, NEW)
    world.run_for("2h")
    world.turn(lambda now: world.feeds.register.unsubscribe(("ann", "new"), now))
    publish(world, 3)
    world.run_for("1h")
    assert world.open_jobs() == {NEW: 1}
    assert notes(world) == [None]
    assert world.titles()[0] == "Article 3"


@second_store_in_the_soak
def test_who_leads_the_one_elsewhere_keeps_the_other(world: FeedsWorld) -> None:
    world.web.sites[EVIL] = Site([])
    world.subscribe(OLD, id="old")
    feed = world.subscribe(NEW, id="new")
    world.run_for("1m")
    lead(world, OLD, NEW)
    world.run_for("2h")
    world.turn(lambda now: world.feeds.register.repoint(feed.name, EVIL, now))
    world.run_for("1h")
    assert world.open_jobs() == {NEW: 1, EVIL: 1}


# ---------------------------------------------------------------------- who sees what


def test_what_was_found_at_the_old_place_first_is_new_at_the_other(world: FeedsWorld) -> None:
    world.subscribe(OLD)
    world.subscribe(NEW, "bob", interval_s=7_200.0)
    world.run_for("1m")
    publish(world, 3)
    lead(world, OLD, NEW)
    world.run_for("40m")  # only the old place was asked, and has led on
    assert world.open_jobs() == {NEW: 1}
    world.run_for("3h")
    assert world.titles("ann") == ["Article 3", "Article 1", "Article 2"]
    assert world.titles("bob") == ["Article 3", "Article 1", "Article 2"]


def led_there_by_its_site(world: FeedsWorld) -> None:
    lead(world, EVIL, NEW)
    world.web.sites[EVIL].entries = world.web.sites[NEW].entries  # which is where one comes to
    world.force(EVIL)


def led_there_by_its_reader(world: FeedsWorld) -> None:
    world.turn(lambda now: world.feeds.register.repoint(("eve", EVIL), NEW, now))


@pytest.mark.parametrize("come", [led_there_by_its_site, led_there_by_its_reader])
@pytest.mark.parametrize("known", [False, True])
def test_nobody_brings_articles_into_a_feed_of_others(
    world: FeedsWorld, come: object, known: bool
) -> None:
    """Neither to those who read it, nor to those who come later; and what the feed itself has
    published under the same name is not kept from anybody.
    """
    world.web.sites[EVIL] = Site([entry(66, title="Evil"), entry(3, title="Wrong")])
    if known:
        world.subscribe(NEW, "ann")
    world.subscribe(EVIL, "eve")
    world.run_for("1m")
    assert callable(come)
    come(world)
    world.run_for("1m")
    assert world.feeds.register.source_at(EVIL) is None
    world.subscribe(NEW, "bob")
    world.run_for("1h")
    publish(world, 3, NEW)
    world.run_for("1h")
    for tenant in ("ann", "bob") if known else ("bob",):
        assert world.titles(tenant) == ["Article 3", "Article 1", "Article 2"]
    assert world.titles("eve").count("Evil") == 1
    assert "Article 3" in world.titles("eve")
    assert len(world.titles("eve")) == 4
