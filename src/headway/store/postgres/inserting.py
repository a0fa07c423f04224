"""New jobs: one call of a function in the database, whoever's transaction it is in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from headway.errors import BadJob, DuplicateJob
from headway.store.encoding import duplicate, job_row
from headway.store.postgres.nul import NUL
from headway.store.records import NewJob, Receipt

_encode = msgspec.json.encode
_decode = msgspec.json.decode


def encoded(jobs: Sequence[NewJob]) -> str:
    """What `put` takes."""
    text = _encode([_row(job) for job in jobs]).decode()
    if NUL in text:
        _refuse_nul(jobs)
    return text


def _row(job: NewJob) -> tuple[Any, ...]:
    row = job_row(job, job.args)
    unique = job.unique
    if unique is None and not job.after and job.occurrence is None:
        return row
    conflict = None if unique is None else unique.on_conflict.value
    return (*row, conflict, job.after or None, job.occurrence)


def _refuse_nul(jobs: Sequence[NewJob]) -> None:
    for job in jobs:
        for value in _row(job):
            if isinstance(value, str) and "\x00" in value:
                raise BadJob(f"PostgreSQL stores no NUL character; take it out of {value!r}")


def receipts(rows: Iterable[Sequence[Any]]) -> list[Receipt]:
    """What `put` answered: (job, joined, refused) for each. DuplicateJob when it refused."""
    answers = []
    for number, joined, refused in rows:
        if refused is not None:
            raise refusal(refused)
        answers.append(Receipt(number, joined))
    return answers


def answers(text: str) -> list[Receipt]:
    """What `put_once` answered: for each job its number, or the number of the one it has joined in
    an array with why it was refused.
    """
    receipts = []
    for each in _decode(text):
        if type(each) is int:
            receipts.append(Receipt(each))
        else:
            number, refused = each
            if refused is not None:
                raise refusal(refused)
            receipts.append(Receipt(number, joined=True))
    return receipts


def refusal(text: str) -> DuplicateJob:
    number, running, key = _decode(text)
    return duplicate(number, key, running=running)
