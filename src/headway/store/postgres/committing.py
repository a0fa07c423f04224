"""The turns of the engine: each is one call of a function in the database, with the term of its
brain and the number of the turn. The function does nothing when either is not what it should be,
so a turn whose answer was lost is simply sent again.
"""

from __future__ import annotations

from typing import Any

import msgspec

from headway.errors import StaleBrain, StoreError
from headway.store.batch import Batch
from headway.store.encoding import rows_of
from headway.store.postgres.connection import Connection, Refusal, answer_of, checked
from headway.store.postgres.inserting import encoded as encoded_jobs
from headway.store.postgres.inserting import refusal
from headway.store.postgres.nul import NUL, without_nul
from headway.store.tables import Writes, together

USUAL = ("granted", "completed", "events", "gates")
RARE = (
    "reopened", "moved", "ended", "freed", "released", "results", "progress", "checkpoints",
    "logs", "processes", "settings", "schedules", "schedules_gone", "slots", "slots_gone",
    "slot_totals", "obeyed",
)  # fmt: skip

TAKEN_OVER = "another engine has taken over this store; this one stops"
PREPARED = b"take_turn"
TAKE_TURN = (
    b"select take_turn($1::bigint, $2::bigint, $3::bigint, $4::text, "
    b"$5::jsonb, $6::jsonb, $7::jsonb, $8::jsonb, $9::jsonb, $10::text)"
)

_encode = msgspec.json.encode


class Encoded:
    """A batch as the values of one statement; made before the session is asked for."""

    __slots__ = ("fence", "lists", "mark", "term")

    def __init__(self, batch: Batch) -> None:
        self.term = b"%d" % batch.term
        self.fence = b"%d" % batch.fence
        self.mark = batch.mark
        self.lists: list[bytes | None] = [_text(rows_of(batch, name)) for name in USUAL]
        rest: dict[str, Any] = {name: rows for name in RARE if (rows := rows_of(batch, name))}
        if batch.jobs:
            rest["jobs"] = msgspec.Raw(encoded_jobs(batch.jobs).encode())
        if batch.writes:
            rest["writes"] = msgspec.Raw(encoded_writes(batch.writes))
        self.lists.append(_text(rest))

    def values(self, turn: int, mark: str, place: bytes | None) -> list[Any]:
        return [self.term, b"%d" % turn, self.fence, mark.encode() or None, *self.lists, place]


def _text(rows: Any) -> bytes | None:
    if not rows:
        return None
    text = _encode(rows)  # and a job that logs a NUL must not stop the engine
    if NUL.encode() in text:
        text = _encode(without_nul(rows))
    return text


def encoded_writes(writes: Writes) -> bytes:
    """What `take_writes` takes. A key may be the same as another only without its NUL."""
    for write, rows in writes:
        write.check(rows)
    few = together(writes)
    text = _encode([(write.postgres, write.once(rows)) for write, rows in few])
    if NUL.encode() in text:
        text = _encode([(write.postgres, write.once(without_nul(rows))) for write, rows in few])
    return text


def prepare(db: Connection, name: str) -> None:
    checked(db.pgconn, name, db.pgconn.prepare(PREPARED, TAKE_TURN))


def send(db: Connection, values: list[Any]) -> None:
    db.pgconn.send_query_prepared(PREPARED, values)


def answer(db: Connection, name: str) -> bytes | None:
    """The place of the brain, to be sent with the next turn. None: this turn was taken before, or
    the term is over.
    """
    try:
        return answer_of(db, name).get_value(0, 0)
    except Refusal as error:
        raise refusal(str(error)) from None


def why_not(db: Connection, name: str, term: int, turn: int) -> None:
    """After a turn that was not taken: return if it had been taken before."""
    row = db.execute("select term, turn from brain").fetchone()
    assert row is not None  # the schema puts it there
    if row == (term, turn):
        return
    if row[0] != term:
        raise StaleBrain(TAKEN_OVER)
    raise StoreError(
        f"{name} is at turn {row[1]}, not at {turn - 1}: it was set back, or has lost commits in a "
        "failover; start the engine again, so that it goes on from what is there"
    )
