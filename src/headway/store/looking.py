"""Reading, as far as every store does it with the same words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any, ClassVar

from headway.store.filtering import LARGEST, Words, is_number, is_text, nearest, where
from headway.store.records import (
    BatchRow,
    Command,
    Event,
    Failures,
    Job,
    Progress,
    Query,
    Result,
    Schedule,
    SlotRow,
    TrailRow,
    TypeStats,
)


def query(name: str) -> str:
    """The text of one query, from its own file."""
    return files("headway.store.queries").joinpath(f"{name}.sql").read_text("utf-8")


JOB = query("job")
JOBS = JOB.partition(" where ")[0]
STATS = query("stats")
FAILURES = query("failures")
EVENT = "select id, at, job, event, before, after, fence, detail, subject, who from events"
TRAIL = query("trail")
BATCH = "select id, created_at, label, tenant from batches"


class Looker(ABC):
    """What differs between stores: how rows are got, and a few words of SQL."""

    WORDS: ClassVar[Words]

    @abstractmethod
    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query, in which question marks stand for the values."""

    @abstractmethod
    def last_event(self) -> int:
        """The number of the last event there ever was, even if it was purged; 0: none."""

    def _among(self, numbers: Iterable[int]) -> Any:
        """Many numbers as one value, without those that no row can have."""
        return self.WORDS.many(filter(is_number, numbers))

    def _rows_of(self, query: str, id: int) -> list[tuple[Any, ...]]:
        """What belongs to the job or batch of this number. There may be no such number at all."""
        return self.rows(query, (id,)) if is_number(id) else []

    def _one_of(self, query: str, id: int) -> tuple[Any, ...] | None:
        rows = self._rows_of(query, id)
        return rows[0] if rows else None

    def _one(self, query: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        rows = self.rows(query, values)
        return rows[0] if rows else None

    # ------------------------------------------------------------------ for the engine

    def states(self, ids: Iterable[int]) -> dict[int, str]:
        return dict(
            self.rows(
                f"select id, state from jobs where id {self.WORDS.among}", (self._among(ids),)
            )
        )

    def waits(self, ids: Iterable[int] | None = None) -> list[tuple[int, int]]:
        """(job, the job it waits for), of these jobs or of all."""
        if ids is None:
            rows = self.rows("select job, on_job from waits order by job, on_job")
        else:
            rows = self.rows(
                f"select job, on_job from waits where job {self.WORDS.among}", (self._among(ids),)
            )
        return [(job, on_job) for job, on_job in rows]

    def commands(self, limit: int) -> list[Command]:
        """What the engine was asked and has not done yet, in order."""
        rows = self.rows(
            "select id, at, verb, target, args, who from commands order by id limit ?", (limit,)
        )
        return [Command._make(row) for row in rows]

    def gates(self) -> list[tuple[str, str, str, str]]:
        return [(a, b, c, d) for a, b, c, d in self.rows("select * from gates")]

    def settings(self) -> list[tuple[str, str, str, float]]:
        return [(a, b, c, d) for a, b, c, d in self.rows("select * from settings")]

    def schedules(self) -> list[Schedule]:
        return sorted(Schedule._make(row) for row in self.rows("select * from schedules"))

    def open_occurrences(self) -> dict[str, int]:
        return dict(
            self.rows(
                "select schedule, id from jobs where schedule is not null and finished_at is null"
            )
        )

    def slots(self) -> list[SlotRow]:
        return [SlotRow._make(row) for row in self.rows("select * from slots order by number")]

    def slot_totals(self) -> list[tuple[str, int, int, float]]:
        return list(self.rows("select upstream, reclaimed, outlived, outlived_s from slot_totals"))

    def processes(self) -> list[tuple[int, int, float]]:
        return [(a, b, c) for a, b, c in self.rows("select job, pid, started_at from processes")]

    # ------------------------------------------------------------------ for people

    def job(self, id: int) -> Job | None:
        row = self._one_of(JOB, id)
        return None if row is None else Job._make(row)

    def jobs(self, query: Query) -> list[Job]:
        """A page of jobs, newest first."""
        found = where(query, self.WORDS)
        if found is None:
            return []
        text, values = found
        rows = self.rows(
            f"{JOBS} {text} order by id desc limit ? offset ?",
            [*values, nearest(query.limit, 0), nearest(query.offset, 0)],
        )
        return [Job._make(row) for row in rows]

    def count(self, query: Query) -> int:
        found = where(query, self.WORDS)
        row = found and self._one(f"select count(*) from jobs {found[0]}", found[1])
        return int(row[0]) if row else 0

    def tally(self, tenant: str | None = None) -> list[tuple[str, str, int]]:
        """(lane, state, how many jobs), of all jobs or of one tenant's."""
        if tenant is not None and not is_text(tenant):
            return []
        rows = self.rows(
            "select lane, state, count(*) from jobs where tenant = coalesce(?, tenant) "
            "group by lane, state",
            (tenant,),
        )
        return sorted((lane, state, count) for lane, state, count in rows)

    def open_by_tenant(self) -> dict[str, int]:
        return dict(self.rows(
            "select tenant, count(*) from jobs where finished_at is null group by tenant"
        ))  # fmt: skip

    def result(self, id: int) -> Result | None:
        row = self._one_of("select value, expires_at from results where job = ?", id)
        return None if row is None else Result._make(row)

    def checkpoint(self, id: int) -> str | None:
        row = self._one_of("select data from checkpoints where job = ?", id)
        return None if row is None else str(row[0])

    def progress(self, id: int) -> Progress | None:
        return self.progress_of((id,)).get(id)

    def progress_of(self, ids: Iterable[int]) -> dict[int, Progress]:
        rows = self.rows(
            f"select job, done, total, note, at from progress where job {self.WORDS.among}",
            (self._among(ids),),
        )
        return {row[0]: Progress._make(row[1:]) for row in rows}

    def logs(self, id: int) -> list[tuple[float, str, str]]:
        rows = self._rows_of("select at, level, line from logs where job = ? order by id", id)
        return [(at, level, line) for at, level, line in rows]

    def stats(self, since: float, tenant: str | None = None) -> list[TypeStats]:
        """How the jobs fared that have ended since then, all of them or one tenant's."""
        if tenant is not None and not is_text(tenant):
            return []
        return sorted(TypeStats._make(row) for row in self.rows(STATS, (since, tenant)))

    def failures(self, since: float, tenant: str | None = None) -> list[Failures]:
        """What has failed since then, of all or of one tenant; the most frequent types first."""
        if tenant is not None and not is_text(tenant):
            return []
        return [Failures._make(row) for row in self.rows(FAILURES, (since, tenant))]

    # ------------------------------------------------------------------ the trail

    def events(self, after: int, limit: int) -> list[Event]:
        rows = self.rows(
            f"{EVENT} where id > ? order by id limit ?", (nearest(after), nearest(limit, 0))
        )
        return [Event._make(row) for row in rows]

    def events_of(self, id: int) -> list[Event]:
        return [Event._make(row) for row in self._rows_of(f"{EVENT} where job = ? order by id", id)]

    def event_range(self) -> tuple[int, int]:
        """The first event from which on all are still there, and the last; (1, 0) when there are
        none.
        """
        row = self._one(
            "select coalesce(min(id), 1), coalesce(max(id), 0), "
            "(select up_to from purged_events) from events"
        )
        assert row is not None
        first, last, missing = row
        return int(max(first, min(missing, last) + 1)), int(last)

    def trail(self, after: int, limit: int, tenant: str | None = None) -> list[TrailRow]:
        """The events after this one, in order."""
        return self._trail("e.id > ?", nearest(after), "asc", limit, tenant)

    def audit(self, before: int | None, limit: int, tenant: str | None = None) -> list[TrailRow]:
        """What people did, newest first; below this number, if there is one."""
        below = nearest(LARGEST if before is None else before)
        return self._trail("e.who is not null and e.id < ?", below, "desc", limit, tenant)

    def _trail(
        self, part: str, number: int, order: str, limit: int, tenant: str | None
    ) -> list[TrailRow]:
        values: list[Any] = [number]
        if tenant is not None:
            if not is_text(tenant):
                return []
            part += " and j.tenant = ?"
            values.append(tenant)
        rows = self.rows(
            f"{TRAIL} where {part} order by e.id {order} limit ?", [*values, nearest(limit, 0)]
        )
        return [TrailRow._make(row) for row in rows]

    # ------------------------------------------------------------------ batches

    def batch(self, id: int) -> dict[str, int] | None:
        """How many jobs of a batch are in which state. None: there is no such batch."""
        if self.batch_row(id) is None:
            return None
        rows = self.rows("select state, count(*) from jobs where batch = ? group by state", (id,))
        return dict(rows)

    def batch_row(self, id: int) -> BatchRow | None:
        row = self._one_of(f"{BATCH} where id = ?", id)
        return None if row is None else BatchRow._make(row)

    def batches(self, tenant: str | None, limit: int, offset: int) -> list[BatchRow]:
        """A page of them, newest first, of one tenant or of all."""
        if tenant is not None and not is_text(tenant):
            return []
        rows = self.rows(
            f"{BATCH} where tenant = coalesce(?, tenant) order by id desc limit ? offset ?",
            (tenant, nearest(limit, 0), nearest(offset, 0)),
        )
        return [BatchRow._make(row) for row in rows]

    def count_batches(self, tenant: str | None) -> int:
        if tenant is not None and not is_text(tenant):
            return 0
        row = self._one(
            "select count(*) from batches where tenant = coalesce(?, tenant)", (tenant,)
        )
        return int(row[0]) if row else 0
