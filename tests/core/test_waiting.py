"""Waiting: how many may, at which of several upstreams, and what leftover work must leave free."""

from __future__ import annotations

import pytest

from headway.core import GatePolicy, Outcome, PaceRule, Refused, Traffic
from tests.core.kit import X, Y, ask, core_with, end, going, permit_of, start

# --- how many may wait


def test_an_upstream_with_too_many_waiters_refuses_and_nothing_changes() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1, max_waiters=2)})
    holder = start(core, "running")  # who runs does not wait
    ask(core, "a")
    ask(core, "b")
    before = list(core.changes)
    with pytest.raises(Refused, match=r"x\.com"):
        ask(core, "c")
    assert core.changes == before
    assert "c" not in core.tickets
    end(core, holder, 1.0)
    going(core, 1.0)
    ask(core, "c", 1.0)


def test_a_tenant_with_too_many_waiters_is_refused_alone() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1, tenant=GatePolicy(max_waiters=1))})
    start(core, "running", tenant="z")
    ask(core, "a1", tenant="a")
    with pytest.raises(Refused):
        ask(core, "a2", tenant="a")
    ask(core, "b1", tenant="b")


def test_waiters_of_all_lanes_and_keys_are_counted() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=0, max_waiters=3)})
    ask(core, 1, lane="a")
    ask(core, 2, lane="b", key="k")
    ask(core, 3, lane="b", key="k")
    with pytest.raises(Refused):
        ask(core, 4, lane="c")


@pytest.mark.parametrize("leave", ["cancel", "pause", "postpone"])
def test_who_leaves_is_not_counted_any_more(leave: str) -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=0, max_waiters=1)})
    for n in range(20):
        ask(core, n, float(n))
        if leave == "postpone":
            core.reschedule(n, 1e6, float(n))
        else:
            getattr(core, leave)(n, float(n))


def test_one_candidate_with_room_to_wait_is_enough() -> None:
    core = core_with(
        upstream={
            "x.com": GatePolicy(cap=0, max_waiters=1),
            "y.com": GatePolicy(cap=0, max_waiters=2),
        }
    )
    ask(core, 1)
    ask(core, 2, upstreams=("x.com", "y.com"))
    ask(core, 3, upstreams=("x.com", "y.com"))
    with pytest.raises(Refused, match=r"x\.com and y\.com"):
        ask(core, 4, upstreams=("x.com", "y.com"))


def test_a_ticket_for_later_does_not_wait_yet() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=0, max_waiters=0)})
    ask(core, "a", not_before=10.0)
    with pytest.raises(Refused):
        ask(core, "b")


# --- several candidate upstreams

BOTH = ("x.com", "y.com")


@pytest.mark.parametrize(("closed", "taken"), [("x.com", "y.com"), ("y.com", "x.com")])
def test_the_first_open_candidate_is_taken(closed: str, taken: str) -> None:
    core = core_with()
    core.gates.close("upstream", closed, 0.0, until=100.0, why="told to")
    ticket = start(core, "a", upstreams=BOTH)
    upstream = permit_of(ticket).upstream
    assert upstream is not None
    assert upstream.name == taken


def test_whichever_candidate_opens_first_is_taken_and_the_ticket_runs_once() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1), "y.com": GatePolicy(cap=1)})
    x, y = start(core, "x", upstreams=X), start(core, "y", upstreams=Y)
    ticket = ask(core, "a", upstreams=BOTH)
    assert going(core, 1.0) == []
    end(core, x, 2.0)
    end(core, y, 2.0)
    assert going(core, 2.0) == ["a"]
    assert core.gates.waiting("x.com", "") == core.gates.waiting("y.com", "") == (0, 0)
    end(core, ticket, 3.0)
    assert going(core, 4.0) == []


def test_a_cancelled_ticket_leaves_all_of_its_lines() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=0), "y.com": GatePolicy(cap=0)})
    ask(core, "a", upstreams=BOTH)
    core.cancel("a", 1.0)
    assert core.gates.waiting("x.com", "") == core.gates.waiting("y.com", "") == (0, 0)
    for name in BOTH:
        core.gates.declare("upstream", name, GatePolicy(cap=1), 2.0)
    assert going(core, 2.0) == []


def test_after_a_pushback_another_candidate_is_tried() -> None:
    core = core_with()
    ticket = start(core, "a", upstreams=BOTH)
    first = permit_of(ticket).upstream
    end(core, ticket, 1.0, Outcome.pushback(retry_after_s=100.0))
    assert going(core, 1.0) == ["a"]
    second = permit_of(ticket).upstream
    assert first is not None
    assert second is not None
    assert {first.name, second.name} == set(BOTH)


# --- leftover work


@pytest.mark.parametrize("pace", [None, PaceRule(0.0)])
def test_leftover_work_may_not_use_the_reserve(pace: PaceRule | None) -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=3, reserve=1, pace=pace)})
    for n in range(4):
        ask(core, n, traffic=Traffic.LEFTOVER)
    assert going(core) == [0, 1]
    ask(core, "normal")
    assert going(core) == ["normal"]


def test_leftover_work_goes_after_everybody_else() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1)})
    holder = start(core, "running")
    ask(core, "leftover", traffic=Traffic.LEFTOVER, priority=1, tenant="idle")
    for n in range(3):
        ask(core, n, priority=9)
    order = []
    for now in (1.0, 2.0, 3.0, 4.0):
        end(core, holder, now)
        (permit,) = core.admit(now)
        holder = permit.ticket
        order.append(holder.id)
    assert order == [0, 1, 2, "leftover"]


def test_a_reserve_may_be_kept_for_each_tenant_too() -> None:
    tenant = GatePolicy(cap=2, reserve=1)
    core = core_with(upstream={"x.com": GatePolicy(tenant=tenant)})
    start(core, 1, traffic=Traffic.LEFTOVER)
    ask(core, 2, traffic=Traffic.LEFTOVER)
    ask(core, 3)
    assert going(core) == [3]
