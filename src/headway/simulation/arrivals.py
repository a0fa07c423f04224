"""When work comes: steadily, by chance, in bursts, with the day, or all at once.

Each process gives the times of its arrivals, in seconds since the start, in order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

DAY_S = 86_400.0
HOUR_S = 3600.0
KINDS = ("poisson", "steady", "bursts", "diurnal", "all-at-once")


@dataclass(frozen=True, slots=True)
class Process:
    kind: str = "poisson"
    per_hour: float = 60.0  # on average
    size: int = 1  # of a burst, or of what comes all at once
    at_s: float = 0.0  # when it begins
    until_s: float = float("inf")
    peak_s: float = 14 * HOUR_S  # time of day at which most comes
    swing: float = 0.8  # 0: the same all day; 1: nothing at night

    def times(self, duration_s: float, rng: Random) -> Iterator[float]:
        end = min(duration_s, self.until_s)
        match self.kind:
            case "all-at-once":
                return _at_once(self.at_s, self.size, end)
            case "steady":
                return self._every(HOUR_S / self.per_hour, 1, end)
            case "bursts":
                return self._every(HOUR_S * self.size / self.per_hour, self.size, end)
            case "diurnal":
                return self._with_the_day(end, rng)
        return self._by_chance(self.per_hour, end, rng)

    def _every(self, gap_s: float, size: int, end: float) -> Iterator[float]:
        number = 0
        while (at := self.at_s + number * gap_s) < end:
            for _ in range(size):
                yield at
            number += 1

    def _by_chance(self, per_hour: float, end: float, rng: Random) -> Iterator[float]:
        at = self.at_s
        while (at := at + rng.expovariate(per_hour / HOUR_S)) < end:
            yield at

    def _with_the_day(self, end: float, rng: Random) -> Iterator[float]:
        """By chance at the rate of the peak, of which the time of day lets some through."""
        for at in self._by_chance(self.per_hour * (1 + self.swing), end, rng):
            wave = math.cos((at - self.peak_s) / DAY_S * 2 * math.pi)
            if rng.random() * (1 + self.swing) < 1 + self.swing * wave:
                yield at


def _at_once(at: float, size: int, end: float) -> Iterator[float]:
    for _ in range(size if at < end else 0):
        yield at
