"""The seat of the engine: a session with a lock, a term, and the number of the last turn; and one
to look around with while the other is busy.
"""

from __future__ import annotations

import os
import socket
import threading
from typing import Any

import psycopg

from headway.errors import EngineRunning, StaleBrain, StoreUnavailable
from headway.store.batch import Batch
from headway.store.postgres import committing
from headway.store.postgres.address import Address
from headway.store.postgres.connection import Connection, connect, cut, is_lost, translated
from headway.store.postgres.marks import Mark
from headway.store.postgres.reading import load_new, prepare_looking
from headway.store.records import Brain, News

LEAVE_S = 1.0  # for the engine's thread to come out of a session that was cut
SIT_DOWN_S = 0.5  # for the session of an engine that has just died to be noticed
LOCK = "hashtext('headway:' || current_schema()), 2"
# What was restored here may have numbers that this server has not given yet.
OURS = (
    "update jobs set xid = pg_current_xact_id() "
    "where finished_at is null and xid > pg_current_xact_id()"
)


class Seat:
    """Used by the engine's thread alone, apart from `leave`."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._name = address.name
        self._db: Connection | None = None
        self._lookout: Connection | None = None
        self._locked = False  # this session has the lock
        self._sessions = 0  # that there were so far, of both
        self._looked_in = 0  # how many there were when the engine looked for new jobs last
        self._kept = ""  # the mark that is surely stored
        self._term = self._turn = 0
        self._place: bytes | None = None  # of the brain in its table
        self._sent: tuple[int, str] | None = None  # the term and the mark of what is under way
        self._left = threading.Event()
        self._inside = threading.RLock()  # the engine's thread is in a session

    def take(self) -> Brain:
        """Become the engine, or EngineRunning."""
        with self._inside, translated(self._name):
            db = self._connect()
            db.execute(f"set lock_timeout to '{SIT_DOWN_S}s'".encode())
            try:
                db.execute(f"select pg_advisory_lock({LOCK})".encode())
            except psycopg.errors.LockNotAvailable:
                holder = db.execute("select holder from brain").fetchone()
                raise EngineRunning(
                    f"an engine runs on {self._name} already ({holder[0] if holder else ''}); "
                    "stop it first, or only enqueue here"
                ) from None
            self._locked = True
            db.execute("set lock_timeout to '10s'")
            with db.transaction():
                row = db.execute(
                    "update brain set term = term + 1, turn = 0, holder = %s "
                    "returning term, fence, mark, pg_current_snapshot()::text",
                    (f"process {os.getpid()} on {socket.gethostname()}",),
                ).fetchone()
                db.execute(OURS)
            assert row is not None  # the schema puts it there
            term, fence, mark, snapshot = row
            if Mark.parse(mark).is_of_another_server(snapshot):
                mark = ""  # restored here: what has no trail yet is new
            self._term, self._turn, self._kept = term, 0, mark
            return Brain(term, fence, mark)

    def leave(self) -> None:
        """From any thread: a commit that is under way ends with an error."""
        self._left.set()
        sessions = (self._db, self._lookout)
        self._db = self._lookout = None
        for db in sessions:
            if db is not None:
                cut(db)
        if self._inside.acquire(timeout=LEAVE_S):  # to close one frees what a thread in it reads
            try:
                for db in sessions:
                    if db is not None:
                        db.close()
            finally:
                self._inside.release()

    def load_new(self, mark: str, limit: int) -> News:
        """When a session was lost, the numbers of transactions may have been given anew, after a
        crash of the server; what was seen is then what is surely stored, and some jobs come again.
        """
        with self._inside:
            db = self._lookout
            if db is None or is_lost(db):
                db = self._new_lookout()
            if self._looked_in != self._sessions:
                mark = self._kept
            with translated(self._name):
                news = load_new(db, self._name, mark, limit, prepared=True)
            self._looked_in = self._sessions
            return news

    def _new_lookout(self) -> Connection:
        old = self._lookout
        if old is not None:
            old.close()
        db = self._lookout = self._new_session()
        try:
            with translated(self._name):
                prepare_looking(db, self._name)
                self._check_term(db.execute("select term from brain").fetchone())
        except BaseException:  # it is not ready
            self._lookout = None
            db.close()
            raise
        return db

    def send(self, batch: Batch) -> None:
        encoded = committing.Encoded(batch)
        with self._inside:
            db = self._session()
            mark = encoded.mark if self._looked_in == self._sessions else ""
            with translated(self._name):
                committing.send(db, encoded.values(self._turn + 1, mark, self._place))
            self._sent = (batch.term, mark)

    def settle(self) -> None:
        db, sent = self._db, self._sent
        if sent is None:
            return
        self._sent = None
        if db is None:
            raise StoreUnavailable(f"this engine has left {self._name}")
        turn = self._turn + 1
        with self._inside, translated(self._name):
            self._place = committing.answer(db, self._name)
            if self._place is None:
                committing.why_not(db, self._name, sent[0], turn)
        self._turn = turn
        self._kept = sent[1] or self._kept

    def commit(self, batch: Batch) -> None:
        self.send(batch)
        self.settle()

    def _session(self) -> Connection:
        db = self._db
        if db is None or is_lost(db):
            db = self._connect()
        if not self._locked:
            # Our own lost session may still have it, so we try until it is gone. If another engine
            # has it, there is a new term, and ours is over.
            with translated(self._name):
                row = db.execute(
                    f"select term, pg_try_advisory_lock({LOCK}) from brain".encode()
                ).fetchone()
            self._locked = self._check_term(row)[1]
        return db

    def _check_term(self, row: tuple[Any, ...] | None) -> tuple[Any, ...]:
        assert row is not None  # the schema puts it there
        if row[0] != self._term:
            raise StaleBrain(committing.TAKEN_OVER)
        return row

    def _connect(self) -> Connection:
        if self._db is not None:
            self._db.close()
        self._db = None
        self._locked = False
        self._db = db = self._new_session()
        committing.prepare(db, self._name)
        return db

    def _new_session(self) -> Connection:
        if not self._left.is_set():
            db = connect(self._address, short_plans=True)
            self._sessions += 1
            if not self._left.is_set():
                return db
            db.close()
        raise StoreUnavailable(f"this engine has left {self._name}")
