"""Runs whose answers can be worked out by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest

from headway.simulation import simulate
from headway.simulation.arrivals import Process
from headway.simulation.limiters import LimitModel
from headway.simulation.load import TenantLoad
from headway.simulation.scenario import Bounds
from headway.simulation.upstream import BanModel, Upstream
from tests.simulation.kit import (
    HOUR_S,
    SITE,
    backlog,
    made,
    per_minute,
    run,
    settings,
    site,
    tenant,
    upstream,
)  # fmt: skip


def test_a_pool_of_one_with_holds_of_ten_seconds_serves_360_an_hour() -> None:
    report = run(site(limit=1), upstream(hold_s=10.0), tenant(process=backlog(360)))
    assert (report.completed, report.finished_after_s) == (360, pytest.approx(HOUR_S))
    assert report.waits.longest_s == pytest.approx(HOUR_S - 10)
    assert report.waits.p50_s == pytest.approx(1790)


def test_a_pace_of_a_second_is_never_beaten(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[float] = []
    call = Upstream.call
    monkeypatch.setattr(Upstream, "call", lambda self, now, *rest: (
        called.append(now), call(self, now, *rest))[1])  # fmt: skip
    run(site(every="1s", jitter=0.3), upstream(), tenant(process=Process(per_hour=5_000)))
    assert len(called) > 2_000
    assert min(after - before for before, after in pairwise(called)) >= 1.0 - 1e-6


def test_a_policy_below_the_limit_is_never_refused() -> None:
    report = run(site(per_minute=50), upstream(per_minute(60)), tenant(process=backlog(1_000)))
    assert (report.refused, report.completed) == (0, 1_000)
    assert report.use == pytest.approx(50 / 60, abs=0.02)


def test_a_policy_without_a_limit_is_refused_all_the_time() -> None:
    report = run(site(limit=8), upstream(per_minute(60)), tenant(process=backlog(600)))
    assert report.refused > 50
    assert report.completed == 600


def test_the_learner_finds_the_limit() -> None:
    report = run(site(learn=True), upstream(per_minute(60), retry_after=True),
                 tenant(process=backlog(6_000)), lasts_s=2 * HOUR_S)  # fmt: skip
    (gate,) = report.gates
    assert gate.learns
    assert gate.believed[-1] == pytest.approx(60, rel=0.1)
    assert report.use is not None
    assert report.use > 0.85
    assert report.refused < 60


def test_a_limit_that_changes_is_seen_in_the_report() -> None:
    changes = LimitModel("sliding-window", ((0.0, 60), (1800.0, 30)))
    report = run(site(limit=8), upstream(changes), tenant(process=backlog(5_000)))
    assert (report.series.limit[0], report.series.limit[-1]) == (60, 30)
    span_s = report.series.span_s
    late = report.series.taken[int(1800 / span_s) : int(3600 / span_s)]
    assert sum(late) * span_s / 60 <= 30 * 30 + 60


def test_who_insists_is_banned() -> None:
    model = upstream(per_minute(10), ban=BanModel(3, 60.0, 1_200.0))
    calm = run(site(per_minute=9), model, tenant(process=backlog(200)))
    bold = run(site(limit=8, hold="1s"), model, tenant(process=backlog(200)))
    assert (calm.banned, calm.completed) == (0, 200)
    assert bold.banned > 0
    assert (bold.finished_after_s or 1e9) > (calm.finished_after_s or 0)


def test_tenants_share_by_weight_and_first_come_does_not() -> None:
    greedy = [tenant("greedy", process=backlog(600)), tenant("small", process=backlog(120))]
    fair = run(site(limit=2), upstream(hold_s=5.0), *greedy)
    first_come = run(site(limit=2), upstream(hold_s=5.0), *greedy, fair=False)
    assert fair.fairness == pytest.approx(1.0, abs=0.01)
    assert first_come.fairness is not None
    assert first_come.fairness < 0.8
    small = {row.name: row.waits for row in fair.tenants}["small"]
    late = {row.name: row.waits for row in first_come.tenants}["small"]
    assert small.longest_s < 0.5 * late.longest_s


def test_a_heavier_tenant_gets_its_share() -> None:
    both = [tenant("two", process=backlog(400), weight=2.0), tenant("one", process=backlog(400))]
    report = run(site(limit=3), upstream(hold_s=10.0), *both)
    assert report.fairness == pytest.approx(1.0, abs=0.01)
    assert {row.name: row.share for row in report.tenants} == {
        "one": pytest.approx(1.0, abs=0.05), "two": pytest.approx(1.0, abs=0.05),
    }  # fmt: skip


def test_what_is_urgent_waits_less() -> None:
    mixed = tenant(process=backlog(300), priorities=((1, 0.2), (9, 0.8)))
    report = run(site(limit=1), upstream(hold_s=5.0), mixed)
    urgent, patient = report.priorities
    assert (urgent.priority, patient.priority) == (1, 9)
    assert urgent.waits.longest_s < patient.waits.p50_s


def test_lanes_hold_back_too() -> None:
    policy = settings(**{"lane:slow": {"limit": 1}, f"upstream:{SITE}": {"limit": 8}})
    report = run(policy, upstream(hold_s=10.0), tenant(process=backlog(60), lane="slow"))
    assert report.finished_after_s == pytest.approx(600)
    assert {gate.kind for gate in report.gates} == {"upstream", "lane"}
    lane = next(gate for gate in report.gates if gate.kind == "lane")
    assert (lane.peak, lane.cap) == (1, 1)


def test_online_calls_never_wait_and_are_counted_apart() -> None:
    people = tenant("people", process=Process(per_hour=600), online=1.0)
    report = run(site(limit=1), upstream(hold_s=5.0), people, tenant(process=backlog(100)))
    assert report.online == pytest.approx(600, abs=80)
    assert report.completed == 100
    assert "people" not in {row.name for row in report.tenants}


def test_too_many_waiters_are_turned_away() -> None:
    report = run(site(limit=1, max_waiters=10), upstream(), tenant(process=backlog(50)))
    assert report.turned_away == 50 - 10
    assert report.completed == 10


def test_what_cannot_be_done_in_time_is_left() -> None:
    report = run(site(limit=1), upstream(hold_s=60.0), tenant(process=backlog(1_000)))
    assert (report.stopped, report.finished_after_s) == ("time", None)
    assert report.left == 1_000 - 120
    assert report.waits.longest_s == pytest.approx(2 * HOUR_S)


def test_whoever_never_started_has_waited_all_the_time() -> None:
    report = run(site(limit=0), upstream(), tenant(process=backlog(10)))
    assert (report.completed, report.left) == (0, 10)
    assert report.waits.p50_s == report.tenants[0].waits.p50_s == pytest.approx(2 * HOUR_S)


def test_what_comes_while_it_is_away_is_not_taken() -> None:
    report = run(site(limit=1), upstream(per_minute(600), outages=((0.0, HOUR_S),)),
                 tenant(process=Process("steady", per_hour=60)))  # fmt: skip
    assert report.taken == report.completed == 60
    assert report.unwell == report.calls - report.taken > 0


def test_a_limit_of_nothing_is_a_limit() -> None:
    report = run(site(limit=1), upstream(per_minute(0)), tenant(process=backlog(3)))
    assert report.limit_per_minute == 0.0


def test_a_flood_ends_where_the_calls_would() -> None:
    report = run(site(limit=1), upstream(), tenant(process=backlog(10_000_000)),
                 bounds=Bounds(calls=1_000))  # fmt: skip
    assert (report.stopped, report.came) == ("calls", 1_001)


def test_the_same_seed_gives_the_same_report() -> None:
    def one(seed: int) -> dict[str, object]:
        load = TenantLoad("ann", Process("diurnal", per_hour=900), upstreams=(SITE,), keys=5)
        model = upstream(per_minute(30), errors=0.02)
        return simulate(made(site(learn=True), model, load, seed=seed)).plain()

    assert one(3) == one(3)
    assert one(3) != one(4)


def test_a_run_ends_at_its_bounds_and_when_it_is_told_to() -> None:
    load = tenant(process=Process(per_hour=50_000))
    bounded = made(site(), upstream(hold_s=0.1), load, bounds=Bounds(calls=10_000))
    assert simulate(bounded).stopped == "calls"
    assert simulate(made(site(), upstream(hold_s=0.1), load), lambda *_: False).stopped == "asked"


def test_all_that_came_is_accounted_for() -> None:
    model = upstream(per_minute(40), errors=0.05, ban=BanModel(20, 60.0, 120.0))
    report = run(site(limit=4, max_waiters=300), model, tenant(process=Process(per_hour=3_000)))
    assert report.came == report.completed + report.failed + report.left + report.turned_away
    assert report.calls == report.taken + report.refused + report.banned
    series = report.series
    assert sum(series.came) * series.span_s / 60 == pytest.approx(report.came, abs=0.5)
    assert sum(series.taken) * series.span_s / 60 == pytest.approx(report.taken, abs=0.5)
