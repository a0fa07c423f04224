"""The one scheduler: each schedule has one open occurrence, a job like any other.

The next occurrence is inserted by the commit that ends the last one, so the chain cannot break,
and each plan has a key that is claimed once in the store, so that a commit which is repeated
inserts no second one. What was slept through is coalesced, and the phase is kept.
"""

from __future__ import annotations

import msgspec

from headway.core import State
from headway.core.recurrence import next_run, occurrence_key
from headway.engine.rules import Rule, after_strikes, rule_of
from headway.store.batch import Batch
from headway.store.records import NewJob, Schedule


class ScheduleOptions(msgspec.Struct, omit_defaults=True):
    """What the occurrences are enqueued with."""

    lane: str = "default"
    tenant: str = ""
    key: str | None = None
    upstreams: str | None = None
    priority: int = 5
    spec: str | None = None


_options = msgspec.json.Decoder(ScheduleOptions)


class Schedules:
    def __init__(self) -> None:
        self.rows: dict[str, Schedule] = {}
        self.jobs: dict[str, int] = {}  # the open occurrence of each
        self._rules: dict[str, Rule] = {}
        self._coming: dict[str, int] = {}  # occurrences that are planned, but not yet taken in
        self._plans = 0

    def load(self, rows: list[Schedule], open_jobs: dict[str, int]) -> None:
        self.rows = {row.name: row for row in rows}
        self.jobs = open_jobs

    def orphans(self) -> list[str]:
        """Schedules whose occurrence is missing; there are none unless somebody deleted rows."""
        return [name for name, row in self.rows.items() if not row.paused and name not in self.jobs]

    def arrive(self, name: str, job: int) -> bool:
        """An occurrence is taken in. False: its schedule has changed since it was planned, and it
        is not wanted any more.
        """
        coming = self._coming.pop(name, 1) - 1
        if coming:
            self._coming[name] = coming
        row = self.rows.get(name)
        if row is None or row.paused or coming or self.jobs.get(name, job) > job:
            if self.jobs.get(name) == job:
                del self.jobs[name]
            return False
        self.jobs[name] = job
        return True

    def put(self, row: Schedule, batch: Batch, now: float, *, running: bool) -> int | None:
        """Declare a schedule. What has not changed is left alone. Returns the occurrence to cancel
        because another one takes its place; one that is running ends first.
        """
        old = self.rows.get(row.name)
        if old is not None:
            asked = (row.type, row.args, row.rule, row.options)
            if asked == (old.type, old.args, old.rule, old.options):
                return None
            row = row._replace(last_due_at=old.last_due_at, missed=old.missed, paused=old.paused)
        self._rules.pop(row.name, None)
        self.rows[row.name] = row
        if running:
            batch.schedules.append(row._replace(next_due_at=old.next_due_at if old else None))
            self.rows[row.name] = batch.schedules[-1]
            return None
        self._plan(row.name, batch, now)
        return self.jobs.pop(row.name, None)

    def next_after(self, name: str, job: int, ended: State, batch: Batch, now: float) -> None:
        """An occurrence has ended: plan the next one, in the same commit."""
        if self.jobs.get(name) != job:
            return  # another one has taken its place already
        del self.jobs[name]
        row = self.rows.get(name)
        if row is None or row.paused:
            return
        strikes = row.strikes + 1 if ended is State.FAILED else 0
        self.rows[name] = row._replace(last_due_at=row.next_due_at, strikes=strikes)
        self._plan(name, batch, now)

    def pause(self, name: str, paused: bool, batch: Batch, now: float) -> int | None:
        """Returns the occurrence to cancel."""
        row = self.rows[name]
        self.rows[name] = row._replace(paused=int(paused))
        if not paused and name not in self.jobs:
            self._plan(name, batch, now)
            return None
        batch.schedules.append(self.rows[name])
        return self.jobs.get(name) if paused else None

    def remove(self, name: str, batch: Batch) -> int | None:
        """Returns the occurrence to cancel."""
        self.rows.pop(name, None)
        self._rules.pop(name, None)
        batch.schedules_gone.append(name)
        return self.jobs.pop(name, None)

    def replan(self, name: str, batch: Batch, now: float) -> None:
        self._plan(name, batch, now)

    def _plan(self, name: str, batch: Batch, now: float) -> None:
        row = self.rows[name]
        if row.paused:
            batch.schedules.append(row)
            return
        rule = self._rules.get(name)
        if rule is None:
            rule = self._rules[name] = rule_of(row.rule)
        last = now if row.last_due_at is None else row.last_due_at
        following = next_run(after_strikes(rule, row.strikes), last, now)
        row = row._replace(next_due_at=following.due_at, missed=row.missed + following.missed)
        self.rows[name] = row
        batch.schedules.append(row)
        options = _options.decode(row.options)
        self._plans += 1
        self._coming[name] = self._coming.get(name, 0) + 1
        batch.jobs.append(
            NewJob(
                row.type,
                row.args,
                created_at=now,
                lane=options.lane,
                tenant=options.tenant,
                key=options.key,
                upstreams=options.upstreams,
                priority=options.priority,
                not_before=following.due_at,
                spec=options.spec,
                schedule=name,
                occurrence=occurrence_key(f"{name}~{batch.term}.{self._plans}", following.due_at),
            )
        )
