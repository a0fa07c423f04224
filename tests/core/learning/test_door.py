"""The door of a gate that learns: a refusal there is the learner's business first."""

from __future__ import annotations

from headway.core import Core, GatePolicy, Outcome, Permit, Ticket, Traffic
from headway.core.learning import LearnRule
from tests.core.kit import X, ask, core_with, end, going, start

LEARNS = GatePolicy(learn=LearnRule())
PUSH = Outcome.pushback(status=429, retry_after_s=5.0, upstream_fault=False)


def call(core: Core, id: str, now: float) -> bool:
    """Whether an online call may go."""
    answer = core.call(Ticket(id, upstreams=X, traffic=Traffic.ONLINE), now)
    return isinstance(answer, Permit)


def test_one_refusal_holds_queued_work_back_but_no_online_call() -> None:
    core = core_with(upstream={"x.com": LEARNS})
    end(core, start(core, "a", 0.0), 1.0, PUSH)
    ask(core, "b", 1.0)
    assert going(core, 1.1) == []
    assert call(core, "online", 1.1)


def test_without_a_learner_the_same_refusal_closes_for_both() -> None:
    core = core_with()
    end(core, start(core, "a", 0.0), 1.0, PUSH)
    assert not call(core, "online", 1.1)


def test_three_in_a_row_close_the_door() -> None:
    core = core_with(upstream={"x.com": LEARNS})
    for number in range(3):
        answer = core.call(Ticket(number, upstreams=X, traffic=Traffic.ONLINE), float(number))
        assert isinstance(answer, Permit)
        core.finish(number, answer.fence, PUSH, number + 0.5)
    assert not call(core, "online", 3.0)
    assert call(core, "later", 7.6)


def test_an_answer_in_between_begins_the_row_anew() -> None:
    core = core_with(upstream={"x.com": LEARNS})
    for number in range(6):
        answer = core.call(Ticket(number, upstreams=X, traffic=Traffic.ONLINE), float(number))
        assert isinstance(answer, Permit)
        core.finish(number, answer.fence, Outcome.ok() if number % 2 else PUSH, number + 0.5)
    assert call(core, "online", 6.0)


def test_a_ban_closes_at_once() -> None:
    core = core_with(upstream={"x.com": LEARNS})
    banned = Outcome.pushback(status=403, ban=True)
    end(core, start(core, "a", 0.0), 1.0, banned)
    assert not call(core, "online", 1.1)


def test_so_does_being_told_to_stay_away_for_long() -> None:
    core = core_with(upstream={"x.com": LEARNS})
    end(core, start(core, "a", 0.0), 1.0, Outcome.pushback(retry_after_s=300.0))
    assert not call(core, "online", 200.0)
