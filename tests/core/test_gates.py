"""Gates: how many at once, how often, closed until when, and for whom."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from headway.core import (
    Core,
    GatePolicy,
    Outcome,
    PaceRule,
    Policies,
    QuietRule,
    State,
    Ticket,
)
from tests.core.kit import INF, X, Y, ask, core_with, end, going, start

HOUR, DAY = 3600.0, 86_400.0


def grants(core: Core, count: int, now: float = 0.0) -> list[float]:
    """The moments at which so many tickets go when each works for no time at all."""
    for n in range(count):
        ask(core, (now, n), now)
    moments: list[float] = []
    while len(moments) < count:
        for permit in core.admit(now):
            moments.append(now)
            end(core, permit.ticket, now)
        if len(moments) < count:
            now = max(now, core.next_wakeup())
            assert now < INF, "everybody sleeps for ever"
    return moments


# --- pool


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("everything", ""),
        ("type", "job"),
        ("lane", "default"),
        ("tool", "ffmpeg"),
        ("upstream", "x.com"),
    ],
)
def test_a_pool_is_never_exceeded_and_a_release_wakes_the_next(kind: str, name: str) -> None:
    core = core_with()
    core.policies.declare(kind, name, GatePolicy(cap=2))
    tickets = [ask(core, n, tools=("ffmpeg",)) for n in range(5)]
    assert going(core, 1.0) == [0, 1]
    assert going(core, 2.0) == []
    end(core, tickets[1], 3.0)
    assert going(core, 3.0) == [2]


def test_a_key_is_a_mutex_unless_declared_otherwise() -> None:
    core = core_with()
    for id in "ab":
        ask(core, id, key="feed:1")
    ask(core, "c", key="feed:2")
    assert going(core) == ["a", "c"]


def test_a_key_is_the_same_for_all_tenants_lanes_and_upstreams() -> None:
    core = core_with()
    holder = start(core, "a", key="k", tenant="t1", lane="l1", upstreams=X)
    ask(core, "b", key="k", tenant="t2", lane="l2", upstreams=Y)
    assert going(core, 1.0) == []
    end(core, holder, 2.0)
    assert going(core, 2.0) == ["b"]


def test_a_pool_of_a_tenant_holds_only_that_tenant() -> None:
    core = core_with(upstream={"x.com": GatePolicy(tenant=GatePolicy(cap=1))})
    for id in ("a1", "a2", "b1"):
        ask(core, id, tenant=id[0])
    assert sorted(going(core)) == ["a1", "b1"]


def test_a_cap_of_0_lets_nobody_in() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=0)})
    ask(core, "a")
    assert going(core, 100.0) == []


def test_a_closed_gate_does_not_hold_who_need_not_pass_it() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=0)})
    ask(core, "a", upstreams=X)
    ask(core, "b", upstreams=Y)
    assert going(core, 1.0) == ["b"]


# --- pace


def test_an_interval_is_kept() -> None:
    core = core_with(upstream={"x.com": GatePolicy(pace=PaceRule(2.0))})
    assert grants(core, 4) == [0.0, 2.0, 4.0, 6.0]


def test_a_burst_goes_at_once_after_a_rest_and_never_more() -> None:
    core = core_with(upstream={"x.com": GatePolicy(pace=PaceRule(2.0, burst=3))})
    assert grants(core, 5) == [0.0, 0.0, 0.0, 2.0, 4.0]
    assert grants(core, 4, 1000.0) == [1000.0, 1000.0, 1000.0, 1002.0]


def test_a_half_rest_gives_half_a_burst() -> None:
    core = core_with(upstream={"x.com": GatePolicy(pace=PaceRule(2.0, burst=3))})
    grants(core, 3)
    assert grants(core, 3, 4.0) == [4.0, 4.0, 6.0]


def test_per_minute_is_an_interval() -> None:
    assert PaceRule.per_minute(30) == PaceRule(2.0)
    with pytest.raises(ValueError, match="pause"):
        PaceRule.per_minute(0)


@pytest.mark.parametrize("seed", range(5))
def test_jitter_only_lengthens(seed: int) -> None:
    core = core_with(upstream={"x.com": GatePolicy(pace=PaceRule(2.0, jitter=0.5))}, seed=seed)
    moments = grants(core, 50)
    gaps = [after - before for before, after in pairwise(moments)]
    assert min(gaps) >= 2.0
    assert max(gaps) <= 3.0 + 1e-9
    assert len({round(gap, 6) for gap in gaps}) > 40


def test_by_cost_charges_the_cost() -> None:
    core = core_with(upstream={"x.com": GatePolicy(pace=PaceRule(0.1, by_cost=True))})
    for id, cost in (("a", 100.0), ("b", 0.0), ("c", 20.0), ("d", 1.0)):
        ask(core, id, cost=cost)
    assert going(core, 0.0) == ["a"]
    assert going(core, 9.9) == []
    assert going(core, 10.0) == ["b", "c"]
    assert going(core, 11.9) == []
    assert going(core, 12.0) == ["d"]


def test_a_tenant_has_a_pace_of_its_own() -> None:
    core = core_with(upstream={"x.com": GatePolicy(tenant=GatePolicy(pace=PaceRule(5.0)))})
    for id in ("a1", "a2", "b1"):
        ask(core, id, tenant=id[0])
    assert sorted(going(core, 0.0)) == ["a1", "b1"]
    assert core.next_wakeup() == 5.0
    assert going(core, 5.0) == ["a2"]


@pytest.mark.parametrize(
    "fields", [{"interval_s": -1.0}, {"interval_s": INF}, {"burst": 0}, {"jitter": -0.1}]
)
def test_a_pace_that_makes_no_sense_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"interval_s|burst|jitter"):
        PaceRule(**{"interval_s": 1.0, **fields})


# --- cooldown


def test_a_cooldown_counts_from_the_release() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1, cooldown_s=5.0)})
    ticket = start(core, "a")
    ask(core, "b")
    end(core, ticket, 10.0)
    assert going(core, 14.9) == []
    assert core.next_wakeup() == 15.0
    assert going(core, 15.0) == ["b"]


def test_a_cooldown_follows_an_attempt_of_any_end() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1, cooldown_s=5.0)})
    end(core, start(core, "a"), 10.0, Outcome.failed("no luck", fatal=True))
    ask(core, "b", 10.0)
    assert going(core, 14.0) == []


# --- minimum hold


def test_a_place_given_back_early_stays_taken() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1, min_hold_s=10.0)})
    ticket = start(core, "a", 100.0)
    ask(core, "b", 100.0)
    end(core, ticket, 101.0)
    assert going(core, 109.9) == []
    assert core.next_wakeup() == 110.0
    assert going(core, 110.0) == ["b"]


def test_a_place_given_back_late_is_free_at_once() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1, min_hold_s=10.0)})
    ticket = start(core, "a", 100.0)
    ask(core, "b", 100.0)
    end(core, ticket, 150.0)
    assert going(core, 150.0) == ["b"]


def test_places_come_free_one_after_the_other() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=4, min_hold_s=8.0)})
    tickets = [start(core, n) for n in range(4)]
    for n in range(4, 8):
        ask(core, n)
    for ticket in tickets:
        end(core, ticket, 1.0)
    freed = []
    while len(freed) < 4:
        now = core.next_wakeup()
        freed += [(now, id) for id in going(core, now)]
    assert freed == [(8.0, 4), (10.0, 5), (12.0, 6), (14.0, 7)]


@pytest.mark.parametrize(
    ("hit_at", "free_at"),
    [
        (None, 110.0),  # as if it had been called when the slot was given
        (103.0, 113.0),
        (90.0, 110.0),  # a clock that is slow: not before the grant
        (999.0, 116.0),  # a clock that is fast: not after the release
    ],
)
def test_the_hold_counts_from_the_hit_within_reason(hit_at: float | None, free_at: float) -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1, min_hold_s=10.0)})
    ticket = start(core, "a", 100.0)
    ask(core, "b", 100.0)
    end(core, ticket, 106.0, Outcome.ok(hit_at=hit_at))
    assert core.next_wakeup() == free_at
    assert going(core, free_at) == ["b"]


# --- quiet hours


def quiet_core(*windows: tuple[float, float], offset: Any = None) -> Core:
    rule = QuietRule(windows, offset) if offset else QuietRule(windows)
    core = core_with(upstream={"x.com": GatePolicy(quiet=rule)})
    core.gate("upstream", "x.com")
    return core


@pytest.mark.parametrize(
    ("window", "asked_at", "goes_at"),
    [
        ((2.0, 6.0), 1.0, 1.0),
        ((2.0, 6.0), 2.0, 6.0),
        ((2.0, 6.0), 5.99, 6.0),
        ((2.0, 6.0), 6.0, 6.0),
        ((22.0, 6.0), 21.0, 21.0),
        ((22.0, 6.0), 22.0, 30.0),
        ((22.0, 6.0), 23.0, 30.0),
        ((22.0, 6.0), 24.0, 30.0),
        ((22.0, 6.0), 25.0, 30.0),
        ((22.0, 6.0), 30.0, 30.0),
        ((22.0, 24.0), 23.0, 24.0),
    ],
)
def test_quiet_hours(window: tuple[float, float], asked_at: float, goes_at: float) -> None:
    core = quiet_core((window[0] * HOUR, window[1] * HOUR))
    ask(core, "a", asked_at * HOUR)
    now = asked_at * HOUR
    while not going(core, now):
        now = core.next_wakeup()
    assert now == pytest.approx(goes_at * HOUR)


def test_windows_that_touch_are_one() -> None:
    core = quiet_core((2 * HOUR, 3 * HOUR), (3 * HOUR, 4 * HOUR))
    ask(core, "a", 2.5 * HOUR)
    assert going(core, 3 * HOUR) == []
    assert core.next_wakeup() == 4 * HOUR
    assert going(core, 4 * HOUR) == ["a"]


def test_quiet_hours_are_local() -> None:
    core = quiet_core((2 * HOUR, 6 * HOUR), offset=lambda _: 8 * HOUR)
    ask(core, "a", DAY - 5 * HOUR)  # 3 o'clock in Shanghai
    assert going(core, DAY - 2 * HOUR - 1) == []
    assert going(core, DAY - 2 * HOUR) == ["a"]


def test_quiet_hours_end_when_the_clocks_say_so_also_when_they_jump() -> None:
    """At 3:00 UTC local time jumps ahead by an hour, so 6:00 local comes an hour early."""
    core = quiet_core((2 * HOUR, 6 * HOUR), offset=lambda now: HOUR if now >= 3 * HOUR else 0.0)
    ask(core, "a", 2.5 * HOUR)
    now, went = 2.5 * HOUR, []
    while not went:
        went, now = going(core, now), core.next_wakeup()
        assert now <= 6 * HOUR
    assert core.now == pytest.approx(5 * HOUR, abs=HOUR / 2)


def test_quiet_hours_do_not_end_too_early_when_the_clocks_go_back() -> None:
    """At 3:00 UTC local time falls back by an hour, so 6:00 local comes an hour late."""
    core = quiet_core((2 * HOUR, 6 * HOUR), offset=lambda now: -HOUR if now >= 3 * HOUR else 0.0)
    ask(core, "a", 2.5 * HOUR)
    for now in (3 * HOUR, 4 * HOUR, 5 * HOUR, 6 * HOUR, 7 * HOUR - 1):
        assert going(core, now) == []
    assert going(core, 7 * HOUR) == ["a"]


@pytest.mark.parametrize("window", [(-1.0, 5.0), (5.0, 5.0), (0.0, DAY + 1), (DAY, 5.0)])
def test_quiet_hours_that_make_no_sense_are_refused(window: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="quiet hours"):
        QuietRule((window,))


# --- closure


def test_a_closed_gate_opens_by_itself_at_the_time_given() -> None:
    core = core_with()
    core.gates.close("upstream", "x.com", 0.0, until=50.0, why="told to")
    ask(core, "a", 1.0)
    assert going(core, 49.0) == []
    assert core.next_wakeup() == 50.0
    assert going(core, 50.0) == ["a"]


@pytest.mark.parametrize("untils", [(50.0, 20.0), (20.0, 50.0)])
def test_the_longer_of_two_closures_wins(untils: tuple[float, float]) -> None:
    core = core_with()
    ask(core, "a")
    for until in untils:
        core.gates.close("upstream", "x.com", 0.0, until=until, why=f"until {until:g}")
    assert core.gate("upstream", "x.com").door.closed_why == "until 50"
    assert going(core, 49.0) == []
    assert going(core, 50.0) == ["a"]


def test_an_operator_may_end_a_closure() -> None:
    core = core_with()
    core.gates.close("upstream", "x.com", 0.0, until=1000.0, why="told to")
    ask(core, "a")
    core.gates.open("upstream", "x.com", 5.0)
    assert going(core, 5.0) == ["a"]


def test_a_tenant_may_be_shut_out_alone() -> None:
    core = core_with()
    core.gates.close("upstream", "x.com", 0.0, until=10.0, why="told to", tenant="a")
    for tenant in "ab":
        ask(core, tenant, tenant=tenant)
    assert going(core, 1.0) == ["b"]
    assert going(core, 10.0) == ["a"]


# --- pause

LEVELS = [
    ("everything", "", None),
    ("type", "scan", None),
    ("lane", "cookie", None),
    ("tool", "yt-dlp", None),
    ("upstream", "x.com", None),
    ("upstream", "x.com", "alice"),
    ("key", "feed:1", None),
]


def one_of_everything(core: Core, id: str, now: float) -> Ticket:
    return ask(
        core, id, now, type="scan", lane="cookie", tools=("yt-dlp",), tenant="alice", key="feed:1"
    )


@pytest.mark.parametrize(("kind", "name", "tenant"), LEVELS)
def test_a_pause_at_any_level_holds_until_it_is_lifted(
    kind: str, name: str, tenant: str | None
) -> None:
    core = core_with()
    core.gates.pause(kind, name, 0.0, tenant=tenant)
    one_of_everything(core, "held", 1.0)
    other = {} if kind == "everything" else {"type": "check", "tenant": "bob", "lane": "plain"}
    if other:
        ask(core, "free", 1.0, upstreams=X if tenant else Y, **other)
    assert going(core, 1e6) == (["free"] if other else [])
    assert core.next_wakeup() in (INF, 1e6 + 90)  # only the lease of the free one
    core.gates.resume(kind, name, 2e6, tenant=tenant)
    assert "held" in going(core, 2e6)


@pytest.mark.parametrize(("kind", "name", "tenant"), LEVELS)
def test_a_pause_also_holds_who_waits_already(kind: str, name: str, tenant: str | None) -> None:
    core = core_with(lane={"cookie": GatePolicy(cap=1)})
    first = one_of_everything(core, "first", 0.0)
    one_of_everything(core, "second", 0.0)
    assert going(core, 0.0) == ["first"]
    core.gates.pause(kind, name, 1.0, tenant=tenant)
    end(core, first, 2.0)  # what runs goes on to its end
    assert going(core, 3.0) == []
    core.gates.resume(kind, name, 4.0, tenant=tenant)
    assert going(core, 4.0) == ["second"]


def test_a_single_ticket_may_be_paused_and_keeps_its_seq() -> None:
    core = core_with(lane={"default": GatePolicy(cap=1)})
    holder = start(core, "a")
    paused = ask(core, "b")
    ask(core, "c")
    core.pause("b", 1.0)
    end(core, holder, 2.0)
    assert going(core, 2.0) == ["c"]
    core.resume("b", 3.0)
    assert (paused.state, paused.seq) == (State.QUEUED, 2)


def test_a_closure_that_ends_does_not_lift_a_pause() -> None:
    core = core_with()
    core.gates.close("upstream", "x.com", 0.0, until=10.0, why="told to")
    core.gates.pause("upstream", "x.com", 0.0)
    ask(core, "a")
    core.gates.open("upstream", "x.com", 5.0)
    assert going(core, 20.0) == []


# --- settings that change at run time


def test_a_raised_cap_lets_more_in_at_once() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1)})
    for id in "abc":
        ask(core, id)
    assert going(core) == ["a"]
    core.gates.declare("upstream", "x.com", GatePolicy(cap=3), 1.0)
    assert going(core, 1.0) == ["b", "c"]


def test_holders_above_a_lowered_cap_stay_and_nobody_enters_until_they_are_below() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=3)})
    tickets = [start(core, n) for n in range(3)]
    core.gates.declare("upstream", "x.com", GatePolicy(cap=1), 1.0)
    ask(core, "next", 1.0)
    for ticket in tickets[:2]:
        end(core, ticket, 2.0)
        assert going(core, 2.0) == []
    end(core, tickets[2], 3.0)
    assert going(core, 3.0) == ["next"]


def test_a_changed_pace_counts_from_the_last_call() -> None:
    core = core_with(upstream={"x.com": GatePolicy(pace=PaceRule(10.0))})
    start(core, "a")
    ask(core, "b")
    core.gates.declare("upstream", "x.com", GatePolicy(pace=PaceRule(10.0, burst=2)), 1.0)
    assert going(core, 1.0) == ["b"]
    ask(core, "c", 1.0)
    core.gates.declare("upstream", "x.com", GatePolicy(pace=PaceRule(10.0)), 2.0)
    assert going(core, 19.0) == []
    assert going(core, 20.0) == ["c"]


def test_a_changed_tenant_cap_holds_for_tenants_that_are_known() -> None:
    core = core_with(upstream={"x.com": GatePolicy(tenant=GatePolicy(cap=1))})
    start(core, "a1", tenant="a")
    ask(core, "a2", tenant="a")
    assert going(core) == []
    core.gates.declare("upstream", "x.com", GatePolicy(tenant=GatePolicy(cap=2)), 1.0)
    assert going(core, 1.0) == ["a2"]


def test_a_pattern_declared_at_run_time_holds_for_names_that_are_known() -> None:
    core = core_with()
    start(core, "a", upstreams=("api.x.com",))
    core.gates.declare("upstream", "*.x.com", GatePolicy(cap=1), 1.0)
    ask(core, "b", 1.0, upstreams=("api.x.com",))
    assert going(core, 1.0) == []


def test_a_closure_outlives_new_settings() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1)})
    core.gates.close("upstream", "x.com", 0.0, until=10.0, why="told to")
    ask(core, "a")
    core.gates.declare("upstream", "x.com", GatePolicy(cap=2), 1.0)
    assert going(core, 2.0) == []
    assert going(core, 10.0) == ["a"]


@pytest.mark.parametrize(
    "fields",
    [
        {"cap": -1},
        {"reserve": -1},
        {"cap": 2, "reserve": 2},
        {"cooldown_s": -1.0},
        {"min_hold_s": -1.0},
        {"max_waiters": -1},
    ],
)
def test_settings_that_make_no_sense_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(reversed(fields))):
        GatePolicy(**fields)


# --- patterns


def test_the_most_specific_declaration_wins() -> None:
    policies = Policies()
    for cap, name in enumerate(("*", "*.com", "*.x.com", "api.x.com"), start=1):
        policies.declare("upstream", name, GatePolicy(cap=cap))
    names = ("y.org", "y.com", "x.com", "img.x.com", "a.b.x.com", "api.x.com")
    assert [policies.of("upstream", n).cap for n in names] == [1, 2, 2, 3, 3, 4]
    assert policies.of("lane", "api.x.com").cap is None


def test_what_is_behind_a_withdrawn_declaration_holds_again() -> None:
    policies = Policies()
    for cap, name in enumerate(("*", "*.com", "x.com"), start=1):
        policies.declare("upstream", name, GatePolicy(cap=cap))
    seen = []
    for name in ("x.com", "*.com", "*"):
        policies.withdraw("upstream", name)
        seen.append(policies.of("upstream", "x.com").cap)
    assert seen == [2, 1, None]


def test_a_pattern_has_one_star_at_its_start() -> None:
    with pytest.raises(ValueError, match="pattern"):
        Policies().declare("upstream", "*.x.*", GatePolicy())
