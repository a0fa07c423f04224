"""Workers of every kind come, go and take at random, beside jobs that run here: what must hold
whatever happens.
"""

from __future__ import annotations

from random import Random

import pytest

from headway.core import Core, GatePolicy, Outcome, PaceRule, Permit, State, Ticket
from headway.engine.hands import RemoteStop, RemoteWork
from headway.engine.hands.remote import Taker
from headway.engine.hands.worker_gates import WorkerGates, WorkerPolicies
from headway.engine.registry import REMOTE, WORK

TYPES = "abcde"
LOCAL = "here"
STEPS = 150


def deaf(_works: list[RemoteWork], _stops: list[RemoteStop]) -> None:
    """Nobody is told anything here."""


class Turmoil:
    """A bare core with the gates of workers, and an outside view of who asked for what."""

    def __init__(self, seed: int, *, plain: bool) -> None:
        self.rng = Random(seed)
        self.plain = plain  # one tenant, and nothing but workers to wait for: the order is strict
        policies = WorkerPolicies()
        policies.declare("upstream", "narrow", GatePolicy(cap=2))
        policies.declare("upstream", "paced", GatePolicy(pace=PaceRule(3.0)))
        policies.declare("lane", "side", GatePolicy(cap=2))
        policies.declare("tool", "ffmpeg", GatePolicy(cap=1))
        self.core = Core(policies, rng=Random(seed), patience_s=5.0)
        self.gates = policies.gates = WorkerGates(self.core)
        self.now = 1_000.0
        self.next_id = 0
        self.waiting: list[Taker] = []
        self.running: list[Permit] = []
        self.fences: set[int] = set()

    # ------------------------------------------------------------------ what happens

    def submit(self) -> None:
        rng = self.rng
        self.next_id += 1
        type = rng.choice((*TYPES, LOCAL))
        elsewhere = () if type == LOCAL else (REMOTE, WORK + type)
        priority = rng.randint(1, 9)
        if self.plain:
            ticket = Ticket(self.next_id, type=type, tools=elsewhere, priority=priority)
        else:
            ticket = Ticket(
                self.next_id,
                type=type,
                lane=rng.choice(["default", "default", "side"]),
                tools=(*rng.choice([(), (), (), ("ffmpeg",)]), *elsewhere),
                upstreams=rng.choice([(), (), ("narrow",), ("paced",), ("narrow", "paced")]),
                key=rng.choice([None, None, None, "k1", "k2"]),
                tenant=rng.choice(["ann", "bob"]),
                priority=priority,
            )
        self.core.submit(ticket, self.now)

    def ask(self) -> None:
        types = self.rng.sample(TYPES, self.rng.randint(1, len(TYPES)))
        taker = Taker("w", types, self.rng.choice([0, 1, 1, 2, 5]), deaf)
        self.gates.demand.join(taker)
        self.gates.named(taker.types, self.now)
        self.waiting.append(taker)

    def go_away(self) -> None:
        if self.waiting:
            taker = self.waiting.pop(self.rng.randrange(len(self.waiting)))
            assert self.gates.demand.leave(taker)

    def finish(self) -> None:
        if self.running:
            permit = self.running.pop(self.rng.randrange(len(self.running)))
            outcome = self.rng.choice(
                [Outcome.ok(), Outcome.ok(), Outcome.returned(), Outcome.pushback()]
            )
            assert self.core.finish(permit.ticket.id, permit.fence, outcome, self.now) is not None

    def cancel(self) -> None:
        queued = [each for each in self.core.tickets.values() if each.state is State.QUEUED]
        if queued:
            self.core.cancel(self.rng.choice(queued).id, self.now)

    # ------------------------------------------------------------------ a turn, and what must hold

    def turn(self) -> list[Permit]:
        self.gates.open_up(self.now)
        permits = self.core.admit(self.now)
        served = self.check_deals(permits)
        if self.plain:
            self.check_order(permits)
        for taker in served:
            assert self.gates.demand.leave(taker)
            self.waiting.remove(taker)
        self.gates.deals.clear()
        self.check_nobody_idles()
        self.running += permits
        self.core.renew([permit.fence for permit in self.running], self.now)
        return permits

    def check_deals(self, permits: list[Permit]) -> set[Taker]:
        got: dict[Taker, int] = {}
        for permit in permits:
            assert permit.fence not in self.fences, "granted twice"
            self.fences.add(permit.fence)
            taker = self.gates.deals.get(permit.fence)
            if permit.ticket.type == LOCAL:
                assert taker is None
                continue
            assert taker is not None, "nobody had asked for it"
            assert taker in self.waiting
            assert permit.ticket.type in taker.types
            got[taker] = got.get(taker, 0) + 1
        for taker, count in got.items():
            assert count <= taker.size
            assert taker.left == taker.size - count
        return set(got)

    def check_order(self, permits: list[Permit]) -> None:
        """Each job that was dealt is better than all that its taker could have had instead, and
        than all that it was dealt after it.
        """
        queued = [each for each in self.core.tickets.values() if each.state is State.QUEUED]
        last: dict[Taker, tuple[float, int]] = {}
        for permit in permits:
            ticket, taker = permit.ticket, self.gates.deals.get(permit.fence)
            if taker is None:
                continue
            place = (ticket.rank, ticket.seq)
            assert last.get(taker, (-1.0, 0)) < place
            last[taker] = place
            for other in queued:
                if other.type in taker.types:
                    assert place < (other.rank, other.seq), f"{ticket} went before {other}"

    def check_nobody_idles(self) -> None:
        """Every ticket whose type is asked for has a closed gate, or stands behind others."""
        for ticket in self.core.tickets.values():
            if ticket.state is not State.QUEUED or not self.gates.demand.wants(ticket.type):
                continue
            why = self.core.explain(ticket.id, self.now)
            assert why.reason != "behind", f"{ticket} waits for nothing: {why}"


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "mixed"])
@pytest.mark.parametrize("seed", range(40))
def test_whatever_workers_do_nobody_gets_too_much_and_everything_drains(
    seed: int, plain: bool
) -> None:
    it = Turmoil(seed, plain=plain)
    happenings = [it.submit, it.submit, it.submit, it.ask, it.ask, it.finish, it.finish,
                  it.go_away, it.cancel]  # fmt: skip
    for _ in range(STEPS):
        for _ in range(it.rng.randint(0, 5)):
            it.rng.choice(happenings)()
        it.turn()
        it.now += it.rng.choice([0.0, 0.5, 2.0, 10.0])
    rounds = 0
    while it.core.tickets:
        rounds += 1
        assert rounds < 2_000, f"{it.core.tickets} never went"
        it.ask()
        for permit in it.running:
            assert it.core.finish(permit.ticket.id, permit.fence, Outcome.ok(), it.now) is not None
        it.running.clear()
        it.turn()
        it.now += 5.0
    assert it.core.admission.reservations == {}
    assert [gate for gate in it.core.admission.atlas.all_gates() if gate.reserved_for] == []
    for taker in list(it.waiting):
        assert it.gates.demand.leave(taker)
    demand = it.gates.demand
    assert (demand.takers, demand.crowds, demand._heaps, demand._wanting) == ({}, {}, {}, {})
