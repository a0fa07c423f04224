"""Faults that these tests found in the core. Each says what happened when it was found."""

from __future__ import annotations

import pytest

from headway.core import (
    BreakerRule, GatePolicy, Outcome, QuietRule, Refusal, Refused, State, Ticket, Traffic
)
from tests.core.kit import INF, X, Y, ask, core_with, end, going, permit_of, start

NIGHT = QuietRule(((0.0, 6 * 3600.0),))


def test_quiet_hours_hold_in_the_batch_that_first_names_the_upstream() -> None:
    core = core_with(upstream={"x.com": GatePolicy(quiet=NIGHT)})
    ask(core, "a", 3600.0)
    assert going(core, 3600.0) == []


def test_quiet_hours_of_a_tenant_hold() -> None:
    core = core_with(upstream={"x.com": GatePolicy(tenant=GatePolicy(quiet=NIGHT))})
    core.advance(3600.0)
    ask(core, "a", 3601.0)
    assert going(core, 3602.0) == []
    start(core, "b", 8 * 3600.0)
    ask(core, "c", 25 * 3600.0)
    assert going(core, 25 * 3600.0 + 1) == []


def test_quiet_hours_of_a_key_hold() -> None:
    core = core_with(key={"feed": GatePolicy(cap=1, quiet=NIGHT)})
    core.advance(3600.0)
    ask(core, "a", 3601.0, key="feed")
    assert going(core, 3602.0) == []


def test_two_gates_may_free_the_same_place_at_the_same_moment() -> None:
    hold = GatePolicy(cap=2, min_hold_s=4.0)
    core = core_with(upstream={"x.com": GatePolicy(cap=2, min_hold_s=4.0, tenant=hold)})
    ticket = start(core, "a")
    end(core, ticket, 1.0)


def test_deadline_passes_while_a_running_ticket_is_asked_to_pause() -> None:
    core = core_with()
    ticket = start(core, "a", deadline=100.0)
    core.pause("a", 90.0)
    core.heartbeat("a", permit_of(ticket).fence, 80.0)
    core.advance(100.0)
    end(core, ticket, 110.0, Outcome.cancelled())
    core.advance(1000.0)
    assert ticket.state is State.FAILED


def test_restored_ticket_keeps_its_deadline() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1)})
    ticket = Ticket("a", upstreams=X, deadline=100.0, seq=1)
    permit = core.restore(ticket, 10.0, fence=7, upstream="x.com", expires_at=60.0)
    core.gates.pause("upstream", "x.com", 10.0)
    core.finish("a", permit.fence, Outcome.returned(), 20.0)
    core.advance(500.0)
    assert ticket.state is State.FAILED


def test_a_restart_does_not_prolong_the_hold_of_a_key() -> None:
    core = core_with(max_key_hold_s=100.0)
    ticket = Ticket("a", upstreams=X, key="feed", seq=1)
    core.restore(ticket, 90.0, fence=7, upstream="x.com", expires_at=95.0)
    assert core.heartbeat("a", 7, 94.0) == 100.0


def test_retry_of_a_ticket_that_was_loaded_from_the_store_again() -> None:
    core = core_with()
    ask(core, "early", deadline=50.0)
    old = start(core, "a", deadline=100.0)
    end(core, old, 1.0, Outcome.failed(fatal=True))
    loaded = Ticket("a", upstreams=X, deadline=100.0, seq=old.seq)
    loaded.state = State.FAILED
    core.retry(loaded, 2.0)


def test_retry_with_a_later_deadline() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1)})
    ticket = start(core, "a", deadline=100.0)
    end(core, ticket, 1.0, Outcome.failed(fatal=True))
    core.gates.pause("upstream", "x.com", 1.0)
    ticket.deadline = 1000.0
    core.retry(ticket, 2.0)
    core.advance(100.0)
    assert ticket.state is State.QUEUED


def test_ordered_tickets_are_counted_as_waiters() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1, max_waiters=2)})
    core.gates.pause("upstream", "x.com", 0.0)
    for id in range(2):
        ask(core, id, key="feed", ordered="pass")
    with pytest.raises(Refused):
        ask(core, 2, key="feed", ordered="pass")


def test_online_call_with_a_paused_key_is_refused() -> None:
    core = core_with()
    core.gates.pause("key", "feed", 0.0)
    ticket = Ticket("a", upstreams=X, key="feed", traffic=Traffic.ONLINE)
    assert isinstance(core.call(ticket, 1.0), Refusal)


def test_simultaneous_429s_count_once_even_in_the_batch_of_their_grant() -> None:
    core = core_with(upstream={"x.com": GatePolicy()})
    a, b = ask(core, "a"), ask(core, "b")
    going(core, 0.0)
    end(core, a, 0.0, Outcome.pushback())
    end(core, b, 0.0, Outcome.pushback())
    assert core.gate("upstream", "x.com").opens_at == 2.0


def test_breaker_that_opens_ends_reservations() -> None:
    core = core_with(
        lane={"L": GatePolicy(cap=1)},
        tool={"T": GatePolicy(cap=1)},
        upstream={"y.com": GatePolicy(cap=5, breaker=BreakerRule())},
        patience_s=10.0,
    )
    lane = start(core, "l0", lane="L", tenant="l")
    tool = start(core, "t0", lane="M", tools=("T",), tenant="t")
    x = ask(core, "both", 0.0, lane="L", tools=("T",), upstreams=Y, tenant="b")
    now = 0.0
    for n in range(1, 40):
        now += 1.0
        ask(core, f"l{n}", now, lane="L", tenant="l", priority=1)
        ask(core, f"t{n}", now, lane="M", tools=("T",), tenant="t", priority=1)
        going(core, now)
        if core.admission.reservations:
            break
        which = lane if n % 2 else tool
        end(core, which, now)
        for id in going(core, now):
            if id == "both":
                break
            ticket = core.tickets[id]
            if ticket.lane == "L":
                lane = ticket
            else:
                tool = ticket
    assert x in core.admission.reservations
    for _ in range(4):
        core.gates.report("y.com", Outcome.failed("500", upstream_fault=True), now)
    end(core, lane, now + 1)
    end(core, tool, now + 1)
    assert len(going(core, now + 1)) == 2
