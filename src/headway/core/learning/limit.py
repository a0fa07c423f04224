"""The learner as a limit at a gate: calls and outcomes in, three numbers out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


class Learning(Limit):
    """Counts every call that is admitted, online ones too; holds back queued work only."""

    __slots__ = ("_calls", "learner", "rule")

    name = "learning"

    def __init__(self, rule: LearnRule | None = None) -> None:
        super().__init__()
        self.rule = rule or LearnRule()
        self.learner = Learner(self.rule)
        self._calls: dict[int, Call] = {}
        self._publish()

    def _publish(self) -> None:
        learner = self.learner
        self.opens_at, self.cap = learner.opens_at, learner.places
        self.changes_at = learner.changes_at

    # ------------------------------------------------------------------ what happens

    def taken(self, now: float, permit: Permit) -> None:
        ticket = permit.ticket
        self._calls[permit.fence] = self.learner.sent(
            now, online=ticket.traffic is Traffic.ONLINE, cost=ticket.cost
        )
        self._publish()

    def given(self, now: float, permit: Permit, outcome: Outcome) -> None:
        call = self._calls.pop(permit.fence, None)
        if call is None:
            return  # taken before this limit was there
        if outcome.kind is Kind.RETURNED and outcome.hit_at is None:
            self.learner.returned(now, call)
        else:
            sent_at = call.sent_at if outcome.hit_at is None else outcome.hit_at
            self.learner.answered(now, call, answer_of(outcome, max(0.0, now - sent_at)))
        self._publish()

    def heard(self, now: float, outcome: Outcome) -> None:
        """A call that nobody here knew of, so it counts as an online one."""
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
        """What was learned is kept as long as the gate's declaration: there are only so many
        upstreams that learn. One that was never called has nothing to lose.
        """
        return not self._calls and self.learner.dump() is None

    def adopt(self, other: Any) -> None:
        if isinstance(other, Learning):
            self._calls = other._calls
            if other.rule == self.rule:
                self.learner = other.learner
            else:
                self.learner.inherit(other.learner)
            self._publish()

    def dump(self) -> Any:
        return self.learner.dump()

    def load(self, state: Any) -> None:
        self.learner.load(state)
        self._publish()


def answer_of(outcome: Outcome, latency_s: float | None) -> Answer:
    """What an outcome says to the learner. A 5xx says that the upstream is unwell, not that it is
    full; a refusal of one tenant says nothing about the others.
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
        elif outcome.scope is Scope.UPSTREAM:
            said = Said.BANNED if outcome.ban else Said.REFUSED
    elif outcome.kind is Kind.FAILED:
        if outcome.upstream_fault:
            said = Said.FAULT
        elif status is not None and status < 500:
            said, latency_s = Said.WELL, None  # it answered, if not with what was hoped for
    if said is Said.WELL or said is Said.NOTHING:
        retry_after_s = None
    return Answer(said, retry_after_s, rates, latency_s)
