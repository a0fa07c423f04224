"""What is found while somebody pauses a feed is neither lost to him nor there twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.engine.kit import takes
from tests.feeds.feeds_world import FeedsWorld, Site, entry

BLOG = "https://blog.example/feed"
ALL = ["Article 1", "Article 2"]
FETCH_S, STORE_S = 2.0, 2.0  # that a visit takes

pytestmark = pytest.mark.usefixtures("worlds")


@pytest.fixture
def world() -> Iterator[FeedsWorld]:
    """Ann and Bob have read the first article, and there is a second one."""

    async def slowly(call: Callable[..., Any], *args: Any) -> Any:
        kept = call(*args)
        await takes(STORE_S)
        return kept

    with FeedsWorld() as world:
        world.web.sites[BLOG] = Site([entry(1)], takes_s=FETCH_S)
        world.subscribe(BLOG)
        world.subscribe(BLOG, tenant="bob")
        world.run_for("1m")
        world.feeds.refresher._in_thread = slowly
        world.web.sites[BLOG].entries.append(entry(2))
        world.force(BLOG)
        yield world


def pause(world: FeedsWorld, paused: int) -> None:
    register = world.feeds.register
    world.turn(lambda now: register.change(("ann", BLOG), now, paused=paused))


@pytest.mark.parametrize("after_s", [0.0, FETCH_S / 2, FETCH_S + STORE_S / 2, 10.0])
def test_pausing_at_any_moment_of_a_visit_loses_nothing(world: FeedsWorld, after_s: float) -> None:
    world.run_for(after_s)
    pause(world, 1)
    world.run_for("1m")
    assert sorted(world.titles("bob")) == ALL
    pause(world, 0)
    world.run_for("1m")
    assert sorted(world.titles("ann")) == ALL


def test_what_a_visit_had_found_that_died_is_not_lost_either(world: FeedsWorld) -> None:
    world.run_for(FETCH_S + STORE_S / 2)  # it is stored, and nobody has it yet
    world.crash()
    world.restart()
    pause(world, 1)
    world.run_for("1h")
    assert sorted(world.titles("bob")) == ALL
    pause(world, 0)
    world.run_for("1h")
    assert sorted(world.titles("ann")) == ALL
