"""The bell: a session that listens, and calls when somebody has committed something new."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Callable

import psycopg

from headway.errors import HeadwayError
from headway.store.postgres.address import Address
from headway.store.postgres.connection import Connection, connect, run

AGAIN_S = 0.5  # between attempts to reach a server that is away


class Listener:
    """A thread that sleeps until somebody rings. After a lost connection it rings by itself, for
    what may have been missed.
    """

    def __init__(self, address: Address, heard: Callable[[], None]) -> None:
        self._address = address
        self._heard = heard
        self._wake, self._woken = socket.socketpair()
        self._open = True
        self._db = self._listening()
        self._thread = threading.Thread(target=self._listen, name="headway-bell", daemon=True)
        self._thread.start()

    def _listening(self) -> Connection:
        db = connect(self._address)
        run(db.pgconn, self._address.name, f'listen "{self._address.channel}"')
        return db

    def _listen(self) -> None:
        while self._open:
            try:
                self._hear()
            except (psycopg.Error, HeadwayError, OSError):
                self._db.close()
                self._reconnect()
        self._db.close()
        self._woken.close()

    def _hear(self) -> None:
        pgconn = self._db.pgconn
        poll = select.poll()
        poll.register(pgconn.socket, select.POLLIN)
        poll.register(self._woken.fileno(), select.POLLIN)
        while self._open:
            poll.poll()
            pgconn.consume_input()
            rung = False
            while pgconn.notifies() is not None:
                rung = True
            if rung:
                self._heard()

    def _reconnect(self) -> None:
        while self._open:
            try:
                self._db = self._listening()
            except (psycopg.Error, HeadwayError):
                select.select([self._woken], [], [], AGAIN_S)
            else:
                self._heard()
                return

    def close(self) -> None:
        self._open = False
        with contextlib.suppress(OSError):
            self._wake.send(b"!")
        self._thread.join(timeout=5)
        self._wake.close()
