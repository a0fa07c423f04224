"""Reading, as far as every store does it with the same words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any, ClassVar

from headway.store.records import (
    Command,
    Event,
    Job,
    Progress,
    Query,
    Result,
    Schedule,
    SlotRow,
    TypeStats,
)


def query(name: str) -> str:
    """The text of one query, from its own file."""
    return files("headway.store.queries").joinpath(f"{name}.sql").read_text("utf-8")


JOB = query("job")
STATS = query("stats")


class Looker(ABC):
    """What differs between stores: how rows are got, and how many numbers are one value."""

    AMONG: ClassVar[str]  # what follows a column that is compared with many numbers

    @abstractmethod
    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query, in which question marks stand for the values."""

    @abstractmethod
    def _many(self, numbers: Iterable[int]) -> Any:
        """Many numbers as one value."""

    def _one(self, query: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        rows = self._rows(query, values)
        return rows[0] if rows else None

    # ------------------------------------------------------------------ for the engine

    def states(self, ids: Iterable[int]) -> dict[int, str]:
        return dict(
            self._rows(f"select id, state from jobs where id {self.AMONG}", (self._many(ids),))
        )

    def waits(self, ids: Iterable[int] | None = None) -> list[tuple[int, int]]:
        """(job, the job it waits for), of these jobs or of all."""
        if ids is None:
            rows = self._rows("select job, on_job from waits order by job, on_job")
        else:
            rows = self._rows(
                f"select job, on_job from waits where job {self.AMONG}", (self._many(ids),)
            )
        return [(job, on_job) for job, on_job in rows]

    def commands(self, limit: int) -> list[Command]:
        """What the engine was asked and has not done yet, in order."""
        rows = self._rows(
            "select id, at, verb, target, args from commands order by id limit ?", (limit,)
        )
        return [Command._make(row) for row in rows]

    def gates(self) -> list[tuple[str, str, str, str]]:
        return [(a, b, c, d) for a, b, c, d in self._rows("select * from gates")]

    def settings(self) -> list[tuple[str, str, str, float]]:
        return [(a, b, c, d) for a, b, c, d in self._rows("select * from settings")]

    def schedules(self) -> list[Schedule]:
        return [Schedule._make(row) for row in self._rows("select * from schedules order by name")]

    def open_occurrences(self) -> dict[str, int]:
        return dict(
            self._rows(
                "select schedule, id from jobs where schedule is not null and finished_at is null"
            )
        )

    def slots(self) -> list[SlotRow]:
        return [SlotRow._make(row) for row in self._rows("select * from slots order by fence")]

    def processes(self) -> list[tuple[int, int, float]]:
        return [(a, b, c) for a, b, c in self._rows("select job, pid, started_at from processes")]

    # ------------------------------------------------------------------ for people

    def job(self, id: int) -> Job | None:
        row = self._one(JOB, (id,))
        return None if row is None else Job._make(row)

    def jobs(self, query: Query) -> list[Job]:
        """A page of jobs, newest first."""
        text, values = _where(query)
        rows = self._rows(
            f"{JOB.partition(' where ')[0]} {text} order by id desc limit ? offset ?",
            [*values, query.limit, query.offset],
        )
        return [Job._make(row) for row in rows]

    def count(self, query: Query) -> int:
        text, values = _where(query)
        row = self._one(f"select count(*) from jobs {text}", values)
        return 0 if row is None else int(row[0])

    def result(self, id: int) -> Result | None:
        row = self._one("select value, expires_at from results where job = ?", (id,))
        return None if row is None else Result._make(row)

    def checkpoint(self, id: int) -> str | None:
        row = self._one("select data from checkpoints where job = ?", (id,))
        return None if row is None else str(row[0])

    def progress(self, id: int) -> Progress | None:
        row = self._one("select done, total, note, at from progress where job = ?", (id,))
        return None if row is None else Progress._make(row)

    def logs(self, id: int) -> list[tuple[float, str, str]]:
        rows = self._rows("select at, level, line from logs where job = ? order by id", (id,))
        return [(at, level, line) for at, level, line in rows]

    def events(self, after: int, limit: int) -> list[Event]:
        rows = self._rows("select * from events where id > ? order by id limit ?", (after, limit))
        return [Event._make(row) for row in rows]

    def events_of(self, id: int) -> list[Event]:
        rows = self._rows("select * from events where job = ? order by id", (id,))
        return [Event._make(row) for row in rows]

    def event_range(self) -> tuple[int, int]:
        """The first event that is still there, and the last; (1, 0) when there are none."""
        row = self._one("select coalesce(min(id), 1), coalesce(max(id), 0) from events")
        assert row is not None
        return int(row[0]), int(row[1])

    def batch(self, id: int) -> dict[str, int] | None:
        """How many jobs of a batch are in which state. None: there is no such batch."""
        if self._one("select 1 from batches where id = ?", (id,)) is None:
            return None
        rows = self._rows("select state, count(*) from jobs where batch = ? group by state", (id,))
        return dict(rows)

    def stats(self, since: float) -> list[TypeStats]:
        return [TypeStats._make(row) for row in self._rows(STATS, (since,))]


def _where(query: Query) -> tuple[str, list[Any]]:
    parts: list[str] = []
    values: list[Any] = []
    for column in ("state", "type", "lane", "tenant", "key", "batch", "schedule"):
        wanted = getattr(query, column)
        if wanted is not None:
            parts.append(f"{column} = ?")
            values.append(wanted)
    return ("where " + " and ".join(parts) if parts else ""), values
