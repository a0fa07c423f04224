"""Retention: what is over and old enough goes, a chunk at a time so that nobody waits long."""

from __future__ import annotations

from typing import Any

import apsw
import msgspec

from headway.store.records import Purged
from headway.store.sqlite.connection import sql

CANDIDATES = sql("purge_candidates")
CHUNK = 1_000
OF_TYPE = (
    "select id from jobs where finished_at is not null and state = 'completed' and type = ? "
    "and finished_at < ? order by finished_at limit ?"
)

# Everything that belongs to a job and goes with it.
TABLES = ("payloads", "results", "checkpoints", "progress", "logs", "occurrences", "waits")


def purge(db: apsw.Connection, completed_before: float, failed_before: float, now: float) -> Purged:
    """One chunk. The caller goes on until nothing is left to remove."""
    found: list[Any] = db.execute(CANDIDATES, (completed_before, failed_before, CHUNK)).fetchall()
    _remove(db, [row[0] for row in found])
    db.execute("delete from results where job in (select job from results where expires_at < ?"
               " order by expires_at limit ?)", (now, CHUNK))  # fmt: skip
    results = db.changes()
    db.execute(
        "delete from batches where created_at < ? "
        "and not exists (select 1 from jobs where jobs.batch = batches.id)",
        (min(completed_before, failed_before),),
    )
    return Purged(len(found), _purge_events(db, min(completed_before, failed_before)), results)


def purge_type(db: apsw.Connection, type: str, completed_before: float) -> Purged:
    """One chunk of completed jobs of this type, with their events."""
    found: list[Any] = db.execute(OF_TYPE, (type, completed_before, CHUNK)).fetchall()
    ids = [row[0] for row in found]
    _remove(db, ids)
    events: list[Any] = db.execute(
        "delete from events where job in (select value from json_each(?)) returning id",
        (msgspec.json.encode(ids).decode(),),
    ).fetchall()
    if events:
        last = max(row[0] for row in events)
        db.execute("update purged_events set up_to = max(up_to, ?)", (last,))
        db.execute("update brain set purged_event = max(purged_event, ?)", (last,))
    return Purged(len(ids), len(events), 0)


def _remove(db: apsw.Connection, ids: list[int]) -> None:
    if ids:
        text = msgspec.json.encode(ids).decode()
        for table in TABLES:
            db.execute(
                f"delete from {table} where job in (select value from json_each(?))", (text,)
            )
        db.execute("delete from jobs where id in (select value from json_each(?))", (text,))
        db.execute("update brain set purged_job = max(purged_job, ?)", (max(ids),))


def _purge_events(db: apsw.Connection, before: float) -> int:
    """From the front only, so that what is left has no gaps; the trail of a job that is still
    there stays whole.
    """
    oldest = db.execute("select min(id) from events").get
    if oldest is None:
        return 0
    rows: list[Any] = db.execute(
        "select id, at, job from events where id >= ? order by id limit ?", (oldest, CHUNK)
    ).fetchall()
    jobs = msgspec.json.encode(list({row[2] for row in rows if row[2] is not None})).decode()
    there = {
        row[0]
        for row in db.execute(
            "select id from jobs where id in (select value from json_each(?))", (jobs,)
        )
    }
    last = oldest - 1
    for number, at, job in rows:
        if at >= before or job in there:
            break
        last = number
    db.execute("delete from events where id between ? and ?", (oldest, last))
    purged = db.changes()
    db.execute("update brain set purged_event = max(purged_event, ?)", (last,))
    return purged
