"""The cap on calls in flight, and the guard that softens it."""

from __future__ import annotations

import math
from random import Random

from headway.core.learning.concurrency import INF, Blame, Cap
from headway.core.learning.latency import Guard


def test_more_in_flight_than_was_ever_accepted_blames_the_cap() -> None:
    cap = Cap()
    assert cap.blame(20, 20, rate_at_peak=False, moving=False) is Blame.NO
    assert cap.blame(21, 20, rate_at_peak=False, moving=True) is Blame.SURE
    assert cap.blame(21, 20, rate_at_peak=True, moving=True) is Blame.MAYBE
    assert cap.blame(1, 0, rate_at_peak=False, moving=False) is Blame.NO


def test_the_same_cap_again_is_confirmed_and_left_alone_for_longer() -> None:
    cap = Cap()
    cap.refused_at(100.0, 20, sure=True)
    first_s = cap.probes_at(100.0) - 100.0
    cap.refused_at(200.0, 20, sure=True)
    assert cap.probes_at(200.0) - 200.0 == 2 * first_s
    assert (cap.firm, cap.believed) == (True, 20.0)


def test_a_cap_that_binds_is_raised_by_one_then_faster() -> None:
    cap = Cap()
    cap.refused_at(100.0, 20, sure=True)
    steps = []
    for _ in range(4):
        cap.probe(cap.probes_at(100.0), 0.5)
        steps.append(cap.limit)
    assert steps == [21, 23, 27, 33]


def test_bounds_and_pins_win() -> None:
    cap = Cap(least=2, most=30)
    assert cap.allowed == 30
    cap.refused_at(0.0, 1, sure=True)
    assert cap.allowed == 2
    pinned = Cap(pinned=7)
    assert (pinned.allowed, pinned.probes_at(0.0)) == (7, INF)
    assert pinned.blame(50, 1, rate_at_peak=False, moving=False) is Blame.NO


def test_what_it_knows_survives() -> None:
    cap, other = Cap(), Cap()
    assert cap.dump() is None
    cap.refused_at(100.0, 20, sure=True)
    state = cap.dump()
    assert state is not None
    other.load(state)
    assert (other.limit, other.firm) == (20.0, True)
    assert other.probes_at(5000.0) > 5000.0, "no experiment just because of a restart"


def hear(guard: Guard, rng: Random, start: float, in_flight: int, mean_s: float) -> float | None:
    """Two hundred answers, and the softer cap if one was asked for."""
    found = None
    for number in range(200):
        latency_s = mean_s * math.exp(rng.gauss(0.0, 0.3))
        softer, _ = guard.hear(start + number / 4, latency_s, in_flight, try_fewer=True)
        found = found or softer
    return found


def test_slower_with_more_in_flight_softens_the_cap() -> None:
    guard, rng = Guard(), Random(1)
    assert hear(guard, rng, 0.0, 8, 1.0) is None
    softer = hear(guard, rng, 100.0, 40, 1.6)
    assert softer is not None
    assert 20 < softer < 40


def test_as_fast_as_before_softens_nothing() -> None:
    guard, rng = Guard(), Random(1)
    assert hear(guard, rng, 0.0, 8, 1.0) is None
    assert hear(guard, rng, 100.0, 40, 1.0) is None


def test_it_tries_fewer_for_a_moment_when_it_knows_nothing_else() -> None:
    guard, rng = Guard(), Random(1)
    hear(guard, rng, 0.0, 40, 1.0)
    hear(guard, rng, 100.0, 40, 1.0)
    assert guard.trial < 20
    guard.pass_time(guard.trial_ends_at())
    assert guard.trial == INF
