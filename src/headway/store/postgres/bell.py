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
from headway.store.postgres.connection import Connection, connect, is_lost, run

AGAIN_S = 0.5  # between attempts to reach a server that is away
SPACING_S = 0.03  # between two words of a herald


class Listener:
    """A thread that sleeps until somebody rings. After a lost connection it rings by itself, for
    what may have been missed.
    """

    def __init__(self, address: Address, heard: Callable[[], None], channel: str = "") -> None:
        """`channel`: another than that of the engine."""
        self._address = address
        self._channel = channel or address.channel
        self._heard = heard
        self._wake, self._woken = socket.socketpair()
        self._open = True
        self._db = self._listening()
        self._thread = threading.Thread(target=self._listen, name="headway-bell", daemon=True)
        self._thread.start()

    def _listening(self) -> Connection:
        db = connect(self._address)
        run(db.pgconn, self._address.name, f'listen "{self._channel}"')
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
        woken = select.poll()  # unlike `select`, it can count any number of files
        woken.register(self._woken.fileno(), select.POLLIN)
        while self._open:
            try:
                self._db = self._listening()
            except (psycopg.Error, HeadwayError):
                woken.poll(AGAIN_S * 1000)
            else:
                self._heard()
                return

    def close(self) -> None:
        self._open = False
        with contextlib.suppress(OSError):
            self._wake.send(b"!")
        self._thread.join(timeout=5)
        self._wake.close()


class Herald:
    """Tells other servers that there is more of the trail: soon, and not for every turn."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._news = threading.Event()
        self._pause = threading.Event()  # never set while it works
        self._open = True
        self._db: Connection | None = None
        self._thread = threading.Thread(target=self._tell, name="headway-herald", daemon=True)
        self._thread.start()

    def more(self) -> None:
        if not self._news.is_set():
            self._news.set()

    def _tell(self) -> None:
        while self._open:
            self._news.wait()
            self._news.clear()
            while self._open and not self._rings():
                self._pause.wait(AGAIN_S)
            self._pause.wait(SPACING_S)
        self._drop()

    def _rings(self) -> bool:
        """False: the session was cut, or the server is away. Nobody else says that there is more,
        so it must be said again.
        """
        try:
            if self._db is None or is_lost(self._db):
                self._drop()
                self._db = connect(self._address)
            ring = f"select pg_notify('{self._address.trail_channel}', '')"
            run(self._db.pgconn, self._address.name, ring)
        except (psycopg.Error, HeadwayError):
            self._drop()
            return False
        return True

    def _drop(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def close(self) -> None:
        self._open = False
        self._pause.set()
        self._news.set()
        self._thread.join(timeout=5)
