"""The limits that upstreams have: windows, buckets, the cell rate algorithm, calls at once.

A limiter is asked first (`admits`) and told afterwards what was taken: an upstream with several
limits takes a call only if all of them admit it. Rates are calls in a window of seconds.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

INF = float("inf")
ALMOST = 1e-9  # times are sums of floats
MINUTE_S = 60.0
KINDS = ("fixed-window", "sliding-window", "token-bucket", "gcra", "concurrency")


class Steps:
    """A value that jumps at given times: (seconds since the start, value) in order."""

    __slots__ = ("times", "values")

    def __init__(self, steps: Sequence[tuple[float, float]]) -> None:
        self.times = [float(at) for at, _ in steps]
        self.values = [float(value) for _, value in steps]

    def at(self, now: float) -> float:
        if len(self.values) == 1:
            return self.values[0]
        return self.values[max(0, bisect_right(self.times, now) - 1)]

    def mean(self, start: float, end: float) -> float:
        total = 0.0
        for index, value in enumerate(self.values):
            begin = self.times[index] if index else -INF
            over = self.times[index + 1] if index + 1 < len(self.times) else INF
            total += value * max(0.0, min(end, over) - max(start, begin))
        return total / (end - start)


@dataclass(frozen=True, slots=True)
class LimitModel:
    """One limit as it is described; `build` makes one that counts."""

    kind: str
    steps: tuple[tuple[float, float], ...]  # (seconds since the start, limit)
    window_s: float = MINUTE_S
    burst: float = 1.0
    per_tenant: bool = False

    @property
    def counts_calls(self) -> bool:
        return self.kind != "concurrency"

    def build(self) -> Limiter:
        steps = Steps(self.steps)
        match self.kind:
            case "fixed-window":
                return FixedWindow(steps, self.window_s)
            case "sliding-window":
                return SlidingWindow(steps, self.window_s)
            case "token-bucket":
                return TokenBucket(steps, self.window_s, self.burst)
            case "gcra":
                return CellRate(steps, self.window_s, self.burst)
        return Concurrency(steps, self.window_s)

    def per_minute(self, start: float, end: float, busy_s: float) -> float:
        """How many calls it lets through in a minute, on average, if each takes so long."""
        limit = Steps(self.steps).mean(start, end)
        if self.counts_calls:
            return limit * MINUTE_S / self.window_s
        return limit * MINUTE_S / busy_s if busy_s > 0 else INF


class Limiter:
    """Admits everything; each kind says for itself what it does not."""

    def __init__(self, limit: Steps, window_s: float) -> None:
        self.limit = limit
        self.window_s = window_s

    def admits(self, now: float) -> bool:
        return True

    def take(self, now: float) -> None:
        """A call was accepted."""

    def release(self) -> None:
        """A call that was accepted has ended."""

    def wait_s(self, now: float) -> float:
        """What an honest Retry-After says, after a refusal."""
        return 0.0

    def standing(self, now: float) -> tuple[float, float, float] | None:
        """Limit, rest and seconds until it is whole again, for headers. None: it has none."""
        return None


class FixedWindow(Limiter):
    """So many calls in each window of the clock; all of them may come at its start."""

    def __init__(self, limit: Steps, window_s: float) -> None:
        super().__init__(limit, window_s)
        self._window = -1
        self._count = 0

    def admits(self, now: float) -> bool:
        window = int(now // self.window_s)
        if window != self._window:
            self._window, self._count = window, 0
        return self._count < self.limit.at(now)

    def take(self, now: float) -> None:
        self._count += 1

    def wait_s(self, now: float) -> float:
        return (now // self.window_s + 1) * self.window_s - now

    def standing(self, now: float) -> tuple[float, float, float]:
        limit = self.limit.at(now)
        used = self._count if int(now // self.window_s) == self._window else 0
        return limit, max(0.0, limit - used), self.wait_s(now)


class SlidingWindow(Limiter):
    """So many calls in any span of the window's length."""

    def __init__(self, limit: Steps, window_s: float) -> None:
        super().__init__(limit, window_s)
        self._calls: deque[float] = deque()

    def admits(self, now: float) -> bool:
        calls = self._calls
        while calls and calls[0] <= now - self.window_s:
            calls.popleft()
        return len(calls) < self.limit.at(now)

    def take(self, now: float) -> None:
        self._calls.append(now)

    def wait_s(self, now: float) -> float:
        too_many = len(self._calls) - math.ceil(self.limit.at(now))
        if too_many < 0 or not self._calls:
            return 0.0
        oldest = self._calls[min(too_many, len(self._calls) - 1)]
        return max(0.0, oldest + self.window_s - now)

    def standing(self, now: float) -> tuple[float, float, float]:
        self.admits(now)
        limit = self.limit.at(now)
        reset_s = self._calls[0] + self.window_s - now if self._calls else 0.0
        return limit, max(0.0, limit - len(self._calls)), reset_s


class TokenBucket(Limiter):
    """Tokens come at a rate into a bucket that holds `burst` of them; each call takes one."""

    def __init__(self, limit: Steps, window_s: float, burst: float) -> None:
        super().__init__(limit, window_s)
        self._size = self._tokens = max(1.0, burst)
        self._filled_at = 0.0

    def _per_s(self, now: float) -> float:
        return max(ALMOST, self.limit.at(now) / self.window_s)

    def admits(self, now: float) -> bool:
        gained = (now - self._filled_at) * self.limit.at(now) / self.window_s
        self._tokens = min(self._size, self._tokens + gained)
        self._filled_at = now
        return self._tokens >= 1.0 - ALMOST

    def take(self, now: float) -> None:
        self._tokens -= 1.0

    def wait_s(self, now: float) -> float:
        return max(0.0, (1.0 - self._tokens) / self._per_s(now))

    def standing(self, now: float) -> tuple[float, float, float]:
        self.admits(now)
        full_in_s = (self._size - self._tokens) / self._per_s(now)
        return self.limit.at(now), max(0.0, math.floor(self._tokens)), full_in_s


class CellRate(Limiter):
    """The generic cell rate algorithm: one call in an interval, `burst` of them at once."""

    def __init__(self, limit: Steps, window_s: float, burst: float) -> None:
        super().__init__(limit, window_s)
        self._burst = max(1.0, burst)
        self._due_at = 0.0

    def _interval_s(self, now: float) -> float:
        return self.window_s / max(ALMOST, self.limit.at(now))

    def admits(self, now: float) -> bool:
        return self.limit.at(now) > 0 and self.wait_s(now) <= ALMOST

    def take(self, now: float) -> None:
        self._due_at = max(now, self._due_at) + self._interval_s(now)

    def wait_s(self, now: float) -> float:
        return max(0.0, self._due_at - (self._burst - 1) * self._interval_s(now) - now)

    def standing(self, now: float) -> tuple[float, float, float]:
        ahead = max(0.0, self._due_at - now) / self._interval_s(now)
        rest = max(0.0, math.floor(self._burst - ahead + ALMOST))
        return self.limit.at(now), rest, max(0.0, self._due_at - now)


class Concurrency(Limiter):
    """So many calls at once."""

    def __init__(self, limit: Steps, window_s: float) -> None:
        super().__init__(limit, window_s)
        self._busy = 0

    def admits(self, now: float) -> bool:
        return self._busy < self.limit.at(now)

    def take(self, now: float) -> None:
        self._busy += 1

    def release(self) -> None:
        self._busy -= 1

    def wait_s(self, now: float) -> float:
        return 1.0  # nobody knows when a call ends
