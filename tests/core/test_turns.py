"""Who is next: pins, fair shares between tenants, rank within a tenant, and that nobody starves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

import pytest

from headway.core import Core, GatePolicy, Outcome, Ticket
from tests.core.kit import ask, core_with, end, going, start, tug_of_war

ONE = GatePolicy(cap=1)


def one_at_a_time(**options: float) -> Core:
    """x.com with one place, which is taken until `order` gives it back."""
    core = core_with(upstream={"x.com": ONE}, **options)
    start(core, "first", tenant="nobody")
    return core


def order(core: Core, count: int, now: float, hold_s: float = 1.0) -> list[Hashable]:
    """Who goes one after the other when each holds the one place for so long."""
    ids: list[Hashable] = []
    (permit,) = core.leases.permits.values()
    for _ in range(count):
        end(core, permit.ticket, now)
        granted = core.admit(now)
        if not granted:
            break
        (permit,) = granted
        ids.append(permit.ticket.id)
        now += hold_s
    return ids


# --- within a tenant


def test_the_smaller_number_is_the_higher_priority() -> None:
    core = one_at_a_time()
    for priority in (7, 2, 9, 1):
        ask(core, priority, priority=priority)
    assert order(core, 4, 1.0) == [1, 2, 7, 9]


def test_equals_go_first_come_first() -> None:
    core = one_at_a_time()
    for id in "dacb":
        ask(core, id)
    assert order(core, 4, 1.0) == list("dacb")


@pytest.mark.parametrize(("waited_s", "first"), [(399.0, "fresh"), (401.0, "old")])
def test_who_waits_gains_one_level_per_age_s(waited_s: float, first: str) -> None:
    core = one_at_a_time(age_s=100.0, lease_s=1e6)
    ask(core, "old", 0.0, priority=9)
    ask(core, "fresh", waited_s, priority=5)
    assert order(core, 1, waited_s) == [first]


def test_a_new_priority_counts_at_once_and_keeps_the_age() -> None:
    core = one_at_a_time(age_s=100.0, lease_s=1e6)
    ask(core, "a", 0.0, priority=9)
    ask(core, "b", 40.0, priority=5)
    core.prioritise("a", 5, 50.0)
    assert order(core, 2, 60.0) == ["a", "b"]


def test_a_retry_keeps_its_place_by_seq() -> None:
    core = one_at_a_time()
    (permit,) = core.leases.permits.values()
    ask(core, "later", 1.0, tenant="nobody")
    core.finish("first", permit.fence, Outcome.returned(), 1.0)
    assert going(core, 1.0) == ["first"]


def test_a_key_holds_back_only_its_own() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=2)})
    holder = start(core, "k0", key="k")
    ask(core, "k1", key="k", priority=1)
    ask(core, "k2", key="k", priority=2)
    other = ask(core, "other", priority=9)
    assert going(core, 1.0) == ["other"]
    end(core, other, 2.0)
    end(core, holder, 2.0)
    assert going(core, 2.0) == ["k1"]


# --- pins


def test_a_pin_goes_before_every_tenant_and_priority() -> None:
    core = one_at_a_time()
    ask(core, "urgent", priority=1, tenant="a")
    ask(core, "fair", tenant="b")
    ask(core, "pinned", priority=10, tenant="nobody")  # who has used the most
    core.pin("pinned", 1.0)
    assert order(core, 1, 2.0) == ["pinned"]


def test_the_last_pin_goes_first() -> None:
    core = one_at_a_time()
    for id in "abc":
        ask(core, id)
    for id in "abc":
        core.pin(id, 1.0)
    assert order(core, 3, 2.0) == ["c", "b", "a"]


def test_a_new_priority_takes_the_pin_off() -> None:
    core = one_at_a_time()
    for id in "ab":
        ask(core, id)
    core.pin("b", 1.0)
    core.prioritise("b", 5, 2.0)
    assert order(core, 2, 3.0) == ["a", "b"]


@pytest.mark.parametrize("before", ["queued", "paused", "pending"])
def test_without_its_pin_it_has_the_place_that_it_had_before(before: str) -> None:
    core = one_at_a_time()
    for place, id in enumerate("abc"):
        ask(core, id, float(place))
    if before == "paused":
        core.pause("b", 3.0)
    if before == "pending":
        core.reschedule("b", 5.0, 3.0)
    core.pin("b", 3.0)
    assert core.unpin("b", 4.0)
    assert not core.unpin("b", 4.0)
    if before == "paused":
        core.resume("b", 4.0)
    wanted = ["a", "b", "c"] if before == "queued" else ["a", "c", "b"]
    assert order(core, 3, 6.0) == wanted


def test_a_pin_that_was_taken_off_does_not_come_back_with_a_retry() -> None:
    core = one_at_a_time()
    once_pinned = ask(core, "once pinned")
    core.pin("once pinned", 0.0)
    assert order(core, 1, 1.0) == ["once pinned"]
    assert core.unpin("once pinned", 1.0)
    ask(core, "urgent", 1.0, priority=1)
    end(core, once_pinned, 2.0, Outcome.returned())
    assert going(core, 2.0) == ["urgent"]


def test_a_pin_outlives_a_retry() -> None:
    core = one_at_a_time()
    pinned = ask(core, "pinned")
    core.pin("pinned", 0.0)
    assert order(core, 1, 1.0) == ["pinned"]
    ask(core, "urgent", 1.0, priority=1)
    end(core, pinned, 2.0, Outcome.returned())
    assert going(core, 2.0) == ["pinned"]


def test_a_pin_opens_no_gate() -> None:
    core = core_with(upstream={"x.com": ONE})
    core.gates.pause("upstream", "x.com", 0.0)
    ask(core, "pinned")
    core.pin("pinned", 1.0)
    assert going(core, 2.0) == []


def test_a_pin_is_no_advance_on_the_tenants_share() -> None:
    core = one_at_a_time()
    for id in ("a1", "a2", "b1", "b2"):
        ask(core, id, tenant=id[0])
    core.pin("a2", 1.0)
    assert order(core, 4, 10.0, hold_s=5.0)[:2] == ["a2", "b1"]


# --- fair shares


def served(core: Core, holds: dict[str, float], weights: dict[str, float], until: float) -> Counter:
    """Slot-seconds per tenant when each always wants more and holds for its own time."""
    seconds: Counter[str] = Counter()
    number = 0
    now = 1.0
    (permit,) = core.leases.permits.values()
    end(core, permit.ticket, now)
    for tenant in holds:
        for _ in range(2):
            number += 1
            ask(core, number, now, tenant=tenant, weight=weights.get(tenant, 1.0))
    while now < until:
        (permit,) = core.admit(now)
        tenant = permit.ticket.tenant
        number += 1
        ask(core, number, now, tenant=tenant, weight=weights.get(tenant, 1.0))
        seconds[tenant] += holds[tenant]  # type: ignore[assignment]
        now += holds[tenant]
        end(core, permit.ticket, now)
    return seconds


def test_tenants_share_the_time_and_not_the_number_of_grants() -> None:
    core = one_at_a_time(lease_s=1e9)
    seconds = served(core, {"short": 1.0, "long": 10.0}, {}, 2000.0)
    assert abs(seconds["short"] - seconds["long"]) <= 10.0


def test_weights_divide_the_time() -> None:
    core = one_at_a_time(lease_s=1e9)
    weights = {"a": 1.0, "b": 2.0, "c": 4.0}
    seconds = served(core, dict.fromkeys("abc", 3.0), weights, 7000.0)
    shares = [seconds[t] / weights[t] for t in "abc"]
    assert max(shares) - min(shares) <= 3.0


def test_a_flood_of_tickets_earns_nothing() -> None:
    core = one_at_a_time()
    for n in range(1000):
        ask(core, ("flood", n), tenant="flood")
    for n in range(10):
        ask(core, ("polite", n), tenant="polite")
    first = order(core, 20, 1.0)
    assert Counter(id[0] for id in first) == {"flood": 10, "polite": 10}  # type: ignore[index]


def test_a_place_that_is_held_counts_while_it_is_held() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=2)}, lease_s=1e9)
    start(core, "long", tenant="a")  # and never comes back
    other = start(core, "b0", tenant="b")
    end(core, other, 10.0)
    ask(core, "a1", 10.0, tenant="a")
    ask(core, "c0", 10.0, tenant="b")
    blocked = core.admit(10.0)
    assert [p.ticket.id for p in blocked] == ["a1"]  # 10 each; a came first
    end(core, blocked[0].ticket, 30.0)
    ask(core, "a2", 30.0, tenant="a")
    assert going(core, 30.0) == ["c0"]


def test_a_newcomer_gets_no_credit_for_the_time_before() -> None:
    core = one_at_a_time()
    for n in range(100):
        ask(core, ("old", n), tenant="old")
    order(core, 50, 1.0)  # 50 s for the old one
    for n in range(100):
        ask(core, ("new", n), 51.0, tenant="new")
    next_ten = Counter(id[0] for id in order(core, 10, 51.0))  # type: ignore[index]
    assert next_ten["old"] >= 4


def test_who_comes_back_from_idling_gets_no_credit_for_it() -> None:
    core = one_at_a_time()
    ask(core, ("back", 0), tenant="back")
    for n in range(100):
        ask(core, ("busy", n), tenant="busy")
    order(core, 60, 1.0)
    for n in range(1, 50):
        ask(core, ("back", n), 62.0, tenant="back")
    next_ten = Counter(id[0] for id in order(core, 10, 62.0))  # type: ignore[index]
    assert next_ten["busy"] >= 4


def test_who_idled_is_not_punished_either() -> None:
    core = one_at_a_time()
    for n in range(100):
        ask(core, ("busy", n), tenant="busy")
    order(core, 50, 1.0)
    ask(core, "new", 51.0, tenant="new")
    assert "new" in order(core, 2, 51.0)


def test_the_tenant_who_may_not_go_does_not_hold_up_the_others() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=3, tenant=ONE)})
    start(core, "a0", tenant="a")
    for id in ("a1", "b1", "c1"):
        ask(core, id, tenant=id[0])
    assert sorted(map(str, going(core, 1.0))) == ["b1", "c1"]


def test_tickets_without_an_upstream_share_their_lane_fairly() -> None:
    core = core_with(lane={"default": ONE})
    holder: Ticket = start(core, ("flood", -1), tenant="flood", upstreams=())
    for n in range(50):
        ask(core, ("flood", n), tenant="flood", upstreams=())
    for n in range(5):
        ask(core, ("polite", n), tenant="polite", upstreams=())
    went = []
    for now in range(1, 11):
        end(core, holder, float(now))
        (permit,) = core.admit(float(now))
        holder = permit.ticket
        went.append(holder.tenant)
    assert Counter(went) == {"flood": 5, "polite": 5}


def test_tenants_share_a_lane_fairly_across_upstreams() -> None:
    core = core_with(lane={"default": ONE})
    holder = start(core, "first", tenant="nobody")
    for n in range(50):
        ask(core, ("flood", n), tenant="flood", upstreams=(f"{n % 10}.com",))
    for n in range(5):
        ask(core, ("polite", n), tenant="polite", upstreams=("p.com",))
    went = []
    for now in range(1, 11):
        end(core, holder, float(now))
        (permit,) = core.admit(float(now))
        holder = permit.ticket
        went.append(holder.tenant)
    assert Counter(went) == {"flood": 5, "polite": 5}


# --- strict order of a key


def test_an_ordered_key_goes_by_seq_whatever_the_priority() -> None:
    core = core_with()
    tickets = [ask(core, n, key="k", ordered="pass", priority=9 - n) for n in range(4)]
    went: list[Hashable] = []
    for now in range(4):
        went += going(core, float(now))
        end(core, tickets[now], float(now))
    assert went == [0, 1, 2, 3]


@pytest.mark.parametrize(("ordered", "then"), [("pass", ["second"]), ("hold", [])])
def test_a_retrying_one_is_passed_or_holds_the_others(ordered: str, then: list[str]) -> None:
    core = core_with()
    first = ask(core, "first", key="k", ordered=ordered)
    ask(core, "second", key="k", ordered=ordered)
    assert going(core, 0.0) == ["first"]
    end(core, first, 1.0, Outcome.failed("no luck"))
    assert going(core, 2.0) == then
    if not then:
        assert going(core, 31.0) == ["first"]


@pytest.mark.parametrize(("ordered", "then"), [("pass", ["second"]), ("hold", [])])
def test_a_paused_one_is_passed_or_holds_the_others(ordered: str, then: list[str]) -> None:
    core = core_with()
    ask(core, "first", key="k", ordered=ordered)
    ask(core, "second", key="k", ordered=ordered)
    core.pause("first", 1.0)
    assert going(core, 2.0) == then


@pytest.mark.parametrize("ordered", ["pass", "hold"])
def test_the_first_of_an_ordered_key_may_be_cancelled_while_it_waits(ordered: str) -> None:
    core = core_with()
    core.gates.pause("upstream", "x.com", 0.0)
    for id in ("first", "second"):
        ask(core, id, key="k", ordered=ordered)
    core.cancel("first", 1.0)
    core.gates.resume("upstream", "x.com", 2.0)
    assert going(core, 2.0) == ["second"]
    assert core.gates.waiting("x.com", "") == (0, 0)


def test_a_cancelled_one_holds_nobody() -> None:
    core = core_with()
    ask(core, "first", key="k", ordered="hold", not_before=100.0)
    ask(core, "second", key="k", ordered="hold")
    assert going(core, 1.0) == []
    core.cancel("first", 2.0)
    assert going(core, 2.0) == ["second"]


# --- reservation: a ticket that needs several gates does not starve


def narrow(patience_s: float) -> Core:
    return core_with(lane={"narrow": ONE}, tool={"ffmpeg": ONE}, patience_s=patience_s)


def test_without_patience_running_out_the_ticket_that_needs_both_would_starve() -> None:
    assert tug_of_war(narrow(patience_s=1e9), 0.0, 1000, ()) is None


@pytest.mark.parametrize("patience_s", [5.0, 30.0, 100.0])
def test_beyond_its_patience_the_next_openings_are_kept_for_it(patience_s: float) -> None:
    went_at = tug_of_war(narrow(patience_s), 0.0, 1000, ())
    assert went_at is not None
    assert patience_s <= went_at <= patience_s + 5.0  # two turns of each crowd, and its first pass


def test_a_reservation_ends_with_its_ticket() -> None:
    core = narrow(patience_s=5.0)
    assert tug_of_war(core, 0.0, 8, ()) is None
    assert core.gate("lane", "narrow").reserved_for is not None
    core.cancel("both", 8.0)
    for gate in (core.gate("lane", "narrow"), core.gate("tool", "ffmpeg")):
        assert gate.reserved_for is None
    for permit in list(core.leases.permits.values()):
        end(core, permit.ticket, 9.0)
    assert len(going(core, 9.0)) == 2


def test_a_gate_that_is_closed_keeps_no_openings() -> None:
    core = narrow(patience_s=5.0)
    assert tug_of_war(core, 0.0, 8, ()) is None
    core.gates.close("tool", "ffmpeg", 8.0, until=1000.0, why="told to")
    for permit in list(core.leases.permits.values()):
        end(core, permit.ticket, 9.0)
    assert [id[0] for id in going(core, 9.0)] == ["lane"]  # type: ignore[index]


def test_a_reservation_is_used_once() -> None:
    core = narrow(patience_s=5.0)
    assert tug_of_war(core, 0.0, 100, ()) is not None
    assert not core.admission.reservations
    assert core.gate("lane", "narrow").reserved_for is None
