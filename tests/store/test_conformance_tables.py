"""Every store: tables of applications, written by anybody and in the turns of the engine."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from headway.errors import SchemaTooNew, StaleBrain, StoreError
from headway.store import Store
from headway.store.batch import Batch
from headway.store.records import NewJob
from headway.store.tables import Table, Write
from tests.store.kit import (
    T0,
    WAIT_S,
    Engine,
    Opener,
    all_jobs,
    event,
    granted,
    job,
    put,
    put_one,
)

# The words are those of every store; the names of columns would be words of SQL without quotes.
MIGRATION = """
create table app_calls (
    "order" text not null, "to" bigint not null, cost double precision, note text,
    primary key ("order", "to")
);
create index app_calls_to on app_calls ("to");
"""
CALLS = Table(
    "app_calls",
    {"order": "text", "to": "bigint", "cost": "double", "note": "text"},
    key=("order", "to"),
)
READ = 'select "order", "to", cost, note from app_calls order by "order", "to"'
ADD, PUT, DROP = CALLS.add(), CALLS.put(), CALLS.drop()

# What a table cannot say: a sum that grows.
SPEND = Write(
    sqlite='update app_calls set cost = cost + (value ->> 1) from jsonb_each(?1) '
           'where "order" = value ->> 0',
    postgres='update app_calls set cost = cost + (v ->> 1)::double precision '
             'from jsonb_array_elements($1) as v where "order" = v ->> 0',
    types=("text", "double"),
)  # fmt: skip
# A statement that is sound and fails when it is done.
FAIL = Write(
    sqlite='insert into app_calls ("order", "to") select value ->> 0, null from jsonb_each(?1)',
    postgres='insert into app_calls ("order", "to") select v ->> 0, null '
             'from jsonb_array_elements($1) as v',
)  # fmt: skip


def calls(store: Store) -> list[tuple[Any, ...]]:
    return store.rows(READ)


@pytest.fixture
def store(open_store: Opener) -> Store:
    """With the tables of an application."""
    store = open_store()
    store.install("app", [MIGRATION])
    return store


# Writing


def test_a_row_is_added_once(store: Store, other: Store) -> None:
    store.write([(ADD, [("a", 1, 0.5, "first"), ("a", 2, None, None)])])
    other.write([(ADD, [("a", 1, 9.5, "again"), ("b", 1, 1.5, "new"), ("b", 1, 2.5, "new again")])])

    assert calls(store) == calls(other)
    assert calls(store) == [("a", 1, 0.5, "first"), ("a", 2, None, None), ("b", 1, 1.5, "new")]


def test_a_row_takes_the_place_of_another(store: Store) -> None:
    store.write([(PUT, [("a", 1, 0.5, "first"), ("b", 1, 0.5, "kept")])])
    store.write([(PUT, [("a", 1, 1.5, "second"), ("c", 1, 2.5, "x"), ("a", 1, None, "third")])])

    assert calls(store) == [("a", 1, None, "third"), ("b", 1, 0.5, "kept"), ("c", 1, 2.5, "x")]


def test_only_what_is_named_changes(store: Store) -> None:
    store.write([(ADD, [("a", 1, 0.5, "x"), ("a", 2, 0.5, "x"), ("b", 1, 0.5, "x")])])

    change = CALLS.change("note")
    store.write([(change, [("a", 1, "y"), ("gone", 1, "y"), ("b", 1, "y"), ("b", 1, None)])])

    assert calls(store) == [("a", 1, 0.5, "y"), ("a", 2, 0.5, "x"), ("b", 1, 0.5, None)]


def test_several_columns_change_in_the_order_in_which_they_are_named(store: Store) -> None:
    store.write([(ADD, [("a", 1, 0.5, "x")])])
    store.write([(CALLS.change("note", "cost"), [("a", 1, "y", 2)])])

    assert calls(store) == [("a", 1, 2.0, "y")]


def test_a_row_is_dropped_by_its_key(store: Store) -> None:
    store.write([(ADD, [("a", 1, 0.5, "x"), ("a", 2, 0.5, "x"), ("b", 1, 0.5, "x")])])
    store.write([(DROP, [("a", 2), ("b", 2), ("a", 2)])])

    assert calls(store) == [("a", 1, 0.5, "x"), ("b", 1, 0.5, "x")]


def test_writes_are_done_in_order(store: Store) -> None:
    store.write(
        [
            (ADD, [("a", 1, 1, "x")]),
            (SPEND, [("a", 0.25)]),
            (SPEND, [("a", 0.5)]),
            (DROP, [("b", 1)]),
            (ADD, [("b", 1, 1, "x")]),
            (PUT, []),
        ]
    )

    assert calls(store) == [("a", 1, 1.75, "x"), ("b", 1, 1.0, "x")]


def test_a_table_of_keys_alone(store: Store) -> None:
    store.install("marks", ["create table marks (name text primary key)"])
    marks = Table("marks", {"name": "text"}, key=("name",))

    store.write(
        [(marks.put(), [("a",), ("b",)]), (marks.put(), [("a",)]), (marks.drop(), [("b",)])]
    )

    assert store.rows("select name from marks") == [("a",)]


def test_all_writes_or_none(store: Store) -> None:
    store.write([(ADD, [("a", 1, 0.5, "x")])])

    with pytest.raises(StoreError):
        store.write([(PUT, [("a", 1, 9, "y")]), (DROP, [("a", 1)]), (FAIL, [("z",)])])

    assert calls(store) == [("a", 1, 0.5, "x")]
    store.write([(PUT, [("a", 1, 9, "y")])])
    assert calls(store) == [("a", 1, 9.0, "y")]


def test_many_write_at_once_and_one_that_fails_harms_nobody(store: Store, other: Store) -> None:
    count = 8
    together = Barrier(count, timeout=WAIT_S)

    def write(number: int) -> bool:
        together.wait()
        mine = [(ADD, [("a", number, 0, None)]), (SPEND, [("sum", 1)])]
        try:
            (store, other)[number % 2].write([*mine, (FAIL, [("z",)])] if number == 3 else mine)
        except StoreError:
            return False
        return True

    store.write([(ADD, [("sum", 0, 0, None)])])
    with ThreadPoolExecutor(count) as pool:
        assert list(pool.map(write, range(count))) == [number != 3 for number in range(count)]

    *added, total = calls(store)
    assert [row[1] for row in added] == [0, 1, 2, 4, 5, 6, 7]
    assert total[2] == count - 1


# Values

TEXTS = {
    "empty": "",
    "unicode": "naïve 中文 😀 \u2028 \ufeff",
    "json": '{"a": [1, null]}',
    "a number": "007",
    "null": "null",
    "sql": "'; drop table app_calls; -- \" ? $1 %s {0}",
    "escapes": "\\u0000 \\0 \n\t\r\x01\x7f",
    "large": "長" * 350_000,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_text_comes_back_as_it_was(store: Store, text: str) -> None:
    store.write([(ADD, [(text[:600], 1, None, text)])])
    store.write([(CALLS.change("cost"), [(text[:600], 1, 0.5)])])

    assert calls(store) == [(text[:600], 1, 0.5, text)]
    assert store.rows("select cost from app_calls where note = ?", (text,)) == [(0.5,)]
    store.write([(DROP, [(text[:600], 1)])])
    assert calls(store) == []


def test_a_nul_disturbs_nobody(engine: Engine) -> None:
    """PostgreSQL has none, and keeps what is written for it."""
    store = engine.store
    row = ("a\x00", 1, 0.5, "x\x00y")
    engine.commit(writes=[(PUT, [row, ("a\\0", 2, None, "\\u0000")])])
    store.write([(PUT, [row, row]), (CALLS.change("cost"), [("a\x00", 1, 1.5)])])

    found = store.rows('select note, cost from app_calls where "order" = ? and cost = 1.5', row[:1])
    assert [(note.replace("\x00", "\\0"), cost) for note, cost in found] == [("x\\0y", 1.5)]
    assert len(calls(store)) == 2


def test_keys_that_differ_only_in_a_nul_stop_nobody(engine: Engine) -> None:
    engine.commit(writes=[(PUT, [("a\x00", 1, 1, None), ("a\\0", 1, 2, None)])])

    assert calls(engine.store)[-1][2] == 2.0


NUMBERS = [0, -1, 2**63 - 1, -(2**63), 2**53 + 1]
FRACTIONS = [0.1, -1.5, 1e300, 5e-324, 0.1 + 0.2, 1_700_000_000.123456]


def test_numbers_come_back_as_they_were(store: Store) -> None:
    store.write([(ADD, [("n", number, None, None) for number in NUMBERS])])
    store.write([(ADD, [("x", place, value, None) for place, value in enumerate(FRACTIONS)])])

    found = calls(store)
    assert [row[1] for row in found if row[0] == "n"] == sorted(NUMBERS)
    assert [row[2] for row in found if row[0] == "x"] == FRACTIONS


def test_many_rows_in_one_write(store: Store) -> None:
    rows = [("k", number, number / 8, f"note {number}") for number in range(5_000)]
    store.write([(ADD, rows)])
    store.write([(CALLS.change("note"), [("k", number, None) for number in range(0, 5_000, 2)])])
    store.write([(DROP, [("k", number) for number in range(2_500)])])

    assert calls(store) == [
        ("k", number, cost, note if number % 2 else None) for _, number, cost, note in rows[2_500:]
    ]


UNFIT: dict[str, tuple[Write, Any]] = {
    "too short": (ADD, ("a", 1, 0.5)),
    "too long": (DROP, ("a", 1, 0.5)),
    "no tuple": (DROP, "ab"),
    "bytes": (ADD, ("a", 1, 0.5, b"x")),
    "half a character": (ADD, ("a", 1, 0.5, "\ud800")),
    "a number for text": (ADD, ("a", 1, 0.5, 7)),
    "text for a number": (ADD, ("a", "1", 0.5, "x")),
    "a fraction for a number": (ADD, ("a", 1.0, 0.5, "x")),
    "a truth for a number": (ADD, ("a", True, 0.5, "x")),
    "too large a number": (ADD, ("a", 2**63, 0.5, "x")),
    "no number at all": (ADD, ("a", 1, float("nan"), "x")),
    "endless": (ADD, ("a", 1, float("inf"), "x")),
    "no key": (PUT, ("a", None, 0.5, "x")),
    "too long a key": (ADD, ("長" * 667, 1, 0.5, "x")),
    "a list by hand": (FAIL, (["a"],)),
    "bytes by hand": (FAIL, (b"a",)),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_row_that_does_not_fit_is_refused_before_anything_is_stored(
    engine: Engine, name: str
) -> None:
    write, row = UNFIT[name]
    writes = [(ADD, [("good", 1, None, None)]), (write, [row])]

    with pytest.raises(StoreError, match=r"row 0 of .*; nothing was stored"):
        engine.store.write(writes)
    with pytest.raises(StoreError, match="nothing was stored"):
        engine.commit(events=[event()], writes=writes)

    assert (calls(engine.store), engine.store.last_event()) == ([], 0)


def test_a_row_that_is_refused_is_not_shown() -> None:
    """It may be a key of somebody's."""
    with pytest.raises(
        StoreError, match=r"row 1 of add to app_calls has at place 1 a str"
    ) as error:
        ADD.check([("a", 1, None, None), ("a", "sk-secret", None, None)])
    assert "secret" not in str(error.value)


# With a turn of the engine


def test_what_an_application_writes_is_there_with_the_job_that_is_completed(
    engine: Engine, other: Store
) -> None:
    number = put_one(engine.store)
    engine.commit(granted=[granted(number)], writes=[(ADD, [("a", 1, 1, "begun")])])

    engine.commit(
        completed=[(number, T0)],
        events=[event(number, "ok")],
        writes=[(SPEND, [("a", 0.5)]), (CALLS.change("note"), [("a", 1, "done")])],
    )

    done = other.job(number)
    assert done is not None
    assert done.state == "completed"
    assert calls(other) == [("a", 1, 1.5, "done")]


def test_an_application_may_write_with_nothing_else_in_a_turn(engine: Engine) -> None:
    batch = Batch(engine.brain.term, writes=[(ADD, [("a", 1, 1, None)])])
    assert not batch.empty()

    engine.store.send(batch)
    engine.store.settle()

    assert calls(engine.store) == [("a", 1, 1.0, None)]


def test_an_application_sees_the_rest_of_the_turn(engine: Engine) -> None:
    """It writes last, so a statement by hand may ask what has become of the job."""
    number = put_one(engine.store)
    tell = Write(
        sqlite='insert into app_calls ("order", "to", note) '
        "select jobs.state, jobs.id, (select count(*) from jobs) "
        "from jsonb_each(?1) as given join jobs on jobs.id = given.value ->> 0",
        postgres='insert into app_calls ("order", "to", note) '
        "select jobs.state, jobs.id, (select count(*) from jobs) "
        "from jsonb_array_elements($1) as v join jobs on jobs.id = (v ->> 0)::bigint",
        types=("bigint",),
    )

    engine.commit(completed=[(number, T0)], jobs=[job()], writes=[(tell, [(number,)])])

    assert calls(engine.store) == [("completed", number, None, "2")]


@pytest.mark.parametrize("jobs", [[], [job()]], ids=["short", "long"])
def test_a_turn_whose_write_fails_changes_nothing(engine: Engine, jobs: list[NewJob]) -> None:
    store = engine.store
    number = put_one(store)
    before = store.job(number)

    with pytest.raises(StoreError):
        engine.commit(
            completed=[(number, T0)],
            events=[event(number)],
            jobs=jobs,
            writes=[(ADD, [("a", 1, 1, None)]), (FAIL, [("z",)])],
        )

    assert (store.job(number), store.last_event(), all_jobs(store)) == (before, 0, [number])
    assert calls(store) == []
    engine.commit(completed=[(number, T0)], writes=[(ADD, [("a", 1, 1, None)])])
    assert calls(store) == [("a", 1, 1.0, None)]


def test_an_engine_whose_term_is_over_writes_nothing(store: Store, other: Store) -> None:
    old = Engine(store)
    [number] = put(store)
    store.leave()
    Engine(other)

    with pytest.raises(StaleBrain):
        old.commit(completed=[(number, T0)], writes=[(ADD, [("a", 1, 1, None)])])

    assert calls(other) == []


# Making tables

MORE = {
    "sqlite": "alter table app_calls add column model text not null default 'x'",
    "postgres": "alter table app_calls add column model text not null default 'x'; "
    "comment on column app_calls.model is 'only here'",
}
OTHER = "alter table app_calls rename column note to remark; alter table app_calls drop column cost"


def test_each_migration_is_done_once(store: Store, other: Store) -> None:
    store.write([(ADD, [("a", 1, 0.5, "x")])])

    for each in (store, other, store):
        each.install("app", [MIGRATION, MORE])
    other.install("app", [MIGRATION, MORE, OTHER])

    assert store.rows('select "order", remark, model from app_calls') == [("a", "x", "x")]
    assert store.rows("select app, version from app_schemas") == [("app", 3)]
    Engine(store).commit(events=[event()])


def test_processes_that_start_at_once_make_the_tables_once(open_store: Opener) -> None:
    count = 4
    stores = [open_store() for _ in range(count)]
    together = Barrier(count, timeout=WAIT_S)

    def install(number: int) -> None:
        together.wait()
        stores[number].install("app", [MIGRATION, MORE])

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(install, range(count)))

    assert stores[0].rows("select app, version from app_schemas") == [("app", 2)]
    assert calls(stores[1]) == []


def test_a_newer_version_is_refused_and_left_alone(store: Store) -> None:
    store.install("app", [MIGRATION, MORE])

    with pytest.raises(SchemaTooNew, match=r"of app in .* version 2, .* up to 1; upgrade Headway"):
        store.install("app", [MIGRATION])

    assert store.rows("select version from app_schemas") == [(2,)]


def test_a_migration_that_fails_leaves_everything_as_it_was(store: Store) -> None:
    with pytest.raises(StoreError):
        store.install("app", [MIGRATION, MORE, "create table app_more (a bigint); nonsense"])

    assert store.rows("select version from app_schemas") == [(1,)]
    store.install("app", [MIGRATION, MORE, "create table app_more (a bigint)"])
    assert store.rows("select model from app_calls") == store.rows("select a from app_more") == []


def test_applications_have_versions_of_their_own(store: Store) -> None:
    store.install("feeds", [])
    store.install("media", ["create table media_files (id bigint primary key)"])

    assert sorted(store.rows("select app, version from app_schemas")) == [("app", 1), ("media", 1)]


@pytest.mark.parametrize("migration", [{"sqlite": "select 1"}, {"sqlite": "", "mysql": ""}, {}])
def test_a_migration_has_words_for_every_store(store: Store, migration: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="migration 2 of app"):
        store.install("app", [MIGRATION, migration])


@pytest.mark.parametrize("name", ["", "App", "a b", "a'", "1a", "a" * 64])
def test_names_are_plain(store: Store, name: str) -> None:
    with pytest.raises(ValueError, match="cannot be a name"):
        store.install(name, [])
    with pytest.raises(ValueError, match="cannot be a name"):
        Table(name, {"a": "text"}, key=("a",))
    with pytest.raises(ValueError, match="cannot be a name"):
        Table("t", {"a": "text", name: "text"}, key=("a",))
