"""What must hold in an archive at every moment, as its store has it."""

from __future__ import annotations

import json
from typing import Any

from headway.apps.media.jobs import DOWNLOAD, TYPES
from headway.apps.media.model import State, Subscription
from headway.store.records import Job, Query
from tests.media.media_world import MediaWorld

OPEN = ("pending", "queued", "running", "paused")


def jobs_of(world: MediaWorld, *types: str, states: tuple[str, ...] = OPEN) -> list[Job]:
    """Those that talk to sites, if no types are named."""
    store = world.app.store
    return [row for type in types or TYPES
            for row in store.jobs(Query(type=type, states=states, limit=10_000))]  # fmt: skip


def payload(world: MediaWorld, job: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(world.app.store.payload(job) or "{}")
    return found


def permits(world: MediaWorld) -> list[int]:
    """Of whoever holds a place in anything."""
    engine = world.app.engine
    assert engine is not None
    return list(engine.brain.core.leases.permits)


def check_line(world: MediaWorld) -> None:
    """What is in line has one job that is open, and no open job is for anything else."""
    queued = {each.id for each in world.items() if each.state == State.QUEUED}
    jobs = [payload(world, each.id)["item"] for each in jobs_of(world, DOWNLOAD)]
    assert len(jobs) == len(set(jobs))
    assert set(jobs) == queued


def check_cursor(world: MediaWorld, row: Subscription) -> None:
    """All that is in front of the cursor is there, and nothing is there twice."""
    columns = "cursor, walk_at, is_complete"
    found = world.app.store.rows(
        f"select {columns} from media_subscriptions where id = ?", (row.id,)
    )
    if not found:
        return
    cursor, walk_at, _ = found[0]
    items = world.items(row)
    assert {each.place for each in items} >= set(range(cursor))
    assert (walk_at is not None) or cursor == 0
    assert len({each.key for each in items}) == len({each.id for each in items}) == len(items)
