"""What online calls do at an upstream, and how much room their noise needs.

Online calls go at once and are only counted. Queued work keeps clear of them in three ways: tokens
that stay in the bucket, places in a window, slots below a cap.
"""

from __future__ import annotations

import math

from headway.core.learning.counting import QUICK_S, WINDOW_S, Ring

GONE_S = 600.0  # nobody keeps room for traffic that was last seen so long ago
MOST_TOKENS = 4.0
LOSS = 0.005  # the share of online calls that may meet a full cap
SIGMAS = 3.0


class Online:
    __slots__ = ("_ewma", "_seen_at", "ring")

    def __init__(self) -> None:
        self.ring = Ring()
        self._ewma = 0.0
        self._seen_at: float | None = None

    @property
    def seen(self) -> bool:
        return self._seen_at is not None

    def sent(self, now: float) -> None:
        self._ewma = self.quick_rate(now) + 1.0 / QUICK_S
        self._seen_at = now
        self.ring.add(now)

    def quick_rate(self, now: float) -> float:
        """Calls per second, of the last seconds."""
        if self._seen_at is None:
            return 0.0
        return self._ewma * math.exp((self._seen_at - now) / QUICK_S)

    def rate(self, now: float) -> float:
        """Calls per second: the larger of the last seconds and the last minute."""
        if self._seen_at is None:
            return 0.0
        return max(self.quick_rate(now), self.ring.mean)

    def tokens(self) -> float:
        """Calls that the bucket keeps for a burst of them."""
        return min(MOST_TOKENS, 0.5 + self._ewma) if self.seen else 0.0

    def places(self, queued_per_s: float) -> float:
        """Calls to leave free in a window. It remembers queued work for a minute, and queued work
        can only give back what it would send now, so noise that is faster needs room in advance.
        """
        if not self.seen:
            return 0.0
        calls = max(self.ring.minute, self.ring.quick * WINDOW_S / QUICK_S, 1.0)
        in_time = SIGMAS**2 * calls / (2 * WINDOW_S * max(0.05, queued_per_s))
        return min(SIGMAS * math.sqrt(calls), in_time)

    def slots(self, now: float, cap: float, latency_s: float) -> int:
        """Trunk reservation: so many slots that an online call seldom finds all of them busy."""
        if self._seen_at is None or now - self._seen_at > GONE_S or cap <= 1.5:
            return 0
        load = self.rate(now) * max(latency_s, 0.05) / cap
        wanted = math.ceil(math.log(LOSS) / math.log(min(0.9, max(1e-6, load))))
        return max(1, min(int(0.3 * cap), wanted))
