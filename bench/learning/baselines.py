"""Senders to compare with: what people use today, an older formula, and one that is told all.

Each is the published rule as a queue would use it; where a rule leaves something open, the
generous reading is taken.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

from bench.learning.scenarios import Scenario
from bench.learning.simulation import Upstream

Headers = dict[str, Any]
NEVER = -1e9


class Baseline:
    """Sends whatever it can, and looks four times a second."""

    def __init__(self, scenario: Scenario, upstream: Upstream) -> None:
        self.scenario = scenario
        self.upstream = upstream

    def allow(self, now: float, inf_bg: int, inf_fg: int) -> bool:
        return True

    def next_wake(self, now: float) -> float:
        return now + 0.25

    def on_send(self, now: float) -> None: ...

    def on_fg_send(self, now: float, inflight: int) -> None: ...

    def on_result(
        self, now: float, status: int, latency: float, headers: Headers, sent_at: float,
        inflight: int,
    ) -> None: ...  # fmt: skip

    def on_fg_result(
        self, now: float, status: int, latency: float, headers: Headers, sent_at: float,
        inflight: int,
    ) -> None: ...  # fmt: skip


class Trailing:
    """How many in the last so many seconds."""

    def __init__(self, length_s: float) -> None:
        self.length_s = length_s
        self.times: deque[float] = deque()

    def add(self, now: float) -> None:
        self.times.append(now)

    def count(self, now: float) -> int:
        while self.times and self.times[0] <= now - self.length_s:
            self.times.popleft()
        return len(self.times)


class OlderFormula(Baseline):
    """The estimate from refusals as the gate: 1 - (in flight + completed per minute) / capacity
    must be above 0.7. Capacity: smoothed refusals, else 0.7 of the peak, else no limit at all; it
    is cached for five minutes.
    """

    def __init__(self, scenario: Scenario, upstream: Upstream) -> None:
        super().__init__(scenario, upstream)
        self.refusals: deque[tuple[float, float]] = deque(maxlen=100)
        self.done = Trailing(60.0)
        self.peak = 0
        self.capacity, self.computed_at = 0.0, NEVER
        self.response_s, self.responses = 0.0, 0.0
        self.next_at = 0.0

    def _mean_response_s(self) -> float:
        return self.response_s / self.responses if self.responses else 1.0

    def _estimate(self, now: float) -> float:
        if now - self.computed_at >= 300.0:
            self.computed_at = now
            self.capacity = 0.7 * self.peak
            if self.refusals:
                smooth = self.refusals[0][0]
                for rpm, _ in list(self.refusals)[1:]:
                    smooth = 0.3 * rpm + 0.7 * smooth
                self.capacity = smooth * min(1.0, 10_000.0 / max(1.0, self.refusals[-1][1]))
        return self.capacity

    def allow(self, now: float, inf_bg: int, inf_fg: int) -> bool:
        if now < self.next_at or inf_bg >= 100:
            return False
        done = self.done.count(now)
        self.peak = max(self.peak, done)
        capacity = self._estimate(now)
        if capacity <= 0 or 1.0 - (inf_bg + inf_fg + done) / capacity > 0.7:
            return True
        self.next_at = now + max(0.05, self._mean_response_s())
        return False

    def on_send(self, now: float) -> None:
        self.next_at = now + 0.005

    def next_wake(self, now: float) -> float:
        return max(self.next_at, now + 0.005)

    def on_result(
        self, now: float, status: int, latency: float, headers: Headers, sent_at: float,
        inflight: int,
    ) -> None:  # fmt: skip
        if status == 200:
            self.done.add(now)
            self.response_s, self.responses = self.response_s + latency, self.responses + 1
            if self.responses > 200:
                self.response_s, self.responses = self.response_s / 2, self.responses / 2
        elif status == 429:
            self.refusals.append((self.done.count(now), 1000 * self._mean_response_s()))

    on_fg_result = on_result


class AdditiveIncrease(Baseline):
    """A paced rate: a little more each second, half of it after a refusal."""

    def __init__(self, scenario: Scenario, upstream: Upstream) -> None:
        super().__init__(scenario, upstream)
        self.rate, self.at, self.next_at, self.cut_at = 1.0, 0.0, 0.0, NEVER

    def allow(self, now: float, inf_bg: int, inf_fg: int) -> bool:
        self.rate += 0.1 * (now - self.at)
        self.at = now
        return now >= self.next_at

    def on_send(self, now: float) -> None:
        self.next_at = max(now, self.next_at) + 1.0 / self.rate

    def next_wake(self, now: float) -> float:
        return max(self.next_at, now + 0.001)

    def on_result(
        self, now: float, status: int, latency: float, headers: Headers, sent_at: float,
        inflight: int,
    ) -> None:  # fmt: skip
        if status in (429, 503) and sent_at > self.cut_at:
            self.rate, self.cut_at = max(0.1, self.rate / 2), now
            self.next_at = max(self.next_at, now + headers.get("retry-after", 1.0 / self.rate))


class CubicRetry(Baseline):
    """A cloud SDK's adaptive retry mode: off until the first refusal, then a token bucket at the
    rate of a cubic curve, at most twice what was measured.
    """

    def __init__(self, scenario: Scenario, upstream: Upstream) -> None:
        super().__init__(scenario, upstream)
        self.on = False
        self.rate = self.size = 1.0
        self.tokens = self.filled_at = 0.0
        self.highest = self.turn_s = self.refused_at = 0.0
        self.measured, self.count, self.half_second = 0.0, 0, 0.0

    def _fill(self, now: float) -> None:
        self.tokens = min(self.size, self.tokens + (now - self.filled_at) * self.rate)
        self.filled_at = now

    def allow(self, now: float, inf_bg: int, inf_fg: int) -> bool:
        if self.on:
            self._fill(now)
        return not self.on or self.tokens >= 1.0

    def on_send(self, now: float) -> None:
        if self.on:
            self.tokens -= 1.0

    def next_wake(self, now: float) -> float:
        return now + (max(0.001, (1.0 - self.tokens) / self.rate) if self.on else 0.05)

    def on_result(
        self, now: float, status: int, latency: float, headers: Headers, sent_at: float,
        inflight: int,
    ) -> None:  # fmt: skip
        self.count += 1
        half_second = math.floor(now * 2) / 2
        if half_second > self.half_second:
            lately = self.count / (half_second - self.half_second)
            self.measured = 0.8 * lately + 0.2 * self.measured
            self.count, self.half_second = 0, half_second
        if status in (429, 503):
            rate = min(self.measured, self.rate) if self.on else self.measured
            self.highest, self.refused_at = rate, now
            self.turn_s = (rate * 0.3 / 0.4) ** (1 / 3)
            wanted = 0.7 * rate
            if not self.on:
                self.on, self.filled_at, self.tokens = True, now, 0.0
        else:
            wanted = 0.4 * (now - self.refused_at - self.turn_s) ** 3 + self.highest
        self._fill(now)
        self.rate = max(0.5, min(wanted, 2 * self.measured))
        self.size = max(1.0, self.rate)


class Gradient(Baseline):
    """A concurrency limit from the ratio of long and short mean latency, as service meshes do."""

    def __init__(self, scenario: Scenario, upstream: Upstream) -> None:
        super().__init__(scenario, upstream)
        self.limit, self.usual_s, self.windows, self.hold_until = 20.0, 0.0, 0, 0.0
        self.sum_s, self.count, self.window_ends = 0.0, 0, 0.0

    def allow(self, now: float, inf_bg: int, inf_fg: int) -> bool:
        return inf_bg < int(self.limit) and now >= self.hold_until

    def on_result(
        self, now: float, status: int, latency: float, headers: Headers, sent_at: float,
        inflight: int,
    ) -> None:  # fmt: skip
        if status != 200:
            self.limit = max(1.0, self.limit * 0.9)
            self.hold_until = max(self.hold_until, now + headers.get("retry-after", 0.0))
            return
        self.sum_s, self.count = self.sum_s + latency, self.count + 1
        if now < self.window_ends or self.count < 10:
            return
        short_s = self.sum_s / self.count
        self.sum_s, self.count, self.window_ends = 0.0, 0, now + 1.0
        self.windows += 1
        weight = 1 / self.windows if self.windows <= 10 else 2.0 / 601
        self.usual_s += weight * (short_s - self.usual_s)
        if self.usual_s / short_s > 2:
            self.usual_s *= 0.95
        if inflight + 1 >= self.limit / 2:
            gradient = max(0.5, min(1.0, 1.5 * self.usual_s / short_s))
            self.limit = min(200.0, max(1.0, 0.8 * self.limit + 0.2 * (self.limit * gradient + 4)))


class Oracle(Baseline):
    """Is told the limiter and its parameters, and sends at 90 % of it minus the online rate."""

    def __init__(self, scenario: Scenario, upstream: Upstream) -> None:
        super().__init__(scenario, upstream)
        self.next_at = 0.0
        self.online = Trailing(10.0)

    def allow(self, now: float, inf_bg: int, inf_fg: int) -> bool:
        upstream, scenario = self.upstream, self.scenario
        if now < self.next_at or now < upstream.banned_until:
            return False
        if any(start <= now < end for start, end in scenario.outages):
            return False
        most = math.inf if scenario.knee is None else scenario.knee
        if not upstream.limiter.counts_calls:
            most = min(most, upstream.limiter.limit.at(now))
        return inf_bg + inf_fg + 1 <= 0.9 * most

    def on_send(self, now: float) -> None:
        rate = math.inf
        if self.upstream.limiter.counts_calls:
            rate = 0.9 * self.upstream.limiter.limit.at(now) / 60.0
        online = self.scenario.online
        if online is not None:
            seen = self.scenario.online_seen
            rate -= self.online.count(now) / 10.0 if seen else online.at(now) / 60.0
        self.next_at = max(now, self.next_at) + 1.0 / max(0.02, rate)

    def next_wake(self, now: float) -> float:
        return max(self.next_at, now + 0.02)

    def on_fg_send(self, now: float, inflight: int) -> None:
        self.online.add(now)
