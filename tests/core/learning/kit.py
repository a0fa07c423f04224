"""A learner that is driven by hand: send, answer, let time pass."""

from __future__ import annotations

from headway.core.learning.learner import Answer, Call, Learner, Said
from headway.core.learning.rule import LearnRule
from headway.core.rate_headers import Quota, RateHeaders

INF = float("inf")


class Driver:
    """Keeps queued work waiting all the time, and answers each call after `takes_s`."""

    def __init__(self, rule: LearnRule | None = None, *, now: float = 0.0) -> None:
        self.learner = Learner(rule)
        self.learner.look(now)
        self.now = now

    def open(self) -> bool:
        if self.learner.changes_at <= self.now:
            self.learner.look(self.now)
        return self.learner.opens_at <= self.now and self.learner.in_flight < self.learner.places

    def send(self, *, online: bool = False, cost: float = 1.0) -> Call:
        return self.learner.sent(self.now, online=online, cost=cost)

    def answer(
        self,
        call: Call,
        said: Said = Said.WELL,
        *,
        after_s: float | None = None,
        rates: RateHeaders | None = None,
    ) -> None:
        latency_s = self.now - call.sent_at
        self.learner.answered(self.now, call, Answer(said, after_s, rates, latency_s))

    def refuse(self, *, online: bool = False, after_s: float | None = None) -> None:
        self.answer(self.send(online=online), Said.REFUSED, after_s=after_s)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.learner.look(self.now)

    def until_open(self, most_s: float = 600.0) -> float:
        """Let time pass until queued work may go. Returns how long that took."""
        start = self.now
        while not self.open():
            at = min(self.learner.changes_at, self.learner.opens_at)
            if at >= INF or at - start > most_s:
                raise AssertionError(f"it does not open within {most_s} s")
            self.now = max(at, self.now + 1e-3)
            self.learner.look(self.now)
        return self.now - start

    def run(
        self, seconds: float, limit_rpm: float = INF, *, takes_s: float = 0.3
    ) -> tuple[int, int]:
        """Send whatever may go, one after the other, at an upstream with such a bucket. Returns
        how many were borne and how many were refused.
        """
        end, tokens, filled_at = self.now + seconds, 5.0, self.now
        borne = refused = 0
        while self.now < end:
            self.until_open()
            tokens = min(5.0, tokens + (self.now - filled_at) * limit_rpm / 60.0)
            filled_at = self.now
            call = self.send()
            said = Said.WELL if tokens >= 1.0 else Said.REFUSED
            tokens -= said is Said.WELL
            borne, refused = borne + (said is Said.WELL), refused + (said is Said.REFUSED)
            self.wait(min(takes_s, 0.01) if said is Said.REFUSED else 0.001)
            self.answer(call, said)
        return borne, refused


def per_minute(limit: float, remaining: float, reset_s: float) -> RateHeaders:
    return RateHeaders(requests=Quota(limit, remaining, reset_s))
