"""The limits of an upstream. Pure: the time comes in, and the same calls meet the same limits."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from headway.testing.llm_upstream.settings import Settings

MINUTE_S = 60.0
RETRY_CONCURRENCY_S = 1.0  # nobody knows when a place will be free


@dataclass(frozen=True, slots=True)
class Refusal:
    by: str  # the setting that refused: rpm, tpm, bucket, concurrency
    wait_s: float
    limit: float
    used: float
    asked: float = 1

    @property
    def unit(self) -> str:
        return "tokens" if self.by == "tpm" else "requests"


@dataclass(frozen=True, slots=True)
class Standing:
    """What headers say. The limit is per minute, as in all headers, also of shorter windows."""

    limit: float
    remaining: float
    reset_s: float


class Window(Protocol):
    def used(self, now: float) -> float: ...
    def spend(self, now: float, amount: float) -> None: ...
    def reset_s(self, now: float) -> float: ...
    def wait_s(self, now: float, excess: float) -> float: ...


class FixedWindow:
    """Starts with the first call after the last one ended, or at full minutes."""

    def __init__(self, length_s: float, *, aligned: bool) -> None:
        self._length_s = length_s
        self._aligned = aligned
        self._ends_at = 0.0
        self._used = 0.0

    def used(self, now: float) -> float:
        if now >= self._ends_at:
            self._used = 0.0
        return self._used

    def spend(self, now: float, amount: float) -> None:
        if now >= self._ends_at:
            self._used = 0.0
            start = math.floor(now / self._length_s) * self._length_s if self._aligned else now
            self._ends_at = start + self._length_s
        self._used += amount

    def reset_s(self, now: float) -> float:
        return max(0.0, self._ends_at - now)

    def wait_s(self, now: float, excess: float) -> float:
        return self.reset_s(now)


class SlidingWindow:
    """No stretch of this length ever holds more than the limit."""

    def __init__(self, length_s: float) -> None:
        self._length_s = length_s
        self._spent: deque[tuple[float, float]] = deque()
        self._used = 0.0

    def used(self, now: float) -> float:
        while self._spent and self._spent[0][0] + self._length_s <= now:
            self._used -= self._spent.popleft()[1]
        return self._used

    def spend(self, now: float, amount: float) -> None:
        self._spent.append((now, amount))
        self._used += amount

    def reset_s(self, now: float) -> float:
        return max(0.0, self._spent[0][0] + self._length_s - now) if self._spent else 0.0

    def wait_s(self, now: float, excess: float) -> float:
        for at, amount in self._spent:
            excess -= amount
            if excess <= 0:
                return max(0.0, at + self._length_s - now)
        return self._length_s


class Bucket:
    def __init__(self, rate: float, burst: float) -> None:
        self.rate = rate
        self.burst = burst
        self._level = burst
        self._at = 0.0

    def change(self, rate: float, burst: float, now: float) -> None:
        level = self.level(now)
        self.rate, self.burst, self._level = rate, burst, min(level, burst)

    def level(self, now: float) -> float:
        self._level = min(self.burst, self._level + max(0.0, now - self._at) * self.rate)
        self._at = now
        return self._level

    def spend(self) -> None:
        self._level -= 1.0


class Limiter:
    """All limits together: what one of them refuses is taken from none."""

    def __init__(self, settings: Settings, now: float) -> None:
        self._settings = settings
        self.in_flight = 0
        self.forget(now)

    def forget(self, now: float) -> None:
        """As if nothing had ever been asked. What is in flight stays so."""
        self._requests = _window(self._settings)
        self._tokens = _window(self._settings)
        self._bucket: Bucket | None = None
        self._refused: deque[float] = deque()
        self._banned_until = 0.0
        self.change(self._settings, now)

    def change(self, settings: Settings, now: float) -> None:
        """What was spent in a window counts against its new limit too."""
        before, self._settings = self._settings, settings
        if (settings.window, settings.window_s) != (before.window, before.window_s):
            self._requests, self._tokens = _window(settings), _window(settings)
        if settings.bucket is None:
            self._bucket = None
        elif self._bucket is None:
            self._bucket = Bucket(*settings.bucket)
        else:
            self._bucket.change(*settings.bucket, now)
        if settings.ban is None:
            self._banned_until = 0.0

    # ------------------------------------------------------------------ a call

    def banned_s(self, now: float) -> float:
        return max(0.0, self._banned_until - now)

    def refuses(self, now: float, tokens: int) -> Refusal | None:
        settings, bucket = self._settings, self._bucket
        if settings.concurrency is not None and self.in_flight >= settings.concurrency:
            return Refusal("concurrency", RETRY_CONCURRENCY_S, settings.concurrency, self.in_flight)
        if settings.rpm is not None and (used := self._requests.used(now)) + 1 > settings.rpm:
            excess = used + 1 - settings.rpm
            return Refusal("rpm", self._requests.wait_s(now, excess), settings.rpm, used)
        if bucket is not None and (level := bucket.level(now)) < 1.0:
            wait_s = (1.0 - level) / bucket.rate
            return Refusal("bucket", wait_s, bucket.burst, bucket.burst - level)
        if settings.tpm is not None and (used := self._tokens.used(now)) + tokens > settings.tpm:
            excess = used + tokens - settings.tpm
            return Refusal("tpm", self._tokens.wait_s(now, excess), settings.tpm, used, tokens)
        return None

    def refused(self, now: float) -> None:
        """Count it; too many within the time are answered with a ban."""
        ban = self._settings.ban
        if ban is None:
            return
        self._refused.append(now)
        while self._refused[0] < now - ban.within_s:
            self._refused.popleft()
        if len(self._refused) >= ban.after:
            self._banned_until = now + ban.for_s
            self._refused.clear()

    def enter(self, now: float, tokens: int) -> None:
        self.in_flight += 1
        if self._settings.rpm is not None:
            self._requests.spend(now, 1)
        if self._settings.tpm is not None:
            self._tokens.spend(now, tokens)
        if self._bucket is not None:
            self._bucket.spend()

    def leave(self) -> None:
        self.in_flight -= 1

    # ------------------------------------------------------------------ what headers say

    def requests(self, now: float) -> Standing | None:
        """Of the limits that count calls, the one that is nearer to its end."""
        bucket = self._bucket
        window = self._standing(self._requests, self._settings.rpm, now)
        if bucket is None:
            return window
        level = bucket.level(now)
        flow = Standing(
            MINUTE_S * bucket.rate, math.floor(level), (bucket.burst - level) / bucket.rate
        )
        return flow if window is None or flow.remaining < window.remaining else window

    def tokens(self, now: float) -> Standing | None:
        return self._standing(self._tokens, self._settings.tpm, now)

    def _standing(self, window: Window, limit: float | None, now: float) -> Standing | None:
        if limit is None:
            return None
        remaining = max(0.0, limit - window.used(now))
        return Standing(limit * MINUTE_S / self._settings.window_s, remaining, window.reset_s(now))


def _window(settings: Settings) -> Window:
    if settings.window == "sliding":
        return SlidingWindow(settings.window_s)
    return FixedWindow(settings.window_s, aligned=settings.window == "aligned")
