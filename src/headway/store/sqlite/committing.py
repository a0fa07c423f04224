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
from headway.store.tables import Writes, together

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
# What most turns consist of, and nothing else: each kind has a way of its own.
WAYS = {
    "jobs": frozenset({"granted", "completed", "events"}),
    "slots": frozenset({"slots", "slots_gone"}),
}
STALE = "stale brain"
MARKS = ("term", "fence", "seen_job")

Encoded = tuple[Any, ...]
Statements = list[tuple[str, str]]  # each with its rows

_encode = msgspec.json.encode


def _turn() -> str:
    """A view that nobody reads: inserting into it does everything that a turn decided. Most turns
    grant, complete and say so, or take slots and give them back, and do nothing else; they go a
    short way.
    """
    names = [name for name, _ in LISTS]
    columns = ", ".join((*MARKS, "way", *names))
    nothing = ", ".join("null" for _ in (*MARKS, "way", *names))
    triggers = [
        _trigger(f"take_{way}", f"new.way = '{way}'",
                 _steps([each for each in LISTS if each[0] in lists]))
        for way, lists in WAYS.items()
    ]  # fmt: skip
    whole = _trigger("take_turn", "new.way is null", _steps(LISTS))
    return f"create temp view turn ({columns}) as select {nothing};\n" + "".join(triggers) + whole


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
TAKE_TURN = f"insert into turn values ({', '.join('?' for _ in (*MARKS, 'way', *LISTS))})"


def encoded(batch: Batch) -> Encoded:
    """The batch as the values of one statement; made outside of the writer's lock."""
    texts: list[str | None] = [None] * len(LISTS)
    used: set[str] = set()
    for place, (name, _) in enumerate(LISTS):
        if getattr(batch, name):  # most are empty
            used.add(name)
            texts[place] = _encode(rows_of(batch, name)).decode()
    way = next((way for way, lists in WAYS.items() if used <= lists), None)
    return (batch.term, batch.fence, int(batch.mark or 0), way, *texts)


def statements(writes: Writes) -> Statements:
    """What applications write; made outside of the writer's lock, too."""
    for write, rows in writes:
        write.check(rows)
    few = together(writes)
    return [(write.sqlite, _encode(write.once(rows)).decode()) for write, rows in few]


def take_writes(db: apsw.Connection, writes: Statements) -> None:
    for statement, rows in writes:
        db.execute(statement, (rows,))


def commit(db: apsw.Connection, batch: Batch, values: Encoded, writes: Statements) -> None:
    """Atomic by itself, as long as the batch has no jobs to insert and nothing of applications."""
    try:
        db.execute(TAKE_TURN, values)
    except apsw.ConstraintError as error:
        if STALE in str(error):
            raise StaleBrain("another engine has taken over this store; this one stops") from error
        raise
    if batch.jobs:
        insert(db, batch.jobs)
    take_writes(db, writes)
