"""The time. It never runs backwards, and keeps close to the wall clock."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since 1970."""


class SystemClock:
    """The wall clock, made safe: set forward, it follows at once; set back, it runs at half speed
    until the wall clock has caught up, so that nothing is due twice and nothing stands still.
    """

    def __init__(self) -> None:
        self._at = time.time()
        self._ticks = time.monotonic()

    def now(self) -> float:
        wall, ticks = time.time(), time.monotonic()
        passed_s = max(ticks - self._ticks, 0.0)
        expected = self._at + passed_s
        set_back = wall < expected - 0.001
        at = self._at + passed_s / 2 if set_back else max(wall, self._at)
        # Two threads may be here at once; each gets a time that is right for it.
        self._at, self._ticks = at, ticks
        return at
