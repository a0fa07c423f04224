"""A transaction elsewhere that is open for long keeps every version of a row alive that changes
all the time: those of the brain and of the producers. Nobody may read all of them again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from headway.store.postgres import PostgresStore
from tests.store.kit import Engine, event, put

ROUNDS = 800


@pytest.fixture
def pg(direct: str) -> Iterator[PostgresStore]:
    store = PostgresStore(direct)
    yield store
    store.close()


def buffers_read(direct: str, db: psycopg.Connection[Any], table: str) -> int:
    """Up to now, in the session of the one who is watched."""
    db.execute("select pg_stat_force_next_flush()")
    with psycopg.connect(direct, autocommit=True) as looking:
        row = looking.execute(
            "select heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit "
            "from pg_statio_user_tables where relname = %s",
            (table,),
        ).fetchone()
    assert row is not None
    return int(row[0])


def versions_kept(direct: str, table: str) -> int:
    """Pages, as a measure of what a reader of all versions would read."""
    with psycopg.connect(direct, autocommit=True) as db:
        row = db.execute("select pg_relation_size(%s) / 8192", (f"headway.{table}",)).fetchone()
    assert row is not None
    return int(row[0])


def does_not_grow(
    direct: str,
    table: str,
    session: Callable[[], psycopg.Connection[Any]],
    do: Callable[[], object],
) -> None:
    """As many buffers for the last rounds as for the first ones, though there are more pages."""
    do()
    with psycopg.connect(direct) as old:
        old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        old.execute(f"select * from headway.{table}".encode())
        costs = []
        for _ in range(3):
            before = buffers_read(direct, session(), table)
            for _ in range(ROUNDS):
                do()
            costs.append(buffers_read(direct, session(), table) - before)
        pages = versions_kept(direct, table)
    assert costs[0] > ROUNDS, "it counts nothing"
    assert pages > 12, "no version was kept, so this shows nothing"
    assert max(costs) < 1.3 * costs[0], costs
    assert costs[-1] < ROUNDS * pages / 2, costs


def test_turns_do_not_read_all_versions_of_the_brain(direct: str, pg: PostgresStore) -> None:
    engine = Engine(pg)
    seat: Any = pg._seat
    does_not_grow(direct, "brain", lambda: seat._db, lambda: engine.commit(events=[event()]))


def test_puts_do_not_read_all_versions_of_their_producer(direct: str, pg: PostgresStore) -> None:
    writer: Any = pg._writer
    does_not_grow(direct, "producers", writer._session, lambda: put(pg))
