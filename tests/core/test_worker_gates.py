"""Gates that are open while a worker asks: order, kept places, and what they cost."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from random import Random
from time import thread_time

import pytest

from headway.core import Core, GatePolicy, Outcome, Ticket
from headway.engine.hands import RemoteStop, RemoteWork
from headway.engine.hands.demand import Demand, Taker
from headway.engine.hands.worker_gates import KNOWN_S, WorkerGates, WorkerPolicies
from headway.engine.registry import REMOTE, WORK
from tests.core.kit import ask, core_with, end, going, start


def deaf(_works: list[RemoteWork], _stops: list[RemoteStop]) -> None:
    """Nobody is told anything here."""


class Workshop:
    """A core with the gates of workers, without an engine around it."""

    def __init__(self, **gates: GatePolicy) -> None:
        policies = WorkerPolicies()
        for lane, policy in gates.items():
            policies.declare("lane", lane, policy)
        self.core = Core(policies, rng=Random(0), patience_s=30.0)
        self.gates = policies.gates = WorkerGates(self.core)

    def put(self, id: Hashable, now: float, type: str = "a", **fields: object) -> Ticket:
        ticket = Ticket(id, type=type, tools=(REMOTE, WORK + type), **fields)  # type: ignore[arg-type]
        self.core.submit(ticket, now)
        return ticket

    def ask(self, types: str, size: int, now: float) -> Taker:
        taker = Taker("w", types, size, deaf)
        self.gates.demand.join(taker)
        self.gates.named(types, now)
        return taker

    def go(self, now: float) -> list[Hashable]:
        self.gates.open_up(now)
        permits = self.core.admit(now)
        for permit in permits:
            taker = self.gates.deals.pop(permit.fence, None)
            if taker is not None:
                self.gates.demand.leave(taker)
        return [permit.ticket.id for permit in permits]

    def end(self, id: Hashable, now: float) -> None:
        permit = self.core.tickets[id].permit
        assert permit is not None
        assert self.core.finish(id, permit.fence, Outcome.ok(), now) is not None

    @property
    def reserved(self) -> list[Hashable]:
        return [ticket.id for ticket in self.core.admission.reservations]


# --- order


def test_gates_that_open_together_let_the_best_go_first() -> None:
    shop = Workshop()
    for n, type in enumerate("abcdef"):
        shop.put(type, 0.0, type, priority=9 - n, lane=f"lane {n % 2}")
    assert shop.go(0.0) == []
    order = []
    for _ in range(6):
        taker = shop.ask("abcdef", 1, 1.0)
        order += shop.go(1.0)
        shop.gates.demand.leave(taker)
    assert order == list("fedcba")


def test_who_is_on_the_way_when_a_worker_asks_is_compared_too() -> None:
    shop = Workshop()
    shop.put("d", 0.0, "d", priority=8)
    assert shop.go(0.0) == []
    shop.core.gates.pause("tool", REMOTE, 0.0)
    shop.put("c", 0.0, "c", priority=9)
    assert shop.go(0.0) == []
    shop.core.gates.resume("tool", REMOTE, 1.0)
    shop.put("b", 1.0, "b", priority=1, lane="other")
    shop.ask("bcd", 1, 1.0)
    assert shop.go(1.0) == ["b"]


def test_whose_turn_it_is_is_asked_again_when_the_first_has_to_stand_aside() -> None:
    core = core_with(tool={"press": GatePolicy(cap=1)})
    holder = start(core, "holder", type="h", tools=("press",), upstreams=())
    start(core, "k", type="k", key="busy", upstreams=())
    ask(core, "a1", type="a", tools=("press",), upstreams=(), priority=1, key="busy")
    ask(core, "a2", type="a", tools=("press",), upstreams=(), priority=9)
    ask(core, "b1", type="b", tools=("press",), upstreams=(), priority=5)
    assert going(core) == []
    end(core, holder, 1.0)
    assert going(core, 1.0) == ["b1"]


# --- kept places


def tug_of_war(shop: Workshop) -> Iterator[tuple[float, list[Hashable]]]:
    """The lane has one place and workers ask for one job now and then, but never at the moment
    when the place is free: both are taken by others at once. When does "both" go?
    """
    shop.core.submit(Ticket("l0", lane="narrow"), 0.0)
    assert shop.go(0.0) == ["l0"]
    shop.put("both", 0.0, lane="narrow")
    holder: Hashable = "l0"
    for n in range(1, 200):
        now = n * 5.0
        shop.core.submit(Ticket(f"l{n}", lane="narrow"), now)
        shop.put(f"r{n}", now)
        if n % 2:
            shop.ask("a", 1, now)
        elif holder is not None:
            shop.end(holder, now)
            holder = None
        gone = shop.go(now)
        yield now, gone
        for id in gone:
            if str(id).startswith("l"):
                holder = id
            else:
                shop.end(id, now)


def test_a_job_that_needs_a_worker_and_a_narrow_lane_does_not_starve() -> None:
    shop = Workshop(narrow=GatePolicy(cap=1))
    went_at = next(now for now, gone in tug_of_war(shop) if "both" in gone)
    assert 30.0 < went_at <= 120.0
    assert shop.reserved == []


def test_being_without_a_worker_is_not_being_passed_over() -> None:
    shop = Workshop()
    low = Ticket("low", type="a", priority=9, tools=("bench", REMOTE, f"{WORK}a"))
    shop.core.submit(low, 0.0)
    for n in range(100):  # the only worker has always something better to do
        now = 10.0 * n
        shop.put(n, now, priority=1)
        shop.ask("a", 1, now)
        assert shop.go(now) == [n]
        shop.end(n, now)
    assert (low.passes, shop.reserved) == (0, [])


def test_nothing_is_kept_for_a_job_whose_workers_are_gone() -> None:
    shop = Workshop(narrow=GatePolicy(cap=1))
    now = next(now for now, _ in tug_of_war(shop) if shop.reserved)
    (holder,) = shop.core.gate("lane", "narrow").leases.values()
    assert shop.core.finish(holder.ticket.id, holder.fence, Outcome.ok(), now) is not None
    assert shop.go(now) == [], "the place is kept as long as workers are there, if busy"
    assert shop.reserved == ["both"]
    gone_at = now + KNOWN_S + 1.0
    assert shop.core.next_wakeup() <= gone_at
    assert shop.go(gone_at)[0] != "both"
    assert len(shop.core.gate("lane", "narrow").leases) == 1
    assert shop.reserved == []


def test_a_lease_that_is_restored_is_dealt_to_nobody() -> None:
    shop = Workshop()
    shop.ask("a", 1, 0.0)
    ticket = Ticket("old", type="a", tools=(REMOTE, f"{WORK}a"))
    other = WorkerPolicies()
    core = Core(other, rng=Random(0))
    gates = other.gates = WorkerGates(core)
    core.restore(ticket, 0.0, fence=7, upstream=None, granted_at=0.0, expires_at=90.0)
    assert gates.deals == {}
    assert shop.gates.deals == {}


# --- who is dealt what


def test_demand_forgets_what_is_over() -> None:
    changes: list[str] = []
    demand = Demand(changes.append)
    for _ in range(1_000):  # a narrow request waits, broad ones come and go
        if not demand.takers:
            demand.join(Taker("w", "a", 1, deaf))
        broad = Taker("w", "ab", 1, deaf)
        demand.join(broad)
        demand.leave(broad)
    assert len(demand._heaps["a"]) < 20
    assert changes[:3] == ["a", "b", "b"]


def test_no_job_is_dealt_when_nobody_wants_one() -> None:
    demand = Demand(lambda _type: None)
    taker = Taker("w", "ab", 2, deaf)
    demand.join(taker)
    assert [demand.deal("a"), demand.deal("c"), demand.deal("b"), demand.deal("a")] == [
        taker, None, taker, None,
    ]  # fmt: skip


# --- cost


def grants_per_s(waiting: int, takers: int) -> float:
    shop = Workshop()
    for n in range(waiting):
        shop.put(n, 0.0, "abcde"[n % 5])
    for _ in range(takers):
        shop.ask("xyz", 3, 0.0)  # they wait for something else
    shop.go(0.0)
    best = float("inf")
    for _ in range(5):
        began = thread_time()  # whatever else the machine does
        for _ in range(100):
            shop.ask("abcde", 1, 0.0)
            (id,) = shop.go(0.0)
            shop.end(id, 0.0)
        best = min(best, thread_time() - began)
    return 100 / best


@pytest.mark.parametrize(("waiting", "takers"), [(50_000, 0), (1_000, 5_000)])
def test_a_request_costs_as_much_however_many_wait(waiting: int, takers: int) -> None:
    assert grants_per_s(waiting, takers) > grants_per_s(1_000, 0) / 3
