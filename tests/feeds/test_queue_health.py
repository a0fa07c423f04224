"""The queue of refreshes says that something is wrong when it is, and not when a site is slow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from headway.api.auth import Principal
from headway.apps.feeds.fetching_answers import Kind
from headway.apps.feeds.routes.queue import queue_health
from headway.errors import StoreUnavailable
from tests.feeds.feeds_world import FeedsWorld, Site, entry, failed

BLOG = "https://blog.example/feed"
ANN = Principal("ann", frozenset({"read"}), "ann")


@pytest.fixture
def world() -> Iterator[FeedsWorld]:
    with FeedsWorld() as world:
        world.web.sites[BLOG] = Site([entry(1)])
        world.subscribe(BLOG)
        world.run_for("10s")
        yield world


def health(world: FeedsWorld, store: Any = None, principal: Principal = ANN) -> dict[str, Any]:
    app = world.app
    site: Any = SimpleNamespace(
        now=lambda: world.now, app=app, store=store or app.store, engine=app.engine
    )
    found: dict[str, Any] = json.loads(bytes(queue_health(site, world.feeds, principal).body))
    return found


def gate(world: FeedsWorld, verb: str) -> None:
    engine = world.app.engine
    assert engine is not None
    what = {"do": verb, "kind": "lane", "name": "feeds"}
    world.turn(lambda now: engine.brain.controls.gate(what, now))


def test_it_is_healthy_while_refreshes_start(world: FeedsWorld) -> None:
    world.run_for("6h")
    assert (health(world)["status"], health(world)["trouble"]) == ("healthy", [])


def test_refreshes_that_do_not_start_are_trouble_of_those_who_wait_for_them(
    world: FeedsWorld,
) -> None:
    gate(world, "pause")
    world.run_for("32m")
    soon = health(world)
    assert (soon["status"], soon["total_pending"], soon["overdue"]) == ("healthy", 1, 0)
    world.run_for("6m")
    late = health(world)
    assert (late["status"], late["total_pending"], late["overdue"]) == ("degraded", 1, 1)
    assert late["trouble"][0].endswith("5 minutes ago: 1")
    bob = Principal("bob", frozenset({"read"}), "bob")
    assert health(world, principal=bob)["status"] == "healthy"
    assert health(world, principal=Principal("chief", frozenset({"admin"})))["overdue"] == 1
    gate(world, "resume")
    world.run_for("10s")
    assert health(world)["status"] == "healthy"


def test_a_site_that_wants_to_be_left_alone_is_no_trouble_of_ours(world: FeedsWorld) -> None:
    pushback = failed(Kind.PUSHBACK, 429, retry_after_s=7_200.0)
    world.web.sites[BLOG].failure = pushback
    world.force(BLOG)
    world.run_for("10s")
    world.force(BLOG)
    world.run_for("30m")
    seen = health(world)
    assert (seen["status"], seen["total_pending"], seen["overdue"]) == ("healthy", 1, 0)


def test_a_store_that_is_away_is_trouble(world: FeedsWorld) -> None:
    def away() -> int:
        raise StoreUnavailable("it is away")

    seen = health(world, store=SimpleNamespace(last_event=away))
    assert (seen["status"], seen["trouble"]) == ("degraded", ["the store cannot be used now"])
