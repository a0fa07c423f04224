"""The core leaves no cyclic garbage: memory comes back without the collector."""

from __future__ import annotations

import gc

from bench.core import World, cycle
from headway.core import Outcome
from tests.sim.world import World as Anything


def collected_after(run: object) -> int:
    gc.collect()
    gc.disable()
    try:
        run()  # type: ignore[operator]
        return gc.collect()
    finally:
        gc.enable()


def test_offers_grants_and_releases_leave_none() -> None:
    world = World(five=True)

    def run() -> None:
        for number in range(500):
            world.core.submit(world.ticket(number), 0.0)
        live = world.core.admit(0.0)
        world.core.changes.clear()
        cycle(world.core, live, [world.ticket(500 + number) for number in range(2_048)], 0.0)

    assert collected_after(run) == 0


def test_cancelling_and_pausing_leave_none() -> None:
    world = World(five=True)

    def run() -> None:
        for number in range(500):
            world.core.submit(world.ticket(number), 0.0)
        for permit in world.core.admit(0.0):
            world.core.finish(permit.ticket.id, permit.fence, Outcome.failed("no luck"), 1.0)
        for id in list(world.core.tickets):
            world.core.pause(id, 2.0)
            world.core.cancel(id, 3.0)
        world.core.changes.clear()

    assert collected_after(run) == 0


def test_a_whole_simulated_world_leaves_next_to_none() -> None:
    """Only what belongs to gates and lines that were swept away, never a ticket."""
    world = Anything(3)
    world.run(50)

    def run() -> None:
        for _ in range(1_000):
            world.step()

    assert collected_after(run) < 2_000
