"""What follows for a job from the way its attempt ended. Pure: a ticket and an outcome in, a
verdict out. Whether an upstream closes is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headway.core.lifecycle import Event
from headway.core.outcome import Kind, Outcome
from headway.core.ticket import Stop, Ticket, Tries

INF = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How patient we are with one type of job."""

    timeout_s: float = 300.0
    retries: int = 3
    delay_s: float = 30.0
    growth: float = 1.0
    max_delay_s: float = 300.0
    max_lost: int = 3
    max_pushbacks: int = 100
    max_pushed_back_s: float = 86_400.0

    def __post_init__(self) -> None:
        if self.retries < 0 or self.max_lost < 0 or self.max_pushbacks < 0:
            raise ValueError("retries, max_lost and max_pushbacks must be 0 or more")
        if not self.delay_s >= 0 or not self.timeout_s > 0 or not self.growth >= 1:
            raise ValueError("delay_s must be 0 or more, timeout_s above 0, growth at least 1")

    def delay_after(self, burnt: int) -> float:
        """The wait after the n-th burnt attempt."""
        return float(min(self.delay_s * self.growth ** min(burnt - 1, 60), self.max_delay_s))


DEFAULT_POLICY = RetryPolicy()

DEFAULT_POLICIES: Mapping[str, RetryPolicy] = {
    "download": RetryPolicy(timeout_s=1800, retries=3, delay_s=60, growth=2),
    "scan": RetryPolicy(timeout_s=300, retries=2, delay_s=30),
    "associate": RetryPolicy(timeout_s=120, retries=2, delay_s=10),
    "check": RetryPolicy(timeout_s=60, retries=1, delay_s=5),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The event for the job, and when it may try again."""

    event: Event
    not_before: float = 0.0


DONE = Verdict(Event.OK)


def judge(ticket: Ticket, outcome: Outcome, policy: RetryPolicy, now: float) -> Verdict:
    """Decide the fate of a running ticket, and remember on it what was burnt."""
    if outcome.kind is Kind.OK:
        return DONE  # the work is done, whatever it was asked meanwhile
    if ticket.asked is Stop.CANCEL:
        return Verdict(Event.CANCEL)
    if not ticket.retries:
        return _judge_once(outcome)
    verdict = _judge_attempt(ticket, outcome, policy, now)
    if verdict.event in _GOES_ON:
        if max(now, verdict.not_before) >= ticket.deadline:
            return Verdict(Event.DEADLINE)
        if ticket.asked is Stop.PAUSE:
            return Verdict(Event.PAUSE, verdict.not_before)
    return verdict


_GOES_ON = frozenset({Event.RETRY, Event.PUSHBACK, Event.LOST, Event.RETURN})


def _judge_once(outcome: Outcome) -> Verdict:
    """Slots and online calls end with their first permit."""
    if outcome.kind is Kind.LOST:
        return Verdict(Event.LOST_TOO_OFTEN)
    if outcome.kind in (Kind.CANCELLED, Kind.RETURNED):
        return Verdict(Event.CANCEL)
    return Verdict(Event.FATAL)


def _judge_attempt(ticket: Ticket, outcome: Outcome, policy: RetryPolicy, now: float) -> Verdict:
    kind = outcome.kind
    if kind is Kind.CANCELLED:
        return Verdict(Event.RETURN if ticket.asked is Stop.PAUSE else Event.CANCEL)
    if kind is Kind.RETURNED:
        return Verdict(Event.RETURN, now + (outcome.retry_after_s or 0.0))
    tries = ticket.tries
    if tries is None:
        ticket.tries = tries = Tries()
    if kind is Kind.FAILED and outcome.fatal:
        tries.burnt += 1
        return Verdict(Event.FATAL)
    if kind is Kind.LOST:
        tries.lost += 1
        return Verdict(Event.LOST_TOO_OFTEN if tries.lost >= policy.max_lost else Event.LOST)
    if kind is Kind.PUSHBACK:
        tries.pushed_back += 1
        tries.pushed_since = min(tries.pushed_since, now)
        too_often = tries.pushed_back >= policy.max_pushbacks
        too_long = now - tries.pushed_since >= policy.max_pushed_back_s
        return Verdict(Event.PUSHED_BACK_TOO_LONG if too_often or too_long else Event.PUSHBACK)
    tries.burnt += 1
    tries.pushed_back, tries.pushed_since = 0, INF  # the upstream did answer
    if tries.burnt > (ticket.max_attempts - 1 if ticket.max_attempts else policy.retries):
        return Verdict(Event.EXHAUSTED)
    delay_s = outcome.retry_after_s
    if delay_s is None:
        delay_s = policy.delay_after(tries.burnt)
    return Verdict(Event.RETRY, now + delay_s)
