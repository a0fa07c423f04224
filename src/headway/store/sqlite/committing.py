"""The decisions of one turn of the engine, in one transaction of the writer.

Each list of a batch goes in as one JSON text with one statement, so that SQLite works on it
without holding Python's global lock: row by row, a busy thread elsewhere in the process would
delay every single row (decision 0007).
"""

from __future__ import annotations

from typing import Any

import apsw
import msgspec

from headway.errors import StaleBrain
from headway.store.records import Batch
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
)
# Of these lists the last row of a name counts, and so many columns make the name.
NAMES = {"moved": 1, "ended": 1, "processes": 1, "gates": 3, "settings": 2}
STATEMENTS = tuple((name, tuple(sql(each) for each in queries)) for name, queries in LISTS)
BRAIN = sql("commit_brain")
COMMANDS = sql("commit_commands")

Encoded = list[tuple[str, str]]

_encode = msgspec.json.encode


def encoded(batch: Batch) -> Encoded:
    """The statements of a batch and their one argument; outside of the writer's lock."""
    work: Encoded = []
    for name, queries in STATEMENTS:
        rows: list[Any] = getattr(batch, name)
        if rows:
            if name in NAMES:
                size = NAMES[name]
                rows = list({row[:size]: row for row in rows}.values())
            text = _encode(rows).decode()
            work.extend((query, text) for query in queries)
    return work


def commit(db: apsw.Connection, batch: Batch, work: Encoded) -> None:
    marks = (batch.term, batch.fence, batch.seen_job, batch.seen_command)
    db.execute(BRAIN, marks)
    if db.changes() == 0:
        raise StaleBrain("another engine has taken over this store; this one stops")
    for query, text in work:
        db.execute(query, (text,))
    if batch.seen_command:
        db.execute(COMMANDS, (batch.seen_command,))
    if batch.jobs:
        insert(db, batch.jobs)
