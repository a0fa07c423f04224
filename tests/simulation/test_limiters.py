"""The limits of modelled upstreams: by examples, and by what holds for any calls."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from headway.simulation.limiters import KINDS, Limiter, LimitModel

TIMES = some.lists(some.floats(0, 300), min_size=1, max_size=120).map(sorted)
LIMITS = some.integers(1, 20)


def limiter(kind: str, limit: float, *, window_s: float = 60.0, burst: float = 1.0) -> Limiter:
    return LimitModel(kind, ((0.0, limit),), window_s, burst).build()


def admitted(limits: Limiter, times: list[float]) -> list[float]:
    """Which of these calls are taken."""
    taken = []
    for at in times:
        if limits.admits(at):
            limits.take(at)
            taken.append(at)
    return taken


@given(times=TIMES, limit=LIMITS)
def test_a_sliding_window_never_has_more_than_its_limit_in_any_window(
    times: list[float], limit: int
) -> None:
    taken = admitted(limiter("sliding-window", limit), times)
    for start in taken:
        assert sum(start <= at < start + 60 for at in taken) <= limit


@given(times=TIMES, limit=LIMITS)
def test_a_fixed_window_never_has_more_than_its_limit_in_a_minute_of_the_clock(
    times: list[float], limit: int
) -> None:
    taken = admitted(limiter("fixed-window", limit), times)
    for minute in range(6):
        assert sum(60 * minute <= at < 60 * (minute + 1) for at in taken) <= limit


@pytest.mark.parametrize("kind", ["token-bucket", "gcra"])
@given(times=TIMES, limit=LIMITS, burst=some.integers(1, 10))
def test_a_bucket_never_gives_more_than_its_burst_and_what_has_come_since(
    kind: str, times: list[float], limit: int, burst: int
) -> None:
    taken = admitted(limiter(kind, limit, burst=burst), times)
    for first, start in enumerate(taken):
        for last in range(first, len(taken)):
            gained = (taken[last] - start) * limit / 60.0
            assert last - first + 1 <= burst + gained + 1e-6


@given(times=TIMES, limit=LIMITS, kind=some.sampled_from(KINDS[:-1]))
def test_who_waits_as_long_as_told_is_let_in(times: list[float], limit: int, kind: str) -> None:
    limits = limiter(kind, limit)
    for at in times:
        if limits.admits(at):
            limits.take(at)
        else:
            later = at + limits.wait_s(at) + 1e-6
            assert limits.admits(later)
            return


def test_a_cap_counts_what_is_inside() -> None:
    limits = limiter("concurrency", 2)
    assert admitted(limits, [0.0, 0.0, 0.0]) == [0.0, 0.0]
    limits.release()
    assert limits.admits(1.0)


def test_a_limit_changes_at_its_time() -> None:
    limits = LimitModel("sliding-window", ((0.0, 2), (100.0, 1), (200.0, 3))).build()
    assert len(admitted(limits, [0.0, 1.0, 2.0])) == 2
    assert len(admitted(limits, [150.0, 151.0, 152.0])) == 1
    assert len(admitted(limits, [250.0, 251.0, 252.0, 253.0])) == 3


def test_headers_say_what_is_left() -> None:
    limits = limiter("sliding-window", 3)
    admitted(limits, [0.0, 10.0])
    assert limits.standing(20.0) == (3.0, 1.0, 40.0)
    bucket = limiter("token-bucket", 60, burst=5)
    admitted(bucket, [0.0, 0.0])
    assert bucket.standing(0.0) == (60.0, 3.0, 2.0)


def test_what_a_limit_lets_through_on_average() -> None:
    assert LimitModel("gcra", ((0.0, 30.0),), 10.0).per_minute(0, 60, 5) == 180
    assert LimitModel("concurrency", ((0.0, 4.0),)).per_minute(0, 60, 5) == 48
    changes = LimitModel("sliding-window", ((0.0, 60.0), (30.0, 30.0)))
    assert changes.per_minute(0, 60, 5) == 45
