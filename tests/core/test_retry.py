"""What follows for a job from the way its attempt ended."""

from __future__ import annotations

import pytest

from headway.core import (
    Change,
    Core,
    Event,
    GatePolicy,
    IllegalTransition,
    Outcome,
    RetryPolicy,
    State,
    Stop,
    Ticket,
)
from tests.core.kit import ask, core_with, end, going, start

HOUR = 3600.0
FAILED = Outcome.failed("no luck")
FATAL = Outcome.failed("never", fatal=True)


def attempt(core: Core, ticket: Ticket, now: float, outcome: Outcome) -> Change:
    """One attempt that starts and ends at this moment."""
    assert ticket.id in going(core, now), f"{ticket} did not start at {now}"
    return end(core, ticket, now, outcome)


# --- defaults by type


@pytest.mark.parametrize(
    ("type", "timeout_s", "waits"),
    [
        ("download", 1800, [60, 120, 240]),
        ("scan", 300, [30, 30]),
        ("associate", 120, [10, 10]),
        ("check", 60, [5]),
    ],
)
def test_defaults_by_type(type: str, timeout_s: float, waits: list[float]) -> None:
    core = core_with()
    assert core.retry_policies[type].timeout_s == timeout_s
    ticket = ask(core, "t", type=type)
    now = 0.0
    for wait_s in waits:
        change = attempt(core, ticket, now, FAILED)
        assert (change.event, change.after) == (Event.RETRY, State.PENDING)
        assert going(core, now + wait_s - 0.001) == []
        now += wait_s
    change = attempt(core, ticket, now, FAILED)
    assert (change.event, change.after) == (Event.EXHAUSTED, State.FAILED)


def test_back_off_is_capped_at_300_s() -> None:
    policy = RetryPolicy(retries=10, delay_s=60, growth=2)
    assert [policy.delay_after(n) for n in (1, 2, 3, 4, 5)] == [60, 120, 240, 300, 300]
    assert policy.delay_after(10_000) == 300


def test_a_type_that_nobody_declared_has_the_default_policy() -> None:
    core = core_with()
    ticket = ask(core, "t", type="something new")
    for n in range(3):
        assert attempt(core, ticket, n * 30.0, FAILED).event is Event.RETRY
    assert attempt(core, ticket, 90.0, FAILED).event is Event.EXHAUSTED


@pytest.mark.parametrize(
    "fields",
    [
        {"retries": -1},
        {"max_lost": -1},
        {"max_pushbacks": -1},
        {"delay_s": -1.0},
        {"timeout_s": 0.0},
        {"growth": 0.5},
        {"growth": float("nan")},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(fields: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        RetryPolicy(**fields)  # type: ignore[arg-type]


def test_the_error_of_the_attempt_stands_in_the_change() -> None:
    core = core_with()
    change = end(core, start(core, "t"), 1.0, FAILED)
    assert (change.detail, change.fence) == ("no luck", 1)


# --- ends


def test_fatal_ends_at_once() -> None:
    core = core_with()
    change = attempt(core, ask(core, "t"), 0.0, FATAL)
    assert (change.event, change.after) == (Event.FATAL, State.FAILED)
    assert not core.tickets


def test_three_lost_leases_end_a_job() -> None:
    core = core_with(lease_s=10.0)
    ticket = ask(core, "t")
    for n in range(3):
        assert going(core, n * 10.0) == ["t"]
    core.advance(30.0)
    ends = [(c.event, c.at) for c in core.changes if c.before is State.RUNNING]
    assert ends == [(Event.LOST, 10.0), (Event.LOST, 20.0), (Event.LOST_TOO_OFTEN, 30.0)]
    assert ticket.state is State.FAILED


def test_a_lost_lease_burns_no_attempt() -> None:
    core = core_with(lease_s=10.0)
    ticket = ask(core, "t", type="check")
    going(core, 0.0)
    going(core, 10.0)
    assert end(core, ticket, 11.0, FAILED).event is Event.RETRY


def test_a_hundred_pushbacks_end_a_job() -> None:
    core = core_with()
    ticket = ask(core, "t", upstreams=())
    for n in range(99):
        now = n * 1.0
        assert attempt(core, ticket, now, Outcome.pushback(retry_after_s=0)).after is State.QUEUED
    change = attempt(core, ticket, 99.0, Outcome.pushback(retry_after_s=0))
    assert (change.event, change.after) == (Event.PUSHED_BACK_TOO_LONG, State.FAILED)


@pytest.mark.parametrize(
    ("second_at", "event"),
    [(24 * HOUR - 1, Event.PUSHBACK), (24 * HOUR, Event.PUSHED_BACK_TOO_LONG)],
)
def test_a_day_of_pushbacks_ends_a_job(second_at: float, event: Event) -> None:
    core = core_with()
    ticket = ask(core, "t")
    attempt(core, ticket, 0.0, Outcome.pushback(retry_after_s=HOUR))
    assert attempt(core, ticket, second_at, Outcome.pushback(retry_after_s=HOUR)).event is event


def test_an_answer_in_between_starts_the_count_of_pushbacks_again() -> None:
    core = core_with(retry={"job": RetryPolicy(retries=9, delay_s=0, max_pushbacks=2)})
    ticket = ask(core, "t", upstreams=())
    push = Outcome.pushback(retry_after_s=0)
    said = [attempt(core, ticket, float(n), o).event for n, o in enumerate((push, FAILED, push))]
    assert said == [Event.PUSHBACK, Event.RETRY, Event.PUSHBACK]
    assert attempt(core, ticket, 3.0, push).event is Event.PUSHED_BACK_TOO_LONG


def test_pushback_burns_no_attempt() -> None:
    core = core_with()
    ticket = ask(core, "t", type="check")
    for n in range(10):
        attempt(core, ticket, float(n), Outcome.pushback(retry_after_s=1.0))
    assert attempt(core, ticket, 10.0, FAILED).event is Event.RETRY


def test_pushback_of_a_job_without_upstream_makes_only_the_job_wait() -> None:
    core = core_with()
    ticket = start(core, "t", upstreams=())
    end(core, ticket, 0.0, Outcome.pushback(retry_after_s=30.0))
    assert (ticket.state, ticket.not_before) == (State.PENDING, 30.0)
    start(core, "other", 1.0, upstreams=())


def test_returned_burns_nothing_and_may_ask_for_a_rest() -> None:
    core = core_with()
    ticket = ask(core, "t", type="check")
    for n in range(50):
        change = attempt(core, ticket, n * 7.0, Outcome.returned(after_s=7.0))
        assert (change.event, change.after) == (Event.RETURN, State.PENDING)
    assert ticket.tries is None
    assert attempt(core, ticket, 350.0, Outcome.returned()).after is State.QUEUED


# --- deadlines


@pytest.mark.parametrize("state", ["pending", "queued", "paused"])
def test_who_waits_fails_at_its_deadline(state: str) -> None:
    core = core_with()
    core.gates.pause("upstream", "x.com", 0.0)
    ticket = ask(core, "t", deadline=100.0, not_before=500.0 if state == "pending" else 0.0)
    if state == "paused":
        core.pause("t", 1.0)
    core.advance(99.0)
    assert ticket.state.value == state
    assert core.next_wakeup() == 100.0
    core.advance(100.0)
    assert (ticket.state, core.changes[-1].event) == (State.FAILED, Event.DEADLINE)


def test_the_deadline_of_running_work_counts_only_when_it_would_go_on() -> None:
    core = core_with()
    done, not_done = start(core, "done", deadline=10.0), start(core, "late", deadline=10.0)
    core.advance(20.0)
    assert end(core, done, 20.0).after is State.COMPLETED
    assert end(core, not_done, 20.0, FAILED).event is Event.DEADLINE


def test_a_retry_that_would_come_after_the_deadline_is_not_waited_for() -> None:
    core = core_with()
    ticket = start(core, "t", type="scan", deadline=30.0)
    assert end(core, ticket, 0.0, FAILED).event is Event.DEADLINE


def test_a_lost_lease_after_the_deadline_ends_the_job() -> None:
    core = core_with(lease_s=50.0)
    ticket = start(core, "t", deadline=40.0)
    core.advance(50.0)
    assert (ticket.state, core.changes[-1].event) == (State.FAILED, Event.DEADLINE)


def test_a_deadline_that_is_over_is_refused() -> None:
    core = core_with()
    with pytest.raises(ValueError, match="deadline"):
        ask(core, "t", 10.0, deadline=10.0)


def test_an_operator_cannot_retry_past_the_deadline() -> None:
    core = core_with()
    ticket = ask(core, "t", deadline=10.0)
    core.cancel("t", 1.0)
    before = list(core.changes)
    with pytest.raises(ValueError, match="deadline"):
        core.retry(ticket, 10.0)
    assert (core.changes, core.tickets) == (before, {})


# --- slots and other tickets that end with their first permit


@pytest.mark.parametrize(
    ("outcome", "event"),
    [
        (Outcome.ok(), Event.OK),
        (FAILED, Event.FATAL),
        (Outcome.pushback(), Event.FATAL),
        (Outcome.lost(), Event.LOST_TOO_OFTEN),
        (Outcome.cancelled(), Event.CANCEL),
        (Outcome.returned(), Event.CANCEL),
    ],
)
def test_a_slot_never_tries_again(outcome: Outcome, event: Event) -> None:
    core = core_with()
    assert end(core, start(core, "t", retries=False), 1.0, outcome).event is event
    assert not core.tickets


# --- two-phase cancel and pause

REPORTS = {
    "ok": Outcome.ok(),
    "failed": FAILED,
    "fatal": FATAL,
    "pushback": Outcome.pushback(retry_after_s=40.0),
    "cancelled": Outcome.cancelled(),
    "lost": Outcome.lost(),
    "returned": Outcome.returned(after_s=20.0),
}


@pytest.mark.parametrize("report", REPORTS)
def test_cancel_loses_against_success_and_wins_against_all_else(report: str) -> None:
    core = core_with()
    ticket = start(core, "t")
    assert core.cancel("t", 1.0) is State.RUNNING
    assert [(order.permit, order.why) for order in core.stops] == [(ticket.permit, Stop.CANCEL)]
    change = end(core, ticket, 2.0, REPORTS[report])
    assert change.after is (State.COMPLETED if report == "ok" else State.CANCELLED)
    assert not core.tickets


@pytest.mark.parametrize(
    ("report", "then", "not_before"),
    [
        ("ok", State.COMPLETED, None),
        ("fatal", State.FAILED, None),
        ("cancelled", State.PAUSED, 0.0),
        ("failed", State.PAUSED, 32.0),
        ("returned", State.PAUSED, 22.0),
        ("lost", State.PAUSED, 0.0),
        ("pushback", State.PAUSED, 2.0),
    ],
)
def test_pause_keeps_what_would_have_gone_on(
    report: str, then: State, not_before: float | None
) -> None:
    core = core_with()
    ticket = start(core, "t")
    assert core.pause("t", 1.0) is State.RUNNING
    assert [order.why for order in core.stops] == [Stop.PAUSE]
    assert end(core, ticket, 2.0, REPORTS[report]).after is then
    if not_before is not None:
        assert ticket.not_before == not_before
        resumed = State.PENDING if not_before > 3.0 else State.QUEUED
        assert core.resume("t", 3.0) is resumed


def test_a_pause_burns_no_attempt() -> None:
    core = core_with()
    ticket = ask(core, "t", type="check")
    for n in range(5):
        going(core, 10.0 * n)
        core.pause("t", 10.0 * n + 1)
        end(core, ticket, 10.0 * n + 2, Outcome.cancelled())
        core.resume("t", 10.0 * n + 3)
    assert attempt(core, ticket, 60.0, FAILED).event is Event.RETRY


def test_the_permit_is_kept_until_the_work_has_really_stopped() -> None:
    core = core_with(lane={"default": GatePolicy(cap=1)})
    ticket = start(core, "t")
    ask(core, "next")
    core.cancel("t", 1.0)
    assert going(core, 2.0) == []
    end(core, ticket, 3.0, Outcome.cancelled())
    assert going(core, 3.0) == ["next"]


def test_asking_twice_is_one_order() -> None:
    core = core_with()
    start(core, "t")
    for now in (1.0, 2.0):
        core.cancel("t", now)
    assert len(core.stops) == 1


def test_cancel_overrides_pause_but_not_the_reverse() -> None:
    core = core_with()
    ticket = start(core, "t")
    core.pause("t", 1.0)
    core.cancel("t", 2.0)
    core.pause("t", 3.0)
    assert [order.why for order in core.stops] == [Stop.PAUSE, Stop.CANCEL]
    assert end(core, ticket, 4.0, Outcome.cancelled()).after is State.CANCELLED


def test_a_pause_that_was_taken_back_lets_stopped_work_come_back() -> None:
    core = core_with()
    ticket = start(core, "t")
    core.pause("t", 1.0)
    assert core.resume("t", 2.0) is State.RUNNING
    assert end(core, ticket, 3.0, Outcome.returned()).after is State.QUEUED


def test_a_cancel_is_never_taken_back() -> None:
    core = core_with()
    start(core, "t")
    core.cancel("t", 1.0)
    with pytest.raises(IllegalTransition):
        core.resume("t", 2.0)


def test_work_that_stops_unasked_is_cancelled() -> None:
    core = core_with()
    assert end(core, start(core, "t"), 1.0, Outcome.cancelled()).after is State.CANCELLED


def test_an_order_to_stop_does_not_outlive_its_attempt() -> None:
    core = core_with()
    ticket = start(core, "t")
    core.pause("t", 1.0)
    end(core, ticket, 2.0, Outcome.returned())
    core.resume("t", 3.0)
    going(core, 3.0)
    assert ticket.asked is None
    assert end(core, ticket, 4.0, Outcome.returned()).after is State.QUEUED
