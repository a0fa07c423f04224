"""The server dies just before or just after a commit, whichever it is: the schedule goes on, and
everybody has every article once.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headway.apps.feeds.fetching_answers import Kind
from headway.apps.feeds.importing import Importer
from headway.apps.feeds.opml import Subscription as Listed
from headway.apps.feeds.opml import SubscriptionList
from headway.apps.feeds.register import Duplicates
from tests.engine.fragile import Fragile
from tests.feeds.feeds_world import FeedsWorld, Site, entry, failed
from tests.feeds.test_schedule_random import check
from tests.stores import second_store_in_the_soak

pytestmark = [pytest.mark.usefixtures("worlds"), second_store_in_the_soak]

ONE, TWO, THREE = (f"https://{name}.example/feed" for name in ("one", "two", "three"))


class FragileFeeds(Fragile, FeedsWorld):
    forgives = (Duplicates, KeyError)


def story(world: FragileFeeds) -> None:
    """All that happens to feeds, in a day."""
    register, sites = world.feeds.register, world.web.sites
    for url in (ONE, TWO, THREE):
        sites[url] = Site([entry(1), entry(2)])

    def tell(call: Callable[[float], object]) -> None:
        world.alive(lambda: world.turn(call))
        world.alive(lambda: check(world))

    def wait(duration: str) -> None:
        world.alive(lambda: world.run_for(duration))
        world.alive(lambda: check(world))

    world.alive(lambda: world.subscribe(ONE, "ann", "a"))
    wait("0s")
    world.alive(lambda: world.subscribe(ONE, "bob", "b"))
    wait("1m")
    importer: Importer = world.feeds.importer
    listed = SubscriptionList((Listed(TWO, "Two", None, ()), Listed(THREE, None, None, ("x",))))
    tell(lambda now: importer.begin("ann", listed, now))
    wait("1m")
    tell(lambda now: register.change(("bob", "b"), now, paused=1))
    sites[ONE].entries.append(entry(3))
    tell(lambda now: register.schedule.want(world.source(ONE), now))
    wait("1m")
    tell(lambda now: register.change(("bob", "b"), now, paused=0))
    sites[TWO].failure = failed(Kind.SERVER_ERROR, 500)
    wait("2h")
    sites[TWO].failure = None
    sites[THREE].moved_to = ONE
    wait("2h")
    sites[THREE].moved_to = None
    tell(lambda now: register.schedule.want(world.source(THREE), now))
    wait("1m")
    tell(lambda now: register.unsubscribe(("ann", "a"), now))
    wait("10h")


def finished(commit: int, after: bool) -> bool:
    """Whether the story has so many commits."""
    with FragileFeeds(commit, after) as world:
        story(world)
        for row in world.feeds.register.sources.values():
            assert row.status == "ok"
        assert world.titles("bob") == ["Article 3", "Article 1", "Article 2"]
        assert sorted(world.titles("ann")) == ["Article 1", "Article 1", "Article 2", "Article 2"]
        assert world.web.most_at_once == 1
        open_rounds = "select count(*) from feed_rounds where finished_at is null"
        assert world.rows(open_rounds) == [(0,)]
        assert not world.feeds.register.schedule._coming
        return world.died


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("first", [1, 8])
def test_it_goes_on_whichever_commit_is_the_last(first: int, after: bool) -> None:
    for commit in range(first, 70, 14):
        assert finished(commit, after)


@pytest.mark.soak
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("first", range(1, 11))
def test_whichever_it_is(first: int, after: bool) -> None:
    commit = first
    while finished(commit, after):
        commit += 10
