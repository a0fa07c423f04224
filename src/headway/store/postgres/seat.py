"""The seat of the engine: a lease, a term, and the number of the last turn; a session to commit in,
and one to look around with while the other is busy.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from headway.errors import EngineRunning, StaleBrain, StoreUnavailable
from headway.lease_clock import lease_clock
from headway.store.batch import Batch
from headway.store.holder import Holder
from headway.store.postgres import committing
from headway.store.postgres.address import Address
from headway.store.postgres.connection import Connection, connect, cut, is_lost, translated
from headway.store.postgres.lease import Lease
from headway.store.postgres.marks import Mark
from headway.store.postgres.reading import load_new, prepare_looking
from headway.store.records import Brain, Candidate, News

TERM = "select term from brain"
LEAVE_S = 1.0  # for the engine's thread to come out of a session that was cut
WHO_LEADS = "select holder, lease_end <= clock_timestamp() from leader for update"
# A process that is stopped in the middle of it must not keep all others from leading.
NOT_FOR_LONG = "set local idle_in_transaction_session_timeout to '2s'"
LEAD = (
    "update leader set term = %s, holder = %s, "
    "lease_end = clock_timestamp() + make_interval(secs => %s)"
)
SIT_DOWN = (
    "update brain set term = term + 1, turn = 0 "
    "returning term, fence, mark, pg_current_snapshot()::text"
)
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
        self._lease: Lease | None = None
        self._sessions = 0  # that there were so far, of both
        self._looked_in = 0  # how many there were when the engine looked for new jobs last
        self._kept = ""  # the mark that is surely stored
        self._term = self._turn = 0
        self._place: bytes | None = None  # of the brain in its table
        self._sent: tuple[int, str] | None = None  # the term and the mark of what is under way
        self._left = threading.Event()
        self._inside = threading.RLock()  # the engine's thread is in a session

    def take(self, candidate: Candidate, over: Callable[[], None]) -> Brain:
        """Become the engine, or EngineRunning. `over` is called when somebody else is it."""
        with self._inside, translated(self._name):
            db = self._connect()
            asked_at = lease_clock()
            with db.transaction():
                db.execute(NOT_FOR_LONG)
                before = self._who_led(db)
                row = db.execute(SIT_DOWN).fetchone()
                assert row is not None  # the schema puts it there
                term, fence, mark, snapshot = row
                holder = Holder.here(candidate.url)
                db.execute(LEAD, (term, holder.text(), candidate.lease_s))
                db.execute(OURS)
            self._lease = Lease(
                self._address, term, candidate.lease_s, asked_at, over=over,
                doubted=candidate.doubted,
            )  # fmt: skip
            if Mark.parse(mark).is_of_another_server(snapshot):
                mark = ""  # restored here: what has no trail yet is new
            self._term, self._turn, self._kept = term, 0, mark
            return Brain(term, fence, mark, before.is_gone, before.was_here, str(before))

    def _who_led(self, db: Connection) -> Holder:
        """Whose place may be taken: its lease has ended, or it is certainly gone."""
        row = db.execute(WHO_LEADS).fetchone()
        assert row is not None  # as above
        before, ended = Holder.parse(row[0]), row[1]
        if not ended and not before.is_gone:
            raise EngineRunning(
                f"an engine runs on {self._name} already ({before}); stop it first, or only "
                "enqueue here"
            )
        return before

    def assure(self) -> None:
        """Asks only if the lease may have ended; and not where a turn may be under way."""
        lease = self._lease
        if lease is None or not lease.trusted:
            with self._inside, translated(self._name):
                self._check_term(self._look(TERM))

    def let_go(self) -> None:
        """From any thread."""
        lease = self._lease
        if lease is not None:
            lease.let_run_out()

    def leave(self) -> None:
        """From any thread: a commit that is under way ends with an error."""
        self._left.set()
        lease, self._lease = self._lease, None
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
        if lease is not None:
            lease.close()  # last: nothing of this engine is under way any more

    def load_new(self, mark: str, limit: int) -> News:
        """When a session was lost, the numbers of transactions may have been given anew, after a
        crash of the server; what was seen is then what is surely stored, and some jobs come again.
        """
        with self._inside:
            db = self._the_lookout()
            if self._looked_in != self._sessions:
                mark = self._kept
            with translated(self._name):
                news = load_new(db, self._name, mark, limit, prepared=True)
            self._looked_in = self._sessions
            return news

    def _look(self, query: str) -> tuple[Any, ...] | None:
        return self._the_lookout().execute(query.encode()).fetchone()

    def _the_lookout(self) -> Connection:
        db = self._lookout
        return self._new_lookout() if db is None or is_lost(db) else db

    def _new_lookout(self) -> Connection:
        old = self._lookout
        if old is not None:
            old.close()
        db = self._lookout = self._new_session()
        try:
            with translated(self._name):
                prepare_looking(db, self._name)
                self._check_term(db.execute(TERM).fetchone())
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
            with translated(self._name):
                self._check_term(db.execute(TERM).fetchone())
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
