"""Rings and peaks against a plain list of what happened."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headway.core.learning.counting import Peak, Ring

GAPS = st.lists(st.floats(0, 20), min_size=1, max_size=60)


@given(GAPS)
def test_a_ring_counts_the_last_minute_to_half_a_second(gaps: list[float]) -> None:
    ring, times, now = Ring(), [], 0.0
    for gap in gaps:
        now += gap
        ring.add(now)
        times.append(now)
        for length_s, counted in ((60.0, ring.minute), (5.0, ring.quick)):
            surely = sum(1 for time in times if time > now - length_s + 0.5)
            maybe = sum(1 for time in times if time > now - length_s - 0.5)
            assert surely <= counted <= maybe
    assert ring.total == len(times)


@given(GAPS, st.integers(0, 10))
def test_when_it_falls_to_a_level_it_really_has(gaps: list[float], level: int) -> None:
    ring, now = Ring(), 1e6
    for gap in gaps:
        now += gap
        ring.add(now)
    at = ring.falls_to(level)
    ring.advance(max(at, now))
    assert ring.minute <= level
    if at > now + 0.6:
        again = Ring()
        again.advance(at - 0.6)
    assert at <= now + 61.0


def test_what_was_refused_is_taken_out_again() -> None:
    ring = Ring()
    ring.add(100.0)
    ring.add(103.0, 2.5)
    ring.forget(103.0, 2.5)
    assert (ring.minute, ring.quick, ring.total) == (1.0, 1.0, 1.0)
    ring.advance(130.0)
    ring.forget(100.0)
    assert (ring.minute, ring.quick, ring.total) == (0.0, 0.0, 0.0)


def test_a_long_rest_empties_it_at_once() -> None:
    ring = Ring()
    ring.add(10.0)
    ring.advance(1e9)
    assert (ring.minute, ring.quick) == (0.0, 0.0)


def test_since_counts_what_came_after() -> None:
    ring = Ring()
    for now in (10.0, 11.0, 12.0, 13.0):
        ring.add(now)
    assert ring.since(11.2) == 2.0
    assert ring.since(0.0) == 4.0


def test_a_peak_lasts_one_to_two_minutes() -> None:
    peak = Peak()
    peak.add(0.0, 9.0)
    peak.add(61.0, 1.0)
    assert peak.value == 9.0
    peak.add(122.0, 1.0)
    assert peak.value == 1.0
