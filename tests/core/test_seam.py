"""The seam for a learner: outcomes in, pool and pace settings out."""

from __future__ import annotations

from random import Random

from headway.core import Core, GatePolicy, Kind, Outcome, Permit, Policies, Ticket
from headway.core.gate import Limit


class HalveOnPushback(Limit):
    """The simplest learner: one more place for each success, half of them after a pushback."""

    name = "learner"

    def __init__(self, rng: Random) -> None:
        super().__init__()
        self.cap = 2.0

    def given(self, now: float, permit: Permit, outcome: Outcome) -> None:
        if outcome.kind is Kind.PUSHBACK:
            self.cap = max(1, self.cap // 2)
            self.opens_at = now + 10.0
        elif outcome.kind is Kind.OK:
            self.cap += 1


def core() -> Core:
    policies = Policies()
    policies.declare("upstream", "api", GatePolicy(cap=8, more=(HalveOnPushback,)))
    it = Core(policies, rng=Random(1))
    for id in range(20):
        it.submit(Ticket(id, upstreams=("api",)), 0.0)
    return it


def finish(it: Core, permit: Permit, outcome: Outcome, now: float) -> None:
    assert it.finish(permit.ticket.id, permit.fence, outcome, now) is not None


def test_it_starts_with_what_the_learner_says() -> None:
    assert len(core().admit(0.0)) == 2


def test_successes_widen_the_pool() -> None:
    it = core()
    first, second = it.admit(0.0)
    finish(it, first, Outcome.ok(), 1.0)
    assert len(it.admit(1.0)) == 2  # one place came free, one is new
    finish(it, second, Outcome.ok(), 2.0)
    assert len(it.admit(2.0)) == 2


def test_a_pushback_narrows_and_closes_it() -> None:
    it = core()
    first, _ = it.admit(0.0)
    finish(it, first, Outcome.pushback(retry_after_s=1.0), 1.0)
    assert it.admit(2.0) == []  # Retry-After is over, the learner's own hold is not
    assert it.next_wakeup() == 11.0
    assert it.explain(5, 2.0).reason == "learner"
    assert it.admit(11.0) == []  # one place now, and the other holder still has it


def test_the_operators_cap_still_holds_above_it() -> None:
    it = core()
    now = 0.0
    for _ in range(15):
        now += 1.0
        for permit in it.admit(now):
            finish(it, permit, Outcome.ok(), now)
        assert len(it.gate("upstream", "api").leases) <= 8
