"""The learner as a limit at a gate: calls and outcomes in, three numbers out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headway.core.gate import Closed, Limit
from headway.core.learning.learner import Answer, Call, Learner, Said
from headway.core.learning.rule import LearnRule
from headway.core.outcome import Kind, Outcome, Scope
from headway.core.ticket import Traffic

if TYPE_CHECKING:
    from headway.core.learning.beliefs import Beliefs, Changed
    from headway.core.learning.history import Capacity
    from headway.core.permit import Permit

INF = float("inf")
DAY_S = 86_400.0
KEPT_S = 30 * DAY_S  # after the last call, what was learned is forgotten
UNAUTHORISED = 401
UNTAUGHT_KEPT_S = 3600.0  # nothing was learned: a flood of names must not stay


class Split(NamedTuple):
    """The same figure of the two kinds of calls."""

    online: float
    queued: float


class Learning(Limit):
    """Counts every call that is admitted, online ones too; holds back queued work only."""

    __slots__ = ("_calls", "_heard_at", "learner", "rule")

    name = "learning"

    def __init__(self, rule: LearnRule | None = None) -> None:
        super().__init__()
        self.rule = rule or LearnRule()
        self.learner = Learner(self.rule)
        self._calls: dict[int, Call] = {}
        self._heard_at: float | None = None  # when anything was last sent or answered
        self._publish()

    def _publish(self) -> None:
        learner = self.learner
        self.opens_at, self.cap = learner.opens_at, learner.places
        self.changes_at = learner.changes_at

    # ------------------------------------------------------------------ what happens

    def taken(self, now: float, permit: Permit) -> None:
        ticket = permit.ticket
        self._heard_at = now
        self._calls[permit.fence] = self.learner.sent(
            now, online=ticket.traffic is Traffic.ONLINE, cost=ticket.cost
        )
        self._publish()

    def given(self, now: float, permit: Permit, outcome: Outcome) -> None:
        call = self._calls.pop(permit.fence, None)
        if call is None:
            return  # taken before this limit was there
        self._heard_at = now
        if outcome.kind is Kind.RETURNED and outcome.hit_at is None:
            self.learner.returned(now, call)
        else:
            sent_at = call.sent_at if outcome.hit_at is None else outcome.hit_at
            self.learner.answered(now, call, answer_of(outcome, max(0.0, now - sent_at)))
        self._publish()

    def heard(self, now: float, outcome: Outcome) -> None:
        """A call that nobody here knew of, so it counts as an online one."""
        self._heard_at = now
        call = self.learner.sent(now, online=True)
        self.learner.answered(now, call, answer_of(outcome, None))
        self._publish()

    def elapse(self, now: float) -> None:
        self.learner.look(now)
        self._publish()

    # ------------------------------------------------------------------ what people ask

    @property
    def beliefs(self) -> Beliefs:
        return self.learner.beliefs()

    def capacity(self, now: float) -> Capacity:
        return self.learner.capacity(now)

    def busy(self, now: float) -> float:
        """The share in use of what is believed; above 1 while it is left alone after a refusal.
        Where nothing is known yet there is room.
        """
        learner, believed = self.learner, self.beliefs
        if learner.hold.testing or learner.hold.until > now:
            return 2.0
        share = learner.requests.ring.minute / believed.rpm if believed.rpm else 0.0
        if believed.concurrency:
            share = max(share, learner.in_flight / believed.concurrency)
        return share

    @property
    def in_flight(self) -> Split:
        """Calls that are on their way."""
        online = sum(call.online for call in self._calls.values())
        return Split(online, len(self._calls) - online)

    def per_minute(self, now: float) -> Split:
        """Calls of the last 60 s, without those that were refused."""
        self.learner.capacity(now)  # which lets the time pass
        online = max(0.0, self.learner.online.ring.minute)
        return Split(online, max(0.0, self.learner.requests.ring.minute - online))

    def phase(self, now: float) -> str:
        """`start`, `cruise` or `probe`; `holding` while it is left alone after a refusal, and
        `testing` when one call may try whether it is open again.
        """
        hold = self.learner.hold
        if hold.test_out or (hold.testing and self.opens_at <= now):
            return "testing"
        if hold.testing or hold.until > now:
            return "holding"
        return self.learner.requests.ceiling.phase.value

    def take_changes(self) -> list[Changed]:
        """Each change of a believed value since the last time, for the audit trail."""
        return self.learner.diary.take()

    def reset(self, now: float) -> None:
        self.learner.reset(now)
        self._publish()

    def says(self, until: float | None, detail: str = "") -> Closed:
        hold = self.learner.hold
        if not detail and hold.testing:
            detail = f"waiting to try again ({hold.why.value})"
        return Closed(self.name, detail, until if until is None or until < INF else None)

    # ------------------------------------------------------------------ memory

    def idle(self, now: float) -> bool:
        """What was learned is kept for a month after the last call, and for an hour if it is no
        more than what the settings say anyway.
        """
        if self._calls:
            return False
        if self._heard_at is None:
            return not self._taught()
        silent_s = now - self._heard_at
        return silent_s > KEPT_S or (silent_s > UNTAUGHT_KEPT_S and not self._taught())

    def _taught(self) -> bool:
        """Whether it was refused or told anything, or found more than it was told."""
        state, fresh = self.learner.dump() or {}, Learner(self.rule).dump() or {}
        parts = ("requests", "tokens", "cap", "hold")
        same = all(state.get(part) == fresh.get(part) for part in parts)
        return bool(self.learner.history.points) or not same

    def adopt(self, other: Any) -> None:
        if isinstance(other, Learning):
            self._calls, self._heard_at = other._calls, other._heard_at
            if other.rule == self.rule:
                self.learner = other.learner
            else:
                self.learner.inherit(other.learner)
            self._publish()

    def dump(self) -> Any:
        """With the day of the last call, so that restarts do not keep it for ever."""
        state = self.learner.dump()
        if state is None or self._heard_at is None:
            return state
        return {**state, "heard_day": int(self._heard_at // DAY_S)}

    def load(self, state: Any) -> None:
        self.learner.load(state)
        if "heard_day" in state:
            self._heard_at = (state["heard_day"] + 1) * DAY_S
        self._publish()


def answer_of(outcome: Outcome, latency_s: float | None) -> Answer:
    """What an outcome says to the learner. A 5xx says that the upstream is unwell, not that it is
    full; a refusal of one tenant says nothing about the others, and one of a key nothing about
    rates.
    """
    status, rates = outcome.status, outcome.rates
    retry_after_s = outcome.retry_after_s
    if retry_after_s is None and rates is not None:
        retry_after_s = rates.retry_after_s
    said = Said.NOTHING
    if outcome.kind is Kind.OK:
        said = Said.WELL
    elif outcome.kind is Kind.PUSHBACK:
        if status is not None and status >= 500:
            said = Said.FAULT
        elif outcome.scope is Scope.UPSTREAM and status != UNAUTHORISED:
            said = Said.BANNED if outcome.ban else Said.REFUSED
    elif outcome.kind is Kind.FAILED:
        if outcome.upstream_fault:
            said = Said.FAULT
        elif status is not None and status < 500:
            said, latency_s = Said.WELL, None  # it answered, if not with what was hoped for
    if said is Said.WELL or said is Said.NOTHING:
        retry_after_s = None
    return Answer(said, retry_after_s, rates, latency_s, outcome.cost)
