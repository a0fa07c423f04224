"""A day of many recurring jobs over many domains, each with a pace: nothing is beaten, lost or
doubled, and every schedule keeps its phase.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import pytest

from headway import App, Every
from headway.core.recurrence import spread_anchor
from headway.testing import World
from tests.stores import second_store_in_the_soak

INTERVAL_S = 1800.0


def anchor_of(n: int) -> float:
    """Its phase, in whole seconds: what is due together shares a turn of the engine."""
    return float(int(spread_anchor(f"s{n}", INTERVAL_S)))


def spend(schedules: int, domains: int, hours: int, *, restarts: int = 0) -> None:
    app = App(tasks=10_000)
    app.upstream("*.example", every="1s")
    called: dict[str, list[float]] = defaultdict(list)  # by domain
    ran: dict[int, list[float]] = defaultdict(list)  # by schedule

    @app.job(timeout="5m")
    async def check(n: int, domain: str) -> None:
        called[domain].append(world.now)
        ran[n].append(world.now)

    with World(app) as world:
        start = world.now
        for n in range(schedules):
            domain = f"d{n % domains}.example"
            call = check.options(upstream=domain).call(n, domain)
            rule = Every(INTERVAL_S, anchor_at=start + anchor_of(n))
            app.schedule(f"s{n}", call, rule)
        for _ in range(restarts):
            world.run_for(hours * 3600 / (restarts + 1))
            world.restart()
        world.run_until(start + hours * 3600)
        runs = int(hours * 3600 / INTERVAL_S)
        for domain, times in called.items():
            gaps = [b - a for a, b in pairwise(times)]
            assert min(gaps) >= 1.0, f"the pace of {domain} was beaten"
        for n in range(schedules):
            check_phase(ran[n], start + anchor_of(n), runs)
        (stats,) = app.stats()
        assert (stats.completed, stats.failed) == (sum(map(len, ran.values())), 0)


def check_phase(times: list[float], anchor_at: float, runs: int) -> None:
    """Each occurrence was due at anchor + k intervals, ran once, and as late as its domain's pace
    makes it (which is far less than an interval here).
    """
    late = [(at - anchor_at) % INTERVAL_S for at in times]
    numbers = [
        round((at - anchor_at - wait) / INTERVAL_S) for at, wait in zip(times, late, strict=True)
    ]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), "none lost or doubled"
    assert len(times) in (runs - 1, runs)
    assert max(late) < 120.0


@second_store_in_the_soak
def test_hundreds_of_schedules_over_twenty_domains_for_three_hours() -> None:
    spend(400, 20, 3)


@pytest.mark.soak
def test_two_thousand_schedules_over_a_hundred_domains_for_three_hours() -> None:
    spend(2_000, 100, 3)


@second_store_in_the_soak
def test_restarts_in_between_lose_and_double_nothing() -> None:
    spend(100, 5, 4, restarts=7)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_a_hundred_thousand_schedules_over_five_thousand_domains_for_a_day() -> None:
    spend(100_000, 5_000, 24)
