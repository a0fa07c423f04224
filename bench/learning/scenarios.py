"""Seven named scenarios, and a family of them that is drawn by a number."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from bench.learning.limiters import (
    CellRate,
    ConcurrencyCap,
    FixedWindow,
    Limiter,
    SlidingWindow,
    Steps,
    TokenBucket,
)

Ban = tuple[int, float, float]  # so many refusals, within so long, close it for so long
Spec = float | list[tuple[float, float]]


@dataclass(frozen=True)
class Latency:
    """Lognormal, given by its mean and the spread of its logarithm."""

    mean_s: float = 0.5
    spread: float = 0.4

    def draw(self, rng: random.Random) -> float:
        return rng.lognormvariate(math.log(self.mean_s) - self.spread**2 / 2, self.spread)


@dataclass(frozen=True)
class Online:
    """Online traffic in calls per minute: steady, a wave, or a base with spikes."""

    shape: str
    low: float
    high: float
    period_s: float = 0.0
    spikes: tuple[tuple[float, float], ...] = ()

    @classmethod
    def steady(cls, rate: float) -> Online:
        return cls("steady", rate, rate)

    @classmethod
    def wave(cls, low: float, high: float, period_s: float) -> Online:
        return cls("wave", low, high, period_s)

    @property
    def peak(self) -> float:
        return max(self.low, self.high)

    def at(self, time: float) -> float:
        if self.shape == "wave":
            middle, swing = (self.high + self.low) / 2, (self.high - self.low) / 2
            return middle - swing * math.cos(2 * math.pi * time / self.period_s)
        if self.shape == "spikes":
            return self.high if any(a <= time < b for a, b in self.spikes) else self.low
        return self.low

    def scaled(self, factor: float) -> Online:
        return replace(self, low=self.low * factor, high=self.high * factor)

    def arrivals(self, length_s: float, rng: random.Random) -> list[float]:
        """Poisson, thinned to the rate of the moment."""
        peak = self.peak / 60.0
        times: list[float] = []
        time = 0.0
        while (time := time + rng.expovariate(peak)) < length_s:
            if rng.random() * peak <= self.at(time) / 60.0:
                times.append(time)
        return times


@dataclass(frozen=True)
class Scenario:
    name: str
    limiter: Callable[[], Limiter]
    length_s: float = 3600.0
    online: Online | None = None
    online_seen: bool = True
    ban: Ban | None = None
    retry_after: bool = False
    headers: bool = False
    flaky: float = 0.0  # share of calls that fail with 503 for no reason
    latency: Latency = field(default_factory=Latency)
    refusal_s: float = 0.08
    knee: float | None = None  # above so many in flight, everything takes longer
    pool: int = 64
    outages: tuple[tuple[float, float], ...] = ()
    steps_at: tuple[float, ...] = ()  # when the limit changes, or an outage ends

    @property
    def by_calls(self) -> bool:
        return self.knee is None and self.limiter().counts_calls


NAMED = (
    Scenario("fixed 600", lambda: FixedWindow(600), ban=(10, 60, 300)),
    Scenario(
        "sliding 300, wave", lambda: SlidingWindow(300), ban=(8, 60, 300),
        online=Online.wave(60, 240, 1800),
    ),
    Scenario(
        "bucket 600 + 100, steady", lambda: TokenBucket(600, 100), retry_after=True,
        online=Online.steady(120),
    ),
    Scenario(
        "concurrency 20", lambda: ConcurrencyCap(20), latency=Latency(2.0, 1.0),
        ban=(10, 60, 300),
    ),
    Scenario(
        "cell rate 600, 300, 900", lambda: CellRate([(0, 600), (1200, 300), (2400, 900)], 10),
        ban=(10, 60, 300), steps_at=(1200, 2400),
    ),
    Scenario(
        "fixed 1000 to 700, headers", lambda: FixedWindow([(0, 1000), (1800, 700)]),
        headers=True, retry_after=True, online=Online.wave(100, 600, 1800), steps_at=(1800,),
    ),
    Scenario(
        "slow above 24, wave", lambda: ConcurrencyCap(200), knee=24,
        latency=Latency(1.5, 0.5), online=Online.wave(60, 480, 1800),
    ),
)  # fmt: skip

# An upstream that goes away for a while says nothing about its limit.
OUTAGES = tuple(
    Scenario(
        f"outage of {length_s:g} s at {limit}", lambda limit=limit: FixedWindow(limit),
        length_s=2400.0, outages=((1200.0, 1200.0 + length_s),), steps_at=(1200.0 + length_s,),
    )
    for limit, length_s in ((600, 90.0), (300, 240.0), (1000, 600.0))
)  # fmt: skip


def drawn(number: int) -> Scenario:
    """Scenario `number` of the family: the same for everybody, and nobody chose it."""
    rng = random.Random(f"open{number}")
    kind = rng.choice(["fixed", "slide", "bucket", "gcra", "conc"])
    moves = rng.random() < 0.5
    limit = round(10 ** rng.uniform(1.7, 3.2))  # 50 to 1600 per minute
    spec: Spec = limit
    if moves:
        factor = rng.choice([0.35, 0.5, 0.7, 1.5, 2.0, 3.0])
        spec = [(0, limit), (1200, max(20, int(limit * factor)))]
    lowest = min(Steps(spec).values)
    online = _draw_online(rng, lowest)
    latency = Latency(rng.choice([0.3, 0.8, 2.0]), rng.choice([0.3, 0.7, 1.0]))
    phase_s = rng.choice([0.0, rng.uniform(0, 60)])
    burst = rng.choice([3, 10, 50, int(limit / 2)])
    limiter: Callable[[], Limiter]
    if kind == "fixed":
        limiter = lambda: FixedWindow(spec, phase_s=phase_s)  # noqa: E731
    elif kind == "slide":
        limiter = lambda: SlidingWindow(spec)  # noqa: E731
    elif kind == "bucket":
        limiter = lambda: TokenBucket(spec, max(5, burst))  # noqa: E731
    elif kind == "gcra":
        limiter = lambda: CellRate(spec, min(20, max(3, burst)))  # noqa: E731
    else:
        limiter, online = _draw_cap(rng, moves, latency, online)
    return Scenario(
        f"R{number}_{kind}", limiter, length_s=2400.0, online=online,
        online_seen=rng.random() < 0.8,
        ban=rng.choice([None, (10, 60, 300), (6, 60, 300)]), retry_after=rng.random() < 0.4,
        headers=kind != "conc" and rng.random() < 0.25, flaky=rng.choice([0.0, 0.0, 0.003]),
        latency=latency, pool=128, steps_at=(1200.0,) if moves else (),
    )  # fmt: skip


def _draw_online(rng: random.Random, lowest: float) -> Online | None:
    shape = rng.choice([None, "steady", "wave", "spikes"])
    if shape == "steady":
        return Online.steady(lowest * rng.uniform(0.1, 0.5))
    if shape == "wave":
        return Online.wave(lowest * 0.05, lowest * rng.uniform(0.3, 0.8), 1200)
    if shape == "spikes":
        high = lowest * rng.uniform(0.5, 0.9)
        return Online("spikes", lowest * 0.1, high, spikes=((500, 620), (1700, 1800)))
    return None


def _draw_cap(
    rng: random.Random, moves: bool, latency: Latency, online: Online | None
) -> tuple[Callable[[], Limiter], Online | None]:
    cap = rng.randint(6, 40)
    spec: Spec = cap
    if moves:
        spec = [(0, cap), (1200, max(3, int(cap * rng.choice([0.5, 0.7, 1.5, 2.0]))))]
    if online is not None:
        online = online.scaled(min(1.0, 0.4 * cap / latency.mean_s * 60 / online.peak))
    return (lambda: ConcurrencyCap(spec)), online
