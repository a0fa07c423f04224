"""How long a lease lasts when its ticket says so itself."""

from __future__ import annotations

import pytest

from headway.core import GatePolicy, Outcome, State, Ticket
from tests.core.kit import X, ask, core_with, end, going, permit_of, start


@pytest.mark.parametrize(
    ("lease_s", "lasts_s"), [(0.0, 90.0), (10.0, 10.0), (0.5, 0.5), (1e6, 1e6)]
)
def test_a_lease_lasts_as_long_as_its_ticket_says(lease_s: float, lasts_s: float) -> None:
    core = core_with()
    permit = permit_of(start(core, "a", 5.0, lease_s=lease_s))
    assert (permit.lease_s, permit.expires_at) == (lasts_s, 5.0 + lasts_s)


def test_a_heartbeat_prolongs_it_by_as_much_again() -> None:
    core = core_with()
    permit = permit_of(start(core, "a", lease_s=10.0))
    assert core.heartbeat("a", permit.fence, 7.0) == 17.0
    core.renew([permit.fence], 12.0)
    assert permit.expires_at == 22.0
    assert core.heartbeat("a", permit.fence, 22.0) is None


def test_leases_of_different_lengths_end_each_at_its_time() -> None:
    core = core_with()
    tickets = {s: start(core, s, lease_s=s, retries=False) for s in (30.0, 5.0, 12.0)}
    for now, left in ((4.0, 3), (5.0, 2), (12.0, 1), (29.0, 1), (30.0, 0)):
        core.advance(now)
        assert sum(each.state is State.RUNNING for each in tickets.values()) == left
    assert core.next_wakeup() == float("inf")


def test_a_short_lease_frees_its_place_for_the_next() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1)})
    start(core, "short", lease_s=3.0, retries=False)
    ask(core, "next", 1.0)
    assert going(core, 2.9) == []
    assert going(core, 3.0) == ["next"]


def test_a_key_is_not_locked_for_longer_than_the_core_allows() -> None:
    core = core_with(max_key_hold_s=60.0)
    ticket = start(core, "a", key="k", lease_s=600.0)
    assert permit_of(ticket).expires_at == 60.0
    assert core.heartbeat("a", permit_of(ticket).fence, 50.0) == 60.0


def test_every_attempt_has_the_same_lease() -> None:
    core = core_with()
    ticket = start(core, "a", lease_s=10.0)
    end(core, ticket, 1.0, Outcome.returned())
    assert going(core, 1.0) == ["a"]
    assert permit_of(ticket).expires_at == 11.0


def test_a_lease_that_is_restored_goes_on_with_its_own_length() -> None:
    core = core_with()
    ticket = Ticket("a", upstreams=X, lease_s=10.0)
    permit = core.restore(ticket, 100.0, fence=7, upstream="x.com", granted_at=95.0,
                          expires_at=105.0)  # fmt: skip
    assert permit.expires_at == 105.0
    assert core.heartbeat("a", 7, 104.0) == 114.0
