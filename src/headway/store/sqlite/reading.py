"""Reading: what the engine loads, and what people look at. Readers never block the writer."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apsw
import msgspec

from headway.errors import StoreError
from headway.store.records import (
    Brain,
    Command,
    Errand,
    Event,
    Job,
    OpenJob,
    Progress,
    Query,
    Result,
    Schedule,
    SlotRow,
    TypeStats,
)
from headway.store.sqlite.connection import connect, sql, translated

LOAD_OPEN = sql("load_open")
LOAD_NEW = sql("load_new")
LOAD_SOME = sql("load_some")
ERRANDS = sql("errands")
JOB = sql("job")
PAYLOAD = sql("payload")
STATS = sql("stats")


def _array(values: Iterable[Any]) -> str:
    return msgspec.json.encode(list(values)).decode()


class Reader:
    """One connection for each thread that reads."""

    def __init__(self, path: str, *, vfs: str | None) -> None:
        self.path = path
        self._vfs = vfs
        self._local = threading.local()
        self._all: weakref.WeakSet[apsw.Connection] = weakref.WeakSet()  # they end with threads
        self._watch: apsw.Connection | None = None  # the one whose `data_version` is compared
        self._watching = threading.Lock()
        self._lock = threading.Lock()
        self._closed = False

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with translated(self.path):
            return self._db().execute(query, tuple(values)).fetchall()

    def _one(self, query: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        rows = self._rows(query, values)
        return rows[0] if rows else None

    def _db(self) -> apsw.Connection:
        db: apsw.Connection | None = getattr(self._local, "db", None)
        if db is None:
            db = self._local.db = self._connect()
        return db

    def _connect(self) -> apsw.Connection:
        db = connect(self.path, vfs=self._vfs, writes=False)
        with self._lock:
            if self._closed:
                db.close()
                raise StoreError(f"{self.path} is closed here; open the app again")
            self._all.add(db)
        return db

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for db in list(self._all):
                db.interrupt()
                with contextlib.suppress(apsw.ThreadingViolationError):
                    db.close()  # one that is being read from closes when its thread lets go
            self._all.clear()
        self._local = threading.local()

    # ------------------------------------------------------------------ for the engine

    def brain(self) -> Brain:
        row = self._one("select term, fence, seen_job, seen_command from brain")
        assert row is not None  # the schema puts it there
        return Brain(*row)

    def version(self) -> int:
        """Changes whenever another connection has committed something."""
        with translated(self.path), self._watching:
            if self._watch is None or self._closed:
                self._watch = self._connect()
            return int(self._watch.pragma("data_version"))

    def load_open(self, up_to: int) -> Iterator[OpenJob]:
        """All jobs up to this number that have not ended, in order. Reads as it is read."""
        make = OpenJob._make
        with translated(self.path):
            for row in self._db().execute(LOAD_OPEN, (up_to,)):
                yield make(row)

    def load_new(self, after: int, limit: int) -> list[OpenJob]:
        return [OpenJob._make(row) for row in self._rows(LOAD_NEW, (after, limit))]

    def load_some(self, ids: Iterable[int]) -> list[OpenJob]:
        return [OpenJob._make(row) for row in self._rows(LOAD_SOME, (_array(ids),))]

    def states(self, ids: Iterable[int]) -> dict[int, str]:
        query = "select id, state from jobs where id in (select value from json_each(?))"
        return dict(self._rows(query, (_array(ids),)))

    def waits(self, ids: Iterable[int] | None = None) -> list[tuple[int, int]]:
        """(job, the job it waits for), of these jobs or of all."""
        if ids is None:
            rows = self._rows("select job, on_job from waits order by job, on_job")
        else:
            rows = self._rows(
                "select job, on_job from waits where job in (select value from json_each(?))",
                (_array(ids),),
            )
        return [(job, on_job) for job, on_job in rows]

    def commands(self, after: int, limit: int) -> list[Command]:
        query = "select id, at, verb, target, args from commands where id > ? order by id limit ?"
        return [Command._make(row) for row in self._rows(query, (after, limit))]

    def errands(self, ids: Iterable[int]) -> list[Errand]:
        return [Errand._make(row) for row in self._rows(ERRANDS, (_array(ids),))]

    def gates(self) -> list[tuple[str, str, str, str]]:
        return [(a, b, c, d) for a, b, c, d in self._rows("select * from gates")]

    def settings(self) -> list[tuple[str, str, str, float]]:
        return [(a, b, c, d) for a, b, c, d in self._rows("select * from settings")]

    def schedules(self) -> list[Schedule]:
        return [Schedule._make(row) for row in self._rows("select * from schedules")]

    def open_occurrences(self) -> dict[str, int]:
        query = "select schedule, id from jobs where schedule is not null and finished_at is null"
        return dict(self._rows(query))

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

    def payload(self, id: int) -> str | None:
        row = self._one(PAYLOAD, (id,))
        return None if row is None else str(row[0])

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
        query = "select * from events where id > ? order by id limit ?"
        return [Event._make(row) for row in self._rows(query, (after, limit))]

    def events_of(self, id: int) -> list[Event]:
        query = "select * from events where job = ? order by id"
        return [Event._make(row) for row in self._rows(query, (id,))]

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
