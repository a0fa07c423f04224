"""How jobs and batches are written down, the same for every store."""

from __future__ import annotations

from typing import Any

from headway.core import State
from headway.errors import DuplicateJob
from headway.store.batch import Batch
from headway.store.records import NewJob

# Of these lists the last row of a name counts, and so many columns make the name.
NAMES = {
    "moved": 1,
    "ended": 1,
    "results": 1,
    "progress": 1,
    "checkpoints": 1,
    "processes": 1,
    "gates": 3,
    "settings": 2,
    "schedules": 1,
    "slots": 1,
    "slot_totals": 1,
}

_PENDING, _QUEUED = State.PENDING.value, State.QUEUED.value


def rows_of(batch: Batch, name: str) -> list[Any]:
    """One list of a batch, each name once."""
    rows: list[Any] = getattr(batch, name)
    size = NAMES.get(name)
    if size is None or len(rows) < 2:
        return rows
    return list({row[:size]: row for row in rows}.values())


def job_row(job: NewJob, args: str | None) -> tuple[Any, ...]:
    """A new job as the columns that every store has, in the order of `insert_jobs`."""
    unique = job.unique
    waits = job.not_before > job.created_at or job.after
    return (
        job.type,
        job.lane,
        job.tenant,
        job.key,
        job.upstreams,
        job.priority,
        job.not_before,
        job.deadline,
        job.created_at,
        job.spec,
        None if unique is None else unique.key,
        None if unique is None else unique.scope.value,
        job.batch,
        job.schedule,
        1 if job.after else 0,
        _PENDING if waits else _QUEUED,
        job.created_at,
        args,
    )


def duplicate(number: int, key: str, *, running: bool) -> DuplicateJob:
    """Why a job was refused. `running`: it was to replace one that runs."""
    if running:
        return DuplicateJob(
            f"job {number} with the unique key {key!r} runs already and cannot be replaced; "
            "enqueue again when it has ended, or join it",
            number,
        )
    return DuplicateJob(f"job {number} has the unique key {key!r} already", number)
