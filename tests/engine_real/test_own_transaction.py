"""A job in the caller's transaction is there if and only if the transaction commits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from headway import App
from headway.errors import BadJob, DuplicateJob, StoreError
from headway.sdk.jobs import Job
from headway.store.postgres.address import parse
from tests.postgres import shared_postgres
from tests.stores import PLACES

WAIT_S = 30.0


@pytest.fixture
def url(tmp_path: Path) -> str:
    return PLACES["postgres"](tmp_path)


@pytest.fixture
def note(app: App) -> Job[[int], None]:
    @app.job()
    def note(number: int) -> None: ...

    return note


def server(scheme: str = "postgresql") -> str:
    return shared_postgres().url().replace("postgresql", scheme, 1)


# Every kind of connection, in a transaction that ends like the block


@contextmanager
def with_psycopg() -> Iterator[Any]:
    with psycopg.connect(server(), row_factory=dict_row) as conn, conn.transaction():
        yield conn


@contextmanager
def with_sqlalchemy() -> Iterator[Any]:
    engine = sqlalchemy.create_engine(server("postgresql+psycopg"))
    try:
        with engine.begin() as conn:
            yield conn
    finally:
        engine.dispose()


@contextmanager
def with_a_session() -> Iterator[Any]:
    engine = sqlalchemy.create_engine(server("postgresql+psycopg"))
    try:
        with Session(engine) as session, session.begin():
            yield session
    finally:
        engine.dispose()


class PlainConnection:
    """Nothing but what Python's database API promises."""

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        self._conn = conn

    def cursor(self) -> Any:
        return self._conn.cursor()


@contextmanager
def with_the_database_api() -> Iterator[Any]:
    with psycopg.connect(server()) as conn, conn.transaction():
        yield PlainConnection(conn)


@asynccontextmanager
async def with_asyncpg() -> AsyncIterator[Any]:
    conn = await asyncpg.connect(server())
    try:
        async with conn.transaction():
            yield conn
    finally:
        await conn.close()


@asynccontextmanager
async def with_an_asyncpg_pool() -> AsyncIterator[Any]:
    async with (
        asyncpg.create_pool(server(), min_size=1, max_size=1) as pool,
        pool.acquire() as conn,
        conn.transaction(),
    ):
        yield conn


@asynccontextmanager
async def with_psycopg_async() -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(server()) as conn, conn.transaction():
        yield conn


@asynccontextmanager
async def with_sqlalchemy_async(driver: str = "asyncpg") -> AsyncIterator[Any]:
    engine = create_async_engine(server(f"postgresql+{driver}"))
    try:
        async with engine.begin() as conn:
            yield conn
    finally:
        await engine.dispose()


@asynccontextmanager
async def with_an_async_session() -> AsyncIterator[Any]:
    engine = create_async_engine(server("postgresql+psycopg"))
    try:
        async with AsyncSession(engine) as session, session.begin():
            yield session
    finally:
        await engine.dispose()


SYNC = [with_psycopg, with_sqlalchemy, with_a_session, with_the_database_api]
ASYNC = [
    with_asyncpg,
    with_an_asyncpg_pool,
    with_psycopg_async,
    with_sqlalchemy_async,
    with_an_async_session,
]


class TakenBackError(Exception):
    """What makes a transaction roll back."""


@pytest.mark.parametrize("transaction", SYNC)
def test_a_job_is_there_when_the_transaction_has_committed(
    app: App, note: Job[[int], None], transaction: Callable[[], Any]
) -> None:
    with app.running():
        with transaction() as conn:
            handle = note.options(conn=conn).enqueue(1)
            more = app.enqueue_many([note.call(2), note.call(3)], conn=conn)
            assert app.store.job(handle.id) is None, "nobody sees it before"
        assert {each.wait(WAIT_S) for each in (handle, *more)} == {"completed"}


@pytest.mark.parametrize("transaction", SYNC)
def test_a_job_is_not_there_when_the_transaction_was_rolled_back(
    app: App, note: Job[[int], None], transaction: Callable[[], Any]
) -> None:
    def enqueue_and_fail() -> None:
        with transaction() as conn:
            numbers.append(app.enqueue(note.call(1), conn=conn).id)
            raise TakenBackError

    numbers: list[int] = []
    with pytest.raises(TakenBackError):
        enqueue_and_fail()

    assert app.store.job(numbers[0]) is None


@pytest.mark.parametrize("transaction", ASYNC)
def test_asynchronous_connections_do_the_same(
    app: App, note: Job[[int], None], transaction: Callable[[], Any]
) -> None:
    async def commit() -> Any:
        async with transaction() as conn:
            handle = await note.options(conn=conn).aenqueue(1)
            more = await app.aenqueue_many([note.call(2)], conn=conn)
            assert app.store.job(handle.id) is None
        return [await each.await_end(WAIT_S) for each in (handle, *more)]

    async def roll_back() -> None:
        async with transaction() as conn:
            numbers.append((await app.aenqueue(note.call(1), conn=conn)).id)
            raise TakenBackError

    numbers: list[int] = []
    with app.running():
        assert asyncio.run(commit()) == ["completed", "completed"]
    with pytest.raises(TakenBackError):
        asyncio.run(roll_back())
    assert app.store.job(numbers[0]) is None


def test_the_engine_is_woken_by_the_commit(app: App) -> None:
    ran = threading.Event()

    @app.job()
    def tell() -> None:
        ran.set()

    with app.running():
        engine: Any = app.engine
        engine.brain._net_at = float("inf")  # nobody looks by himself
        with psycopg.connect(server()) as conn:
            tell.options(conn=conn).enqueue()
            assert not ran.wait(0.2)
            conn.commit()
            assert ran.wait(WAIT_S)


def test_a_refusal_leaves_the_transaction_alive(app: App, note: Job[[int], None]) -> None:
    once = note.options(unique="only", on_conflict="reject")
    first = once.enqueue(1)

    with psycopg.connect(server()) as conn:
        kept = note.options(conn=conn).enqueue(2)
        with pytest.raises(DuplicateJob) as caught:
            app.enqueue_many([note.call(3), once.call(4)], conn=conn)
        assert caught.value.job_id == first.id

    assert app.store.job(kept.id) is not None
    assert len(app.store.load_new("", 10)[0]) == 2, "all or none"


def test_a_key_that_another_transaction_holds_is_waited_for(note: Job[[int], None]) -> None:
    once = note.options(unique="only")
    joined = []
    with psycopg.connect(server()) as conn:
        first = once.options(conn=conn).enqueue(1)
        waiting = threading.Thread(target=lambda: joined.append(once.enqueue(2)))
        waiting.start()
        assert note.enqueue(3).joined is False, "others do not wait"
        conn.commit()
        waiting.join(WAIT_S)

    assert [(each.id, each.joined) for each in joined] == [(first.id, True)]


def test_what_cannot_be_done_is_said_before_anything_happens(
    app: App, note: Job[[int], None]
) -> None:
    async def with_a_synchronous_one() -> None:
        await app.aenqueue(note.call(1), conn=conn)

    async def with_an_asynchronous_one() -> None:
        other = await asyncpg.connect(server())
        try:
            app.enqueue(note.call(1), conn=other)
        finally:
            await other.close()

    with psycopg.connect(server()) as conn:
        with pytest.raises(BadJob, match="replace"):
            note.options(unique=True, on_conflict="replace", conn=conn).enqueue(1)
        with pytest.raises(BadJob, match="use enqueue"):
            asyncio.run(with_a_synchronous_one())
        with pytest.raises(BadJob, match="use aenqueue"):
            asyncio.run(with_an_asynchronous_one())
        with pytest.raises(BadJob, match="no connection that Headway knows"):
            note.options(conn=object()).enqueue(1)
    assert app.store.load_new("", 1)[0] == []


def test_a_connection_to_another_database_is_refused(app: App, note: Job[[int], None]) -> None:
    app.store.load_new("", 1)  # opens it
    other = shared_postgres().new_database()

    with psycopg.connect(other) as conn, pytest.raises(StoreError, match="has no Headway"):
        note.options(conn=conn).enqueue(1)


def test_errors_of_the_database_stay_those_of_its_driver(note: Job[[int], None]) -> None:
    with psycopg.connect(server()) as conn:
        with pytest.raises(psycopg.errors.UndefinedTable):
            conn.execute("select * from not_there")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            note.options(conn=conn).enqueue(1)


def test_a_job_is_not_made_with_a_connection(app: App) -> None:
    with pytest.raises(BadJob, match="when a job is enqueued"):

        @app.job(conn=object())
        def nothing() -> None: ...


def test_sqlite_says_that_it_has_no_such_transactions(tmp_path: Path) -> None:
    async def enqueue() -> None:
        await app.aenqueue(nothing.call(), conn=object())

    app = App(f"sqlite:///{tmp_path}/jobs.db")

    @app.job()
    def nothing() -> None: ...

    try:
        with pytest.raises(BadJob, match="needs PostgreSQL"):
            nothing.options(conn=object()).enqueue()
        with pytest.raises(BadJob, match="needs PostgreSQL"):
            asyncio.run(enqueue())
    finally:
        app.close()


def test_sql_itself_may_enqueue(app: App, url: str) -> None:
    """A trigger, or a program in another language: one call of a function."""
    app.upstream("*.example", limit=2)

    @app.job()
    def add(a: int, b: int = 1) -> int:
        return a + b

    schema = parse(url).schema
    with app.running(), psycopg.connect(server()) as conn:
        plain = f"select {schema}.enqueue('add', '{{\"a\": 2}}')"
        full = (
            f"select {schema}.enqueue('add', '{{\"a\": 2, \"b\": 5}}', lane => 'slow', "
            "tenant => 'acme', key => 'k', upstreams => array['x.example'], priority => 3, "
            "not_before => now(), unique_key => 'two')"
        )
        numbers = [conn.execute(each.encode()).fetchall()[0][0] for each in (plain, full, full)]
        assert numbers[1] == numbers[2], "it was joined"
        conn.commit()
        assert [app.handle(each).result(WAIT_S) for each in numbers[:2]] == [3, 7]
        row = app.handle(numbers[1]).row()
    assert (row.lane, row.tenant, row.key, row.priority) == ("slow", "acme", "k", 3)
    assert (row.upstream, row.upstreams) == ("x.example", '["x.example"]')
