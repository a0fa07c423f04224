"""Counts over the last minute, in half seconds: constant memory, constant time."""

from __future__ import annotations

WINDOW_S = 60.0
QUICK_S = 5.0
SLICES_PER_S = 2
SLICES = int(WINDOW_S * SLICES_PER_S)
QUICK_SLICES = int(QUICK_S * SLICES_PER_S)


class Ring:
    """How much there was in the last 60 s (`minute`), in the last 5 s (`quick`), and ever."""

    __slots__ = ("_at", "_slices", "minute", "quick", "total")

    def __init__(self) -> None:
        self._slices = [0.0] * SLICES
        self._at = 0  # number of the current slice since time 0
        self.minute = 0.0
        self.quick = 0.0
        self.total = 0.0

    def advance(self, now: float) -> None:
        at = int(now * SLICES_PER_S)
        passed = at - self._at
        if passed <= 0:
            return
        slices = self._slices
        if passed >= SLICES:
            self._slices = [0.0] * SLICES
            self.minute = self.quick = 0.0
        else:
            for index in range(self._at + 1, at + 1):
                self.minute -= slices[index % SLICES]
                slices[index % SLICES] = 0.0
                self.quick -= slices[(index - QUICK_SLICES) % SLICES]
        self._at = at

    def add(self, now: float, amount: float = 1.0) -> None:
        self.advance(now)
        self._slices[self._at % SLICES] += amount
        self.minute += amount
        self.quick += amount
        self.total += amount

    def forget(self, then: float, amount: float = 1.0) -> None:
        """What was counted at that time did not count at the upstream."""
        self.total -= amount
        at = int(then * SLICES_PER_S)
        back = self._at - at
        if 0 <= back < SLICES and self._slices[at % SLICES] >= amount:
            self._slices[at % SLICES] -= amount
            self.minute -= amount
            if back < QUICK_SLICES:
                self.quick -= amount

    def since(self, then: float) -> float:
        """How much was counted after that time; the slice of that time itself is left out."""
        back = min(max(self._at - int(then * SLICES_PER_S), 0), SLICES)
        return sum(self._slices[(self._at - index) % SLICES] for index in range(back))

    def falls_to(self, level: float) -> float:
        """When the last minute will have fallen to this level, if nothing is added."""
        left = self.minute
        for index in range(self._at - SLICES + 1, self._at + 1):
            if left <= level:
                return (index + SLICES - 1) / SLICES_PER_S
            left -= self._slices[index % SLICES]
        return (self._at + SLICES) / SLICES_PER_S

    @property
    def mean(self) -> float:
        """Units per second over the last minute."""
        return self.minute / WINDOW_S

    @property
    def quick_mean(self) -> float:
        return self.quick / QUICK_S


class Peak:
    """The highest value of the last one to two minutes."""

    __slots__ = ("_before", "_now", "_since")

    def __init__(self) -> None:
        self._now = self._before = self._since = 0.0

    def add(self, now: float, value: float) -> None:
        age = now - self._since
        if age >= WINDOW_S:
            self._before = self._now if age < 2 * WINDOW_S else 0.0
            self._now, self._since = 0.0, now
        self._now = max(self._now, value)

    @property
    def value(self) -> float:
        return max(self._now, self._before)

    def clear(self) -> None:
        self._now = self._before = 0.0
