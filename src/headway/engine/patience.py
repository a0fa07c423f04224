"""Patience with a store that is away for a while: a full disk, a lock, a lost connection."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from headway.errors import StoreUnavailable

T = TypeVar("T")


class Patient:
    def __init__(self) -> None:
        self.trouble = ""  # why the store cannot be used, while it cannot
        self._stop_waiting = threading.Event()

    def insist(self, action: Callable[[], T]) -> T:
        """Go on until the store does it. Meanwhile nothing is granted and nobody is told."""
        for wait_s in _growing_waits():
            try:
                done = action()
            except StoreUnavailable as error:
                self.trouble = str(error)
                if self._stop_waiting.wait(wait_s):
                    raise
                continue
            self.trouble = ""
            return done
        raise AssertionError  # the waits never end

    def give_up(self) -> None:
        """Stop insisting: the process is to end although the store is away."""
        self._stop_waiting.set()


def _growing_waits() -> Iterator[float]:
    wait_s = 0.05
    while True:
        yield wait_s
        wait_s = min(wait_s * 2, 2.0)
