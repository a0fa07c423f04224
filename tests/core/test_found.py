"""Faults that these tests found in the core, most serious first.

Each comment says what happened when the fault was found.
"""

from __future__ import annotations

from random import Random

import pytest

from headway.core import (
    BreakerRule,
    Core,
    GatePolicy,
    Outcome,
    Permit,
    QuietRule,
    Refusal,
    Refused,
    State,
    Ticket,
    Traffic,
)
from headway.core.gate import Limit
from tests.core.kit import X, ask, core_with, end, going, start, tug_of_war

HOUR, DAY = 3600.0, 86_400.0
ONE = GatePolicy(cap=1)
NIGHT = QuietRule(((2 * HOUR, 6 * HOUR),))
IN_THE_NIGHT = 3 * HOUR


# --- crashes


# `settling` holds (free_at, fence, gate). When two gates of one permit free it at the same moment
# the tuples tie and two gates are compared: TypeError out of `finish`, after half of the gates were
# given back.
def test_two_gates_may_free_the_same_place_at_the_same_moment() -> None:
    tenant = GatePolicy(cap=1, min_hold_s=4.0)
    core = core_with(upstream={"x.com": GatePolicy(cap=1, min_hold_s=4.0, tenant=tenant)})
    ticket = start(core, "a")
    ask(core, "b")
    end(core, ticket, 1.0)
    assert going(core, 3.9) == []
    assert going(core, 4.0) == ["b"]


# `_deadlines` holds (deadline, seq, ticket). An entry of an ended ticket stays until it surfaces; a
# ticket built anew from the store for an operator's retry has the same deadline and seq, so two
# tickets are compared: TypeError, after the ticket was entered into `tickets`.
def test_a_ticket_that_was_loaded_from_the_store_again_may_be_retried() -> None:
    core = core_with()
    old = start(core, "a", deadline=100.0)
    end(core, old, 1.0, Outcome.failed("no luck", fatal=True))
    loaded = Ticket("a", upstreams=X, deadline=100.0, seq=old.seq)
    loaded.state = State.FAILED
    core.retry(loaded, 2.0)
    assert loaded.state is State.QUEUED


# --- quiet hours


# `arm` takes the earlier of `opens_at` and `changes_at`. An open gate has opens_at == -INF, so the
# clock is never set for the beginning of the window: quiet hours hold only for gates that are first
# looked at inside of a window.
def test_quiet_hours_begin_at_an_upstream_that_was_open_before() -> None:
    core = core_with(upstream={"x.com": GatePolicy(quiet=NIGHT)})
    core.gate("upstream", "x.com")
    for day in range(1, 4):
        midnight = day * DAY
        end(core, start(core, f"evening {day}", midnight + HOUR), midnight + HOUR)
        ask(core, f"night {day}", midnight + IN_THE_NIGHT)
        assert going(core, midnight + 6 * HOUR - 1) == []
        assert [f"night {day}"] == going(core, midnight + 6 * HOUR)
        end(core, core.ticket(f"night {day}"), midnight + 6 * HOUR)


# `advance` returns at once when `now` is not later, so a gate that was made after the first call
# with this `now` (in `atlas.fresh`) is asked before its limits have looked at the clock.
def test_quiet_hours_hold_in_the_batch_that_first_names_the_upstream() -> None:
    core = core_with(upstream={"x.com": GatePolicy(quiet=NIGHT)})
    ask(core, "a", IN_THE_NIGHT)
    assert going(core, IN_THE_NIGHT) == []


# Accounts and keys come and go with their tickets: nobody looked at their quiet hours.
def test_quiet_hours_of_a_tenant_or_a_key_are_refused() -> None:
    with pytest.raises(ValueError, match="declare them for the upstream"):
        GatePolicy(tenant=GatePolicy(quiet=NIGHT))
    with pytest.raises(ValueError, match="declare them for the upstream"):
        core_with(key={"feed": GatePolicy(cap=1, quiet=NIGHT)})


# --- nobody starves, nothing grows for ever


def flood_of_newcomers(core: Core, count: int) -> list[str]:
    """One place is held for ever; through the other come tenants that nobody has seen before, one
    a second, always one waiting. Returns who went. "regular" has used 10 s and waits.
    """
    start(core, "for ever", tenant="for ever")
    end(core, start(core, "before", tenant="regular"), 10.0)
    holder = start(core, "new 0", 10.0, tenant="new 0")
    ask(core, "regular", 10.0, tenant="regular")
    went = []
    for n in range(1, count):
        ask(core, f"new {n}", 9.0 + n, tenant=f"new {n}")
        end(core, holder, 10.0 + n)
        (permit,) = core.admit(10.0 + n)
        holder = permit.ticket
        went.append(str(holder.id))
        if n % 500 == 0:
            core.sweep(10.0 + n)
    return went


# Every newcomer starts at `shares.start` and is granted there, so `start` never moves; a tenant
# that has used anything has a larger tag for ever. (The same holds for plain start-time fair
# queueing; "no eligible tenant starves" needs the start to advance with service too.)
def test_a_stream_of_newcomers_does_not_starve_a_tenant_that_has_used_its_share_once() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=2)}, lease_s=1e9)
    assert "regular" in flood_of_newcomers(core, 500)


# The remedy for the above lets `start` rise by a quarter of the held time, divided by the weight of
# the one who held. A tenant of weight 0.01 that held a place for 100 s pushes `start` more than a
# thousand slot-seconds beyond everybody's tags; a newcomer then waits 1,250 s for its first turn
# (13 s if all weights are 1). Dividing by the sum of the weights of all who are here would not.
def test_a_tenant_of_little_weight_does_not_push_newcomers_back() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=2)}, lease_s=1e9)
    light = start(core, "light", tenant="light", weight=0.01)
    start(core, ("busy", 0), tenant="busy")
    for now in range(1, 400):
        for n in range(2):
            ask(core, ("busy", now, n), float(now), tenant="busy")
        if now == 100:
            end(core, light, 100.0)
            ask(core, "new", 100.0, tenant="new")
        for permit in list(core.leases.permits.values()):
            if permit.ticket.tenant == "busy":
                end(core, permit.ticket, float(now))
        if "new" in going(core, float(now)):
            break
    assert now <= 150


# For the same reason `used <= start` is never true for one-time tenants, and the busy period never
# ends: 5,000 accounts are left of 5,000 tenants that came once, whatever is swept.
def test_accounts_of_tenants_that_came_once_are_dropped_while_others_are_busy() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=2)}, lease_s=1e9)
    flood_of_newcomers(core, 5001)
    assert len(core.gates.get("upstream", "x.com").shares.accounts) < 2500  # type: ignore[attr-defined]


# --- deadlines


# The deadline came while the ticket ran, so its entry was consumed; `judge` looks at the pause
# before the deadline, the ticket becomes paused, and can be resumed and run long after it.
def test_a_deadline_that_passed_while_stopping_for_a_pause_is_kept() -> None:
    core = core_with()
    ticket = start(core, "a", deadline=50.0)
    core.pause("a", 40.0)
    core.advance(50.0)
    end(core, ticket, 60.0, Outcome.cancelled())
    core.advance(1000.0)
    assert ticket.state is State.FAILED


# `restore` does not enter the deadline: once the job goes back to waiting, it waits for ever.
def test_a_restored_ticket_keeps_its_deadline() -> None:
    core = core_with()
    core.gates.pause("upstream", "x.com", 10.0)
    ticket = Ticket("a", upstreams=X, deadline=100.0, seq=1)
    core.restore(ticket, 10.0, fence=7, upstream="x.com", granted_at=5.0, expires_at=60.0)
    core.finish("a", 7, Outcome.returned(), 20.0)
    core.advance(500.0)
    assert ticket.state is State.FAILED


# The entry of the old deadline is not recognised as stale and ends the job at the old time.
def test_a_retry_with_a_later_deadline_has_that_deadline() -> None:
    core = core_with()
    ticket = start(core, "a", deadline=100.0)
    end(core, ticket, 1.0, Outcome.failed("no luck", fatal=True))
    core.gates.pause("upstream", "x.com", 1.0)
    ticket.deadline = 1000.0
    core.retry(ticket, 2.0)
    core.advance(100.0)
    assert ticket.state is State.QUEUED


# --- keys


# `_grant` parks the rest of a flow at its key without asking whether the key has room: a key with a
# cap of 2 lets one through per tenant and line.
def test_a_key_may_have_more_than_one_place() -> None:
    core = core_with(key={"account": GatePolicy(cap=2)})
    tickets = [ask(core, n, key="account") for n in range(4)]
    assert going(core, 1.0) == [0, 1]
    end(core, tickets[0], 2.0)
    assert going(core, 2.0) == [2]


# `restore` counts the maximum hold from the restart: each restart gives another 2 h. (It cannot
# know better: there is no `granted_at` among its arguments. `ticket.since` is one place to take it
# from.)
def test_a_restart_does_not_prolong_the_hold_of_a_key() -> None:
    core = core_with(max_key_hold_s=100.0)
    ticket = Ticket("a", upstreams=X, key="feed", seq=1)
    core.restore(ticket, 90.0, fence=7, upstream="x.com", granted_at=0.0, expires_at=95.0)
    assert core.heartbeat("a", 7, 94.0) == 100.0


# Only the first ticket of an ordered key stands in a line; the others are not counted, so a million
# of them wait at an upstream that allows two waiters.
def test_ordered_tickets_are_counted_as_waiters() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1, max_waiters=2)})
    core.gates.pause("upstream", "x.com", 0.0)
    for n in range(2):
        ask(core, n, key="feed", ordered="pass")
    with pytest.raises(Refused):
        ask(core, 2, key="feed", ordered="pass")


# `refuses_online` asks the line's gates and the account, not the key.
def test_an_online_call_with_a_paused_key_is_refused() -> None:
    core = core_with()
    core.gates.pause("key", "feed", 0.0)
    ticket = Ticket("a", upstreams=X, key="feed", traffic=Traffic.ONLINE)
    assert isinstance(core.call(ticket, 1.0), Refusal)


# --- reservations


# Only a closure from outside ends a reservation. When the breaker opens (or a pace, cooldown or
# quiet hours close one of the gates), the lane and the tool stand idle for the whole time.
def test_a_breaker_that_opens_ends_reservations() -> None:
    core = core_with(
        lane={"narrow": ONE},
        tool={"ffmpeg": ONE},
        upstream={"x.com": GatePolicy(breaker=BreakerRule())},
        patience_s=5.0,
    )
    assert tug_of_war(core, 0.0, 8, X) is None
    assert core.ticket("both") in core.admission.reservations
    for _ in range(4):
        core.gates.report("x.com", Outcome.failed("500", upstream_fault=True), 8.0)
    for permit in list(core.leases.permits.values()):
        end(core, permit.ticket, 9.0)
    assert len(going(core, 9.0)) == 2


# `passes` and `passed_at` outlive the grant, so in its next round the ticket is given a reservation
# at once, before it has waited at all.
def test_patience_starts_anew_with_each_round() -> None:
    core = core_with(lane={"narrow": ONE}, tool={"ffmpeg": ONE}, patience_s=30.0)
    assert tug_of_war(core, 0.0, 6, ()) is None
    for permit in list(core.leases.permits.values()):
        core.gates.pause("lane", "wide", 6.0)
        end(core, permit.ticket, 6.0)
    while "both" not in going(core, 6.0):
        for permit in list(core.leases.permits.values()):
            end(core, permit.ticket, 6.0)
    for id in [id for id in core.tickets if id != "both"]:
        core.cancel(id, 6.0)
    end(core, core.ticket("both"), 7.0, Outcome.returned(after_s=93.5))
    core.gates.resume("lane", "wide", 8.0)
    went_at = tug_of_war(core, 100.0, 60, ())
    assert went_at is None or went_at >= 130.0


# --- pushback


# A call that was granted and pushed back at the very same `now` as the first pushback counts as
# sent after it. Needs a coarse clock or a batch that grants and finishes with one `now`.
def test_429s_that_came_back_in_the_moment_of_their_grant_count_once() -> None:
    core = core_with()
    a, b = ask(core, "a"), ask(core, "b")
    assert going(core, 0.0) == ["a", "b"]
    end(core, a, 0.0, Outcome.pushback())
    end(core, b, 0.0, Outcome.pushback())
    assert core.gate("upstream", "x.com").opens_at == 2.0


# --- what is left to the second


# The calendar of leases looks once a second: a heartbeat that came up to a second late was heard.
def test_a_lease_ends_to_the_moment() -> None:
    core = core_with(lease_s=10.0)
    ticket = start(core, "a", 0.5)
    assert ticket.permit is not None
    fence = ticket.permit.fence
    assert core.heartbeat("a", fence, 10.4) == 20.4
    assert core.finish("a", fence, Outcome.ok(), 20.4) is None
    assert ticket.state is State.QUEUED


# Three faults of last week and one of today are not four in a row.
def test_faults_that_are_out_of_the_window_are_not_in_a_row() -> None:
    core = core_with(upstream={"x.com": GatePolicy(breaker=BreakerRule())})
    for now in (0.0, 1.0, 2.0, 600.0):
        core.gates.report("x.com", Outcome.failed("500", upstream_fault=True), now)
    assert core.gate("upstream", "x.com").opens_at < 600.0


# There was no way back to what is declared for everybody.
def test_a_declaration_can_be_withdrawn_while_the_gate_is_in_use() -> None:
    core = core_with(upstream={"*": GatePolicy(cap=3), "x.com": GatePolicy(cap=1)})
    for n in range(4):
        ask(core, n)
    assert going(core, 0.0) == [0]
    core.gates.withdraw("upstream", "x.com", 1.0)
    assert going(core, 1.0) == [1, 2]


# A lease that was given for an upstream which the ticket no longer names was replayed at another.
def test_a_restored_lease_holds_the_upstream_it_was_given_for() -> None:
    core = core_with(upstream={"y.com": ONE})
    ticket = Ticket("a", upstreams=X, seq=1)
    core.restore(ticket, 0.0, fence=3, upstream="y.com", granted_at=0.0, expires_at=9.0)
    ask(core, "b", upstreams=("y.com",))
    assert going(core, 1.0) == []


# --- found by a second hard look


# A reservation watches the gates it keeps; a gate without a cap is not among them. When that one
# was paused or closed, the kept places stood idle for ever.
@pytest.mark.parametrize("how", ["pause", "pause tenant", "close"])
def test_places_are_not_kept_for_a_ticket_whose_uncapped_upstream_is_shut(how: str) -> None:
    core = core_with(lane={"narrow": ONE}, tool={"ffmpeg": ONE}, patience_s=5.0)
    assert tug_of_war(core, 0.0, 8, X) is None
    assert core.ticket("both") in core.admission.reservations
    if how == "close":
        core.gates.close("upstream", "x.com", 8.0, until=1e6, why="told to")
    else:
        tenant = "" if how == "pause tenant" else None
        core.gates.pause("upstream", "x.com", 8.0, tenant=tenant)
    for permit in list(core.leases.permits.values()):
        end(core, permit.ticket, 9.0)
    assert len(going(core, 9.0)) == 2


# Several candidate upstreams are no help when the scarce gates are others.
def test_a_ticket_with_candidates_does_not_starve_either() -> None:
    core = core_with(lane={"narrow": ONE}, tool={"ffmpeg": ONE}, patience_s=5.0)
    went_at = tug_of_war(core, 0.0, 40, ("x.com", "y.com"))
    assert went_at is not None
    assert went_at <= 12.0


class ShutsForTen(Limit):
    """Asks for the clock when it is taken, as a learner will."""

    def taken(self, now: float, permit: Permit) -> None:
        self.cap = 0
        self.changes_at = now + 10.0

    def elapse(self, now: float) -> None:
        self.cap = float("inf")
        self.changes_at = float("inf")


def shuts_for_ten(_rng: Random) -> Limit:
    return ShutsForTen()


# The clock was set only for gates that somebody stood at.
def test_a_limit_is_asked_again_when_it_wants_even_if_nobody_waits() -> None:
    core = core_with(upstream={"x.com": GatePolicy(more=(shuts_for_ten,))})
    end(core, start(core, "a"), 1.0)
    assert core.next_wakeup() == 10.0
    ask(core, "b", 20.0)
    assert going(core, 20.0) == ["b"]


# A heartbeat that makes a lease shorter (settings changed over a restart) did not move its end.
@pytest.mark.parametrize("expires_at", [1000.0, float("inf")])
def test_a_lease_that_becomes_shorter_ends_in_time(expires_at: float) -> None:
    core = core_with(lease_s=90.0)
    ticket = Ticket("a", upstreams=X, seq=1)
    core.restore(ticket, 0.0, fence=5, upstream="x.com", granted_at=0.0, expires_at=expires_at)
    assert core.heartbeat("a", 5, 10.0) == 100.0
    assert core.next_wakeup() == 100.0
    core.advance(100.0)
    assert ticket.state is State.QUEUED


# It was accepted, and then ignored for tickets that name an upstream.
def test_a_policy_per_tenant_is_refused_where_it_would_not_hold() -> None:
    with pytest.raises(ValueError, match="belongs to an upstream"):
        core_with(lane={"default": GatePolicy(tenant=ONE)})
    with pytest.raises(ValueError, match="at an upstream"):
        core_with().gates.pause("lane", "default", 0.0, tenant="t")


@pytest.mark.parametrize(
    "fields",
    [
        {"key": 5},
        {"key": ["k"]},
        {"upstreams": ["x.com"]},
        {"tools": ["ffmpeg"]},
        {"labels": [("region", "eu")]},
        {"tenant": None},
    ],
)
def test_what_is_not_text_is_refused_before_anything_has_changed(fields: dict[str, object]) -> None:
    core = core_with()
    with pytest.raises(TypeError):
        ask(core, "a", **fields)
    assert not core.tickets
    assert not core.changes


def test_times_and_priorities_that_are_no_numbers_are_refused() -> None:
    core = core_with()
    ask(core, "a", not_before=9.0)
    with pytest.raises(ValueError, match="plain number"):
        core.reschedule("a", float("nan"), 1.0)
    with pytest.raises(ValueError, match="plain number"):
        core.prioritise("a", -(10**13), 1.0)
    with pytest.raises(ValueError, match="not a number"):
        core.advance(float("nan"))
    assert going(core, 9.0) == ["a"]


# Asking for a tenant's gate opened an account for it, without its debt.
def test_touching_a_tenants_gate_does_not_forgive_its_debt() -> None:
    core = core_with(upstream={"x.com": ONE})
    start(core, "long", tenant="x")
    end(core, core.ticket("long"), 80.0)
    start(core, "holder", 80.0, tenant="y")
    core.gates.resume("upstream", "x.com", 81.0, tenant="x")
    ask(core, "again", 81.0, tenant="x")
    ask(core, "new", 82.0, tenant="z")
    end(core, core.ticket("holder"), 83.0)
    assert going(core, 83.0) == ["new"]


# Stale entries stayed until they surfaced, which may be never.
def test_what_is_moved_again_and_again_leaves_nothing_behind() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1, quiet=NIGHT)})
    start(core, "running", DAY / 2, key="k")
    ask(core, "head", DAY / 2, key="k")
    ask(core, "moved", DAY / 2, key="k")
    ask(core, "later", DAY / 2, not_before=DAY)
    for n in range(2_000):
        core.pause("moved", DAY / 2)
        core.resume("moved", DAY / 2)
        core.reschedule("later", DAY + n, DAY / 2)
        core.gates.close("upstream", "x.com", DAY / 2, until=DAY / 2 + 5_000 - n, why="told to")
        core.gates.open("upstream", "x.com", DAY / 2)
    line = core.admission.atlas.route(core.ticket("moved"))[0]
    assert all(len(flow.heap) < 100 for flow in line.flows.values())
    assert len(core._due) < 200
    core.advance(DAY)
    assert len(core.admission.alarms) < 10


def test_keys_of_ordered_tickets_are_forgotten_with_them() -> None:
    core = core_with()
    for n in range(100):
        end(core, start(core, n, key=f"k{n}", ordered="hold"), 0.0)
    assert not core.admission.atlas.keys


# A sweep that the opening of an account set off took that account too: its leases were not seen any
# more, and the tenant got a second one beyond its cap.
@pytest.mark.parametrize("cooldown_s", [0.0, 1.0])
def test_a_new_account_survives_the_sweep_that_it_sets_off(cooldown_s: float) -> None:
    tenant = GatePolicy(cap=1, cooldown_s=cooldown_s)
    core = core_with(upstream={"x.com": GatePolicy(tenant=tenant)}, lease_s=1e9)
    for n in range(1_000):
        start(core, n, float(n), tenant=f"t{n}")
        ask(core, ("more", n), float(n), tenant=f"t{n}")
        assert going(core, float(n)) == []
        core.cancel(("more", n), float(n))
        end(core, core.ticket(n), n + 0.5)
    lane = core.gate("lane", "default")
    for n in range(1_000):
        permit = core.call(Ticket(("held", n), upstreams=X, tenant=f"u{n}"), 5_000.0)
        assert isinstance(permit, Permit)
        assert all(lane.shares.accounts[a.name] is a for a in permit.accounts[:1])  # type: ignore[attr-defined]
