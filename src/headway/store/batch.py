"""What one turn of the engine decided, as a store commits it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headway.store.records import NewJob, Schedule
from headway.store.tables import Rows, Write


@dataclass(slots=True)
class Batch:
    """All that one turn of the engine decided; a store commits it whole or not at all.

    Every list is of plain tuples, in the order of the columns named beside it.
    """

    term: int
    fence: int = 0
    mark: str = ""  # of the jobs that were taken in; empty: none were
    # id, state, since, not_before, priority, pin, fence, upstream, granted_at, lease_end, waited_s,
    # tries, asked, error (None keeps the one before)
    moved: list[tuple[Any, ...]] = field(default_factory=list)
    # The two moves that every job makes, with no more than what they change:
    # id, granted_at, fence, upstream, lease_end, waited_s
    granted: list[tuple[Any, ...]] = field(default_factory=list)
    completed: list[tuple[Any, ...]] = field(default_factory=list)  # id, at
    ended: list[tuple[Any, ...]] = field(default_factory=list)  # id, state, at, tries, error
    reopened: list[int] = field(default_factory=list)
    freed: list[int] = field(default_factory=list)  # jobs whose unique key is free again
    released: list[int] = field(default_factory=list)  # jobs that wait for no other job any more
    # at, job, event, before, after, fence, detail, subject, who (may be left out)
    events: list[tuple[Any, ...]] = field(default_factory=list)
    results: list[tuple[Any, ...]] = field(default_factory=list)  # job, value, expires_at
    progress: list[tuple[Any, ...]] = field(default_factory=list)  # job, done, total, note, at
    checkpoints: list[tuple[Any, ...]] = field(default_factory=list)  # job, data, at
    logs: list[tuple[Any, ...]] = field(default_factory=list)  # job, at, level, line
    processes: list[tuple[Any, ...]] = field(default_factory=list)  # job, pid, started_at or None
    gates: list[tuple[Any, ...]] = field(default_factory=list)  # kind, name, tenant, state or None
    settings: list[tuple[Any, ...]] = field(default_factory=list)  # kind, name, value or None, at
    schedules: list[Schedule] = field(default_factory=list)
    schedules_gone: list[str] = field(default_factory=list)
    jobs: list[NewJob] = field(default_factory=list)  # occurrences and follow-ups to insert
    slots: list[tuple[Any, ...]] = field(default_factory=list)  # the columns of SlotRow
    slots_gone: list[int] = field(default_factory=list)
    # upstream, reclaimed, outlived, outlived_s: of slots, since ever
    slot_totals: list[tuple[Any, ...]] = field(default_factory=list)
    obeyed: list[int] = field(default_factory=list)  # commands that are done with
    # What applications write, in order and after all of the above.
    writes: list[tuple[Write, Rows]] = field(default_factory=list)

    def empty(self) -> bool:
        return not (
            self.moved
            or self.granted
            or self.completed
            or self.ended
            or self.events
            or self.jobs
            or self.slots
            or self.slots_gone
            or self.slot_totals
            or self.gates
            or self.progress
            or self.checkpoints
            or self.logs
            or self.results
            or self.processes
            or self.settings
            or self.schedules
            or self.schedules_gone
            or self.released
            or self.reopened
            or self.freed
            or self.obeyed
            or self.writes
        )
