"""The bench of the learner: its upstreams refuse what they should, and its bars can fail."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bench import learner
from bench.learner_report import Row, bars, classes
from bench.learning.baselines import AdditiveIncrease, Oracle
from bench.learning.headway import cold
from bench.learning.limiters import (
    CellRate,
    ConcurrencyCap,
    FixedWindow,
    Limiter,
    SlidingWindow,
    Steps,
    TokenBucket,
)
from bench.learning.measures import Measures, measure
from bench.learning.scenarios import NAMED, drawn
from bench.learning.simulation import run


def borne(limiter: Limiter, times: list[float]) -> int:
    count = 0
    for now in times:
        if limiter.admits(now):
            limiter.take(now)
            count += 1
    return count


@pytest.mark.parametrize(
    ("limiter", "at_once", "in_two_minutes"),
    [
        (FixedWindow(60), 60, 120),
        (SlidingWindow(60), 60, 120),
        (TokenBucket(60, 10), 10, 129),
        (CellRate(60, 10), 10, 129),
    ],
)
def test_what_each_limit_bears(limiter: Limiter, at_once: int, in_two_minutes: int) -> None:
    first = borne(limiter, [0.0] * 100)
    assert first == at_once
    later = borne(limiter, [tick / 10 for tick in range(1, 1200)])
    assert abs(first + later - in_two_minutes) <= 1
    assert limiter.wait_s(119.95) >= 0


def test_a_cap_counts_what_is_in_flight() -> None:
    cap = ConcurrencyCap([(0, 2), (100, 3)])
    assert borne(cap, [0.0] * 5) == 2
    assert borne(cap, [100.0]) == 1
    cap.release()
    assert cap.admits(100.0)


def test_steps_have_a_mean() -> None:
    assert Steps([(0, 10), (30, 20)]).mean(0.0, 60.0) == 15.0


def test_a_drawn_scenario_is_the_same_for_everybody() -> None:
    first, second = run(drawn(9), Oracle, 1), run(drawn(9), Oracle, 1)
    assert (first.sent, first.refused, first.done_at) == (
        second.sent,
        second.refused,
        second.done_at,
    )


def test_the_learner_does_better_than_additive_increase_at_a_window_that_bans() -> None:
    scenario = replace(NAMED[0], length_s=900.0)
    alone = run(scenario, None, 5)
    mine = measure(scenario, run(scenario, cold, 5), alone)
    other = measure(scenario, run(scenario, AdditiveIncrease, 5), alone)
    assert mine.used > 0.93
    assert mine.bans == 0
    assert mine.refused < other.refused


def test_bars_can_fail() -> None:
    well = Measures(1.0, 1.0, 0.0, 0, 0.0, 0.0, ())
    rows = [Row(scenario, well) for scenario in NAMED if not scenario.steps_at]
    good = [*rows, *(Row(each, replace(well, recovery_s=(30,) * len(each.steps_at)))
                     for each in NAMED if each.steps_at)]  # fmt: skip
    good.append(Row(drawn(9), well))
    assert all(bars(good, None).values())
    bad = [Row(row.scenario, replace(row.measures, used_warm=0.5, bans=1)) for row in good]
    failed = {bar for bar, holds in bars(bad, None).items() if not holds}
    assert {"named: warm >= 94", "named: no ban", "alone, rate: no ban"} <= failed
    assert classes(bad)["named"]["bans"] == len(NAMED)


def test_the_last_line_is_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    short = tuple(replace(scenario, length_s=60.0, steps_at=()) for scenario in NAMED[:1])
    monkeypatch.setattr(learner, "NAMED", short)
    monkeypatch.setattr(learner, "OUTAGES", ())
    monkeypatch.setattr("bench.learner_report.NAMED", short)
    monkeypatch.setattr(
        learner, "family", lambda start, _count: [replace(drawn(start), length_s=120.0)]
    )
    monkeypatch.setattr(
        "sys.argv", ["learner", "--draws", "9:1", "--seeds", "1", "--senders", "headway,oracle"]
    )
    learner.main()
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last["draws"] == "9:1"
    assert "named" in last["classes"]
    assert set(last["drawn"]) == {"headway", "oracle at 90 %"}
