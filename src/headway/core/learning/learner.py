"""The learner: what an upstream bears in each unit, when queued work may go, and how many at once.

Everything that happens comes in through `sent` and `answered`; `look` brings the three numbers up
to date that a gate needs: `opens_at`, `places` and `changes_at`. Time passes only when somebody
asks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from headway.core.learning.ceiling import Phase, Shape
from headway.core.learning.concurrency import Blame
from headway.core.learning.counting import WINDOW_S
from headway.core.learning.history import Capacity
from headway.core.learning.holding import NEVER, QUIET_ONLINE, Why
from headway.core.learning.knowledge import Knowledge
from headway.core.learning.rate import Rate
from headway.core.learning.refusal import Cause
from headway.core.learning.rule import LearnRule
from headway.core.outcome import BAN_TOLD_S

if TYPE_CHECKING:
    from headway.core.rate_headers import RateHeaders

INF = float("inf")
SHORTEST_LOOK_S = 0.05


class Said(Enum):
    """What an answer says to the learner."""

    WELL = auto()
    REFUSED = auto()
    BANNED = auto()
    FAULT = auto()
    NOTHING = auto()


@dataclass(slots=True)
class Call:
    """One call on its way."""

    sent_at: float
    online: bool
    others: int  # in flight when it was sent
    cost: float
    tests: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    said: Said
    retry_after_s: float | None = None
    rates: RateHeaders | None = None
    latency_s: float | None = None  # None: it says nothing about how fast the upstream is
    cost: float | None = None  # None: as was expected


class Learner(Knowledge):
    def __init__(self, rule: LearnRule | None = None) -> None:
        super().__init__(rule)
        self.opens_at = NEVER
        self.places = INF
        self.changes_at = INF
        self._at: float | None = None

    # ------------------------------------------------------------------ calls

    def sent(self, now: float, *, online: bool, cost: float = 1.0) -> Call:
        self._pass_time(now)
        call = Call(now, online, self.in_flight, cost)
        if online:
            self.online.sent(now)
        elif self.hold.testing:
            call.tests = self.hold.test_out = True
        for unit, amount in self._units(cost):
            unit.sent(now, amount)
        if self.tokens is not None:
            self.tokens.size(cost)
        self.in_flight += 1
        self.look(now)
        return call

    def answered(self, now: float, call: Call, answer: Answer) -> None:
        self._pass_time(now)
        self.in_flight -= 1
        if call.tests:
            self.hold.test_out = False
        if answer.cost is not None:
            if self.tokens is not None:
                self.tokens.corrected(call.sent_at, call.cost - answer.cost)
            call.cost = answer.cost
        cause = self._hear_headers(call, answer.rates)
        if answer.said is Said.WELL:
            cause = self._well(now, call, answer.latency_s) or cause
        elif answer.said is Said.FAULT:
            self._uncount(call)
            self.hold.fault(now, answer.retry_after_s, tested=call.tests)
        elif answer.said is not Said.NOTHING:
            self._uncount(call)
            cause = self._refused(now, call, answer) or cause
        self.diary.note(now, self.beliefs(), cause or "more was borne than ever before")
        self.look(now)

    def returned(self, now: float, call: Call) -> None:
        """It was never sent after all."""
        self._uncount(call)
        self.answered(now, call, Answer(Said.NOTHING))

    def _uncount(self, call: Call) -> None:
        for unit, amount in self._units(call.cost):
            unit.forgotten(call.sent_at, amount)
        if call.online:
            self.online.ring.forget(call.sent_at)

    def _hear_headers(self, call: Call, rates: RateHeaders | None) -> str:
        if rates is None:
            return ""
        if rates.requests is not None:
            self.requests.hear(rates.requests, call.sent_at)
        if rates.tokens is not None:
            self._tokens(call.cost).hear(rates.tokens, call.sent_at)
        return "rate-limit headers"

    def _well(self, now: float, call: Call, latency_s: float | None) -> str:
        hold = self.hold
        hold.well()
        if hold.testing:
            if call.online and call.sent_at >= hold.cut_at:
                if hold.first_online_well() and not hold.was_ban(now):
                    self.requests.opened_again(call.sent_at, hold.cut_at)
                hold.online_well()
            if hold.passed(now, self._drained_at(), tested=call.tests):
                self._reopen(now)
        if hold.last_refusal() < call.sent_at - 0.2:  # those that were refused held no place
            self._accepted.add(now, call.others)
        for unit, _ in self._units(call.cost):
            unit.went_well(now)
        self.history.borne(self.requests.ring.minute)
        if latency_s is None:
            return ""
        # An upstream that refuses does not slow down instead.
        try_fewer = not self.cap.firm and self.cap.pinned is None
        softer, fine = self.guard.hear(now, latency_s, call.others, try_fewer=try_fewer)
        self.cap.sane = self.cap.sane or fine
        if softer is not None:
            self.cap.soften(now, softer)
        return "slower than with fewer in flight" if softer is not None else ""

    # ------------------------------------------------------------------ refusals

    def _refused(self, now: float, call: Call, answer: Answer) -> str:
        hold, told_s = self.hold, answer.retry_after_s
        hold.refused(now)
        if hold.same_event(call.sent_at, tested=call.tests):
            hold.online_refused()
            hold.at_least(now + (told_s or 0.0))
            return ""
        self.history.refused(now, self.requests.ring.minute, 1000 * self.guard.usual_s)
        if answer.said is Said.BANNED or (told_s is not None and told_s > BAN_TOLD_S):
            hold.blocks += 1
            hold.close(now, told_s or WINDOW_S * 2.0 ** min(3, hold.blocks), Why.BAN)
            return "banned"
        return self._blames_cap(now, call, told_s) or self._blames_rate(now, call, answer)

    def _blames_cap(self, now: float, call: Call, told_s: float | None) -> str:
        cap, hold, ceiling = self.cap, self.hold, self.requests.ceiling
        if call.tests:
            return ""
        if cap.firm and call.online and call.others >= cap.known and hold.refusals(now) < 4:
            return "an online call met the cap"
        blame = cap.blame(
            call.others,
            self._accepted.value,
            rate_at_peak=self.requests.at_peak(),
            moving=ceiling.phase is not Phase.CRUISE,
        )
        if blame is not Blame.NO:
            cap.refused_at(now, call.others, sure=blame is Blame.SURE)
        if blame is not Blame.SURE:
            return ""
        hold.cut_at = now
        hold.at_least(now + max(min(told_s or 0.0, 2.0), hold.floor_s(now)))
        if ceiling.confirmed == 0 and ceiling.top is not None:
            self.requests.forget_ceiling()  # the cap explains it
        return "refused with more in flight than was accepted lately"

    def _blames_rate(self, now: float, call: Call, answer: Answer) -> str:
        hold, told_s = self.hold, answer.retry_after_s
        unit, quota = self._unit_of(answer.rates)
        hold.cut_at = now
        calls_per_s = unit.rate / unit.piece
        seconds = min(5.0, max(1.0, 2.0 / max(calls_per_s, 0.1))) if told_s is None else told_s
        seconds = max(seconds, hold.floor_s(now))
        if unit.told.fresh(now) or unit.pinned is not None:
            unit.told.refused(quota)
            unit.bucket.empty()
            hold.at_least(now + seconds)
            return ""
        count, last_at = unit.ring.minute, unit.last.at
        beside = call.online or self.online.quick_rate(now) > QUIET_ONLINE
        cause = unit.refused(now, half_open=call.tests, beside_online=beside, blocks=hold.blocks)
        if cause is Cause.BLOCKED:
            if hold.blocks:
                self._accepted.clear()
            hold.block(now, count, last_at)
            hold.close(now, hold.block_s(told_s, seconds, now), Why.BLOCKED)
            return cause
        if told_s is None and unit.ceiling.shape is Shape.WINDOW:
            seconds = max(seconds, _to_minute_s(now))
        hold.close_softly(now, seconds)
        return cause

    def _unit_of(self, rates: RateHeaders | None) -> tuple[Rate, Any]:
        """Tokens only when the refusal itself says that they are what is used up."""
        requests = None if rates is None else rates.requests
        tokens = None if rates is None else rates.tokens
        if self.tokens is not None and tokens is not None:
            share = tokens.remaining / tokens.limit
            if requests is None or share < requests.remaining / requests.limit:
                return self.tokens, tokens
        return self.requests, requests

    def _reopen(self, now: float) -> None:
        hold, requests = self.hold, self.requests
        ceiling = requests.ceiling
        banned = hold.was_ban(now)
        if banned:
            ceiling.banned()
        if ceiling.top is not None and (banned or hold.why is not Why.RATE):
            if banned:
                ceiling.top = 0.85 * max(ceiling.top, requests.top_before_blocks)
                ceiling.come_back_from(0.6)
            elif hold.why is Why.BLOCKED:
                usual = (0.9, 0.8, 0.5)[min(2, max(0, hold.blocks - 1))]
                ceiling.come_back_from(min(0.97, max(usual, requests.ring.mean / ceiling.top)))
            else:
                ceiling.come_back_from(0.7)
            requests.last.low = ceiling.low
        hold.reopen()
        requests.reopen()

    # ------------------------------------------------------------------ time

    def _pass_time(self, now: float) -> None:
        before = now if self._at is None else self._at
        if now <= before and self._at is not None:
            return
        self._at = now
        self.online.ring.advance(now)
        if self._bound and self.requests.ceiling.phase is Phase.PROBE:
            self.requests.ceiling.settle()  # one experiment at a time
        silent = self.hold.testing or self.hold.until > now
        for unit, _ in self._units(1.0):
            unit.pass_time(now, before, self.online, silent=silent)
        self.guard.pass_time(now)

    def _drained_at(self) -> float:
        hold, ring = self.hold, self.requests.ring
        return NEVER if ring.minute <= hold.drain_to else hold.drained_at(ring)

    def look(self, now: float) -> None:
        """Bring `opens_at`, `places` and `changes_at` up to date."""
        self._pass_time(now)
        hold = self.hold
        free_at = max(unit.opens_at(now, self.online) for unit, _ in self._units(1.0))
        if hold.test_out:
            self.opens_at = INF
        elif hold.testing:
            self.opens_at = hold.test_at(self._drained_at(), self.online.quick_rate(now))
        else:
            self.opens_at = max(hold.until, free_at)
        self.changes_at = self.opens_at if now < self.opens_at < INF else INF
        self._look_at_cap(now)

    def _look_at_cap(self, now: float) -> None:
        cap, guard = self.cap, self.guard
        self.places = self._places(now)
        self._bound = self.opens_at <= now and self.in_flight >= self.places
        if not self._bound:
            return
        if guard.trial <= self.places:
            self.changes_at = guard.trial_ends_at()
            return
        if now >= cap.probes_at(now):
            cap.probe(now, guard.usual_s)
            self.places = self._places(now)
        self.changes_at = max(cap.probes_at(now), now + SHORTEST_LOOK_S)

    def _places(self, now: float) -> float:
        """How many may be in flight, online calls included, for queued work to go."""
        allowed, trial = self.cap.allowed, self.guard.trial
        if allowed == INF:
            return trial if trial == INF else math.floor(trial)
        kept = 0 if self.cap.soft else self.online.slots(now, allowed, self.guard.usual_s)
        return max(1, math.floor(min(allowed - kept, trial)))

    # ------------------------------------------------------------------ people

    def capacity(self, now: float) -> Capacity:
        """The plain estimate, in requests per minute."""
        self._pass_time(now)
        told = self.requests.told
        told_rpm = None
        if told.fresh(now) and told.quota is not None:
            told_rpm = told.quota.per_s * WINDOW_S
        return self.history.capacity(self.requests.ring.minute, told_rpm)

    def reset(self, now: float, cause: str = "reset") -> None:
        """Forget what was learned. Calls that are on their way still count."""
        at, rings = self._at, (self.requests.ring, self.tokens.ring if self.tokens else None)
        self._begin()
        self.requests.ring = rings[0]
        if self.tokens is not None and rings[1] is not None:
            self.tokens.ring = rings[1]
        self._at = at
        self.diary.note(now, self.beliefs(), cause)
        self.look(now)

    def inherit(self, other: Learner) -> None:
        """New settings for the same upstream: they win, what was learned stays below them."""
        state = other.dump()
        if state is not None:
            self.load(state)
        self.online, self.in_flight, self._at = other.online, other.in_flight, other._at
        self.requests.ring = other.requests.ring
        if self.tokens is not None and other.tokens is not None:
            self.tokens.ring = other.tokens.ring
        self.guard, self.diary = other.guard, other.diary
        self.hold = other.hold  # whoever was told to wait waits, and the test that is out is known
        if self._at is not None:
            self.diary.note(self._at, self.beliefs(), "settings")
            self.look(self._at)


def _to_minute_s(now: float) -> float:
    """Windows often end with the minute: worth waiting for when that is near."""
    left_s = WINDOW_S - now % WINDOW_S + 0.3
    return left_s if left_s <= 6.0 else 0.0
