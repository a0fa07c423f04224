"""Patience with a store that is away for a while: a full disk, a lock, a lost connection."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from time import monotonic
from typing import TypeVar

from headway.errors import StoreBusy, StoreUnavailable

T = TypeVar("T")

logger = logging.getLogger("headway")

FIRST_WAIT_S = 0.05
LONGEST_WAIT_S = 1.0


class Patient:
    def __init__(self) -> None:
        self.trouble = ""  # why the store cannot be used, while it cannot
        self.absences: list[str] = []  # for the audit trail: how long it was away, and why
        self._stop_waiting = threading.Event()

    def insist(self, action: Callable[[], T]) -> T:
        """Go on until the store does it. Meanwhile nothing is granted and nobody is told."""
        try:
            return action()
        except StoreBusy as error:
            return self.wait_for(action, error)
        except StoreUnavailable:
            pass  # perhaps only a session was lost, while nobody looked
        try:
            return action()
        except StoreUnavailable as error:
            return self.wait_for(action, error)

    def wait_for(self, action: Callable[[], T], error: StoreUnavailable) -> T:
        """The same, after a first attempt has failed."""
        since, why = monotonic(), str(error)
        logger.warning("nothing is granted while the store is away: %s", error)
        for wait_s in _growing_waits():
            self.trouble = str(error)
            if self._stop_waiting.wait(wait_s):
                raise error
            try:
                done = action()
            except StoreUnavailable as again:
                error = again
                continue
            self.trouble = ""
            away = f"{monotonic() - since:.1f} s"
            self.absences.append(f"it was away for {away}: {why}")
            logger.warning("the store is back after %s; work goes on", away)
            return done
        raise AssertionError  # the waits never end

    def give_up(self) -> None:
        """Stop insisting: the process is to end although the store is away."""
        self._stop_waiting.set()


def _growing_waits() -> Iterator[float]:
    wait_s = FIRST_WAIT_S
    while True:
        yield wait_s
        wait_s = min(wait_s * 2, LONGEST_WAIT_S)
