"""Other upstreams for a ticket that waits."""

from __future__ import annotations

from headway.core import GatePolicy, State
from tests.core.kit import X, Y, ask, core_with, end, going, start

CLOSED = GatePolicy(cap=0)


def test_it_stands_at_its_new_upstream_and_no_more_at_the_old_one() -> None:
    core = core_with(upstream={"x.com": CLOSED})
    ask(core, "a", 0.0)
    assert going(core, 0.0) == []
    core.reroute("a", Y, 1.0)
    assert going(core, 1.0) == ["a"]
    assert core.gates.waiting("x.com", "") == (0, 0)


def test_it_keeps_its_place_in_time() -> None:
    core = core_with(upstream={"x.com": CLOSED, "y.com": GatePolicy(cap=1)})
    holder = start(core, "holder", 0.0, upstreams=Y)
    ask(core, "first", 0.0)
    ask(core, "second", 1.0, upstreams=Y)
    core.reroute("first", Y, 2.0)
    end(core, holder, 3.0)
    assert going(core, 3.0) == ["first"]


def test_from_one_candidate_to_several_and_back() -> None:
    core = core_with(upstream={"x.com": CLOSED, "y.com": CLOSED, "z.com": GatePolicy()})
    ask(core, "a", 0.0)
    core.reroute("a", ("x.com", "y.com"), 1.0)
    assert going(core, 1.0) == []
    core.reroute("a", X, 2.0)
    core.reroute("a", ("y.com", "z.com"), 3.0)
    assert going(core, 3.0) == ["a"]


def test_what_runs_ends_where_it_is_and_goes_elsewhere_the_next_time() -> None:
    core = core_with()
    ticket = start(core, "a", 0.0)
    core.reroute("a", Y, 1.0)
    assert ticket.state is State.RUNNING
    assert [*core.gate("upstream", "x.com").leases] != []
    end(core, ticket, 2.0)
    assert [*core.gate("upstream", "x.com").leases] == []


def test_an_ordered_one_goes_on_in_its_order() -> None:
    core = core_with(upstream={"x.com": CLOSED})
    ask(core, "a", 0.0, key="k", ordered="pass")
    ask(core, "b", 0.0, key="k", ordered="pass")
    core.reroute("b", Y, 1.0)
    assert going(core, 1.0) == []
    core.reroute("a", Y, 2.0)
    assert going(core, 2.0) == ["a"]
