"""Connections with our settings, and errors in our own words."""

from __future__ import annotations

import contextlib
import math
import os
import select
import socket
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

import psycopg
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from headway import errors
from headway.store.postgres.address import Address

Connection = psycopg.Connection[tuple[Any, ...]]

OLDEST = 140_000  # PostgreSQL 14
CONNECT_S = 10
# What libpq is told unless the address says otherwise. A peer that is gone is noticed.
PARAMETERS = {
    "application_name": "headway",
    "connect_timeout": CONNECT_S,
    "client_encoding": "utf8",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}

FULL = frozenset({"53100"})
READ_ONLY = frozenset({"25006", "42501"})
BUSY = frozenset({"55P03", "40P01", "40001", "57014", "25P03", "25P02"})
CONFLICT = "23505"  # a key is taken
NO_SCHEMA = frozenset({"42P01", "42883", "3F000"})
LOST = "08006"  # what the line says when the server says nothing
AWAY = ("08", "57P", "53", "58")  # the classes of lost connections, shutdowns, exhaustion
_GOOD = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK, ExecStatus.EMPTY_QUERY)


def sql(name: str, folder: str = "sql") -> str:
    """The text of one query, from its own file."""
    return files(f"headway.store.postgres.{folder}").joinpath(f"{name}.sql").read_text("utf-8")


SESSION = sql("session")
SHORT_PLANS = sql("short_plans")


class Refusal(Exception):
    """The database says that a job may not be put: the text says which one is in the way."""


def failure(name: str, code: str, text: str) -> Exception:
    """An error of the server or of the line to it, as ours."""
    if code == "HW001":
        return Refusal(text)
    text = " ".join(text.split())
    if code in FULL:
        return errors.StoreFull(
            f"no space is left for {name}; free some, work then goes on by itself"
        )
    if code in READ_ONLY:
        return errors.StoreReadOnly(
            f"{name} cannot be written ({text}); connect to the primary, "
            "or give this user the right to write"
        )
    if code in BUSY:
        return errors.StoreBusy(
            f"another session holds what is needed in {name} ({text}); try again"
        )
    if code == CONFLICT:
        return errors.StoreConflict(f"{name} has this already: {text}")
    if code in NO_SCHEMA:
        return errors.StoreCorrupt(
            f"the tables of {name} are not there, or not as they should be ({text}); "
            "was the schema dropped?"
        )
    if code.startswith(AWAY):
        return errors.StoreUnavailable(f"{name} cannot be reached now: {text}")
    return errors.StoreError(f"{name} cannot take this: {text}")


class translated:  # noqa: N801 - it is used like a function
    """`with translated(name):` psycopg's errors as ours, with the store and what to do."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, psycopg.Error):
            code = error.sqlstate or (LOST if isinstance(error, psycopg.OperationalError) else "")
            raise failure(self._name, code, error.diag.message_primary or str(error)) from error


def connect(
    address: Address, *, short_plans: bool = False, patience_s: float | None = None
) -> Connection:
    """A session with our settings. Its schema need not be there yet. `short_plans`: it touches
    few rows by their keys, and never many. `patience_s`: with a server that does not answer.
    """
    asked = psycopg.conninfo.conninfo_to_dict(address.conninfo)
    parameters: dict[str, Any] = {**PARAMETERS, **asked}
    if patience_s is not None:
        parameters["connect_timeout"] = max(2, math.ceil(patience_s))  # libpq knows no less
        parameters["tcp_user_timeout"] = int(patience_s * 1000)
    with translated(address.name):
        db: Connection = psycopg.connect(**parameters, autocommit=True, prepare_threshold=3)
        try:
            run(db.pgconn, address.name, SESSION.replace("{schema}", f'"{address.schema}"'))
            if short_plans:
                run(db.pgconn, address.name, SHORT_PLANS)
        except BaseException:
            db.close()
            raise
    return db


def run(pgconn: PGconn, name: str, query: str) -> PGresult:
    """Simple statements in one message; the last result. Python's global lock is free meanwhile."""
    return checked(pgconn, name, pgconn.exec_(query.encode()))


def checked(pgconn: PGconn, name: str, result: PGresult) -> PGresult:
    if result.status in _GOOD:
        return result
    code = result.error_field(DiagnosticField.SQLSTATE)
    text = result.error_field(DiagnosticField.MESSAGE_PRIMARY)
    said = text.decode() if text else result.get_error_message() or pgconn.get_error_message()
    raise failure(name, code.decode() if code else LOST, said)


def answer_of(db: Connection, name: str) -> PGresult:
    """To what was sent before. Python's global lock is free meanwhile."""
    pgconn = db.pgconn
    poll = select.poll()
    with translated(name):
        poll.register(pgconn.socket, select.POLLIN)
        while pgconn.is_busy():
            poll.poll()  # `get_result` would wait with the lock held
            pgconn.consume_input()
        result = pgconn.get_result()
        assert result is not None  # something was sent
        while pgconn.get_result() is not None:
            pass  # the end of the answer
    return checked(pgconn, name, result)


def is_lost(db: Connection) -> bool:
    return db.closed or db.pgconn.status != ConnStatus.OK


def cut(db: Connection) -> None:
    """End a session that another thread may be waiting in."""
    with contextlib.suppress(OSError, psycopg.Error):
        copy = socket.socket(fileno=os.dup(db.fileno()))
        with copy:
            copy.shutdown(socket.SHUT_RDWR)


class Pool:
    """A few sessions that threads share. One that is found broken is thrown away."""

    def __init__(self, address: Address, size: int) -> None:
        self._address = address
        self._free: deque[Connection] = deque()
        self._places = threading.Semaphore(size)
        self._closed = False

    @contextmanager
    def session(self, *, fresh: bool = False, tried: bool = False) -> Iterator[Connection]:
        """Waits while all are in use. One that was idle may have died while nobody looked: `fresh`
        wants a new one, `tried` one that is surely alive.
        """
        with self._places:
            if self._closed:
                raise errors.StoreError(f"{self._address.name} is closed here; open the app again")
            db = None if fresh else self._reuse()
            if db is not None and tried:
                db = self._tried(db)
            if db is None:
                db = connect(self._address)
            try:
                yield db
            finally:
                if self._closed or is_lost(db) or db.info.transaction_status.name != "IDLE":
                    db.close()
                else:
                    self._free.append(db)

    def _reuse(self) -> Connection | None:
        with contextlib.suppress(IndexError):
            return self._free.pop()
        return None

    def _tried(self, db: Connection) -> Connection | None:
        try:
            run(db.pgconn, self._address.name, "select 1")
        except errors.StoreError:
            db.close()
            return None
        return db

    def close(self) -> None:
        self._closed = True
        while self._free:
            with contextlib.suppress(IndexError):
                self._free.pop().close()
