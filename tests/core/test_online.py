"""Online calls: they never wait, are counted at the same gates, and respect a closed door."""

from __future__ import annotations

import pytest

from headway.core import (
    BreakerRule,
    Core,
    Event,
    GatePolicy,
    Outcome,
    PaceRule,
    Permit,
    QuietRule,
    Refusal,
    State,
    Ticket,
    Traffic,
)
from tests.core.kit import INF, X, ask, core_with, end, going, start

BOTH = ("x.com", "y.com")


def call(
    core: Core, id: str, now: float, upstreams: tuple[str, ...] = X, tenant: str = ""
) -> Permit | Refusal:
    ticket = Ticket(id, upstreams=upstreams, tenant=tenant, traffic=Traffic.ONLINE)
    return core.call(ticket, now)


def through(answer: Permit | Refusal) -> Permit:
    assert isinstance(answer, Permit)
    return answer


def refused(answer: Permit | Refusal) -> Refusal:
    assert isinstance(answer, Refusal)
    return answer


def test_a_call_goes_at_once_and_is_counted() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=2)})
    permit = through(call(core, "c", 0.0))
    (change,) = core.changes
    assert (change.before, change.event, change.after) == (None, Event.GRANT, State.RUNNING)
    ask(core, "a")
    ask(core, "b")
    assert going(core, 1.0) == ["a"]
    core.finish("c", permit.fence, Outcome.ok(), 2.0)
    assert going(core, 2.0) == ["b"]


def test_calls_may_overdraw_a_pool_and_queued_work_waits_until_it_is_below() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1)})
    permits = [through(call(core, id, 0.0)) for id in "abc"]
    ask(core, "job")
    for permit in permits[:2]:
        core.finish(permit.ticket.id, permit.fence, Outcome.ok(), 1.0)
        assert going(core, 1.0) == []
    core.finish("c", permits[2].fence, Outcome.ok(), 2.0)
    assert going(core, 2.0) == ["job"]


def test_calls_ignore_a_pace_but_are_charged_for_it() -> None:
    core = core_with(upstream={"x.com": GatePolicy(pace=PaceRule(10.0))})
    for id in "abc":
        through(call(core, id, 0.0))
    ask(core, "job")
    assert going(core, 29.9) == []
    assert going(core, 30.0) == ["job"]


def test_calls_ignore_quiet_hours_which_are_for_queued_work() -> None:
    core = core_with(upstream={"x.com": GatePolicy(quiet=QuietRule(((0.0, 3600.0),)))})
    core.gate("upstream", "x.com")
    core.advance(10.0)
    through(call(core, "c", 20.0))


def test_into_a_closed_upstream_a_call_is_refused_with_the_time() -> None:
    core = core_with()
    core.gates.close("upstream", "x.com", 0.0, until=50.0, why="told to")
    refusal = refused(call(core, "c", 1.0))
    assert (refusal.gate, refusal.until) == ("upstream:x.com", 50.0)
    assert "told to" in refusal.why
    assert (core.tickets, core.changes) == ({}, [])
    through(call(core, "c", 50.0))


@pytest.mark.parametrize(
    ("kind", "name"),
    [("everything", ""), ("type", "job"), ("lane", "default"), ("upstream", "x.com")],
)
def test_into_a_paused_gate_a_call_is_refused_for_ever(kind: str, name: str) -> None:
    core = core_with()
    core.gates.pause(kind, name, 0.0)
    assert refused(call(core, "c", 1.0)).until == INF
    core.gates.resume(kind, name, 2.0)
    through(call(core, "c", 2.0))


def test_a_tenant_that_was_pushed_back_is_refused_alone() -> None:
    core = core_with()
    core.gates.close("upstream", "x.com", 0.0, until=9.0, why="429", tenant="a")
    assert refused(call(core, "c", 1.0, tenant="a")).gate == "tenant:a@x.com"
    through(call(core, "c", 1.0, tenant="b"))


def test_an_open_breaker_refuses_and_half_open_takes_one_call_as_its_probe() -> None:
    core = core_with(upstream={"x.com": GatePolicy(breaker=BreakerRule())})
    unwell = Outcome.failed("500", upstream_fault=True)
    for _ in range(4):
        core.gates.report("x.com", unwell, 0.0)
    assert refused(call(core, "c", 1.0)).until == 60.0
    probe = through(call(core, "c", 60.0))
    refused(call(core, "d", 61.0))
    core.finish("c", probe.fence, Outcome.ok(), 62.0)
    through(call(core, "d", 62.0))


def test_a_pushback_to_a_call_closes_the_upstream_and_ends_the_call() -> None:
    core = core_with()
    permit = through(call(core, "c", 0.0))
    change = core.finish("c", permit.fence, Outcome.pushback(retry_after_s=30.0), 1.0)
    assert change is not None
    assert change.after is State.FAILED
    assert refused(call(core, "d", 2.0)).until == 31.0
    assert not core.tickets


def test_a_call_fails_over_to_the_next_open_candidate() -> None:
    core = core_with()
    core.gates.close("upstream", "x.com", 0.0, until=50.0, why="told to")
    upstream = through(call(core, "c", 1.0, BOTH)).upstream
    assert upstream is not None
    assert upstream.name == "y.com"


def test_the_first_candidate_is_preferred() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1)})
    for id in "ab":
        upstream = through(call(core, id, 0.0, BOTH)).upstream
        assert upstream is not None
        assert upstream.name == "x.com"


def test_when_all_candidates_are_closed_the_soonest_time_is_told() -> None:
    core = core_with()
    core.gates.close("upstream", "x.com", 0.0, until=50.0, why="told to")
    core.gates.close("upstream", "y.com", 0.0, until=20.0, why="told to")
    refusal = refused(call(core, "c", 1.0, BOTH))
    assert (refusal.gate, refusal.until) == ("upstream:y.com", 20.0)


def test_calls_count_against_their_tenants_share() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1)})
    holder = start(core, "other", tenant="z")
    for id in ("c1", "c2"):
        through(call(core, id, 0.0, tenant="a"))
    for fence in (2, 3):
        core.finish(f"c{fence - 1}", fence, Outcome.ok(), 50.0)
    end(core, holder, 50.0)
    holder = start(core, "again", 50.0, tenant="z")  # newcomers start at z's 50 slot-seconds now
    ask(core, "a1", 50.0, tenant="a")  # has used 100
    ask(core, "b1", 50.0, tenant="b")
    end(core, holder, 51.0)
    assert going(core, 51.0) == ["b1"]


def test_a_call_whose_caller_vanishes_does_not_hold_its_place_for_ever() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1)}, lease_s=10.0)
    through(call(core, "c", 0.0))
    ask(core, "job")
    assert going(core, 9.0) == []
    assert going(core, 10.0) == ["job"]
    assert "c" not in core.tickets
