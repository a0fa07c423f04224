"""Retention: what is over and old enough goes, a chunk at a time so that nobody waits long."""

from __future__ import annotations

from headway.store.postgres.connection import Connection, sql
from headway.store.records import Purged

CANDIDATES = sql("purge_candidates").encode()
EVENTS = sql("purge_events").encode()
CHUNK = 1_000
OF_TYPE = (
    "select id from jobs where finished_at is not null and state = 'completed' and type = %s "
    "and finished_at < %s order by finished_at limit %s for update skip locked"
)

# Everything that belongs to a job and goes with it.
TABLES = ("results", "checkpoints", "progress", "logs", "occurrences", "waits")


def purge(db: Connection, completed_before: float, failed_before: float, now: float) -> Purged:
    """One chunk. The caller goes on until nothing is left to remove."""
    oldest = min(completed_before, failed_before)
    with db.transaction():
        found = db.execute(CANDIDATES, (completed_before, failed_before, CHUNK)).fetchall()
        ids = [row[0] for row in found]
        _remove(db, ids)
        results = db.execute(
            "delete from results where job in (select job from results where expires_at < %s "
            "order by expires_at limit %s)",
            (now, CHUNK),
        ).rowcount
        db.execute(
            "delete from batches where created_at < %s "
            "and not exists (select from jobs where jobs.batch = batches.id)",
            (oldest,),
        )
        db.execute("delete from producers where at < now() - interval '1 day'")
        events = db.execute(EVENTS, {"before": oldest, "limit": CHUNK}).rowcount
    return Purged(len(ids), events, results)


def purge_type(db: Connection, type: str, completed_before: float) -> Purged:
    """One chunk of completed jobs of this type, with their events."""
    with db.transaction():
        found = db.execute(OF_TYPE, (type, completed_before, CHUNK)).fetchall()
        ids = [row[0] for row in found]
        _remove(db, ids)
        events = db.execute(
            "delete from events where job = any(%s) returning id", (ids,)
        ).fetchall()  # fmt: skip
        if events:
            last = max(row[0] for row in events)
            db.execute("update purged_events set up_to = greatest(up_to, %s)", (last,))
    return Purged(len(ids), len(events), 0)


def _remove(db: Connection, ids: list[int]) -> None:
    if ids:
        for table in TABLES:
            db.execute(f"delete from {table} where job = any(%s)".encode(), (ids,))
        db.execute("delete from jobs where id = any(%s)", (ids,))
