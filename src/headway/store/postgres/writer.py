"""Producers of this process: group commit, and what became of a call whose answer was lost.

Each call is one statement with the token of this writer and a number. A call that is made again
with the same number changes nothing and gets the same answer (`put_once`), so when the line breaks
it is simply made again.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any
from uuid import uuid4

from headway.errors import OutcomeUnknown, StoreBusy, StoreError, StoreUnavailable
from headway.store.grouping import GroupCommit, Request, finish_all
from headway.store.postgres.address import Address
from headway.store.postgres.connection import (
    Connection,
    answer_of,
    checked,
    connect,
    cut,
    is_lost,
    translated,
)
from headway.store.postgres.inserting import answers, encoded
from headway.store.records import NewJob, Receipt

TRIES = 3  # when two wait for each other
RESOLVE_S = 20.0  # how long a lost answer is asked for
LOOK_S = 0.05
QUIET_S = 0.005  # after which a writer counts as one that rarely writes
LOOK = "look for the jobs before you enqueue them again"
INTERRUPTED = f"interrupted; {LOOK}"

PUT = b"put"
PUT_ONCE = b"select answers, place from put_once($1, $2, $3, $4, $5)"
RING = b"ring"


class Writer(GroupCommit):
    """One session. `rings_here`: whether the engine is in this process and hears by itself."""

    SAME_FOR_ALL = (StoreUnavailable,)

    def __init__(
        self, address: Address, *, ring: Callable[[], None], rings_here: Callable[[], bool]
    ) -> None:
        super().__init__(address.name, ring=ring)
        self._address = address
        self._rings_here = rings_here
        self._bell = address.channel.encode()
        self._last_at = 0.0  # when something was written last
        self._numbers = count(1)
        self._sent = 0  # the last number that a server may have heard
        self._begin()

    def _begin(self) -> None:
        """Also in a process that was forked: the session and the token are its parent's. Nothing
        is closed, for that would end the session of the parent.
        """
        self._process = os.getpid()
        self._token = str(uuid4()).encode()
        self._db: Connection | None = None
        self._place: bytes | None = None  # of our row in the table of producers
        self._ringing_out = False  # the bell was rung, and the answer to that not yet read

    def _run_alone(self, request: Request) -> bool:
        if request.jobs is None:
            return False
        request.value = self._put(request.jobs, next(self._numbers))
        return True

    def _commit(self, requests: list[Request]) -> None:
        jobs = [job for each in requests if each.jobs for job in each.jobs]
        number = next(self._numbers)
        try:
            self._hand_out(requests, self._put(jobs, number))
        except Exception:
            raise
        except BaseException:  # Ctrl-C, perhaps just after it was stored: the others must know
            self._find_out(requests, jobs, number)
            raise

    def _find_out(self, requests: list[Request], jobs: list[NewJob], number: int) -> None:
        """What is left unfinished is put again by whoever comes next, so it must not be stored."""
        try:
            self._hand_out(requests, self._put(jobs, number))
        except StoreUnavailable as error:
            finish_all(requests, error)
        except Exception:  # it was refused, and each should be tried alone
            return
        except BaseException:  # Ctrl-C again
            finish_all(requests, OutcomeUnknown(f"an enqueue in {self.name} was {INTERRUPTED}"))
            raise

    def _hand_out(self, requests: list[Request], receipts: list[Receipt]) -> None:
        each = iter(receipts)
        for request in requests:
            request.value = [next(each) for _ in request.jobs or ()]
        self._committed(requests)

    def _drop(self) -> None:
        db, self._db = self._db, None
        self._ringing_out = False
        if db is not None:
            db.close()

    def interrupt(self) -> None:
        """From another thread: whoever waits for the server shall wait no longer."""
        db = self._db
        if db is not None:
            cut(db)

    # ------------------------------------------------------------------ under the lock

    def _put(self, jobs: Sequence[NewJob], number: int) -> list[Receipt]:
        if not jobs:
            return []
        if self._process != os.getpid():
            self._begin()
        values = [self._token, b"%d" % number, encoded(jobs).encode()]
        heard = self._sent == number  # a server may have, although there was no answer
        end = time.monotonic() + RESOLVE_S
        for attempt in count(1):
            db: Connection | None = None
            try:
                db = self._session()
                self._sent = number
                return answers(self._call(db, values))
            except StoreUnavailable as error:
                again = isinstance(error, StoreBusy) and attempt < TRIES
                if db is not None and is_lost(db):
                    heard = again = True
                elif heard:  # it waits for the session that is lost, or the server is away
                    again = True
                    time.sleep(LOOK_S)
                over = time.monotonic() > end or self._closed
                if over and heard:
                    raise OutcomeUnknown(
                        f"{self.name} was lost during an enqueue and is not back ({error}); {LOOK}"
                    ) from error
                if over or not again:
                    raise
        raise AssertionError  # it counts for ever

    def _call(self, db: Connection, values: list[bytes]) -> str:
        """Who writes rarely rings with the commit, which is heard soonest. Such commits wait for
        each other, so the others ring after it.
        """
        pgconn = db.pgconn
        rings = not self._rings_here()
        bell = self._bell if rings and time.monotonic() > self._last_at + QUIET_S else None
        asked: list[Any] = [*values, self._place, bell]
        with translated(self.name):
            result = pgconn.exec_prepared(PUT, asked)
        checked(pgconn, self.name, result)
        text, self._place = result.get_value(0, 0), result.get_value(0, 1)
        self._last_at = time.monotonic()
        if rings and bell is None:
            with translated(self.name):  # nobody waits for the answer to this
                pgconn.send_query_prepared(RING, [])
            self._ringing_out = True
        assert text is not None  # at least one job was put
        return text.decode()

    def _session(self) -> Connection:
        """One that is alive, as far as can be seen without asking the server."""
        db = self._db
        if db is not None:
            try:
                self._read_what_is_there(db)
            except StoreError:
                self._drop()
        if self._db is None or is_lost(self._db):
            self._drop()
            self._db = connect(self._address, short_plans=True)
            try:
                self._prepare(self._db)
            except BaseException:
                self._drop()
                raise
        return self._db

    def _prepare(self, db: Connection) -> None:
        ring = f"select pg_notify('{self._address.channel}', '')".encode()
        for name, query in ((PUT, PUT_ONCE), (RING, ring)):
            with translated(self.name):
                result = db.pgconn.prepare(name, query)
            checked(db.pgconn, self.name, result)

    def _read_what_is_there(self, db: Connection) -> None:
        """The answer to the last ring, and what a server says that goes away."""
        if self._ringing_out:
            self._ringing_out = False
            answer_of(db, self.name)
        poll = select.poll()
        with translated(self.name):  # its last words come first, and then that it is gone
            poll.register(db.pgconn.socket, select.POLLIN)
            while poll.poll(0):
                db.pgconn.consume_input()
