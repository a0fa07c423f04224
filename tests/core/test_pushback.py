"""What an upstream's answers do to its gate: pushback, bans and the breaker."""

from __future__ import annotations

import pytest

from headway.core import (
    BreakerRule,
    Core,
    GatePolicy,
    Outcome,
    PushbackRule,
    Scope,
    State,
    Ticket,
)
from headway.core.limits import Breaker
from tests.core.kit import INF, Y, ask, core_with, end, going, start

UNWELL = Outcome.failed("500", status=500, upstream_fault=True, fatal=True)
PUSH = Outcome.pushback()


def opens_at(core: Core, name: str = "x.com") -> float:
    return core.gate("upstream", name).opens_at


# --- pushback


def test_retry_after_closes_the_upstream_for_everybody_and_for_nobody_else() -> None:
    core = core_with()
    ticket = start(core, "a", 0.0, tenant="t1")
    end(core, ticket, 10.0, Outcome.pushback(retry_after_s=30.0))
    ask(core, "b", 10.0, tenant="t2", lane="other")
    start(core, "elsewhere", 10.0, upstreams=Y)
    assert going(core, 39.9) == []
    assert core.next_wakeup() == 40.0
    assert sorted(map(str, going(core, 40.0))) == ["a", "b"]


def test_nobody_slips_in_between_the_pushback_and_the_closing() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1)})
    ticket = start(core, "a")
    ask(core, "b")
    end(core, ticket, 1.0, Outcome.pushback(retry_after_s=5.0))
    assert going(core, 1.0) == []


def test_the_job_waits_at_the_gate_and_burns_nothing() -> None:
    core = core_with()
    ticket = start(core, "a", type="check")
    end(core, ticket, 1.0, Outcome.pushback(retry_after_s=5.0))
    assert ticket.state is State.QUEUED
    assert ticket.tries is not None
    assert ticket.tries.burnt == 0


def test_without_retry_after_the_hold_grows_and_is_capped() -> None:
    rule = PushbackRule(hold_s=2.0, growth=2.0, max_hold_s=10.0)
    core = core_with(upstream={"x.com": GatePolicy(pushback=rule)})
    ticket = ask(core, "a")
    now, holds = 0.0, []
    for _ in range(5):
        assert going(core, now) == ["a"]
        end(core, ticket, now, PUSH)
        holds.append(opens_at(core) - now)
        now = opens_at(core)
    assert holds == [2.0, 4.0, 8.0, 10.0, 10.0]


def test_a_call_that_goes_well_makes_the_next_pushback_the_first_again() -> None:
    core = core_with()
    ticket = ask(core, "a")
    for now in (0.0, 2.0):
        going(core, now)
        end(core, ticket, now, PUSH)
    end(core, start(core, "well", 10.0), 10.0)
    end(core, ticket, 11.0, PUSH)
    assert opens_at(core) == 13.0


def test_a_call_sent_before_the_pushback_proves_nothing_when_it_goes_well() -> None:
    core = core_with()
    old, ticket = start(core, "old"), start(core, "a")
    end(core, ticket, 1.0, PUSH)
    end(core, old, 2.0)
    going(core, 3.0)
    end(core, ticket, 4.0, PUSH)
    assert opens_at(core) == 8.0  # the second in a row: 4 s


def test_a_limit_above_what_the_upstream_bears_does_not_close_it_for_longer_and_longer() -> None:
    """Of each crowd that is let in, the upstream takes some and refuses the others."""
    core = core_with()
    now, waits = 0.0, []
    for crowd in range(8):
        tickets = [start(core, (crowd, n), now, retries=False) for n in range(4)]
        end(core, tickets[0], now + 0.1, PUSH)
        waits.append(round(opens_at(core) - now - 0.1, 3))
        for ticket in tickets[1:]:
            end(core, ticket, now + 0.5)
        now = opens_at(core)
    assert waits == [2.0] + [4.0] * 7


def test_an_upstream_that_takes_nothing_is_left_alone_for_longer_and_longer() -> None:
    core = core_with()
    now, waits = 0.0, []
    for crowd in range(5):
        tickets = [start(core, (crowd, n), now, retries=False) for n in range(4)]
        for ticket in tickets:
            end(core, ticket, now + 0.1, PUSH)
        waits.append(round(opens_at(core) - now - 0.1, 3))
        now = opens_at(core)
    assert waits == [2.0, 4.0, 8.0, 16.0, 32.0]


def test_a_long_quiet_spell_makes_the_next_pushback_the_first_again() -> None:
    core = core_with(upstream={"x.com": GatePolicy(pushback=PushbackRule(max_hold_s=50.0))})
    end(core, start(core, "a", retries=False), 0.0, PUSH)
    end(core, start(core, "b", 100.0, retries=False), 100.0, PUSH)
    assert opens_at(core) == 104.0
    end(core, start(core, "c", 201.0, retries=False), 201.0, PUSH)
    assert opens_at(core) == 203.0


def test_all_429s_of_calls_sent_before_the_first_came_back_count_once() -> None:
    core = core_with()
    tickets = [start(core, n) for n in range(10)]
    for n, ticket in enumerate(tickets):
        end(core, ticket, 1.0 + n * 0.01, PUSH)
    assert opens_at(core) == pytest.approx(1.09 + 2.0)
    assert core.gate("upstream", "x.com").door.streak == 1


def test_a_ban_closes_for_minutes_and_a_longer_retry_after_for_longer() -> None:
    core = core_with()
    end(core, start(core, "a"), 0.0, Outcome.pushback(status=412, ban=True))
    assert opens_at(core) == 600.0
    end(core, start(core, "b", upstreams=Y), 0.0, Outcome.pushback(ban=True, retry_after_s=900.0))
    assert opens_at(core, "y.com") == 900.0


def test_a_pushback_of_one_tenant_closes_only_that_tenant_there() -> None:
    core = core_with()
    ticket = start(core, "a1", tenant="a")
    end(core, ticket, 0.0, Outcome.pushback(retry_after_s=30.0, scope=Scope.TENANT))
    ask(core, "b1", tenant="b")
    ask(core, "a2", tenant="a", upstreams=Y)
    assert sorted(map(str, going(core, 1.0))) == ["a2", "b1"]
    assert core.next_wakeup() == 30.0
    assert going(core, 30.0) == ["a1"]


def test_a_shorter_retry_after_never_ends_a_longer_one() -> None:
    core = core_with()
    first, second = start(core, "a"), start(core, "b")
    end(core, first, 0.0, Outcome.pushback(retry_after_s=100.0))
    end(core, second, 1.0, Outcome.pushback(retry_after_s=5.0))
    assert opens_at(core) == 100.0


def test_the_reason_says_what_was_answered() -> None:
    core = core_with()
    end(core, start(core, "a"), 0.0, Outcome.pushback(status=503, retry_after_s=30.0))
    assert core.gate("upstream", "x.com").door.closed_why == "503 pushback, Retry-After 30 s"


def test_a_negative_retry_after_is_refused() -> None:
    for value in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="retry_after_s"):
            Outcome.pushback(retry_after_s=value)


# --- breaker


def breaker_core(**rule: float) -> Core:
    return core_with(upstream={"x.com": GatePolicy(breaker=BreakerRule(**rule))})  # type: ignore[arg-type]


def breaker_of(core: Core) -> Breaker:
    (limit,) = core.gate("upstream", "x.com").limits
    assert isinstance(limit, Breaker)
    return limit


def answer(core: Core, now: float, *outcomes: Outcome) -> None:
    """Calls that go and come back one after the other at this moment."""
    for n, outcome in enumerate(outcomes):
        end(core, start(core, (now, n), now, retries=False), now, outcome)


OK = Outcome.ok()


def test_four_bad_answers_in_a_row_open_it() -> None:
    core = breaker_core(burst_at_least=100, at_least=100)
    answer(core, 0.0, UNWELL, UNWELL, UNWELL, OK, UNWELL, UNWELL, UNWELL)
    assert breaker_of(core).state == "closed"
    answer(core, 1.0, UNWELL)
    assert (breaker_of(core).state, opens_at(core)) == ("open", 61.0)


def test_a_fifth_of_at_least_eight_opens_it() -> None:
    core = breaker_core(burst_at_least=100)
    answer(core, 0.0, OK, OK, OK, UNWELL, OK, OK)
    answer(core, 1.0, UNWELL)  # 2 of 7
    assert breaker_of(core).state == "closed"
    answer(core, 2.0, OK, UNWELL)
    assert breaker_of(core).state == "open"


def test_less_than_a_fifth_does_not_open_it() -> None:
    core = breaker_core()
    answer(core, 0.0, *[OK] * 9, UNWELL)
    assert breaker_of(core).state == "closed"


def test_a_burst_of_three_fifths_of_at_least_four_opens_it() -> None:
    core = breaker_core(in_a_row=100, at_least=100)
    answer(core, 0.0, UNWELL, OK, UNWELL)
    assert breaker_of(core).state == "closed"  # only three answers yet
    answer(core, 1.0, UNWELL)
    assert breaker_of(core).state == "open"


def test_what_is_older_than_the_window_does_not_count() -> None:
    core = breaker_core(in_a_row=100, window_s=60.0)
    answer(core, 0.0, UNWELL, UNWELL, UNWELL)
    answer(core, 60.0, UNWELL, OK, OK, OK)
    assert breaker_of(core).state == "closed"


def test_failures_that_say_nothing_about_the_upstream_do_not_count() -> None:
    core = breaker_core()
    answer(core, 0.0, *[Outcome.failed("404", fatal=True)] * 20)
    assert breaker_of(core).state == "closed"


def test_pushbacks_count() -> None:
    core = breaker_core()
    tickets = [start(core, n) for n in range(4)]
    for ticket in tickets:
        end(core, ticket, 1.0, Outcome.pushback(status=503, retry_after_s=5.0))
    assert breaker_of(core).state == "open"


def opened() -> tuple[Core, list[Ticket]]:
    """A breaker that opened at 0, with two tickets that wait for 60."""
    core = breaker_core()
    answer(core, 0.0, UNWELL, UNWELL, UNWELL, UNWELL)
    waiting = [ask(core, id) for id in ("probe", "behind")]
    assert going(core, 59.9) == []
    assert core.next_wakeup() == 60.0
    return core, waiting


def test_it_lets_one_probe_through_and_nobody_else() -> None:
    core, _ = opened()
    assert going(core, 60.0) == ["probe"]
    assert breaker_of(core).state == "half_open"
    assert going(core, 70.0) == []


def test_a_probe_that_comes_back_well_closes_it() -> None:
    core, (probe, _) = opened()
    going(core, 60.0)
    end(core, probe, 62.0)
    assert breaker_of(core).state == "closed"
    assert going(core, 62.0) == ["behind"]
    answer(core, 63.0, UNWELL, UNWELL)  # old sins are forgotten
    assert breaker_of(core).state == "closed"


def test_a_probe_that_fails_opens_it_for_another_while() -> None:
    core, (probe, _) = opened()
    going(core, 60.0)
    end(core, probe, 62.0, UNWELL)
    assert (breaker_of(core).state, opens_at(core)) == ("open", 122.0)
    assert going(core, 121.0) == []
    assert going(core, 122.0) == ["behind"]


@pytest.mark.parametrize("outcome", [Outcome.cancelled(), Outcome.failed("404", fatal=True)])
def test_a_probe_that_says_nothing_lets_the_next_one_try(outcome: Outcome) -> None:
    core, (probe, _) = opened()
    going(core, 60.0)
    end(core, probe, 62.0, outcome)
    assert going(core, 62.0) == ["behind"]
    assert breaker_of(core).state == "half_open"


def test_a_probe_whose_lease_is_lost_lets_the_next_one_try() -> None:
    core, (probe, _) = opened()
    core.lease_s = 20.0
    assert going(core, 60.0) == ["probe"]
    assert len(going(core, 80.0)) == 1
    assert breaker_of(core).state == "half_open"
    assert probe.tries is not None
    assert probe.tries.lost == 1


def test_a_probe_that_stays_away_for_too_long_lets_the_next_one_try() -> None:
    core, (probe, behind) = opened()
    going(core, 60.0)
    assert going(core, 119.0) == []
    assert going(core, 120.0) == ["behind"]
    end(core, probe, 121.0)  # the probe is another one by now: this proves nothing
    assert breaker_of(core).state == "half_open"
    end(core, behind, 122.0)
    assert breaker_of(core).state == "closed"


def test_calls_sent_before_it_opened_prolong_it_but_never_close_it() -> None:
    core = breaker_core()
    early = [start(core, f"early {n}", retries=False) for n in range(2)]
    answer(core, 0.0, UNWELL, UNWELL, UNWELL, UNWELL)
    end(core, early[0], 10.0)
    assert (breaker_of(core).state, opens_at(core)) == ("open", 60.0)
    end(core, early[1], 20.0, UNWELL)
    assert opens_at(core) == 80.0


def test_it_hears_answers_of_calls_that_held_no_permit() -> None:
    core = breaker_core()
    ask(core, "a", not_before=5.0)
    for _ in range(4):
        core.gates.report("x.com", UNWELL, 1.0)
    assert going(core, 60.0) == []
    core.gates.report("x.com", OK, 60.5)
    assert going(core, 60.5) == ["a"]


def test_an_operator_may_open_the_gate_but_the_first_is_still_a_probe() -> None:
    core, _ = opened()
    core.gates.open("upstream", "x.com", 59.95)
    assert going(core, 59.95) == ["probe"]
    assert breaker_of(core).state == "half_open"


def test_a_breaker_keeps_its_state_when_settings_change() -> None:
    core, _ = opened()
    core.gates.declare("upstream", "x.com", GatePolicy(cap=5, breaker=BreakerRule()), 59.95)
    assert going(core, 59.96) == []
    assert going(core, 60.0) == ["probe"]


def test_one_unwell_upstream_leaves_the_others_alone() -> None:
    core, _ = opened()
    start(core, "elsewhere", 59.95, upstreams=Y)
    assert opens_at(core, "y.com") == -INF
