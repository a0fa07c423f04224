"""Where a process may be killed: before and after each of these places, or in the middle."""

from __future__ import annotations

import functools
import itertools
import os
import signal
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from psycopg.pq.abc import PGconn

from headway.engine import engine as engine_module
from headway.engine.brain import Brain
from headway.engine.hands.local import LocalHands
from headway.store.postgres import committing as postgres_turns
from headway.store.postgres import writer as postgres_writer
from headway.store.postgres.connection import Connection
from headway.store.postgres.seat import Seat
from headway.store.postgres.store import PostgresStore
from headway.store.sqlite import writer as sqlite_writer
from headway.store.sqlite.store import SqliteStore

Places = dict[str, tuple[Any, str]]

ENGINE: Places = {
    "turn": (Brain, "turn"),
    "settle": (Brain, "_settle"),
    "brain departs": (Brain, "_depart"),
    "brain arrives": (Brain, "arrive"),
    "brain acts": (Brain, "_act"),
    "brain hands out": (Brain, "_hand_out"),
    "hands start": (LocalHands, "_start"),
    "hands end": (LocalHands, "_ended"),
    "load": (engine_module, "load"),
}
# By the names of `tests.stores.PLACES`.
STORES: dict[str, Places] = {
    "sqlite": {
        "sqlite inserts": (SqliteStore, "insert"),
        "sqlite commits": (SqliteStore, "commit"),
        "sqlite writer commits": (sqlite_writer.Writer, "_commit"),
        "sqlite writer runs alone": (sqlite_writer.Writer, "_run_alone"),
        "sqlite writer writes": (sqlite_writer.Writer, "_write"),
    },
    "postgres": {
        "postgres inserts": (PostgresStore, "insert"),
        "postgres writer puts": (postgres_writer.Writer, "_put"),
        "postgres writer has a session": (postgres_writer.Writer, "_session"),
        "postgres writer calls": (postgres_writer.Writer, "_call"),  # after: stored, and not told
        "postgres writer hears": (postgres_writer, "checked"),  # the answer is there, and not read
        "seat is taken": (Seat, "take"),
        "seat looks": (Seat, "load_new"),
        "turn is sent": (postgres_turns, "send"),  # after: the server is at it
        "turn is answered": (postgres_turns, "answer"),  # before: perhaps committed
    },
}
# What the first crash of several interrupts: any write.
A_WRITE = {"sqlite": "before sqlite writer runs alone", "postgres": "before postgres writer calls"}
ONCE = ("load", "seat is taken")  # places that a life passes once


_call: Callable[..., str] = postgres_writer.Writer._call


class _OnlySays:
    def __init__(self, pgconn: PGconn) -> None:
        self._pgconn = pgconn

    def exec_prepared(self, name: bytes, values: list[Any]) -> None:
        self._pgconn.send_query_prepared(name, values)
        os.kill(os.getpid(), signal.SIGKILL)


def _only_say(writer: postgres_writer.Writer, db: Connection, values: list[bytes]) -> None:
    """The server hears it, and nobody is there to hear the answer."""
    _call(writer, SimpleNamespace(pgconn=_OnlySays(db.pgconn)), values)


MIDDLES: dict[str, Callable[..., None]] = {"postgres writer calls": _only_say}
PLACES = functools.reduce(lambda known, more: known | more, STORES.values(), ENGINE)


def points(store: str) -> list[str]:
    """All that a process with such a store may pass."""
    places = ENGINE | STORES[store]
    around = [f"{side} {place}" for place in places for side in ("before", "after")]
    return around + [f"amid {place}" for place in places if place in MIDDLES]


def kill_at(point: str, passing: int) -> None:
    """Arm a crash point: the process is gone when it passes there for the n-th time."""
    side, _, place = point.partition(" ")
    owner, name = PLACES[place]
    real: Callable[..., Any] = getattr(owner, name)
    passings = itertools.count(1)

    @functools.wraps(real)
    def armed(*args: Any, **options: Any) -> Any:
        last = next(passings) == passing
        if last and side == "amid":
            MIDDLES[place](*args, **options)
        if last and side != "after":
            os.kill(os.getpid(), signal.SIGKILL)
        value = real(*args, **options)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    setattr(owner, name, armed)
