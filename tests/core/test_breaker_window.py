"""How long a breaker stays open, what it was told last, and what it knows after a restart."""

from __future__ import annotations

import json

import pytest

from headway.core import BreakerRule, Core, GatePolicy, Outcome
from headway.core.limits import Breaker
from headway.core.memory import dump, load
from tests.core.kit import INF, ask, core_with, end, going, start

RULE = BreakerRule(in_a_row=3, open_s=60.0)
X = "x.com"


def bad(status: int = 503) -> Outcome:
    return Outcome.failed("unwell", status=status, upstream_fault=True)


def tripped(at: float = 100.0, rule: BreakerRule = RULE) -> Breaker:
    breaker = Breaker(rule)
    for _ in range(rule.in_a_row):
        breaker.heard(at, bad())
    assert breaker.state == "open"
    return breaker


def with_breaker(rule: BreakerRule = RULE) -> Core:
    return core_with(upstream={X: GatePolicy(breaker=rule)})


def breaker_of(core: Core) -> Breaker:
    breaker = core.gates.breaker_of(X)
    assert breaker is not None
    return breaker


def trip(core: Core, at: float, times: int = 3) -> Breaker:
    for _ in range(times):
        core.gates.report(X, bad(), at)
    return breaker_of(core)


# --- what it was told last


def test_it_knows_the_last_bad_answer_and_when_it_came() -> None:
    breaker = Breaker(RULE)
    assert (breaker.bad_at, breaker.status) == (-INF, None)
    breaker.heard(1.0, bad(500))
    breaker.heard(2.0, bad(429))
    assert (breaker.bad_at, breaker.status) == (2.0, 429)
    breaker.heard(3.0, Outcome.ok(status=200))
    breaker.heard(4.0, Outcome.failed("a mistake of ours", status=404))
    assert (breaker.bad_at, breaker.status) == (2.0, 429), "good ones say nothing about that"


def test_bad_news_of_calls_from_before_it_opened_keeps_it_open() -> None:
    core = with_breaker()
    old = [start(core, n) for n in range(2)]
    breaker = trip(core, 10.0)
    end(core, old[0], 20.0, bad(500))
    assert (breaker.bad_at, breaker.status, breaker.opens_at) == (20.0, 500, 80.0)
    end(core, old[1], 30.0)
    assert (breaker.state, breaker.opens_at) == ("open", 80.0), "good news of those says nothing"


# --- how long it stays open


def test_it_stays_open_as_long_as_somebody_says_from_the_last_bad_answer() -> None:
    breaker = tripped(100.0)
    assert breaker.opens_at == 160.0
    breaker.stay_open(300.0)
    assert breaker.opens_at == 400.0
    breaker.stay_open(10.0)
    assert breaker.opens_at == 110.0
    breaker.heard(105.0, bad())
    assert breaker.opens_at == 115.0, "from now on that is how long"


def test_a_closed_one_remembers_it_for_when_it_opens() -> None:
    breaker = Breaker(RULE)
    breaker.stay_open(5.0)
    assert (breaker.state, breaker.opens_at) == ("closed", -INF)
    for _ in range(3):
        breaker.heard(100.0, bad())
    assert breaker.opens_at == 105.0


def test_a_probe_is_not_called_back() -> None:
    core = with_breaker()
    breaker = trip(core, 0.0)
    probe = start(core, "probe", 60.0)
    assert breaker.state == "half_open"
    core.gates.keep_breaker_open(X, 300.0, 61.0)
    assert (breaker.state, breaker.opens_at) == ("half_open", 120.0)
    end(core, probe, 62.0, bad())
    assert (breaker.state, breaker.opens_at) == ("open", 362.0)


def test_whoever_waits_goes_when_the_new_time_has_come() -> None:
    core = with_breaker()
    trip(core, 0.0)
    ask(core, "a", 1.0)
    assert going(core, 1.0) == []
    core.gates.keep_breaker_open(X, 20.0, 2.0)
    assert core.next_wakeup() == 20.0
    assert going(core, 20.0) == ["a"]


def test_whoever_waits_waits_longer_when_the_new_time_is_later() -> None:
    core = with_breaker()
    trip(core, 0.0)
    ask(core, "a", 1.0)
    core.gates.keep_breaker_open(X, 200.0, 2.0)
    assert going(core, 60.0) == []
    assert going(core, 199.9) == []
    assert going(core, 200.0) == ["a"]


def test_it_is_stored_when_somebody_says_how_long() -> None:
    core = with_breaker()
    trip(core, 0.0)
    core.admission.touched.clear()
    core.gates.keep_breaker_open(X, 60.0, 1.0)
    assert core.admission.touched == set(), "nothing new"
    core.gates.keep_breaker_open(X, 200.0, 1.0)
    assert [gate.name for gate in core.admission.touched] == [X]


def test_where_there_is_no_breaker_nothing_is_made_for_it() -> None:
    core = core_with()
    core.gates.keep_breaker_open("nobody.com", 200.0, 1.0)
    assert core.gates.breaker_of("nobody.com") is None
    assert ("upstream", "nobody.com") not in core.admission.atlas.gates


# --- other settings


def test_other_settings_keep_what_it_has_heard() -> None:
    core = with_breaker()
    trip(core, 0.0)
    core.gates.declare("upstream", X, GatePolicy(breaker=BreakerRule(open_s=5.0)), 1.0)
    breaker = breaker_of(core)
    assert (breaker.state, breaker.opens_at, breaker.status) == ("open", 60.0, 503)
    assert (breaker.open_s, breaker.bad_at) == (5.0, 0.0)


@pytest.mark.parametrize(("said_s", "then_s"), [(None, 5.0), (200.0, 200.0)])
def test_what_somebody_said_goes_before_the_rule_and_an_old_rule_does_not(
    said_s: float | None, then_s: float
) -> None:
    old, new = Breaker(RULE), Breaker(BreakerRule(open_s=5.0))
    if said_s is not None:
        old.stay_open(said_s)
    new.adopt(old)
    assert new.open_s == then_s


# --- restarts


def again(breaker: Breaker, rule: BreakerRule = RULE) -> Breaker:
    """What the next engine has, after what it knew has been text."""
    fresh = Breaker(rule)
    fresh.load(json.loads(json.dumps(breaker.dump())))
    return fresh


def test_an_open_one_is_as_open_after_a_restart() -> None:
    breaker = tripped(100.0)
    breaker.stay_open(300.0)
    fresh = again(breaker)
    assert (fresh.state, fresh.opens_at, fresh.open_s) == ("open", 400.0, 300.0)
    assert (fresh.bad_at, fresh.status) == (100.0, 503)
    fresh.stay_open(20.0)
    assert fresh.opens_at == 120.0


def test_a_closed_one_goes_on_counting_after_a_restart() -> None:
    breaker = Breaker(RULE)
    breaker.heard(100.0, bad())
    breaker.heard(101.0, bad(429))
    fresh = again(breaker)
    assert (fresh.state, fresh.bad_at, fresh.status) == ("closed", 101.0, 429)
    fresh.heard(102.0, bad())
    assert fresh.state == "open"


def test_the_rule_of_today_holds_unless_somebody_has_said_so() -> None:
    breaker = tripped()
    assert again(breaker, BreakerRule(open_s=5.0)).open_s == 5.0
    breaker.stay_open(200.0)
    assert again(breaker, BreakerRule(open_s=5.0)).open_s == 200.0


def test_what_an_older_version_has_stored_is_understood() -> None:
    breaker = Breaker(RULE)
    breaker.load({"tripped": True, "opens_at": 160.0, "seen": [[100.0, 1, True]]})
    assert (breaker.state, breaker.opens_at, breaker.open_s) == ("open", 160.0, 60.0)
    assert (breaker.bad_at, breaker.status) == (-INF, None)


def test_one_that_has_heard_nothing_is_not_stored() -> None:
    breaker = Breaker(RULE)
    assert breaker.dump() is None
    breaker.heard(1.0, Outcome.ok())
    assert "bad_at" not in breaker.dump()


def test_a_gate_has_its_breaker_back() -> None:
    core, fresh = with_breaker(), with_breaker()
    trip(core, 10.0)
    core.gates.keep_breaker_open(X, 100.0, 11.0)
    state = dump(core, core.gate("upstream", X))
    assert state is not None
    load(fresh, ("upstream", X, ""), json.loads(json.dumps(state)), 20.0)
    ask(fresh, "a", 20.0)
    assert going(fresh, 109.9) == []
    assert going(fresh, 110.0) == ["a"]
