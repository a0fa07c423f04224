"""Stores that an older Headway has made: what is in them is there, and everything new works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from headway.store import Store, open_store
from headway.store.postgres import schema as postgres
from headway.store.postgres.address import parse
from headway.store.postgres.connection import connect
from headway.store.records import BatchRow, Command, Query, SlotRow, Token
from headway.store.sqlite import connection as sqlite
from headway.store.tables import Table
from tests.store.kit import T0, Engine, event, put_one
from tests.stores import postgres_place, sqlite_place

ROWS = f"""
insert into jobs (id, type, lane, tenant, priority, not_before, created_at, args, state, since)
    values (7, 'fetch', 'slow', 'acme', 5, 0, {T0}, '[1]', 'queued', {T0});
insert into events (id, at, job, event, fence, detail) values (1, {T0}, 7, 'submit', 0, '');
insert into commands (at, verb, target, args) values ({T0}, 'pause', '7', 'null');
insert into batches (created_at, label) values ({T0}, 'old');
"""
OLD_SLOT = f"""
insert into slots (fence, ticket, upstream, granted_at, lease_end)
    values (3, 'slot-3', 'x.com', {T0}, {T0} + 60);
"""
SLOTS = {"sqlite": 4, "postgres": 3}  # the version since which slots are as they are now


def old_sqlite(url: str, version: int) -> None:
    db = apsw.Connection(url.removeprefix("sqlite:///"))
    for number, text in sqlite.migrations():
        if number <= version:
            db.execute(text)
    db.pragma("user_version", version)
    db.pragma("application_id", sqlite.APPLICATION_ID)
    db.execute(ROWS)
    if version < SLOTS["sqlite"]:
        db.execute(OLD_SLOT)
    db.close()


def old_postgres(url: str, version: int) -> None:
    """With functions that fit the old tables: the new ones must take their places."""
    address = parse(url)
    with connect(address) as db:
        db.execute(f'create schema "{address.schema}"'.encode())
        for number, text in postgres.migrations():
            if number <= version:
                db.execute(text.encode())
        for text in postgres.routines():
            if "function read_json" not in text and "function take_writes" not in text:
                db.execute(text.replace(", subject, who)", ", subject)")
                           .replace(", v ->> 7, v ->> 8", ", v ->> 7").encode())  # fmt: skip
        mark = f"headway schema version {version}"
        db.execute(f"comment on schema \"{address.schema}\" is '{mark}'".encode())
        db.execute(ROWS.encode())
        if version < SLOTS["postgres"]:
            db.execute(OLD_SLOT.encode())
        db.execute("update brain set last_event = 1")
        db.execute("select setval(pg_get_serial_sequence('jobs', 'id'), 7)")


# Every version that anybody may have, by the number of its last migration.
OLD: dict[str, tuple[Callable[[Path], str], Callable[[str, int], None], int]] = {
    "sqlite-2": (sqlite_place, old_sqlite, 2),
    "sqlite-3": (sqlite_place, old_sqlite, 3),
    "sqlite-4": (sqlite_place, old_sqlite, 4),
    "sqlite-5": (sqlite_place, old_sqlite, 5),
    "postgres-1": (postgres_place, old_postgres, 1),
    "postgres-2": (postgres_place, old_postgres, 2),
    "postgres-3": (postgres_place, old_postgres, 3),
    "postgres-4": (postgres_place, old_postgres, 4),
    "postgres-5": (postgres_place, old_postgres, 5),
}


@pytest.fixture(params=OLD)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store that an older Headway has made."""
    place, make, version = OLD[request.param]
    url = place(tmp_path)
    make(url, version)
    return url


def check_what_was_there(store: Store) -> None:
    job = store.job(7)
    assert job is not None
    assert (job.type, job.tenant, store.payload(7)) == ("fetch", "acme", "[1]")
    assert store.event_range() == (1, 1)
    [row] = store.trail(0, 10)
    assert (row.event, row.who, row.lane, row.tenant) == ("submit", None, "slow", "acme")
    assert store.commands(10) == [Command(1, T0, "pause", "7", "null", None)]
    assert store.batches(None, 10, 0) == [BatchRow(1, T0, "old", "")]
    assert (store.audit(None, 10), store.tokens(), store.last_event()) == ([], [], 1)


def test_an_old_store_goes_on(old: str) -> None:
    store = open_store(old)
    check_what_was_there(store)

    number = put_one(store, spec='{"labels": {"a": "b"}}')
    Engine(store).commit(events=[event(7, "cancel", who="me"), event(number)[:8]])
    store.add_token(Token("t", "ops", "hash", "[]", None, T0))

    assert number == 8
    assert [(each.id, each.who) for each in store.events(0, 10)] == [
        (1, None),
        (2, "me"),
        (3, None),
    ]
    assert [each.id for each in store.audit(None, 10, "acme")] == [2]
    assert store.batch_row(store.open_batch("new", T0, "acme")) == BatchRow(2, T0, "new", "acme")
    assert [each.id for each in store.jobs(Query(labels=(("a", "b"),)))] == [number]
    assert (store.secret("s", "1"), store.token("t")) == ("1", store.tokens()[0])
    store.close()


def test_slots_of_before_were_those_of_a_process_that_is_gone(old: str) -> None:
    store = open_store(old)
    assert (store.slots(), store.slot_totals()) == ([], [])

    row = SlotRow(4, "waiting", 0, None, "{}", T0, 0.0, 0.0, 0)
    engine = Engine(store)
    engine.commit(slots=[row], slot_totals=[("x.com", 2, 1, 0.5)])

    assert (store.slots(), store.slot_totals()) == ([row], [("x.com", 2, 1, 0.5)])
    engine.commit(slots_gone=[4])
    assert store.slots() == []
    store.close()


def test_an_old_store_takes_applications_in(old: str) -> None:
    store = open_store(old)
    store.install("app", ["create table app_marks (name text primary key, at bigint)"])
    marks = Table("app_marks", {"name": "text", "at": "bigint"}, key=("name",))

    Engine(store).commit(completed=[(7, T0)], writes=[(marks.add(), [("a", 1)])])
    store.write([(marks.put(), [("b", 2)])])

    assert store.rows("select name, at from app_marks order by name") == [("a", 1), ("b", 2)]
    store.close()


def test_the_versions_here_are_all_but_the_newest() -> None:
    """Whoever adds a migration adds the version before it to this file."""
    newest = {"sqlite": sqlite.migrations()[-1][0], "postgres": postgres.migrations()[-1][0]}
    for kind, number in newest.items():
        assert max(version for name, (_, _, version) in OLD.items() if kind in name) == number - 1


def test_an_old_store_is_brought_up_to_date_once(old: str) -> None:
    for _ in range(2):
        store = open_store(old)
        check_what_was_there(store)
        store.close()
