"""More of what mutants have found nobody looking at: memory, weights, beliefs and rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway.core import BreakerRule, GatePolicy, Outcome, Ticket
from headway.core.learning import LearnRule
from headway.core.learning.beliefs import MOST_KEPT, Beliefs, Diary
from headway.core.learning.limit import answer_of
from headway.core.rate_headers import RateHeaders
from tests.core.kit import ask, core_with, end, going, permit_of, start


def test_a_pushback_is_remembered_over_a_restart() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1)})
    ticket = start(core, 1)
    core.admission.touched.clear()
    end(core, ticket, 1.0, Outcome.pushback(retry_after_s=60.0))

    assert core.gate("upstream", "x.com") in core.admission.touched


def test_a_ticket_brings_the_weight_of_its_tenant() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=2)})
    heavy = start(core, 1, tenant="a", weight=4.0)
    light = start(core, 2, tenant="b")
    assert permit_of(heavy).accounts[-1].weight == 4.0
    assert permit_of(light).accounts[-1].weight == 1.0
    for id, tenant, weight in ((3, "b", 1.0), (4, "a", 4.0)):
        ask(core, id, 1.0, tenant=tenant, weight=weight)
    end(core, heavy, 10.0)
    assert going(core, 10.0) == [4]


def test_a_ticket_is_of_middle_priority() -> None:
    assert Ticket("any").priority == 5


@pytest.mark.parametrize("least", [0, -1])
def test_one_call_at_a_time_is_the_least_there_can_be(least: int) -> None:
    with pytest.raises(ValueError, match="min_concurrency"):
        LearnRule(min_concurrency=least)
    assert LearnRule(min_concurrency=1).min_concurrency == 1
    assert LearnRule(min_concurrency=2, max_concurrency=2).max_concurrency == 2


def test_only_so_many_changes_of_a_belief_wait_for_somebody_to_write_them_down() -> None:
    diary = Diary()
    for minute in range(300):
        diary.note(minute * 60.0, Beliefs(rpm=100.0 + 50.0 * (minute % 2)), "told")
    changes = diary.take()

    assert len(changes) == MOST_KEPT
    assert changes[-1].at == 299 * 60.0
    assert not diary.take()


def test_a_clock_that_goes_back_makes_no_room_for_changes() -> None:
    diary = Diary()
    for number in range(50):
        diary.note(10_000.0 - number, Beliefs(rpm=100.0 * (number + 1)), "told")

    assert len(diary.take()) == 20


def test_what_headers_say_about_waiting_counts_if_nobody_says_more() -> None:
    rates = RateHeaders(retry_after_s=7.0)
    told = replace(Outcome.pushback(retry_after_s=3.0), rates=rates)
    untold = replace(Outcome.pushback(), rates=rates)

    assert answer_of(told, None).retry_after_s == 3.0
    assert answer_of(untold, None).retry_after_s == 7.0
    assert answer_of(Outcome.pushback(), None).retry_after_s is None


def test_what_was_reported_of_an_upstream_is_remembered_over_a_restart() -> None:
    core = core_with(upstream={"x.com": GatePolicy(breaker=BreakerRule())})
    start(core, 1)
    core.admission.touched.clear()
    core.gates.report("x.com", Outcome.pushback(status=503), 1.0)

    assert core.gate("upstream", "x.com") in core.admission.touched


def test_a_retry_by_hand_does_not_wait_for_what_the_ticket_waited_for_before() -> None:
    core = core_with()
    ticket = start(core, 1)
    end(core, ticket, 1.0, Outcome.failed("no", fatal=True))
    ticket.not_before = 1_000.0
    core.retry(ticket, 2.0)

    assert ticket.not_before == 2.0
    assert going(core, 2.0) == [1]


@pytest.mark.parametrize("priority", [10**9, -(10**9)])
def test_a_priority_has_bounds_also_when_it_is_changed(priority: int) -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=0)})
    ask(core, 1)
    with pytest.raises(ValueError, match="priority"):
        core.prioritise(1, priority, 1.0)
    core.prioritise(1, 999_999_999, 1.0)
