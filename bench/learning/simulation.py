"""Online calls and queued work meet at an upstream, event by event, in virtual time.

The sender under test sees what a real client sees. `sender=None` runs the online calls alone:
what they suffer then is nobody's harm.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from bench.learning.limiters import Hits, Limiter
from bench.learning.scenarios import Scenario, drawn

Headers = dict[str, Any]


class Sender(Protocol):
    """What decides when queued work goes."""

    def allow(self, now: float, inf_bg: int, inf_fg: int) -> bool: ...

    def next_wake(self, now: float) -> float: ...

    def on_send(self, now: float) -> None: ...

    def on_result(
        self, now: float, status: int, latency: float, headers: Headers, sent_at: float,
        inflight: int,
    ) -> None: ...  # fmt: skip

    def on_fg_send(self, now: float, inflight: int) -> None: ...

    def on_fg_result(
        self, now: float, status: int, latency: float, headers: Headers, sent_at: float,
        inflight: int,
    ) -> None: ...  # fmt: skip


class Upstream:
    def __init__(self, scenario: Scenario, rng: random.Random) -> None:
        self.scenario = scenario
        self.limiter: Limiter = scenario.limiter()
        self.rng = rng
        self.hits = Hits(*scenario.ban) if scenario.ban else None
        self.banned_until = -1.0
        self.bans = 0
        self.in_flight = 0

    def request(self, now: float, takes_s: float) -> tuple[int, float, Headers]:
        """Status, latency, headers. A 200 holds its place until `release`."""
        scenario, limiter = self.scenario, self.limiter
        if now < self.banned_until:
            wait_s = math.ceil(self.banned_until - now)
            return 429, scenario.refusal_s, {"retry-after": wait_s} if scenario.retry_after else {}
        if any(start <= now < end for start, end in scenario.outages):
            return 503, scenario.refusal_s, {}
        headers: Headers = {}
        if not limiter.admits(now):
            if scenario.retry_after:
                headers["retry-after"] = max(1, math.ceil(limiter.wait_s(now)))
            self._describe(now, headers)
            if self.hits is not None and self.hits.one_more(now):
                self.banned_until = now + self.hits.ban_s
                self.bans += 1
            return 429, scenario.refusal_s, headers
        if scenario.flaky and self.rng.random() < scenario.flaky:
            return 503, scenario.refusal_s, {}
        limiter.take(now)
        self.in_flight += 1
        if scenario.knee:
            takes_s *= max(1.0, self.in_flight / scenario.knee)
        self._describe(now, headers)
        return 200, takes_s, headers

    def _describe(self, now: float, headers: Headers) -> None:
        if self.scenario.headers and self.limiter.counts_calls:
            limit, rest, reset_s = self.limiter.standing(now)
            headers["x-ratelimit-limit-requests"] = int(limit)
            headers["x-ratelimit-remaining-requests"] = int(rest)
            headers["x-ratelimit-reset-requests"] = reset_s

    def release(self) -> None:
        self.in_flight -= 1
        self.limiter.release()


@dataclass
class Trace:
    """What happened, per second where the measures need it."""

    length_s: int
    bans: int = 0
    sent: int = 0
    refused: int = 0
    online: int = 0
    online_refused: int = 0
    done_at: list[int] = field(default_factory=list)
    refused_at: list[int] = field(default_factory=list)
    online_spans: list[tuple[float, float]] = field(default_factory=list)
    online_latencies: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.done_at = [0] * (self.length_s + 1)
        self.refused_at = [0] * (self.length_s + 1)


Event = tuple[float, int, str, Any]


class Simulation:
    def __init__(
        self, scenario: Scenario, make: Callable[[Scenario, Upstream], Sender] | None, seed: int
    ) -> None:
        rngs = [random.Random(f"{scenario.name}/{seed}/{part}") for part in range(4)]
        self.scenario = scenario
        self.upstream = Upstream(scenario, rngs[3])
        online = scenario.online
        self.arrivals = online.arrivals(scenario.length_s, rngs[0]) if online else []
        self.online_takes_s = [scenario.latency.draw(rngs[1]) for _ in self.arrivals]
        self.rng = rngs[2]
        self.sender = make(scenario, self.upstream) if make else None
        self.watched = self.sender if scenario.online_seen else None
        self.trace = Trace(int(scenario.length_s))
        self.events: list[Event] = []
        self.count = 0
        self.queued = 0
        self.online = 0
        self.poll_at = 0.0

    def plan(self, at: float, what: str, detail: Any = None) -> None:
        self.count += 1
        heapq.heappush(self.events, (at, self.count, what, detail))

    def run(self) -> Trace:
        if self.sender is not None:
            self.plan(0.0, "poll", 0.0)
        if self.arrivals:
            self.plan(self.arrivals[0], "online", 0)
        while self.events:
            now, _, what, detail = heapq.heappop(self.events)
            if now >= self.scenario.length_s:
                break
            if what == "poll" and detail != self.poll_at:
                continue
            if what == "queued ends":
                self._queued_ends(now, *detail)
            elif what == "online":
                self._online_starts(now, detail)
            elif what == "online ends":
                self._online_ends(now, *detail)
            if self.sender is not None and (what != "online" or self.watched is not None):
                self._send_queued(self.sender, now)
        self.trace.bans = self.upstream.bans
        return self.trace

    def _send_queued(self, sender: Sender, now: float) -> None:
        trace, scenario = self.trace, self.scenario
        while self.queued < scenario.pool and sender.allow(now, self.queued, self.online):
            others = self.queued + self.online
            sender.on_send(now)
            answer = self.upstream.request(now, scenario.latency.draw(self.rng))
            self.queued += 1
            trace.sent += 1
            if answer[0] == 429:
                trace.refused += 1
                trace.refused_at[int(now)] += 1
            self.plan(now + answer[1], "queued ends", (answer, now, others))
        wake_at = max(sender.next_wake(now), now + 0.001)
        if wake_at < self.poll_at or self.poll_at <= now:
            self.poll_at = wake_at
            self.plan(wake_at, "poll", wake_at)

    def _queued_ends(
        self, now: float, answer: tuple[int, float, Headers], sent_at: float, others: int
    ) -> None:
        status, latency_s, headers = answer
        self.queued -= 1
        if status == 200:
            self.upstream.release()
            self.trace.done_at[int(now)] += 1
        assert self.sender is not None
        self.sender.on_result(now, status, latency_s, headers, sent_at, others)

    def _online_starts(self, now: float, number: int) -> None:
        if number + 1 < len(self.arrivals):
            self.plan(self.arrivals[number + 1], "online", number + 1)
        others = self.queued + self.online
        if self.watched is not None:
            self.watched.on_fg_send(now, others)
        answer = self.upstream.request(now, self.online_takes_s[number])
        self.trace.online += 1
        if answer[0] == 200:
            self.online += 1
            self.trace.online_spans.append((now, now + answer[1]))
        elif answer[0] == 429:
            self.trace.online_refused += 1
        self.plan(now + answer[1], "online ends", (answer, now, others))

    def _online_ends(
        self, now: float, answer: tuple[int, float, Headers], sent_at: float, others: int
    ) -> None:
        status, latency_s, headers = answer
        if status == 200:
            self.online -= 1
            self.upstream.release()
            self.trace.online_latencies.append(now - sent_at)
        if self.watched is not None:
            self.watched.on_fg_result(now, status, latency_s, headers, sent_at, others)


def run(
    scenario: Scenario, make: Callable[[Scenario, Upstream], Sender] | None, seed: int
) -> Trace:
    return Simulation(scenario, make, seed).run()


def healthy(scenario: Scenario) -> bool:
    """Online calls alone must be well, otherwise harm means nothing."""
    alone = run(scenario, None, 1)
    return alone.bans == 0 and alone.online_refused <= 0.001 * max(1, alone.online)


def family(start: int, count: int) -> list[Scenario]:
    found: list[Scenario] = []
    number = start
    while len(found) < count:
        scenario = drawn(number)
        if healthy(scenario):
            found.append(scenario)
        number += 1
    return found
