"""The decisions of one turn of the engine, in one transaction of the writer.

Each list of a batch is one JSON text, and all of them are the values of one statement: a trigger
does the rest. So SQLite works on the whole turn, the sync to disk included, without holding
Python's global lock; row by row, a busy thread elsewhere in the process would delay every single
row (decision 0007).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

from headway.errors import StaleBrain
from headway.store.batch import Batch
from headway.store.encoding import rows_of
from headway.store.sqlite.connection import sql
from headway.store.sqlite.inserting import insert

# In this order. The second name is there where rows that end in None are rows to delete.
LISTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("reopened", ("commit_reopened",)),
    ("moved", ("commit_moved",)),
    ("granted", ("commit_granted",)),
    ("completed", ("commit_completed",)),
    ("ended", ("commit_ended",)),
    ("freed", ("commit_freed",)),
    ("released", ("commit_released", "commit_released_waits")),
    ("events", ("commit_events",)),
    ("results", ("commit_results",)),
    ("progress", ("commit_progress",)),
    ("checkpoints", ("commit_checkpoints",)),
    ("logs", ("commit_logs",)),
    ("processes", ("commit_processes", "commit_processes_gone")),
    ("gates", ("commit_gates", "commit_gates_gone")),
    ("settings", ("commit_settings", "commit_settings_gone")),
    ("schedules", ("commit_schedules",)),
    ("schedules_gone", ("commit_schedules_gone",)),
    ("slots", ("commit_slots",)),
    ("slots_gone", ("commit_slots_gone",)),
    ("slot_totals", ("commit_slot_totals",)),
    ("obeyed", ("commit_obeyed",)),
)
USUAL = frozenset({"granted", "completed", "events"})
STALE = "stale brain"
MARKS = ("term", "fence", "seen_job")

Encoded = tuple[Any, ...]

_encode = msgspec.json.encode


def _turn() -> str:
    """A view that nobody reads: inserting into it does everything that a turn decided. Most turns
    grant, complete and say so, and nothing else; they go the short way.
    """
    names = [name for name, _ in LISTS]
    columns = ", ".join((*MARKS, "rest", *names))
    nothing = ", ".join("null" for _ in (*MARKS, "rest", *names))
    short = _steps([each for each in LISTS if each[0] in USUAL])
    return (
        f"create temp view turn ({columns}) as select {nothing};\n"
        + _trigger("take_short_turn", "new.rest is null", short)
        + _trigger("take_turn", "new.rest is not null", _steps(LISTS))
    )


def _steps(lists: Sequence[tuple[str, tuple[str, ...]]]) -> list[str]:
    steps = [sql("commit_brain")]
    for name, queries in lists:
        steps += [sql(query).replace("?", f"new.{name}") for query in queries]
    return steps


def _trigger(name: str, when: str, steps: list[str]) -> str:
    body = ";\n".join(step.strip() for step in steps)
    return (
        f"create temp trigger {name} instead of insert on turn when {when} begin\n{body};\nend;\n"
    )


TURN = _turn()
TAKE_TURN = f"insert into turn values ({', '.join('?' for _ in (*MARKS, 'rest', *LISTS))})"


def encoded(batch: Batch) -> Encoded:
    """The batch as the values of one statement; made outside of the writer's lock."""
    texts: list[str | None] = []
    rest = None
    for name, _ in LISTS:
        rows = rows_of(batch, name)
        if not rows:
            texts.append(None)
            continue
        if name not in USUAL:
            rest = 1
        texts.append(_encode(rows).decode())
    return (batch.term, batch.fence, int(batch.mark or 0), rest, *texts)


def commit(db: apsw.Connection, batch: Batch, values: Encoded) -> None:
    """Atomic by itself, as long as the batch has no jobs to insert."""
    try:
        db.execute(TAKE_TURN, values)
    except apsw.ConstraintError as error:
        if STALE in str(error):
            raise StaleBrain("another engine has taken over this store; this one stops") from error
        raise
    if batch.jobs:
        insert(db, batch.jobs)
