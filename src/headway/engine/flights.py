"""Commits under way. While the store writes one turn down, the brain decides the next ones; what
they decide waits for the next flight, and nobody is told anything before it has landed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from headway.core import Permit
from headway.core.ticket import Stop
from headway.store.records import Batch

WORTH_IT = 64  # events; below that, going to another thread costs more than it saves


class Outbox:
    """What is to be done once the decisions behind it are committed."""

    __slots__ = ("acks", "ended", "permits", "stops")

    def __init__(self) -> None:
        self.permits: list[Permit] = []
        self.stops: list[tuple[int, Stop]] = []
        self.acks: list[tuple[Future[Any], Any]] = []
        self.ended: list[int] = []


class Flight:
    __slots__ = ("batch", "error", "landed", "outbox")

    def __init__(self, batch: Batch, outbox: Outbox) -> None:
        self.batch = batch
        self.outbox = outbox
        self.landed = False
        self.error: BaseException | None = None


class Runway:
    """A thread that commits one flight after the other."""

    def __init__(self, commit: Callable[[Batch], None], wake: Callable[[], None]) -> None:
        self._commit = commit
        self._wake = wake
        self._queue: SimpleQueue[Flight | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="headway-commits", daemon=True)
        self._thread.start()

    def fly(self, flight: Flight) -> None:
        self._queue.put(flight)

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join(5.0)

    def _serve(self) -> None:
        while (flight := self._queue.get()) is not None:
            try:
                self._commit(flight.batch)
            except BaseException as error:
                flight.error = error
            flight.landed = True
            self._wake()
