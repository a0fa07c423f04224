"""The limits that upstreams hide: windows, buckets, the cell rate algorithm, concurrency caps.

Times are seconds, limits are calls per minute. A limiter is asked (`admits`), then told what
became of the call. `standing` is what an upstream with headers would say: limit, rest, reset.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

WINDOW_S = 60.0
ALMOST = 1e-9  # times are sums of floats


class Steps:
    """A value that jumps: a number, or (time, value) pairs in order."""

    def __init__(self, steps: float | Sequence[tuple[float, float]]) -> None:
        pairs = [(0.0, steps)] if isinstance(steps, int | float) else steps
        self.times = [float(time) for time, _ in pairs]
        self.values = [float(value) for _, value in pairs]

    def at(self, time: float) -> float:
        return self.values[max(0, bisect_right(self.times, time) - 1)]

    def mean(self, start: float, end: float) -> float:
        total = 0.0
        for index, value in enumerate(self.values):
            begin = self.times[index] if index else -math.inf
            over = self.times[index + 1] if index + 1 < len(self.times) else math.inf
            total += value * max(0.0, min(end, over) - max(start, begin))
        return total / (end - start)


class Limiter:
    counts_calls = True  # False: it counts what is in flight
    burst = 0.0

    def __init__(self, limit: float | Sequence[tuple[float, float]]) -> None:
        self.limit = Steps(limit)

    def admits(self, now: float) -> bool:
        raise AssertionError("each limiter says this for itself")

    def take(self, now: float) -> None:
        """A call was accepted."""

    def release(self) -> None:
        """An accepted call has ended."""

    def standing(self, now: float) -> tuple[float, float, float]:
        return self.limit.at(now), 0.0, 0.0

    def wait_s(self, now: float) -> float:
        """What an honest Retry-After says."""
        return 0.0


class FixedWindow(Limiter):
    def __init__(
        self, limit: float | Sequence[tuple[float, float]], *, phase_s: float = 0.0
    ) -> None:
        super().__init__(limit)
        self.phase_s = phase_s
        self.window: int | None = None
        self.count = 0

    def admits(self, now: float) -> bool:
        window = math.floor((now - self.phase_s) / WINDOW_S)
        if window != self.window:
            self.window, self.count = window, 0
        return self.count < self.limit.at(now)

    def take(self, now: float) -> None:
        self.count += 1

    def standing(self, now: float) -> tuple[float, float, float]:
        window = math.floor((now - self.phase_s) / WINDOW_S)
        limit = self.limit.at(now)
        ends_at = (window + 1) * WINDOW_S + self.phase_s
        return limit, max(0.0, limit - self.count), ends_at - now

    def wait_s(self, now: float) -> float:
        return self.standing(now)[2]


class SlidingWindow(Limiter):
    def __init__(self, limit: float | Sequence[tuple[float, float]]) -> None:
        super().__init__(limit)
        self.calls: deque[float] = deque()

    def _forget(self, now: float) -> None:
        while self.calls and self.calls[0] <= now - WINDOW_S:
            self.calls.popleft()

    def admits(self, now: float) -> bool:
        self._forget(now)
        return len(self.calls) < self.limit.at(now)

    def take(self, now: float) -> None:
        self.calls.append(now)

    def standing(self, now: float) -> tuple[float, float, float]:
        self._forget(now)
        limit = self.limit.at(now)
        reset_s = self.calls[0] + WINDOW_S - now if self.calls else 0.0
        return limit, max(0.0, limit - len(self.calls)), reset_s

    def wait_s(self, now: float) -> float:
        self._forget(now)
        too_many = int(len(self.calls) - self.limit.at(now))
        if too_many < 0 or not self.calls:
            return 0.0
        return self.calls[min(too_many, len(self.calls) - 1)] + WINDOW_S - now


class TokenBucket(Limiter):
    def __init__(self, limit: float | Sequence[tuple[float, float]], burst: float) -> None:
        super().__init__(limit)
        self.burst = self.tokens = float(burst)
        self.filled_at = 0.0

    def _fill(self, now: float) -> None:
        if now > self.filled_at:
            gained = (now - self.filled_at) * self.limit.at(now) / WINDOW_S
            self.tokens = min(self.burst, self.tokens + gained)
            self.filled_at = now

    def admits(self, now: float) -> bool:
        self._fill(now)
        return self.tokens >= 1.0 - ALMOST

    def take(self, now: float) -> None:
        self.tokens -= 1.0

    def standing(self, now: float) -> tuple[float, float, float]:
        self._fill(now)
        limit = self.limit.at(now)
        full_in_s = (self.burst - self.tokens) / (limit / WINDOW_S)
        return limit, max(0.0, self.tokens), full_in_s

    def wait_s(self, now: float) -> float:
        self._fill(now)
        return max(0.0, (1.0 - self.tokens) / (self.limit.at(now) / WINDOW_S))


class CellRate(Limiter):
    """The generic cell rate algorithm: one call per interval, `burst` of them at once."""

    def __init__(self, limit: float | Sequence[tuple[float, float]], burst: int) -> None:
        super().__init__(limit)
        self.at_once = burst
        self.due_at = 0.0

    def _interval_s(self, now: float) -> float:
        return WINDOW_S / self.limit.at(now)

    def admits(self, now: float) -> bool:
        return self.wait_s(now) <= ALMOST

    def take(self, now: float) -> None:
        self.due_at = max(now, self.due_at) + self._interval_s(now)

    def standing(self, now: float) -> tuple[float, float, float]:
        interval_s = self._interval_s(now)
        ahead_s = max(now, self.due_at) - now
        rest = math.floor((self.at_once * interval_s - ahead_s) / interval_s + ALMOST)
        return self.limit.at(now), max(0.0, rest), max(0.0, self.due_at - now)

    def wait_s(self, now: float) -> float:
        return max(0.0, self.due_at - (self.at_once - 1) * self._interval_s(now) - now)


class ConcurrencyCap(Limiter):
    counts_calls = False

    def __init__(self, limit: float | Sequence[tuple[float, float]]) -> None:
        super().__init__(limit)
        self.busy = 0

    def admits(self, now: float) -> bool:
        return self.busy < self.limit.at(now)

    def take(self, now: float) -> None:
        self.busy += 1

    def release(self) -> None:
        self.busy -= 1

    def standing(self, now: float) -> tuple[float, float, float]:
        cap = self.limit.at(now)
        return cap, max(0.0, cap - self.busy), 0.0


@dataclass
class Hits:
    """The refusals that an upstream remembers; too many of them are a ban."""

    at_most: int
    within_s: float
    ban_s: float
    times: deque[float] = field(default_factory=deque)

    def one_more(self, now: float) -> bool:
        """True: that was one too many."""
        self.times.append(now)
        while self.times[0] < now - self.within_s:
            self.times.popleft()
        if len(self.times) < self.at_most:
            return False
        self.times.clear()
        return True
