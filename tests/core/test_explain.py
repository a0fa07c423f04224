"""Every waiting ticket can name its gate, why it is closed, since when, its place and its start."""

from __future__ import annotations

import pytest

from headway.core import (
    BreakerRule,
    Core,
    GatePolicy,
    Outcome,
    PaceRule,
    QuietRule,
    State,
    Traffic,
    UnknownTicket,
)
from tests.core.kit import ask, core_with, end, going, start

ONE = GatePolicy(cap=1)


def why(core: Core, id: object, now: float) -> tuple[str, str]:
    explanation = core.explain(id, now)
    return explanation.gate, explanation.reason


def test_a_ticket_that_is_not_due_says_when_it_is() -> None:
    core = core_with()
    ask(core, "a", not_before=50.0)
    explanation = core.explain("a", 10.0)
    assert (explanation.state, explanation.reason) == (State.PENDING, "not_due")
    assert (explanation.opens_at, explanation.starts_at) == (50.0, 50.0)


def test_a_running_and_a_paused_ticket_say_so() -> None:
    core = core_with()
    start(core, "a", 1.0)
    ask(core, "b", 1.0, not_before=9.0)
    core.pause("b", 2.0)
    assert core.explain("a", 5.0).reason == "running"
    assert (core.explain("b", 5.0).reason, core.explain("b", 5.0).since) == ("paused", 2.0)


def test_nobody_knows_a_ticket_that_has_ended() -> None:
    core = core_with()
    end(core, start(core, "a"), 1.0)
    with pytest.raises(UnknownTicket):
        core.explain("a", 2.0)


@pytest.mark.parametrize(
    ("kind", "name", "label"),
    [
        ("everything", "", "everything"),
        ("type", "job", "type:job"),
        ("lane", "default", "lane:default"),
        ("upstream", "x.com", "upstream:x.com"),
        ("key", "k", "key:k"),
    ],
)
def test_a_paused_gate_is_named_and_nothing_is_promised(kind: str, name: str, label: str) -> None:
    core = core_with()
    core.gates.pause(kind, name, 0.0)
    ask(core, "a", 1.0, key="k")
    assert going(core, 1.0) == []
    assert why(core, "a", 2.0) == (label, "paused")
    assert core.explain("a", 2.0).starts_at is None


def test_a_paused_tenant_is_named() -> None:
    core = core_with()
    core.gates.pause("upstream", "x.com", 0.0, tenant="t")
    ask(core, "a", tenant="t")
    assert going(core, 0.0) == []
    assert why(core, "a", 1.0) == ("tenant:t@x.com", "paused")


def test_a_pushback_is_told_with_its_cause_and_its_end() -> None:
    core = core_with()
    ticket = start(core, "a")
    ask(core, "b", 1.0)
    end(core, ticket, 5.0, Outcome.pushback(status=412, ban=True))
    explanation = core.explain("b", 6.0)
    assert (explanation.gate, explanation.reason) == ("upstream:x.com", "closed")
    assert explanation.detail == "412 ban, backing off 600 s"
    assert (explanation.since, explanation.opens_at) == (5.0, 605.0)
    assert explanation.starts_at is not None
    assert explanation.starts_at >= 605.0


@pytest.mark.parametrize(
    ("policy", "reason", "until"),
    [
        (GatePolicy(pace=PaceRule(10.0)), "pace", 10.0),
        (GatePolicy(cooldown_s=30.0), "cooldown", 31.0),
        (GatePolicy(cap=1, min_hold_s=20.0), "full", None),
    ],
)
def test_each_limit_has_its_own_reason(
    policy: GatePolicy, reason: str, until: float | None
) -> None:
    core = core_with(upstream={"x.com": policy})
    ticket = start(core, "a")
    ask(core, "b", 0.5)
    end(core, ticket, 1.0)
    assert going(core, 1.0) == []
    assert why(core, "b", 2.0) == ("upstream:x.com", reason)
    assert core.explain("b", 2.0).opens_at == until


def test_quiet_hours_and_the_breaker_have_theirs() -> None:
    core = core_with(upstream={"x.com": GatePolicy(quiet=QuietRule(((0.0, 3600.0),)))})
    ask(core, "a", 60.0)
    assert going(core, 60.0) == []
    assert (why(core, "a", 60.0)[1], core.explain("a", 60.0).opens_at) == ("quiet_hours", 3600.0)
    core = core_with(upstream={"x.com": GatePolicy(breaker=BreakerRule(open_s=40.0))})
    for _ in range(4):
        core.gates.report("x.com", Outcome.failed("500", upstream_fault=True), 5.0)
    ask(core, "a", 6.0)
    assert going(core, 6.0) == []
    assert (why(core, "a", 6.0)[1], core.explain("a", 6.0).opens_at) == ("breaker", 45.0)


def test_a_full_pool_says_how_full() -> None:
    core = core_with(lane={"default": ONE})
    start(core, "a")
    ask(core, "b", 1.0)
    explanation = core.explain("b", 2.0)
    assert (explanation.gate, explanation.reason) == ("lane:default", "full")
    assert (explanation.detail, explanation.since) == ("1 in use of 1", 1.0)


def test_leftover_work_is_told_of_the_reserve() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=2, reserve=1)})
    start(core, "a")
    ask(core, "b", traffic=Traffic.LEFTOVER)
    assert going(core, 0.0) == []
    assert why(core, "b", 0.0) == ("upstream:x.com", "reserve")


def test_the_longest_closure_is_the_one_that_counts() -> None:
    core = core_with(lane={"default": ONE})
    start(core, "a")
    core.gates.close("upstream", "x.com", 0.0, until=60.0, why="night")
    ask(core, "b")
    assert why(core, "b", 1.0) == ("upstream:x.com", "closed")


def test_a_ticket_of_an_ordered_key_names_whom_it_waits_for() -> None:
    core = core_with()
    start(core, "a", key="feed", ordered="hold")
    ask(core, "b", key="feed", ordered="hold")
    ask(core, "c", key="feed", ordered="hold")
    core.pause("b", 0.0)
    explanation = core.explain("c", 1.0)
    assert (explanation.gate, explanation.reason) == ("key:feed", "order")
    assert explanation.detail == "after b (paused)"


def test_a_busy_key_is_named() -> None:
    core = core_with()
    start(core, "a", key="feed")
    ask(core, "b", key="feed")
    assert going(core, 0.0) == []
    assert why(core, "b", 1.0) == ("key:feed", "full")


def test_places_are_counted_within_a_tenant_by_rank() -> None:
    core = core_with(upstream={"x.com": ONE})
    start(core, "running")
    for n in range(4):
        ask(core, n)
    ask(core, "urgent", priority=1)
    assert [core.explain(id, 1.0).position for id in ("urgent", 0, 1, 2, 3)] == [1, 2, 3, 4, 5]


def test_other_tenants_turns_are_counted_in_between() -> None:
    core = core_with(upstream={"x.com": ONE})
    start(core, "running", tenant="c")
    for n in range(10):
        ask(core, ("a", n), tenant="a")
    ask(core, ("b", 0), tenant="b")
    # b has one ticket and comes after a's first at the latest, however many a has
    assert core.explain(("b", 0), 1.0).position in (1, 2)
    assert core.explain(("a", 9), 1.0).position == 11


def test_a_pin_is_next() -> None:
    core = core_with(upstream={"x.com": ONE})
    start(core, "running")
    for n in range(4):
        ask(core, n, tenant=str(n))
    core.pin(3, 0.0)
    assert core.explain(3, 1.0).position == 1


def test_the_best_of_several_candidates_is_told() -> None:
    core = core_with()
    for upstream, until in (("x.com", 90.0), ("y.com", 30.0)):
        core.gates.close("upstream", upstream, 0.0, until=until, why="told to")
    ask(core, "a", upstreams=("x.com", "y.com"))
    assert going(core, 0.0) == []
    assert (why(core, "a", 1.0)[0], core.explain("a", 1.0).starts_at) == ("upstream:y.com", 30.0)


def test_without_any_history_nothing_is_promised() -> None:
    core = core_with(upstream={"x.com": ONE})
    start(core, "a")
    ask(core, "b")
    assert core.explain("b", 1.0).starts_at is None


def test_a_steady_upstream_is_foretold_to_the_second() -> None:
    """Holds of exactly two seconds, one place, one tenant."""
    core = core_with(upstream={"x.com": ONE})
    for n in range(60):
        ask(core, n)
    now = 0.0
    for n in range(30):
        assert going(core, now) == [n]
        now += 2.0
        end(core, core.ticket(n), now)
    assert going(core, now) == [30]
    for ahead in (5, 10, 29):
        promised = core.explain(30 + ahead, now).starts_at
        assert promised == pytest.approx(now + 2.0 * ahead, rel=0.05)


def test_asking_changes_nothing() -> None:
    core = core_with(upstream={"x.com": ONE})
    start(core, "a")
    for n in range(5):
        ask(core, n)
    before = len(core.changes), core.next_wakeup()
    for n in range(5):
        core.explain(n, 1.0)
    assert (len(core.changes), core.next_wakeup()) == before
