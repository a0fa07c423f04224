"""PostgreSQL alone: marks are snapshots, plans need no statistics, sessions come and go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

import headway.store
from headway.errors import (
    BadJob,
    EngineRunning,
    OutcomeUnknown,
    SchemaTooNew,
    StaleBrain,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
)
from headway.store.postgres import PostgresStore
from headway.store.postgres.address import parse
from headway.store.postgres.connection import connect
from headway.store.postgres.inserting import encoded
from headway.store.postgres.marks import Mark
from headway.store.records import Query
from headway.store.tables import Table, Write
from tests.postgres import shared_postgres
from tests.store.kit import T0, Engine, ended, event, granted, job, put, put_one, unique
from tests.stores import PLACES

PUT = "select job from put(%s)"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return PLACES["postgres"](tmp_path)


@pytest.fixture
def pg(url: str) -> Iterator[PostgresStore]:
    store = PostgresStore(url)
    yield store
    store.close()


@pytest.fixture
def session(pg: PostgresStore) -> Iterator[psycopg.Connection[Any]]:
    """Somebody else's transaction, in which jobs are put."""
    with connect(pg.address) as db:
        db.autocommit = False
        yield db


def put_in(db: psycopg.Connection[Any], count: int = 1) -> list[int]:
    return [row[0] for row in db.execute(PUT, (encoded([job()] * count),))]


def look(store: PostgresStore, mark: str, limit: int = 1_000) -> tuple[list[int], str]:
    rows, mark, _ = store.load_new(mark, limit)
    return [each.id for each in rows], mark


def pages(store: PostgresStore, mark: str, limit: int) -> tuple[list[int], str]:
    """All that is new, page by page."""
    seen: list[int] = []
    while True:
        page, mark = look(store, mark, limit)
        seen += page
        if len(page) < limit:
            return seen, mark


# Marks


def test_a_job_whose_transaction_commits_late_is_seen_once(
    pg: PostgresStore, session: psycopg.Connection[Any]
) -> None:
    late = put_in(session)
    early = put(pg, job(), job())
    seen, mark = look(pg, "")
    assert seen == early

    session.commit()

    seen, mark = look(pg, mark)
    assert seen == late
    assert look(pg, mark)[0] == []


def test_a_job_that_commits_while_pages_are_read_is_not_lost(
    pg: PostgresStore, session: psycopg.Connection[Any]
) -> None:
    late = put_in(session, 3)
    early = put(pg, *[job()] * 5)
    first, mark = look(pg, "", 2)
    session.commit()
    latest = put(pg, job())

    rest, mark = pages(pg, mark, 2)

    assert [*first, *rest] == [*early, *late, *latest], "each once, and nobody is left behind"
    assert look(pg, mark)[0] == []


def test_what_was_rolled_back_never_comes(
    pg: PostgresStore, session: psycopg.Connection[Any]
) -> None:
    put_in(session)
    _, mark = look(pg, "")
    session.rollback()

    there = put(pg)

    assert look(pg, mark)[0] == there


def test_a_savepoint_belongs_to_its_transaction(
    pg: PostgresStore, session: psycopg.Connection[Any]
) -> None:
    with session.transaction():
        kept = put_in(session)
        with session.transaction():
            kept += put_in(session)
        with session.transaction(force_rollback=True):
            put_in(session)
        _, mark = look(pg, "")

    assert look(pg, mark)[0] == kept


def test_an_open_transaction_that_is_old_delays_nobody(
    pg: PostgresStore, session: psycopg.Connection[Any]
) -> None:
    put_in(session)
    mark, seen = "", []
    for _ in range(5):
        number = put_one(pg)
        page, mark = look(pg, mark)
        assert page == [number]
        seen += page
    session.commit()

    assert len(look(pg, mark)[0]) == 1


def test_pages_are_in_order_when_transactions_get_one_more_digit(
    pg: PostgresStore, session: psycopg.Connection[Any]
) -> None:
    """Numbers are not compared as text: 9999 comes before 10000."""
    late = put_in(session)
    put(pg)
    _, mark = look(pg, "")  # while a transaction is under way
    with connect(pg.address) as other:
        end = use_up_transactions(other, but=6)
    numbers = [put_one(pg) for _ in range(12)]
    session.commit()

    assert pages(pg, mark, 2)[0] == [*late, *numbers]
    [row] = session.execute("select pg_current_xact_id()::text").fetchall()
    assert int(row[0]) > end, "the border was crossed"


def use_up_transactions(db: psycopg.Connection[Any], but: int) -> int:
    """Come close to the next number with one more digit, and give it."""
    [row] = db.execute("select pg_current_xact_id()::text").fetchall()
    now = int(row[0])
    end = 10 ** len(str(now))
    # Each block with a handler that writes something takes a number of its own.
    use_up = f"""do $$ begin for i in 1..{end - now - but} loop
        begin insert into waits values (-i, i); exception when others then null; end;
    end loop; delete from waits where job < 0; end $$"""
    db.execute(use_up.encode())
    return end


def test_a_mark_is_what_it_was() -> None:
    for text in ("", "10:20:", "10:20:11,12", "10:20:11 15:30:16 17 4711"):
        assert str(Mark.parse(text)) == text
    assert Mark.parse("10:20:11,12").under_way == "{11,12}"
    assert Mark.parse("10:20:11,12").next_xid == "20"


def test_a_mark_of_another_server_means_nothing(pg: PostgresStore) -> None:
    """In a restored database, what has a trail was seen, and the rest is new."""
    seen, new = put(pg, job(), job())
    Engine(pg).commit(events=[event(seen)])
    pg.leave()
    with connect(pg.address) as db:
        db.execute("update brain set mark = '999999999999:999999999999:'")

    mark = Engine(pg).brain.mark

    assert [each.id for each in pg.load_open(mark)] == [seen]
    assert look(pg, mark)[0] == [seen, new]


def test_what_an_engine_has_touched_is_loaded_even_if_its_mark_was_not_kept(
    pg: PostgresStore,
) -> None:
    touched, new = put(pg, job(), job())
    Engine(pg).commit(granted=[granted(touched)])

    assert [each.id for each in pg.load_open("")] == [touched]
    assert look(pg, "")[0] == [touched, new]


# Sessions


def sessions_of(pg: PostgresStore, db: psycopg.Connection[Any]) -> None:
    """Cut all sessions but this one that work in the schema of this store."""
    db.execute(
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
        "where application_name = %s and pid <> pg_backend_pid()",
        (pg.address.schema,),
    )


def end_lease(pg: PostgresStore, db: psycopg.Connection[Any]) -> None:
    """As if its engine had said nothing for long."""
    db.execute(f"update {pg.address.schema}.leader set lease_end = '-infinity'".encode())


@pytest.fixture
def named(url: str) -> Iterator[PostgresStore]:
    """A store whose sessions can be told apart."""
    store = PostgresStore(f"{url}&application_name={parse(url).schema}")
    yield store
    store.close()


def test_every_kind_of_session_may_be_cut(named: PostgresStore) -> None:
    engine = Engine(named)
    with psycopg.connect(shared_postgres().url(), autocommit=True) as killer:
        for turn in range(1, 4):
            number = put_one(named)
            sessions_of(named, killer)
            assert put_one(named, unique=unique(f"k{turn}")) == number + 1
            sessions_of(named, killer)
            assert named.count(Query()) == 2 * turn
            sessions_of(named, killer)
            named.command("pause", "7", None, T0)
            sessions_of(named, killer)
            with suppress(StoreUnavailable):  # not in the first turn: it has none yet
                named.load_new("", 10)
            with pytest.raises(StoreUnavailable):
                engine.commit(events=[event(number)])
            engine.commit(events=[event(number)])
            assert named.event_range() == (1, turn)
            assert len(named.load_new("", 10)[0]) == 2 * turn
            sessions_of(named, killer)
            with pytest.raises(StoreUnavailable):
                named.load_new("", 10)


def test_after_a_cut_the_engine_looks_from_what_is_surely_stored(named: PostgresStore) -> None:
    engine = Engine(named)
    first = put_one(named)
    _, kept = look(named, "")
    engine.commit(mark=kept)
    second = put_one(named)
    seen, mark = look(named, kept)
    assert seen == [second]
    with psycopg.connect(shared_postgres().url(), autocommit=True) as killer:
        sessions_of(named, killer)
    with pytest.raises(StoreUnavailable):
        named.load_new(mark, 10)

    assert look(named, mark)[0] == [second], "the mark was never stored"
    assert first != second


def test_a_mark_of_a_session_that_is_gone_is_not_stored(named: PostgresStore) -> None:
    engine = Engine(named)
    put(named)
    _, mark = look(named, "")
    with psycopg.connect(shared_postgres().url(), autocommit=True) as killer:
        sessions_of(named, killer)
    with pytest.raises(StoreUnavailable):
        engine.commit(mark=mark, events=[event()])
    engine.commit(mark=mark, events=[event()])
    named.leave()

    assert named.enter(lambda: None).mark == ""


def test_an_engine_whose_seat_was_taken_is_stale(named: PostgresStore, url: str) -> None:
    engine = Engine(named)
    with psycopg.connect(shared_postgres().url(), autocommit=True) as killer:
        end_lease(named, killer)
        sessions_of(named, killer)
    other = PostgresStore(url)
    try:
        Engine(other)
        with pytest.raises(StoreUnavailable):
            engine.commit(events=[event()])
        with pytest.raises(StaleBrain):
            engine.commit(events=[event()])
        assert other.event_range() == (1, 0)
        with pytest.raises(EngineRunning, match="process"):
            named.leave() or named.enter(lambda: None)  # type: ignore[func-returns-value]
    finally:
        other.close()


def test_a_turn_that_is_sent_twice_counts_once(pg: PostgresStore) -> None:
    engine = Engine(pg)
    engine.commit(events=[event()])
    seat: Any = pg._seat
    seat._turn = 0  # as if the answer had been lost

    engine.commit(events=[event()])

    assert pg.event_range() == (1, 1)


def test_what_an_application_writes_in_a_turn_that_is_sent_twice_counts_once(
    pg: PostgresStore,
) -> None:
    pg.install("app", ["create table app_sums (name text primary key, total bigint not null)"])
    sums = Table("app_sums", {"name": "text", "total": "bigint"}, key=("name",))
    add_up = Write(
        sqlite="update app_sums set total = total + (value ->> 0) from jsonb_each(?1)",
        postgres="update app_sums set total = total + (v ->> 0)::bigint "
        "from jsonb_array_elements($1) as v",
    )
    pg.write([(sums.add(), [("a", 0)])])
    engine = Engine(pg)
    seat: Any = pg._seat
    for _ in range(2):
        engine.commit(writes=[(add_up, [(5,)])])
        seat._turn = 0  # as if the answer had been lost

    assert pg.rows("select total from app_sums") == [(5,)]


def test_a_write_whose_answer_was_lost_is_not_said_to_have_failed(named: PostgresStore) -> None:
    """Nor is it done again: a statement by hand may add something up."""
    end_me = Write(
        sqlite="select ?1",
        postgres="select pg_terminate_backend(pg_backend_pid()), $1",
    )
    with pytest.raises(OutcomeUnknown, match="look what is there"):
        named.write([(end_me, [])])

    assert named.rows("select count(*) from jobs") == [(0,)]


SHAKY = """
create sequence app_tries;
create function app_shaky(rows jsonb) returns bigint language plpgsql as $$
declare attempt constant bigint := nextval('app_tries');  -- which no rollback takes back
begin
    if attempt <= (rows -> 0 ->> 0)::bigint then
        raise exception 'deadlock detected' using errcode = '40P01';
    end if;
    return attempt;
end $$;
"""


@pytest.mark.parametrize("failures", [2, 3])
def test_those_who_wait_for_each_other_write_in_the_end(pg: PostgresStore, failures: int) -> None:
    pg.install("app", [SHAKY])
    shaky = Write(sqlite="select ?1", postgres="select app_shaky($1)")

    with nullcontext() if failures < 3 else pytest.raises(StoreBusy):
        pg.write([(shaky, [(failures,)])])

    assert pg.rows("select last_value from app_tries") == [(3,)]


def test_a_store_that_was_set_back_stops_the_engine(pg: PostgresStore) -> None:
    engine = Engine(pg)
    for _ in range(3):
        engine.commit(events=[event()])
    with connect(pg.address) as db:
        db.execute("update brain set turn = 1")

    with pytest.raises(StoreError, match="set back"):
        engine.commit(events=[event()])


# Text


def test_a_nul_does_not_stop_the_engine(pg: PostgresStore) -> None:
    engine = Engine(pg)
    number = put_one(pg)

    engine.commit(logs=[(number, T0, "info", "a\x00b")], events=[event(detail="\\u0000")])

    assert pg.logs(number) == [(T0, "info", "a\\0b")]
    assert pg.events(0, 1)[0].detail == "\\u0000"


def test_a_nul_in_a_name_is_refused(pg: PostgresStore) -> None:
    with pytest.raises(BadJob, match="NUL"):
        put(pg, job(tenant="a\x00b"))
    assert put_one(pg, args='"\\u0000"')


# Opening


def test_addresses_are_shown_without_user_and_password() -> None:
    address = parse("postgresql://me:secret@db.example:5433/jobs?sslmode=require&schema=mine")

    assert address.name == "postgresql://db.example:5433/jobs?schema=mine"
    assert "sslmode=require" in address.conninfo
    assert "schema" not in address.conninfo


@pytest.mark.parametrize("schema", ["a b", 'x"; drop', "Upper", "pg_x", "", "x" * 60])
def test_a_schema_has_a_plain_name(schema: str) -> None:
    with pytest.raises(StoreError, match="cannot be the schema"):
        parse(f"postgresql://h/d?schema={schema}")


def test_tables_of_another_program_stay_as_they_are(url: str) -> None:
    schema = parse(url).schema
    shared_postgres().execute(f"create schema {schema}; create table {schema}.jobs (x int)")

    with pytest.raises(StoreCorrupt, match="another program"):
        headway.store.open_store(url)


def test_a_newer_schema_is_refused(pg: PostgresStore, url: str) -> None:
    shared_postgres().execute(
        f"comment on schema {pg.address.schema} is 'headway schema version 9999'"
    )

    with pytest.raises(SchemaTooNew, match="upgrade Headway"):
        headway.store.open_store(url)


def test_a_server_that_is_not_there_is_named_without_secrets() -> None:
    with pytest.raises(StoreUnavailable) as caught:
        headway.store.open_store("postgresql://me:secret@127.0.0.1:1/jobs")

    assert "127.0.0.1:1/jobs" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_the_rows_are_found_by_keys_before_there_are_statistics(pg: PostgresStore) -> None:
    """A plan that reads all jobs would be made when the table is small, and be kept."""
    put(pg, *[job()] * 5_000)
    engine = Engine(pg)
    mark = ""
    for _ in range(3):
        _, mark, _ = pg.load_new(mark, 10)
    seat: Any = pg._seat
    plan = seat._lookout.execute(b"explain execute load_later ('1', null, '0', 0, 10)").fetchall()

    assert not any("Sort" in line or "Seq" in line or "Bitmap" in line for (line,) in plan), plan
    engine.commit(granted=[granted(1)])


# Looking


def test_the_language_of_a_database_decides_nothing() -> None:
    """There `lower` knows more letters than SQLite does."""
    server, name = shared_postgres(), f"d{uuid4().hex[:12]}"
    server.execute(
        f"create database {name} template template0 locale_provider builtin "
        "builtin_locale 'C.UTF-8'"
    )
    assert server.execute("select lower('É')", name) == [("é",)]
    store = PostgresStore(server.url(name))
    number = put_one(store)
    Engine(store).commit(ended=[ended(number, "failed", error="ÉTAT Inconnu")])

    assert [each.id for each in store.jobs(Query(error="État INCONNU"))] == [number]
    assert store.jobs(Query(error="état")) == []
    store.close()


def test_an_engine_asks_whether_it_still_leads_only_when_its_lease_may_be_over(
    pg: PostgresStore,
) -> None:
    Engine(pg)
    seat: Any = pg._seat
    with psycopg.connect(shared_postgres().url(), autocommit=True) as other:
        other.execute(f"update {pg.address.schema}.brain set term = term + 1".encode())
    pg.assure()  # nobody can lead yet, so nobody is asked
    seat._lease.trusted_until = float("-inf")
    with pytest.raises(StaleBrain):
        pg.assure()
