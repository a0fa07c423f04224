"""The lessons of docs/lessons.md that the core alone must have learned: races, locks and slots."""

from __future__ import annotations

from collections import Counter

import pytest

from headway.core import (
    BreakerRule,
    GatePolicy,
    IllegalTransition,
    Outcome,
    Refused,
    Scope,
    State,
    Ticket,
    Traffic,
    UnknownTicket,
)
from tests.core.kit import INF, X, ask, core_with, end, going, permit_of, start

ONE = GatePolicy(cap=1)
ENDINGS = [
    Outcome.ok(),
    Outcome.failed("no luck"),
    Outcome.failed("never", fatal=True),
    Outcome.failed("500", upstream_fault=True),
    Outcome.pushback(retry_after_s=1.0),
    Outcome.pushback(retry_after_s=1.0, scope=Scope.TENANT),
    Outcome.cancelled(),
    Outcome.lost(),
    Outcome.returned(),
]


# --- queue and races


def test_lesson_01_lock_then_lane_and_lane_then_lock_cannot_deadlock() -> None:
    """Two paths took the subscription's lock and the lane in opposite orders and waited for each
    other for ever. Here a ticket takes all that it needs in one step, or nothing.
    """
    core = core_with(lane={"cookie": ONE})
    lock_first = start(core, "lock holder", key="subscription", lane="plain")
    lane_first = start(core, "lane holder", lane="cookie")
    both = [ask(core, f"both {n}", key="subscription", lane="cookie") for n in range(3)]
    end(core, lock_first, 1.0)
    assert going(core, 1.0) == []
    assert not core.gates.get("key", "subscription").leases, "it waits, so it holds nothing"
    end(core, lane_first, 2.0)
    went = []
    for now in (2.0, 3.0, 4.0):
        went += going(core, now)
        end(core, both[len(went) - 1], now)
    assert went == ["both 0", "both 1", "both 2"]


def test_lesson_02_one_job_is_never_given_to_two_callers() -> None:
    """A deduplicated request handed the same job to two callers; both ran it and the counter of
    the lane went wrong for good. Here one id is open once, runs once, and counts are derived.
    """
    core = core_with(lane={"cookie": ONE})
    first = start(core, "job", lane="cookie")
    with pytest.raises(ValueError, match="unique"):
        ask(core, "job", lane="cookie")
    assert going(core, 1.0) == []
    fence = permit_of(first).fence
    assert core.finish("job", fence, Outcome.ok(), 2.0) is not None
    assert core.finish("job", fence, Outcome.ok(), 2.0) is None, "the second caller's report"
    assert len(core.gate("lane", "cookie").leases) == 0
    ask(core, "a", 3.0, lane="cookie")
    ask(core, "b", 3.0, lane="cookie")
    assert going(core, 3.0) == ["a"], "the lane has one place again, not two and not none"


def test_lesson_03_priority_is_real() -> None:
    """Waiters polled, and whoever polled first after a release went. Here the best goes."""
    core = core_with(lane={"cookie": ONE})
    holder = start(core, "holder", lane="cookie")
    for priority in (5, 9, 1, 7, 3):
        ask(core, priority, lane="cookie", priority=priority)
    went = []
    for now in range(1, 6):
        end(core, holder, float(now))
        (permit,) = core.admit(float(now))
        holder = permit.ticket
        went.append(holder.id)
    assert went == [1, 3, 5, 7, 9]


def test_lesson_04_a_cancelled_job_keeps_its_slot_until_it_has_stopped_and_stays_cancelled() -> (
    None
):
    """Cancelling freed the slot while the process went on, and its late success turned `canceled`
    into `done`; a cancelled waiter ran all the same.
    """
    core = core_with(lane={"cookie": ONE})
    running = start(core, "running", lane="cookie")
    waiting = ask(core, "waiting", lane="cookie")
    ask(core, "next", lane="cookie")
    fence = permit_of(running).fence

    core.cancel("running", 1.0)
    assert (running.state, going(core, 1.0)) == (State.RUNNING, [])
    core.cancel("waiting", 2.0)
    assert waiting.state is State.CANCELLED

    core.finish("running", fence, Outcome.cancelled(), 3.0)
    assert going(core, 3.0) == ["next"]
    assert core.finish("running", fence, Outcome.ok(), 4.0) is None
    assert running.state is State.CANCELLED


@pytest.mark.parametrize("outcome", ENDINGS)
def test_lesson_05_every_way_to_end_gives_the_slot_back(outcome: Outcome) -> None:
    """Some failure paths forgot to release, and the lane shrank until it stood still."""
    core = core_with(
        lane={"cookie": ONE},
        tool={"yt-dlp": ONE},
        upstream={"x.com": GatePolicy(cap=1, tenant=ONE)},
    )
    for n in range(20):
        now = n * 100.0
        ticket = start(core, n, now, lane="cookie", tools=("yt-dlp",), key="k")
        gates = permit_of(ticket).gates
        end(core, ticket, now + 1, outcome)
        assert not any(gate.leases for gate in gates)
        if n in core.tickets:
            core.cancel(n, now + 2)
    assert core.tickets == {}


def test_lesson_05_the_time_of_a_change_is_the_time_it_happened() -> None:
    """`created_at` was evaluated once, when the module was imported."""
    core = core_with()
    ask(core, "a", 10.0)
    ask(core, "b", 20.0)
    assert [change.at for change in core.changes] == [10.0, 20.0]


@pytest.mark.parametrize("path", ["queued", "retried", "resumed", "pinned", "online", "restored"])
def test_lesson_06_every_path_is_counted_at_the_global_gate(path: str) -> None:
    """One path bypassed the global semaphore."""
    core = core_with(everything=ONE)
    ticket = Ticket("a", upstreams=X, seq=1)
    if path == "online":
        core.call(ticket, 0.0)
    elif path == "restored":
        core.restore(ticket, 0.0, fence=1, upstream="x.com", granted_at=0.0, expires_at=1000.0)
    else:
        core.submit(ticket, 0.0)
        if path == "retried":
            core.cancel("a", 0.0)
            core.retry(ticket, 0.0)
        elif path == "resumed":
            core.pause("a", 0.0)
            core.resume("a", 0.0)
        elif path == "pinned":
            core.pin("a", 0.0)
        assert going(core) == ["a"]
    assert len(core.gate("everything", "").leases) == 1
    ask(core, "b", 1.0)
    assert going(core, 1.0) == []
    end(core, ticket, 2.0)
    assert going(core, 2.0) == ["b"]


def test_lesson_06_a_timeout_keeps_the_slot_until_the_work_is_stopped_or_its_lease_is_over() -> (
    None
):
    """A timeout gave up waiting but left its process running. Here somebody is told to stop it, and
    its permit stays taken until it has stopped.
    """
    core = core_with(tool={"yt-dlp": ONE}, lease_s=90.0)
    ticket = start(core, "slow", tools=("yt-dlp",))
    ask(core, "next", tools=("yt-dlp",))
    core.cancel("slow", 10.0)
    assert [order.permit for order in core.stops] == [ticket.permit]
    assert going(core, 89.0) == []
    assert going(core, 90.0) == ["next"]


def test_lesson_07_a_run_that_was_skipped_cannot_clear_another_runs_lock() -> None:
    """The `finally` of a run that never got the lock deleted the lock of the one that had it."""
    core = core_with()
    owner = start(core, "owner", key="feed:1")
    ask(core, "skipped", key="feed:1")
    ask(core, "third", key="feed:1")
    fence = permit_of(owner).fence
    core.cancel("skipped", 1.0)
    for wrong in (0, fence, fence + 1):
        assert core.finish("skipped", wrong, Outcome.ok(), 1.0) is None
    assert list(core.gates.get("key", "feed:1").leases) == [fence]
    assert going(core, 2.0) == []
    end(core, owner, 3.0)
    assert going(core, 3.0) == ["third"]


# --- slots


def test_lesson_24_the_breaker_really_opens_and_really_holds() -> None:
    """The breaker always answered "closed", since nothing ever set its flag."""
    core = core_with(upstream={"x.com": GatePolicy(breaker=BreakerRule(open_s=60.0))})
    tickets = [start(core, n, retries=False) for n in range(4)]
    for ticket in tickets:
        end(core, ticket, 1.0, Outcome.failed("500", status=500, upstream_fault=True))
    ask(core, "next", 1.0)
    for now in (1.0, 30.0, 60.9):
        assert going(core, now) == []
    assert core.next_wakeup() == 61.0
    assert going(core, 61.0) == ["next"]


def test_lesson_25_a_tenant_cools_down_also_with_a_cap_of_one() -> None:
    """The cooldown per IP did nothing when the cap per IP was 1."""
    tenant = GatePolicy(cap=1, cooldown_s=10.0)
    core = core_with(upstream={"x.com": GatePolicy(cap=5, tenant=tenant)})
    first = start(core, "a1", tenant="10.0.0.1")
    ask(core, "a2", tenant="10.0.0.1")
    end(core, first, 5.0)
    assert going(core, 14.9) == []
    start(core, "b1", 14.9, tenant="10.0.0.2")
    assert going(core, 15.0) == ["a2"]


def test_lesson_26_a_zombies_late_release_does_not_free_the_next_owners_slot() -> None:
    """A holder whose lease had ended released "its" slot, which was another one's by then."""
    core = core_with(upstream={"x.com": ONE}, lease_s=10.0)
    zombie = start(core, "zombie", retries=False)
    fence = permit_of(zombie).fence
    ask(core, "owner")
    ask(core, "third")
    assert going(core, 10.0) == ["owner"]
    for outcome in ENDINGS:
        assert core.finish("zombie", fence, outcome, 11.0) is None
        assert core.finish("owner", fence, outcome, 11.0) is None
    assert going(core, 12.0) == []
    assert [p.ticket.id for p in core.gate("upstream", "x.com").leases.values()] == ["owner"]


@pytest.mark.parametrize("level", ["upstream", "tenant"])
def test_lesson_27_holders_above_a_lowered_cap_are_counted(level: str) -> None:
    """After a cap was lowered, holders above it were not counted, and more were let in."""

    def policy(cap: int) -> GatePolicy:
        return (
            GatePolicy(cap=cap) if level == "upstream" else GatePolicy(tenant=GatePolicy(cap=cap))
        )

    core = core_with(upstream={"x.com": policy(5)})
    holders = [start(core, n) for n in range(5)]
    for n in range(5, 10):
        ask(core, n)
    core.gates.declare("upstream", "x.com", policy(2), 1.0)
    inside = 5
    for holder in holders:
        end(core, holder, 2.0)
        inside -= 1
        went = going(core, 2.0)
        assert len(went) == (1 if inside < 2 else 0)
        inside += len(went)
        assert inside <= 2 or not went


def test_lesson_28_cleaning_up_works_every_time_and_waiters_are_counted_truly() -> None:
    """Clean-up ran once and then blocked for ever; polling again counted a waiter twice."""
    core = core_with(upstream={"x.com": GatePolicy(cap=1, max_waiters=3)}, lease_s=1e6)
    holder = start(core, "holder", tenant="z")
    for turn in range(50):
        now = float(turn)
        ids = [f"{turn}:{n}" for n in range(3)]
        for id in ids:
            ask(core, id, now, tenant="t")
        core.prioritise(ids[0], 1, now)
        core.pin(ids[1], now)
        core.pause(ids[2], now)
        core.resume(ids[2], now)
        assert core.gates.waiting("x.com", "t") == (3, 3)
        with pytest.raises(Refused):
            ask(core, "one too many", now, tenant="t")
        for id in ids:
            core.cancel(id, now)
        core.sweep(now)
        assert core.gates.waiting("x.com", "t") == (0, 0)
    end(core, holder, 100.0)
    going(core, 100.0)
    for now in (101.0, 102.0):
        core.sweep(now)
        assert list(core.admission.atlas.all_gates()) == []
    assert core.next_wakeup() == INF


def test_lesson_29_who_may_not_go_is_not_chosen() -> None:
    """The fair winner was chosen first and checked then: while it might not go, nobody went."""
    core = core_with(upstream={"x.com": GatePolicy(cap=10, tenant=ONE)})
    core.gates.pause("upstream", "x.com", 0.0, tenant="paused")
    core.gates.close("upstream", "x.com", 0.0, until=500.0, why="429", tenant="pushed")
    start(core, "full 0", tenant="full", weight=100.0)
    start(core, "locked 0", tenant="locker", key="k")
    for tenant in ("paused", "pushed", "full"):
        ask(core, tenant, tenant=tenant, weight=100.0, priority=1)
    ask(core, "locked", tenant="locked", key="k", weight=100.0, priority=1)
    ask(core, "free", tenant="free", weight=0.01, priority=10)
    assert going(core, 1.0) == ["free"]


def test_lesson_29_flooding_is_not_rewarded() -> None:
    """Weight was counted per bucket, so a tenant with more tickets, lanes and keys got more."""
    core = core_with(upstream={"x.com": ONE})
    holder = start(core, "first", tenant="nobody")
    for n in range(400):
        ask(core, ("flood", n), tenant="flood", lane=f"lane {n % 20}", key=f"key {n}")
    for n in range(20):
        ask(core, ("polite", n), tenant="polite")
    went: Counter[str] = Counter()
    for now in range(1, 41):
        end(core, holder, float(now))
        (permit,) = core.admit(float(now))
        holder = permit.ticket
        went[holder.tenant] += 1
    assert went == {"flood": 20, "polite": 20}


def test_lesson_29_leftover_and_ended_tickets_are_nobodys_rivals() -> None:
    """A winner that had gone away, or must yield, must not block the line either."""
    core = core_with(upstream={"x.com": GatePolicy(cap=2, reserve=1)})
    start(core, "holder")
    ask(core, "leftover", traffic=Traffic.LEFTOVER, priority=1)
    gone = ask(core, "gone", priority=1)
    ask(core, "next", priority=9)
    core.cancel("gone", 1.0)
    with pytest.raises(UnknownTicket):
        core.pin("gone", 1.0)
    with pytest.raises(IllegalTransition):
        core.retry(core.ticket("next"), 1.0)
    assert gone.state is State.CANCELLED
    assert going(core, 1.0) == ["next"]
