"""Producers of this process: group commit, and what became of a commit whose answer was lost.

A transaction is told to commit only when its number is known. So when the line breaks before that,
nothing was stored and it is tried again; when it breaks after that, the server is asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from psycopg.pq.abc import PGresult

from headway.errors import StoreBusy, StoreError, StoreUnavailable
from headway.store.grouping import GroupCommit, Request
from headway.store.postgres.address import Address
from headway.store.postgres.connection import (
    Connection,
    Refusal,
    connect,
    cut,
    is_lost,
    literal,
    run,
    translated,
)
from headway.store.postgres.inserting import encoded, receipts, refusal
from headway.store.records import NewJob, Receipt

PUT = "begin; select job, joined, refused, pg_current_xact_id_if_assigned() from put({})"
TRIES = 3
RESOLVE_S = 20.0  # how long a lost answer is asked for
LOOK_S = 0.05


class Lost(StoreUnavailable):
    """The line broke, and surely nothing was stored."""


class Writer(GroupCommit):
    """One session. `ring_here`: whether the engine is in this process and hears by itself."""

    SAME_FOR_ALL = (StoreUnavailable,)

    def __init__(
        self, address: Address, *, ring: Callable[[], None], rings_here: Callable[[], bool]
    ) -> None:
        super().__init__(address.name, ring=ring)
        self._address = address
        self._rings_here = rings_here
        self._db: Connection | None = None

    def _run_alone(self, request: Request) -> bool:
        if request.jobs is None:
            return False
        request.value = self._put(request.jobs)
        return True

    def _commit(self, requests: list[Request]) -> None:
        answers = iter(self._put([job for each in requests if each.jobs for job in each.jobs]))
        for request in requests:
            request.value = [next(answers) for _ in request.jobs or ()]
        self._committed(requests)

    def _drop(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            db.close()

    def interrupt(self) -> None:
        """From another thread: whoever waits for the server shall wait no longer."""
        db = self._db
        if db is not None:
            cut(db)

    # ------------------------------------------------------------------ under the lock

    def _put(self, jobs: list[NewJob] | Any) -> list[Receipt]:
        if not jobs:
            return []
        text = encoded(jobs)
        for attempt in range(TRIES):
            try:
                return self._try_put(text, jobs)
            except (Lost, StoreBusy):  # Lost: the session died; busy: two waited for each other
                if attempt == TRIES - 1:
                    raise
        raise AssertionError  # the last attempt returns or raises

    def _try_put(self, text: str, jobs: Sequence[NewJob]) -> list[Receipt]:
        fresh = self._db is None or is_lost(self._db)
        db = self._session()
        try:
            result = run(db.pgconn, self.name, PUT.format(literal(db.pgconn, text)))
            answers = receipts(_rows(result))
        except BaseException as error:
            lost = self._give_up(db)
            if isinstance(error, Refusal):
                raise refusal(str(error)) from None
            if lost and not fresh and isinstance(error, StoreUnavailable):
                raise Lost(str(error)) from error
            raise
        number = result.get_value(0, 3)
        try:
            run(db.pgconn, self.name, self._end())
        except StoreError as error:
            lost = self._give_up(db)
            # If the session lives, perhaps only the ring has failed, which comes after the commit.
            if number is not None and not self._was_committed(number.decode(), answers, jobs):
                if lost:
                    raise Lost(str(error)) from error
                raise
        return answers

    def _session(self) -> Connection:
        if self._db is None or is_lost(self._db):
            self._drop()
            self._db = connect(self._address, short_plans=True)
        return self._db

    def _end(self) -> str:
        """The ring comes after the commit: inside of it, it would hold up everybody's commits."""
        if self._rings_here():
            return "commit"
        return f"commit; select pg_notify('{self._address.channel}', '')"

    def _give_up(self, db: Connection) -> bool:
        """Take back what is not committed. True: the session is lost."""
        try:
            if not is_lost(db):
                run(db.pgconn, self.name, "rollback")
                return False
        except StoreError:
            pass
        self._drop()
        return True

    def _was_committed(self, number: str, answers: list[Receipt], jobs: Sequence[NewJob]) -> bool:
        """Ask the server what became of a transaction, until it knows."""
        end = time.monotonic() + RESOLVE_S
        pairs = zip(answers, jobs, strict=True)
        new = [(each.id, job.created_at) for each, job in pairs if not each.joined]
        while True:
            try:
                with translated(self.name):
                    return self._ask(number, new)
            except StoreUnavailable as error:
                self._drop()
                if time.monotonic() > end or self._closed:
                    raise StoreUnavailable(
                        f"{self.name} was lost during a commit and is not back ({error}); look "
                        "for the jobs before you enqueue them again"
                    ) from error
            time.sleep(LOOK_S)

    def _ask(self, number: str, new: list[tuple[int, float]]) -> bool:
        db = self._session()
        try:
            row = db.execute("select pg_xact_status(%s::xid8)", (number,)).fetchone()
        except psycopg.errors.InvalidParameterValue:  # a number that this server never gave
            return False
        state = None if row is None else row[0]
        if state == "in progress":
            raise StoreUnavailable("the commit is still under way")
        if state != "committed" or not new:
            return bool(state == "committed")
        # After a crash or a failover another transaction may have got the number, and another job
        # the number of ours: see that it is ours.
        there = db.execute(
            "select 1 from jobs where id = %s and created_at = %s and xid = %s::xid8",
            (*new[0], number),
        ).fetchone()
        return there is not None


def _rows(result: PGresult) -> list[tuple[int | None, bool, str | None]]:
    """By hand: there are three columns, and many rows."""
    value = result.get_value
    rows = []
    for row in range(result.ntuples):
        number, refused = value(row, 0), value(row, 2)
        rows.append(
            (
                None if number is None else int(number),
                value(row, 1) == b"t",
                None if refused is None else refused.decode(),
            )
        )
    return rows
