"""Leases, fences and time: who may still speak, when the core must wake, and what it forgets."""

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
    State,
    Ticket,
    Traffic,
)
from tests.core.kit import INF, X, Y, ask, core_with, end, going, permit_of, start

ONE = GatePolicy(cap=1)


# --- leases and fences


def test_a_lease_that_is_not_renewed_ends_and_puts_the_job_back() -> None:
    core = core_with(upstream={"x.com": ONE}, lease_s=10.0)
    ticket = start(core, "a")
    core.advance(9.0)
    assert ticket.state is State.RUNNING
    core.advance(10.0)
    assert (ticket.state, ticket.permit) == (State.QUEUED, None)
    assert (core.changes[-1].event, core.changes[-1].fence) == (Event.LOST, 1)
    assert going(core, 10.0) == ["a"]


def test_a_heartbeat_prolongs_a_lease_from_now_on() -> None:
    core = core_with(lease_s=10.0)
    ticket = start(core, "a")
    for now in range(5, 100, 5):
        assert core.heartbeat("a", permit_of(ticket).fence, float(now)) == now + 10.0
    core.advance(104.0)
    assert ticket.state is State.RUNNING
    core.advance(105.0)
    assert ticket.state is State.QUEUED


def test_every_grant_has_a_new_fence() -> None:
    core = core_with()
    ticket = ask(core, "a")
    fences = []
    for now in range(5):
        going(core, float(now))
        fences.append(permit_of(ticket).fence)
        end(core, ticket, float(now), Outcome.returned())
    assert fences == sorted(set(fences))


@pytest.mark.parametrize("outcome", [Outcome.ok(), Outcome.pushback(), Outcome.cancelled()])
def test_a_stale_fence_changes_nothing(outcome: Outcome) -> None:
    core = core_with(upstream={"x.com": ONE}, lease_s=10.0)
    ticket = start(core, "a")
    zombie = permit_of(ticket).fence
    assert going(core, 10.0) == ["a"]
    now_valid = permit_of(ticket)
    changes, expires_at = list(core.changes), now_valid.expires_at
    assert core.finish("a", zombie, outcome, 11.0) is None
    assert core.heartbeat("a", zombie, 11.0) is None
    assert core.changes == changes
    assert (ticket.permit, now_valid.expires_at) == (now_valid, expires_at)
    assert core.gate("upstream", "x.com").opens_at <= 11.0
    assert list(core.leases.permits) == [now_valid.fence]


def test_a_fence_counts_only_together_with_its_job() -> None:
    core = core_with()
    a, b = start(core, "a"), start(core, "b")
    assert core.finish("a", permit_of(b).fence, Outcome.ok(), 1.0) is None
    assert core.heartbeat("b", permit_of(a).fence, 1.0) is None
    assert {a.state, b.state} == {State.RUNNING}


def test_a_report_in_the_very_moment_the_lease_ends_is_too_late() -> None:
    core = core_with(lease_s=10.0)
    ticket = start(core, "a")
    assert core.finish("a", permit_of(ticket).fence, Outcome.ok(), 10.0) is None
    assert ticket.state is State.QUEUED


def test_a_key_is_never_held_longer_than_the_maximum() -> None:
    core = core_with(lease_s=90.0, max_key_hold_s=200.0)
    ticket = start(core, "a", key="k")
    plain = start(core, "b")
    ends = {}
    for now in (60.0, 120.0, 180.0):
        ends[now] = core.heartbeat("a", permit_of(ticket).fence, now)
        core.heartbeat("b", permit_of(plain).fence, now)
    assert ends == {60.0: 150.0, 120.0: 200.0, 180.0: 200.0}
    core.advance(200.0)
    assert (ticket.state, plain.state) == (State.QUEUED, State.RUNNING)


def test_the_default_maximum_is_two_hours() -> None:
    assert core_with().max_key_hold_s == 7200.0


def test_time_never_runs_backwards() -> None:
    core = core_with(lease_s=10.0)
    ticket = start(core, "a", 100.0)
    core.advance(50.0)
    assert core.now == 100.0
    assert core.heartbeat("a", permit_of(ticket).fence, 20.0) == 110.0


# --- when to wake


def test_an_idle_core_sleeps_for_ever() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1, cooldown_s=5.0, pace=PaceRule(9.0))})
    assert core.next_wakeup() == INF
    end(core, start(core, "a"), 1.0)
    assert core.next_wakeup() == INF


def test_it_wakes_for_what_is_due() -> None:
    core = core_with()
    ask(core, "b", not_before=70.0)
    ask(core, "a", not_before=50.0)
    assert core.next_wakeup() == 50.0
    core.cancel("a", 1.0)
    assert core.next_wakeup() == 70.0


def test_it_wakes_for_a_retry() -> None:
    core = core_with()
    end(core, start(core, "a", type="scan"), 5.0, Outcome.failed("no luck"))
    assert core.next_wakeup() == 35.0


def test_it_wakes_for_a_deadline_unless_the_ticket_has_ended() -> None:
    core = core_with()
    core.gates.pause("upstream", "x.com", 0.0)
    ask(core, "a", deadline=40.0)
    ask(core, "b", deadline=60.0)
    assert core.next_wakeup() == 30.0  # when it begins to rise
    core.advance(30.0)
    assert core.next_wakeup() == 40.0
    core.cancel("a", 31.0)
    assert core.next_wakeup() == 45.0
    core.advance(45.0)
    assert core.next_wakeup() == 60.0


def test_it_wakes_for_the_end_of_a_lease() -> None:
    core = core_with(lease_s=10.0)
    ticket = start(core, "a", 3.0)
    assert core.next_wakeup() == 13.0
    core.heartbeat("a", permit_of(ticket).fence, 8.0)
    core.advance(13.0)  # looked at again, and found alive
    assert ticket.state is State.RUNNING
    assert core.next_wakeup() == 18.0
    end(core, ticket, 14.0)
    assert core.next_wakeup() == INF


def test_it_wakes_for_a_closed_gate_only_if_somebody_stands_there() -> None:
    core = core_with()
    core.gates.close("upstream", "x.com", 0.0, until=50.0, why="told to")
    assert core.next_wakeup() == INF
    ask(core, "a", 1.0)
    going(core, 1.0)
    assert core.next_wakeup() == 50.0


@pytest.mark.parametrize(
    ("policy", "at"),
    [
        (GatePolicy(pace=PaceRule(7.0)), 7.0),
        (GatePolicy(cap=1, cooldown_s=4.0), 5.0),
        (GatePolicy(cap=1, min_hold_s=6.0), 6.0),
        (GatePolicy(tenant=GatePolicy(pace=PaceRule(7.0))), 7.0),
        (GatePolicy(tenant=GatePolicy(cap=1, cooldown_s=4.0)), 5.0),
        (GatePolicy(tenant=GatePolicy(cap=1, min_hold_s=6.0)), 6.0),
    ],
)
def test_it_wakes_exactly_when_a_limit_lets_the_next_one_in(policy: GatePolicy, at: float) -> None:
    core = core_with(upstream={"x.com": policy})
    end(core, start(core, "a"), 1.0)
    ask(core, "b", 1.0)
    assert going(core, 1.0) == []
    assert core.next_wakeup() == at
    assert going(core, at) == ["b"]


def test_a_paused_gate_needs_no_clock() -> None:
    core = core_with()
    core.gates.pause("upstream", "x.com", 0.0)
    ask(core, "a")
    going(core, 1.0)
    assert core.next_wakeup() == INF


def test_another_time_for_a_ticket() -> None:
    core = core_with()
    ask(core, "a", not_before=100.0)
    assert core.reschedule("a", 300.0, 1.0) is State.PENDING
    assert core.next_wakeup() == 300.0
    assert core.reschedule("a", 50.0, 2.0) is State.PENDING
    assert core.next_wakeup() == 50.0
    assert core.reschedule("a", 1.0, 3.0) is State.QUEUED
    assert going(core, 3.0) == ["a"]


# --- after a restart


def restored(core: Core, id: str, now: float, **fields: object) -> Permit:
    ticket = Ticket(id, upstreams=X, **fields)  # type: ignore[arg-type]
    return core.restore(
        ticket, now, fence=ticket.seq * 10, upstream="x.com", granted_at=now, expires_at=now + 30
    )


def test_a_restored_lease_holds_its_gates_and_is_no_change() -> None:
    core = core_with(upstream={"x.com": ONE})
    restored(core, "a", 1000.0, seq=4)
    assert core.changes == []
    ask(core, "b", 1000.0)
    assert going(core, 1000.0) == []
    assert core.finish("a", 40, Outcome.ok(), 1001.0) is not None
    assert going(core, 1001.0) == ["b"]


def test_a_restored_lease_ends_when_it_would_have_ended() -> None:
    core = core_with(lease_s=90.0)
    permit = restored(core, "a", 1000.0, seq=4)
    assert core.next_wakeup() == 1030.0
    core.advance(1030.0)
    assert permit.ticket.state is State.QUEUED


def test_leases_above_a_cap_that_was_lowered_meanwhile_are_all_restored() -> None:
    core = core_with(upstream={"x.com": ONE})
    for seq in (1, 2, 3):
        restored(core, f"t{seq}", 1000.0, seq=seq)
    ask(core, "next", 1000.0)
    for seq in (1, 2):
        core.finish(f"t{seq}", seq * 10, Outcome.ok(), 1001.0)
        assert going(core, 1001.0) == []
    core.finish("t3", 30, Outcome.ok(), 1002.0)
    assert going(core, 1002.0) == ["next"]


@pytest.mark.parametrize("seqs", [(5, 2), (2, 5)])
def test_fences_and_seqs_go_on_above_all_that_were_restored(seqs: tuple[int, int]) -> None:
    core = core_with()
    for seq in seqs:
        restored(core, f"t{seq}", 1000.0, seq=seq)
    ticket = start(core, "new", 1000.0)
    assert permit_of(ticket).fence == 51
    assert ticket.seq == 6


def test_a_lease_is_restored_at_the_upstream_it_was_given_for() -> None:
    core = core_with()
    ticket = Ticket("a", upstreams=X + Y, seq=1)
    permit = core.restore(ticket, 0.0, fence=1, upstream="y.com", granted_at=0.0, expires_at=9.0)
    assert permit.upstream is core.gate("upstream", "y.com")


def test_a_restored_key_is_locked() -> None:
    core = core_with()
    restored(core, "a", 1000.0, seq=1, key="k")
    ask(core, "b", 1000.0, key="k")
    assert going(core, 1000.0) == []


def test_waiting_tickets_come_back_in_their_old_order() -> None:
    core = core_with(upstream={"x.com": ONE})
    holder = start(core, "holder", 1000.0)
    for seq in (30, 10, 20):
        core.submit(Ticket(seq, upstreams=X, seq=seq), 1000.0)
    went = []
    for now in (1001.0, 1002.0, 1003.0):
        end(core, holder, now)
        (permit,) = core.admit(now)
        holder = permit.ticket
        went.append(holder.id)
    assert went == [10, 20, 30]


# --- forgetting


def kept(core: Core) -> list[str]:
    """All that a core still remembers of names that passed through it."""
    atlas = core.admission.atlas
    return [
        *(gate.label for gate in atlas.all_gates()),
        *map(str, atlas.routes),
        *map(str, atlas.tracks),
        *map(str, core.tickets),
        *map(str, core.leases.permits),
        *map(str, core.admission.alarms),
        *map(str, core.admission.settling),
        *map(str, core.admission.reservations),
    ]


def test_nothing_is_left_after_ten_thousand_tenants_and_keys_passed_through() -> None:
    tenant = GatePolicy(cap=1, cooldown_s=2.0)
    policy = GatePolicy(breaker=BreakerRule(), pace=PaceRule(0.01), tenant=tenant)
    core = core_with(upstream={"*": policy})
    now, biggest = 0.0, 0
    for n in range(10_000):
        now += 0.01
        name = f"{n % 100}.com"
        ask(core, n, now, tenant=f"ip {n}", key=f"key {n}", upstreams=(name,), lane=f"lane {n % 7}")
        for permit in core.admit(now):
            end(core, permit.ticket, now)
        if n % 500 == 0:
            core.changes.clear()
            core.sweep(now)
            biggest = max(biggest, len(kept(core)))
    now += 1000.0
    for permit in core.admit(now):
        end(core, permit.ticket, now)
    core.advance(now + 1000.0)
    core.sweep(now + 1000.0)
    assert kept(core) == []
    assert core.next_wakeup() == INF
    assert biggest < 2500


def test_a_flood_of_tenants_is_bounded_also_without_a_sweep() -> None:
    core = core_with()
    for n in range(10_000):
        end(core, start(core, n, float(n), tenant=f"ip {n}", key=f"key {n}"), float(n))
        core.changes.clear()
    assert len(list(core.admission.atlas.all_gates())) < 6000


def test_what_still_matters_is_not_forgotten() -> None:
    core = core_with(upstream={"x.com": GatePolicy(tenant=ONE)}, lease_s=1e6)
    holder = start(core, "holder", tenant="a", key="k")
    ask(core, "waiter", tenant="b", key="k")
    core.gates.pause("upstream", "y.com", 0.0)
    core.gates.close("lane", "slow", 0.0, until=500.0, why="told to")
    core.gates.close("upstream", "z.com", 0.0, until=500.0, why="429", tenant="c")
    core.sweep(100.0)
    ask(core, "paused", 100.0, upstreams=Y)
    ask(core, "closed", 100.0, lane="slow")
    ask(core, "pushed", 100.0, tenant="c", upstreams=("z.com",))
    ask(core, "full", 100.0, tenant="a")
    assert going(core, 101.0) == []
    end(core, holder, 102.0)
    assert sorted(map(str, going(core, 102.0))) == ["full", "waiter"]


def test_a_pace_and_a_streak_survive_a_sweep() -> None:
    core = core_with(upstream={"x.com": GatePolicy(pace=PaceRule(50.0))})
    end(core, start(core, "a"), 0.0)
    end(core, start(core, "b", upstreams=Y, retries=False), 0.0, Outcome.pushback())
    core.sweep(10.0)
    ask(core, "a", 10.0)
    assert going(core, 49.0) == []
    end(core, start(core, "b", 49.0, upstreams=Y, retries=False), 49.0, Outcome.pushback())
    assert core.gate("upstream", "y.com").opens_at == 53.0


def test_half_a_burst_survives_a_sweep() -> None:
    core = core_with(upstream={"x.com": GatePolicy(pace=PaceRule(50.0, burst=3))})
    for n in range(2):
        end(core, start(core, n), 0.0)
    core.sweep(1.0)
    ask(core, 2, 1.0)
    ask(core, 3, 1.0)
    assert going(core, 1.0) == [2]  # the last of the burst
    assert going(core, 50.0) == [3]


def test_half_a_breaker_survives_a_sweep() -> None:
    core = core_with(upstream={"x.com": GatePolicy(breaker=BreakerRule())})
    unwell = Outcome.failed("500", upstream_fault=True)
    for n in range(4):
        end(core, start(core, n, retries=False), 0.0, unwell)
        core.sweep(0.5)
    assert core.gate("upstream", "x.com").opens_at == 60.5


def test_a_key_that_rests_is_kept_until_it_has_rested() -> None:
    core = core_with(key={"*": GatePolicy(cap=1, cooldown_s=50.0)})
    end(core, start(core, "a", key="k"), 0.0)
    core.sweep(49.0)
    ask(core, "b", 49.0, key="k")
    assert going(core, 49.9) == []
    end(core, start(core, "c", 50.0, key="other"), 50.0)
    assert core.ticket("b").state is State.RUNNING
    end(core, core.ticket("b"), 51.0)
    core.sweep(200.0)
    assert kept(core) == []


def test_what_a_busy_tenant_used_survives_a_sweep() -> None:
    core = core_with(upstream={"x.com": ONE}, lease_s=1e6)
    holder = start(core, "a1", tenant="greedy")
    ask(core, "a2", tenant="greedy")
    end(core, holder, 100.0)
    ask(core, "b", 100.0, tenant="other", traffic=Traffic.NORMAL)
    core.sweep(100.0)
    assert going(core, 100.0) == ["b"]
