"""The guard against upstreams that slow down instead of refusing.

The logarithm of the latency is kept by load, in half octaves of calls in flight. When it is
clearly higher than at half the load, by three standard errors, the cap comes down softly.
"""

from __future__ import annotations

import math

INF = float("inf")
AT_ONCE = 600  # observations that a mean remembers
ENOUGH_BELOW = 60
ENOUGH_HERE = 100
ENOUGH_FOR_TRIAL = 300
LOOKS_EVERY_S = 20.0
LOOKS_EVERY = 100  # answers
LIGHT = 6.0  # in flight; below that nothing is compared
TRIAL_S = 60.0
TRIAL_AGAIN_S = 1800.0
WORSE = 0.07  # of the logarithm
FINE = 0.03
FADES_S = 600.0


class Mean:
    """Of the last values, with their variance."""

    __slots__ = ("count", "mean", "variance")

    def __init__(self) -> None:
        self.count = 0
        self.mean = 0.0
        self.variance = 0.0

    def add(self, value: float) -> None:
        self.count = min(self.count + 1, AT_ONCE)
        off = value - self.mean
        self.mean += off / self.count
        self.variance += (off * off - self.variance) / self.count


class Guard:
    __slots__ = ("_at", "_faded_at", "_heard", "_load", "_tried_at", "by_load", "trial", "usual_s")

    def __init__(self) -> None:
        self.by_load: dict[int, Mean] = {}
        self.usual_s = 0.5
        self.trial = INF  # a lower cap for a moment, to see how fast it is with fewer
        self._heard = 0
        self._load = 0.0
        self._at = 0.0
        self._tried_at = -INF
        self._faded_at = 0.0

    def hear(
        self, now: float, latency_s: float, in_flight: int, *, try_fewer: bool
    ) -> tuple[float | None, bool]:
        """A softer cap if one is needed, and whether the latency is as good as with fewer.
        `try_fewer`: go down for a moment if nothing is known about fewer.
        """
        self.usual_s += 0.02 * (latency_s - self.usual_s)
        level = half_octave(in_flight)
        mean = self.by_load.get(level)
        if mean is None:
            mean = self.by_load[level] = Mean()
        mean.add(math.log(max(latency_s, 1e-4)))
        self._heard += 1
        self._load += (in_flight - self._load) / min(self._heard, 200)
        if self._heard < LOOKS_EVERY or now - self._at < LOOKS_EVERY_S or self._load < LIGHT:
            return None, False
        self._at, self._heard = now, 0
        return self._compare(now, try_fewer)

    def _compare(self, now: float, try_fewer: bool) -> tuple[float | None, bool]:
        here = half_octave(self._load)
        below = [mean for level, mean in self.by_load.items() if level <= here - 2]
        count = sum(mean.count for mean in below)
        now_here = self.by_load.get(here, Mean())
        if count < ENOUGH_BELOW:
            lately = now - self._tried_at <= TRIAL_AGAIN_S
            heavy = now_here.count >= ENOUGH_FOR_TRIAL and self._load >= 2 * LIGHT
            if try_fewer and heavy and not lately:
                self.trial, self._tried_at = max(3.0, 0.4 * self._load), now
            return None, False
        self.trial = INF
        if now_here.count < ENOUGH_HERE:
            return None, False
        usual = sum(mean.count * mean.mean for mean in below) / count
        spread = sum(mean.count * mean.variance for mean in below) / count
        worse = now_here.mean - usual
        error = math.sqrt(now_here.variance / now_here.count + spread / count)
        softer = None
        if worse > max(WORSE, 3 * error):
            softer = max(2.0, (self._load + 1) * max(0.6, 1 - 0.8 * worse))
            for level in [level for level in self.by_load if level >= here]:
                del self.by_load[level]
        self._fade(now)
        return softer, worse < max(FINE, error)

    def _fade(self, now: float) -> None:
        """Forget slowly: upstreams change."""
        if now - self._faded_at > FADES_S:
            self._faded_at = now
            for mean in self.by_load.values():
                mean.count //= 2

    def trial_ends_at(self) -> float:
        return self._tried_at + TRIAL_S if self.trial < INF else INF

    def pass_time(self, now: float) -> None:
        if now >= self.trial_ends_at():
            self.trial = INF


def half_octave(in_flight: float) -> int:
    return int(2 * math.log2(in_flight + 1))
