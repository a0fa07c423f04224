"""The lease of whoever leads: renewed in a thread and a session of its own, whatever the brain is
busy with.

The clock of the database says when it ends. Its holder counts from before it asked, and a little
less, so what it believes ends first: as long as `trusted` is true, nobody else can lead.
"""

from __future__ import annotations

import contextlib
import logging
import select
import threading
from collections.abc import Callable

import psycopg

from headway.errors import HeadwayError, StoreUnavailable
from headway.lease_clock import lease_clock
from headway.store.postgres.address import Address
from headway.store.postgres.connection import Connection, answer_of, connect, cut, is_lost

logger = logging.getLogger("headway")

MARGIN = 0.1  # of the lease, for clocks that do not run alike
RENEWALS = 4  # in the time of one lease
RENEW = (
    b"update leader set lease_end = clock_timestamp() + make_interval(secs => $1::float8) "
    b"where term = $2::bigint"
)
RELEASE = "update leader set lease_end = '-infinity', holder = '' where term = %s"


class Lease:
    def __init__(
        self, address: Address, term: int, length_s: float, asked_at: float,
        *, over: Callable[[], None], doubted: Callable[[float], None],
    ) -> None:  # fmt: skip
        self._address = address
        self._term = term
        self._length_s = length_s
        self._over = over
        self._doubted = doubted
        self._db: Connection | None = None
        self._end = threading.Event()
        self.is_over = False  # somebody else leads
        self.trusted_until = self._counted(asked_at)
        self._thread = threading.Thread(target=self._keep, name="headway-lease", daemon=True)
        self._thread.start()

    def _counted(self, asked_at: float) -> float:
        return asked_at + self._length_s * (1 - MARGIN)

    @property
    def trusted(self) -> bool:
        """Whether nobody else can lead now."""
        return not self.is_over and lease_clock() < self.trusted_until

    def let_run_out(self) -> None:
        """It is renewed no more."""
        self._end.set()

    def close(self) -> None:
        """Nothing of this engine goes on, and anybody may lead."""
        self.let_run_out()
        db = self._db
        self._thread.join(self._length_s)
        if self._thread.is_alive() and db is not None:
            cut(db)
        if not self.is_over:
            with (
                contextlib.suppress(psycopg.Error, HeadwayError),
                connect(self._address, patience_s=self._length_s) as session,
            ):
                session.execute(RELEASE, (self._term,))

    def _keep(self) -> None:
        while not self._end.wait(self._length_s / RENEWALS):
            try:
                self._renew()
            except (psycopg.Error, HeadwayError, OSError) as error:
                self._drop()
                logger.debug("the lease of the leader could not be renewed: %s", error)
            if self.is_over:
                break
            late_s = lease_clock() - self.trusted_until
            if late_s > 0:
                self._doubted(late_s)
        self._drop()
        if self.is_over:
            self._over()

    def _renew(self) -> None:
        db = self._db
        if db is None or is_lost(db):
            self._drop()
            db = self._db = connect(self._address, patience_s=self._length_s / 2)
        asked_at = lease_clock()
        values = [b"%f" % self._length_s, b"%d" % self._term]
        db.pgconn.send_query_params(RENEW, values)
        self._wait_for_answer(db, asked_at)
        if answer_of(db, self._address.name).command_tuples == 0:
            self.is_over = True
        else:
            self.trusted_until = self._counted(asked_at)

    def _wait_for_answer(self, db: Connection, asked_at: float) -> None:
        """A line that says nothing is given up in time for another one."""
        poll = select.poll()
        poll.register(db.pgconn.socket, select.POLLIN)
        while db.pgconn.is_busy():
            left_s = asked_at + self._length_s / 2 - lease_clock()
            if left_s <= 0 or not poll.poll(left_s * 1000):
                raise StoreUnavailable(f"{self._address.name} does not answer")
            db.pgconn.consume_input()

    def _drop(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            db.close()
