"""What outlives a restart: one row for each stretch of time, with all that is in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from headway.apps.history.recorder import SPANS, Row
from headway.store import Store
from headway.store.tables import Table, Write

APP = "history"

MIGRATIONS = (
    """
    create table history_buckets (
        step bigint not null,
        number bigint not null,
        data text not null,
        primary key (step, number)
    );
    """,
)

BUCKETS = Table(
    "history_buckets", {"step": "bigint", "number": "bigint", "data": "text"}, ("step", "number")
)
PUT = BUCKETS.put()
# A row is (step, number): all buckets of that step before that number.
DROP_OLD = Write(
    sqlite="delete from history_buckets where exists (select 1 from jsonb_each(?1) as given "
    "where history_buckets.step = given.value ->> 0 "
    "and history_buckets.number < given.value ->> 1)",
    postgres="delete from history_buckets as kept using jsonb_array_elements($1) as given (cells) "
    "where kept.step = (given.cells ->> 0)::bigint "
    "and kept.number < (given.cells ->> 1)::bigint",
    types=("bigint", "bigint"),
    name="old buckets",
    table="history_buckets",
)
STORED = "select step, number, data from history_buckets order by number * step desc"


def save(store: Store, rows: Iterable[Row], now: float) -> None:
    encoded = [
        (step_s, number, msgspec.json.encode(each).decode()) for step_s, number, each in rows
    ]
    old = [(span.step_s, span.number(now) - span.length) for span in SPANS if span.kept]
    store.write([(PUT, encoded), (DROP_OLD, old)])


def stored(store: Store) -> Iterator[Row]:
    """The newest first. What cannot be read is left out: it is history."""
    for step_s, number, data in store.rows(STORED):
        try:
            yield step_s, number, msgspec.json.decode(data, type=dict)
        except msgspec.MsgspecError:
            continue
