"""A ticket whose deadline is near goes before what else its tenant has waiting."""

from __future__ import annotations

from headway.core import GatePolicy, Outcome, State
from tests.core.kit import ask, core_with, end, going, start

ONE = GatePolicy(cap=1)
HOUR = 3600.0


def test_a_deadline_far_away_changes_nothing() -> None:
    core = core_with(upstream={"x.com": ONE}, lease_s=1e6)
    holder = start(core, "holder", 0.0)
    ask(core, "dated", 1.0, deadline=24 * HOUR, priority=5)
    ask(core, "urgent", 2.0, priority=2)
    end(core, holder, 3.0)
    assert going(core, 3.0) == ["urgent"]


def test_in_the_last_quarter_of_its_time_it_goes_first() -> None:
    core = core_with(upstream={"x.com": ONE}, lease_s=1e6)
    holder = start(core, "holder", 0.0)
    ask(core, "dated", 0.0, deadline=4000.0, priority=9)
    ask(core, "foremost", 3100.0, priority=1)
    end(core, holder, 3100.0)
    assert going(core, 3100.0) == ["dated"]


def test_before_that_it_stands_where_its_priority_puts_it() -> None:
    core = core_with(upstream={"x.com": ONE}, lease_s=1e6)
    holder = start(core, "holder", 0.0)
    ask(core, "dated", 0.0, deadline=4000.0, priority=9)
    ask(core, "better", 2000.0, priority=5)
    end(core, holder, 2900.0)
    assert going(core, 2900.0) == ["better"]


def test_it_rises_within_its_tenant_only() -> None:
    core = core_with(upstream={"x.com": ONE}, lease_s=1e6)
    holder = start(core, "holder", 0.0, tenant="dated")
    ask(core, "dated", 0.0, deadline=4000.0, tenant="dated")
    ask(core, "other", 3500.0, tenant="other")
    end(core, holder, 3500.0)  # its tenant has used all of the time so far
    assert going(core, 3500.0) == ["other"]


def test_a_pin_still_goes_before_it() -> None:
    core = core_with(upstream={"x.com": ONE}, lease_s=1e6)
    holder = start(core, "holder", 0.0)
    ask(core, "dated", 0.0, deadline=4000.0)
    ask(core, "pinned", 0.0)
    core.pin("pinned", 1.0)
    end(core, holder, 3900.0)
    assert going(core, 3900.0) == ["pinned"]


def test_one_that_was_put_back_has_risen_too() -> None:
    core = core_with(upstream={"x.com": ONE}, lease_s=1e6)
    dated = start(core, "dated", 0.0, deadline=4000.0, priority=9)
    ask(core, "foremost", 3300.0, priority=1)
    end(core, dated, 3400.0, Outcome.returned())
    assert going(core, 3400.0) == ["dated"]


def test_a_whole_batch_that_rises_at_once_does_so_in_steps() -> None:
    core = core_with(upstream={"x.com": ONE}, lease_s=1e6)
    start(core, "holder", 0.0)
    for number in range(1200):
        ask(core, number, 0.0, deadline=4000.0)
    core.advance(3000.0)
    assert core.next_wakeup() <= 3000.0  # there is more to do at once
    for step in range(3):
        core.advance(3000.001 + step / 1000)
    assert core.next_wakeup() == 4000.0
    core.advance(4000.0)
    assert core.tickets["holder"].state is State.RUNNING
    assert len(core.tickets) == 1, "those that were not served in time have failed"


def test_one_that_waited_for_other_jobs_rises_too() -> None:
    """Until those are done nobody knows when it is due."""
    core = core_with(upstream={"x.com": ONE}, lease_s=1e6)
    holder = start(core, "holder", 0.0)
    ask(core, "dated", 0.0, not_before=1e11, deadline=4000.0, priority=9)
    core.reschedule("dated", 0.0, 100.0)
    ask(core, "foremost", 3500.0, priority=1)
    end(core, holder, 3500.0)
    assert going(core, 3500.0) == ["dated"]
