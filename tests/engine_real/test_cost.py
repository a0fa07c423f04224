"""What an engine costs: when it has nothing to do, and when a great many jobs wait."""

from __future__ import annotations

import pytest

from tests.engine_real.test_neighbours import said
from tests.stores import second_store_in_the_soak


def idling(url: str, seconds: int) -> tuple[float, int]:
    share, turns = said(url, "idle", str(seconds)).split()
    return float(share), int(turns)


@second_store_in_the_soak
def test_an_idle_engine_costs_next_to_nothing(url: str) -> None:
    share, turns = idling(url, 4)
    assert share < 0.01
    assert turns <= 3  # the net looks every 5 s; nothing else comes by itself


@pytest.mark.soak
def test_an_idle_engine_costs_next_to_nothing_for_a_minute(url: str) -> None:
    share, turns = idling(url, 60)
    print(f"idle for 60 s: {share:.3%} of one processor, {turns} turns")
    assert share < 0.01
    assert turns <= 20


def starting(url: str, count: int) -> tuple[float, float]:
    """Seconds until all are in, and the most memory used."""
    took_s, peak = said(url, "start", str(count)).split()
    return float(took_s), float(peak)


@second_store_in_the_soak
def test_an_engine_starts_on_twenty_thousand_jobs(url: str) -> None:
    said(url, "fill", "20000")
    starting(url, 20_000)  # jobs that no engine has seen
    starting(url, 20_000)  # jobs that another engine has left


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_an_engine_starts_on_a_million_jobs_in_half_a_minute_and_a_gigabyte(url: str) -> None:
    said(url, "fill", "1000000")
    for how in ("taken in", "loaded"):
        took_s, peak = starting(url, 1_000_000)
        print(f"a million jobs {how}: {took_s:.1f} s, {peak / 1e6:.0f} MB")
        assert took_s < 30
        assert peak < 1 << 30
