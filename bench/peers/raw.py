"""What SQLite and the disk allow, without any product.

`rows_per_s` writes exactly the rows that Headway writes, with its schema, its statements and its
settings, but does nothing else. `plain_rows_per_s` and `fdatasync_per_s` are measured as they were
on the machine on which the bars were set; they tell how fast this machine is beside that one.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable

import apsw

from bench.peers import surroundings
from headway.store.sqlite.connection import connect, prepare, sql

PER_TRANSACTION = {"w1": 1, "w1b": 64, "w1c": 1_000}
ARGS = '{"i":1}'


def row(now: float) -> tuple[object, ...]:
    """What Headway puts into the columns of insert_job.sql for a job that asks for nothing."""
    where, order = ("noop", "default", "", None, None), (5, 0.0, None, now)
    return (*where, *order, None, None, None, None, None, 0, "queued", now, ARGS)


def rows_per_s(workload: str, count: int) -> float:
    path = surroundings.directory() / "raw.db"
    surroundings.remove_files(path.name)
    prepare(str(path))
    db = connect(str(path))
    try:
        assert db.pragma("journal_mode") == "wal"
        assert db.pragma("synchronous") == 2  # FULL
        each = PER_TRANSACTION[workload]
        insert = _insert_one if each == 1 else _insert_many
        insert(db, 0, each, 50)  # warm up
        start = time.perf_counter()
        insert(db, 50 * each, each, count // each)
        return count // each * each / (time.perf_counter() - start)
    finally:
        db.close()
        surroundings.remove_files(path.name)


def _insert_one(db: apsw.Connection, _last: int, _each: int, times: int) -> None:
    insert_job, values = sql("insert_job"), row(time.time())
    for _ in range(times):
        db.execute(insert_job, values)  # alone, a statement is its own transaction


def _insert_many(db: apsw.Connection, last: int, each: int, times: int) -> None:
    insert_jobs, rows = sql("insert_jobs"), json.dumps([row(time.time())] * each)
    for first in range(last + 1, last + 1 + each * times, each):
        db.execute(insert_jobs, (rows, first))


def plain_rows_per_s(seconds: float) -> float:
    """One small table with one index, 100 bytes in each row, one row in each transaction."""
    path = surroundings.directory() / "plain.db"
    surroundings.remove_files(path.name)
    db = sqlite3.connect(path, isolation_level=None)
    try:
        db.execute("pragma journal_mode=wal")
        db.execute("pragma synchronous=full")
        columns = "id integer primary key, q text, state int, run_at real, payload text"
        db.execute(f"create table job({columns})")
        db.execute("create index ready on job(q, state, run_at, id)")
        insert = "insert into job(q, state, run_at, payload) values ('default', 0, 0.0, ?)"
        return _rate(lambda: db.execute(insert, ("x" * 100,)), seconds)
    finally:
        db.close()
        surroundings.remove_files(path.name)


def fdatasync_per_s(seconds: float) -> float:
    """Append 4 KiB, sync, again."""
    path = surroundings.directory() / "appended"
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    sync = getattr(os, "fdatasync", os.fsync)  # macOS has only the latter
    block = b"x" * 4_096

    def append() -> None:
        os.write(file, block)
        sync(file)

    try:
        return _rate(append, seconds)
    finally:
        os.close(file)
        path.unlink()


def _rate(act: Callable[[], object], seconds: float) -> float:
    count, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < seconds:
        act()
        count += 1
    return count / passed


MACHINE = {"fdatasync_per_s": fdatasync_per_s, "plain_rows_per_s": plain_rows_per_s}
