"""Jobs in a transaction of the caller's: there if and only if it commits.

The connection may be one of psycopg, asyncpg or SQLAlchemy, or any of Python's database API whose
values are written as %s (psycopg 2, Django). Errors of the database stay those of its driver, so
that programs which retry on them still do.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from psycopg.rows import tuple_row

from headway.errors import BadJob, StoreError
from headway.store.postgres.address import Address
from headway.store.postgres.connection import NO_SCHEMA
from headway.store.postgres.inserting import encoded, receipts
from headway.store.records import NewJob, OnConflict, Receipt


class Driver(Enum):
    PSYCOPG = "psycopg"
    PSYCOPG_ASYNC = "psycopg async"
    ASYNCPG = "asyncpg"
    SQLALCHEMY = "sqlalchemy"
    SQLALCHEMY_ASYNC = "sqlalchemy async"
    DB_API = "database API"


ASYNC = (Driver.PSYCOPG_ASYNC, Driver.ASYNCPG, Driver.SQLALCHEMY_ASYNC)
VALUE = {Driver.ASYNCPG: "$1", Driver.SQLALCHEMY: ":jobs", Driver.SQLALCHEMY_ASYNC: ":jobs"}


def driver_of(conn: Any) -> Driver:
    """By where its class comes from, so that nothing need be installed to ask."""
    modules = [each.__module__ for each in type(conn).__mro__]
    names = {each.partition(".")[0] for each in modules}
    if "psycopg" in names:
        is_async = any(each.__name__ == "AsyncConnection" for each in type(conn).__mro__)
        return Driver.PSYCOPG_ASYNC if is_async else Driver.PSYCOPG
    if "asyncpg" in names:
        return Driver.ASYNCPG
    if "sqlalchemy" in names:
        is_async = any(each.startswith("sqlalchemy.ext.asyncio") for each in modules)
        return Driver.SQLALCHEMY_ASYNC if is_async else Driver.SQLALCHEMY
    if callable(getattr(conn, "cursor", None)):
        return Driver.DB_API
    raise BadJob(
        f"{type(conn).__name__} is no connection that Headway knows; pass one of psycopg, asyncpg "
        "or SQLAlchemy"
    )


class Loan:
    """One call on a connection that belongs to somebody else."""

    def __init__(self, conn: Any, address: Address, jobs: Sequence[NewJob]) -> None:
        for job in jobs:
            if job.unique is not None and job.unique.on_conflict is OnConflict.REPLACE:
                raise BadJob(
                    "a job cannot replace another inside your own transaction: the engine would "
                    "have to wait for it; join it, or enqueue without conn"
                )
        self.driver = driver_of(conn)
        self._conn = conn
        self._address = address
        self._text = encoded(jobs)
        value = VALUE.get(self.driver, "%s")
        self._query = (
            f"select job, joined, refused, cast(pg_notify('{address.channel}', '') as text) "
            f'from "{address.schema}".put({value})'
        )

    def put(self) -> list[Receipt]:
        if self.driver in ASYNC:
            raise BadJob("this connection is asynchronous; use aenqueue with it")
        try:
            rows = self._rows()
        except Exception as error:
            raise self._explained(error) from error
        return receipts(row[:3] for row in rows)

    async def aput(self) -> list[Receipt]:
        if self.driver not in ASYNC:
            raise BadJob("this connection is synchronous; use enqueue with it")
        try:
            rows = await self._arows()
        except Exception as error:
            raise self._explained(error) from error
        return receipts(row[:3] for row in rows)

    def _rows(self) -> list[Any]:
        if self.driver is Driver.SQLALCHEMY:
            return list(self._conn.execute(_sqlalchemy_text(self._query), {"jobs": self._text}))
        if self.driver is Driver.PSYCOPG:
            cursor = self._conn.cursor(row_factory=tuple_row)
        else:
            cursor = self._conn.cursor()
        with cursor:
            cursor.execute(self._query, (self._text,))
            return [tuple(row) for row in cursor.fetchall()]

    async def _arows(self) -> list[Any]:
        if self.driver is Driver.SQLALCHEMY_ASYNC:
            query = _sqlalchemy_text(self._query)
            return list(await self._conn.execute(query, {"jobs": self._text}))
        if self.driver is Driver.ASYNCPG:
            return [tuple(row) for row in await self._conn.fetch(self._query, self._text)]
        async with self._conn.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(self._query, (self._text,))
            return list(await cursor.fetchall())

    def _explained(self, error: Exception) -> Exception:
        cause = getattr(error, "orig", error)  # SQLAlchemy wraps what the driver says
        code = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
        if code in NO_SCHEMA:
            return StoreError(
                f"the database of this connection has no Headway in the schema "
                f"{self._address.schema!r}; pass a connection to {self._address.name}"
            )
        return error


def _sqlalchemy_text(query: str) -> Any:
    from sqlalchemy import text  # noqa: PLC0415 - it is there: the connection is of it

    return text(query)
