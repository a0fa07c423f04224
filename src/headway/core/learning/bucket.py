"""The shadow bucket: a copy of what the upstream may keep, filled at the believed rate.

Every call drains it, online ones too. Queued work goes only when it is full, so it gets exactly
the rate that online calls leave over, and never spends a burst.
"""

from __future__ import annotations

DEEPEST_S = 30.0  # a debt is at most what flows in within this time
ALMOST = 1e-6


class Bucket:
    __slots__ = ("level",)

    def __init__(self, level: float) -> None:
        self.level = level

    def fill(self, passed_s: float, rate: float, brim: float) -> None:
        self.level = min(brim, self._owed(rate) + passed_s * rate)

    def take(self, amount: float) -> None:
        self.level -= amount

    def empty(self) -> None:
        """Whatever was in it is not there at the upstream."""
        self.level = min(self.level, 0.0)

    def full_in_s(self, rate: float, brim: float) -> float:
        missing = brim - self._owed(rate)
        return 0.0 if missing <= ALMOST else missing / max(rate, 1e-3)

    def _owed(self, rate: float) -> float:
        return max(-DEEPEST_S * rate, self.level)
