"""New jobs. Runs inside a transaction of the writer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

from headway.core import State
from headway.store.encoding import duplicate, job_row
from headway.store.records import NewJob, OnConflict, Receipt, Unique
from headway.store.sqlite.connection import sql

INSERT_JOB = sql("insert_job")
INSERT_PAYLOAD = sql("insert_payload")
INSERT_JOBS = sql("insert_jobs")
NEXT_JOB = sql("next_job")

SMALL = 1_000  # characters of a payload that stand beside the job; a longer one is apart
FEW = 4  # from here on one statement for all is quicker than one for each

_encode = msgspec.json.encode


def insert(db: apsw.Connection, jobs: Sequence[NewJob]) -> list[Receipt]:
    """Insert all, in order. Raises DuplicateJob; then the caller rolls everything back."""
    if len(jobs) < FEW or any(job.unique or job.after or job.occurrence for job in jobs):
        return [_insert_one(db, job) for job in jobs]
    first: int = db.execute(NEXT_JOB).get
    db.execute(INSERT_JOBS, (_encode([_row(job) for job in jobs]).decode(), first))
    for number, job in enumerate(jobs, start=first):
        if len(job.args) > SMALL:
            db.execute(INSERT_PAYLOAD, (number, job.args))
    return [Receipt(number) for number in range(first, first + len(jobs))]


def is_one_statement(jobs: Sequence[NewJob]) -> bool:
    """Whether `insert` needs no transaction around it to be atomic."""
    job = jobs[0] if len(jobs) == 1 else None
    return job is not None and not (
        job.unique or job.after or job.occurrence or len(job.args) > SMALL
    )


def _row(job: NewJob) -> tuple[Any, ...]:
    return job_row(job, job.args if len(job.args) <= SMALL else None)


def _insert_one(db: apsw.Connection, job: NewJob) -> Receipt:
    if job.unique is not None:
        there = _join(db, job, job.unique)
        if there is not None:
            return there
    if job.occurrence is not None:
        taken = db.execute("select job from occurrences where key = ?", (job.occurrence,)).get
        if taken is not None:
            return Receipt(taken, joined=True)
    db.execute(INSERT_JOB, _row(job))
    number = db.last_insert_rowid()
    if len(job.args) > SMALL:
        db.execute(INSERT_PAYLOAD, (number, job.args))
    if job.occurrence is not None:
        db.execute("insert into occurrences values (?, ?)", (job.occurrence, number))
    for other in job.after:
        db.execute("insert or ignore into waits values (?, ?)", (number, other))
    return Receipt(number)


def _join(db: apsw.Connection, job: NewJob, unique: Unique) -> Receipt | None:
    """What becomes of a job whose unique key may be taken. None: it is free."""
    found = db.execute(
        "select id, state, priority from jobs where unique_key = ?", (unique.key,)
    ).fetchone()
    if found is None:
        return None
    number, state, priority = found
    if unique.on_conflict is OnConflict.REJECT:
        raise duplicate(number, unique.key, running=False)
    if unique.on_conflict is OnConflict.REPLACE:
        if state == State.RUNNING.value:
            raise duplicate(number, unique.key, running=True)
        beside = job.args if len(job.args) <= SMALL else None
        db.execute("update jobs set args = ? where id = ?", (beside, number))
        if beside is None:
            db.execute(INSERT_PAYLOAD, (number, job.args))
        _order(db, job, "replace", number, [job.not_before, job.priority])
    elif job.priority < priority:
        _order(db, job, "prioritise", number, job.priority)
    return Receipt(number, joined=True)


def _order(db: apsw.Connection, job: NewJob, verb: str, number: int, args: Any) -> None:
    db.execute(
        "insert into commands (at, verb, target, args) values (?, ?, ?, ?)",
        (job.created_at, verb, str(number), _encode(args).decode()),
    )
