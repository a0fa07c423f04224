"""Headway's learner as a sender: the limit that stands at a gate, driven as a gate drives it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from bench.learning.scenarios import Scenario
from bench.learning.simulation import Upstream
from headway.core import Outcome, Permit, Ticket, Traffic
from headway.core.learning import Learning, LearnRule
from headway.core.outcome import Kind
from headway.core.rate_headers import RateHeaders, parse_rate_headers

FAR = 1e12


class Headway:
    """Knows what a gate knows: the calls that it admitted, and what came back."""

    def __init__(self, rule: LearnRule | None = None) -> None:
        self.limit = Learning(rule)
        self.held: dict[tuple[float, Traffic], list[Permit]] = defaultdict(list)
        self.in_flight = 0
        self.fence = 0

    def allow(self, now: float, inf_bg: int, inf_fg: int) -> bool:
        if self.limit.changes_at <= now:
            self.limit.elapse(now)
        return self.limit.opens_at <= now and self.in_flight < self.limit.cap

    def next_wake(self, now: float) -> float:
        opens_at = self.limit.opens_at
        return min(self.limit.changes_at, opens_at if opens_at > now else FAR, FAR)

    def on_send(self, now: float) -> None:
        self._take(now, Traffic.LEFTOVER)

    def on_fg_send(self, now: float, inflight: int) -> None:
        self._take(now, Traffic.ONLINE)

    def on_result(
        self, now: float, status: int, latency: float, headers: dict[str, Any], sent_at: float,
        inflight: int,
    ) -> None:  # fmt: skip
        self._give(now, sent_at, Traffic.LEFTOVER, status, headers)

    def on_fg_result(
        self, now: float, status: int, latency: float, headers: dict[str, Any], sent_at: float,
        inflight: int,
    ) -> None:  # fmt: skip
        self._give(now, sent_at, Traffic.ONLINE, status, headers)

    def _take(self, now: float, traffic: Traffic) -> None:
        self.fence += 1
        permit = Permit(Ticket(self.fence, traffic=traffic), self.fence, now, ())
        self.held[now, traffic].append(permit)
        self.in_flight += 1
        self.limit.taken(now, permit)

    def _give(
        self, now: float, sent_at: float, traffic: Traffic, status: int, headers: dict[str, Any]
    ) -> None:
        sent = self.held[sent_at, traffic]
        permit = sent.pop()
        if not sent:
            del self.held[sent_at, traffic]
        self.in_flight -= 1
        self.limit.given(now, permit, outcome_of(status, headers, now))


def outcome_of(status: int, headers: dict[str, Any], now: float) -> Outcome:
    """What the hands would make of an answer."""
    rates: RateHeaders | None = None
    if headers:
        rates = parse_rate_headers({name: str(value) for name, value in headers.items()}, now)
    told_s = None if rates is None else rates.retry_after_s
    if status == 200:
        return Outcome(Kind.OK, status=status, rates=rates)
    return Outcome(
        Kind.PUSHBACK, status=status, retry_after_s=told_s, upstream_fault=status >= 500,
        rates=rates,
    )  # fmt: skip


def cold(_scenario: Scenario, _upstream: Upstream) -> Headway:
    """Nothing is known."""
    return Headway()


def hinted(scenario: Scenario, _upstream: Upstream) -> Headway:
    """The documented limit is known, as it was when the documentation was written."""
    limiter = scenario.limiter()
    first = limiter.limit.values[0]
    if limiter.counts_calls:
        return Headway(LearnRule(hint_rpm=first))
    return Headway(LearnRule(hint_concurrency=int(first)) if scenario.knee is None else None)
