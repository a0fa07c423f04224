"""Adding a kind of gate takes one file (region_gate.py here) and one line of registration."""

from __future__ import annotations

from random import Random

from headway.core import Core, GatePolicy, Outcome, Policies, Ticket
from headway.core.kinds import KINDS
from tests.core.region_gate import Region

KINDS_WITH_REGIONS = (*KINDS, Region())  # the one line


def core() -> Core:
    policies = Policies()
    policies.declare("region", "eu", GatePolicy(cap=1))
    return Core(policies, rng=Random(1), kinds=KINDS_WITH_REGIONS)


def ticket(id: int, region: str) -> Ticket:
    return Ticket(id, labels=(("region", region),))


def test_the_new_gate_limits_like_any_other() -> None:
    it = core()
    for id, region in enumerate(("eu", "eu", "us", "us")):
        it.submit(ticket(id, region), 0.0)
    permits = it.admit(0.0)
    assert [permit.ticket.id for permit in permits] == [0, 2, 3]
    it.finish(0, permits[0].fence, Outcome.ok(), 1.0)
    assert [permit.ticket.id for permit in it.admit(1.0)] == [1]


def test_it_can_be_paused_closed_and_explained() -> None:
    it = core()
    it.gates.pause("region", "us", 0.0)
    it.submit(ticket(1, "us"), 0.0)
    assert it.admit(0.0) == []
    assert (it.explain(1, 0.0).gate, it.explain(1, 0.0).reason) == ("region:us", "paused")
    it.gates.resume("region", "us", 1.0)
    it.gates.close("region", "us", 1.0, until=5.0, why="moving house")
    assert it.admit(1.0) == []
    assert it.next_wakeup() == 5.0
    assert [permit.ticket.id for permit in it.admit(5.0)] == [1]


def test_tickets_without_the_label_pass_by() -> None:
    it = core()
    it.gates.pause("region", "eu", 0.0)
    it.submit(Ticket(1), 0.0)
    assert len(it.admit(0.0)) == 1
