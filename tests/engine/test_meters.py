"""Meters count everything once, keep their names few, and cost the brain next to nothing."""

from __future__ import annotations

import threading
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core import Event
from headway.engine.meters import LONG_BOUNDS_S, MAX_NAMES, OTHER, SHORT_BOUNDS_S, Meters


def test_what_was_counted_can_be_read() -> None:
    meters = Meters()
    meters.submitted()
    meters.submitted(4)
    meters.turned()
    meters.granted("quick", 0.2)
    meters.granted("quick", 20.0)
    meters.granted("slow", 9_999.0)
    meters.ended("scan", Event.OK, 3.0)
    meters.ended("scan", Event.OK, 4.0)
    meters.ended("scan", Event.RETRY, 0.5)
    meters.ended("scan", Event.CANCEL, None)
    meters.pushed_back("example.org")
    meters.pushed_back("example.org")
    meters.lost_lease()
    meters.committed(0.0007)

    reading = meters.read()

    assert (reading.submitted, reading.turns, reading.grants, reading.lost_leases) == (5, 1, 3, 1)
    assert reading.ended == {("scan", "ok"): 2, ("scan", "retry"): 1, ("scan", "cancel"): 1}
    assert reading.pushbacks == {"example.org": 2}
    assert reading.waits["quick"].sum_s == pytest.approx(20.2)
    assert reading.waits["slow"].counts[-1] == 1, "above all bounds"
    assert reading.runs["scan"].count == 3, "what never ran has no run time"
    assert reading.commits.counts[1] == 1
    meters.turned()
    assert reading.turns == 1, "a reading stays as it was"


@given(st.lists(st.floats(min_value=0, max_value=1e6) | st.sampled_from(LONG_BOUNDS_S)))
def test_each_time_is_in_the_first_bucket_that_holds_it(times: list[float]) -> None:
    meters = Meters()
    for seconds in times:
        meters.granted("lane", seconds)
    waits = meters.read().waits.get("lane")
    if waits is None:
        assert not times
        return
    for place, bound in enumerate(LONG_BOUNDS_S):
        assert sum(waits.counts[: place + 1]) == sum(1 for each in times if each <= bound)
    assert waits.count == len(times)
    assert waits.sum_s == pytest.approx(sum(times))


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf")])
def test_a_wrong_time_does_not_spoil_the_sum(wrong: float) -> None:
    meters = Meters()
    meters.granted("lane", wrong)
    meters.granted("lane", 2.0)

    waits = meters.read().waits["lane"]

    assert (waits.count, waits.sum_s) == (2, 2.0)


def test_names_are_few_however_many_there_are() -> None:
    meters = Meters()
    for number in range(MAX_NAMES + 50):
        for _ in range(2):
            meters.granted(f"lane-{number}", 1.0)
            meters.ended(f"type-{number}", "ok", 1.0)
            meters.ended("type-0", f"event-{number}", None)
            meters.pushed_back(f"upstream-{number}")

    reading = meters.read()

    for names in (reading.waits, reading.runs, reading.pushbacks):
        assert len(names) == MAX_NAMES + 1
    assert reading.waits[OTHER].count == 100
    assert reading.runs[OTHER].count == 100
    assert reading.pushbacks[OTHER] == 100
    assert reading.ended["type-0", OTHER] > 0
    assert reading.grants == 2 * (MAX_NAMES + 50), "none is left out"
    assert sum(reading.ended.values()) == 4 * (MAX_NAMES + 50)


def test_any_thread_may_read_while_the_brain_counts() -> None:
    meters, over = Meters(), threading.Event()
    troubles: list[str] = []

    def look() -> None:
        last = 0
        while not over.is_set():
            reading = meters.read()
            if reading.grants < last or sum(reading.pushbacks.values()) < 0:
                troubles.append(f"{reading.grants} after {last}")
            last = reading.grants

    readers = [threading.Thread(target=look) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(20_000):
        meters.granted(f"lane-{number % 150}", 0.1)
        meters.pushed_back(f"upstream-{number}")
        meters.ended(f"type-{number % 199}", "ok", 0.1)
    over.set()
    for reader in readers:
        reader.join()

    assert not troubles
    assert meters.read().grants == 20_000


def test_counting_costs_next_to_nothing() -> None:
    meters = Meters()

    def round_s() -> float:
        begun = perf_counter()
        for _ in range(5_000):
            meters.granted("lane", 0.3)
            meters.ended("scan", Event.OK, 12.5)
            meters.pushed_back("example.org")
            meters.committed(0.001)
        return (perf_counter() - begun) / 20_000

    # About 0.2 µs each; the bound leaves room for a busy machine, and none for a lock or a search.
    assert min(round_s() for _ in range(10)) < 2e-6


def test_bounds_rise() -> None:
    for bounds in (LONG_BOUNDS_S, SHORT_BOUNDS_S):
        assert list(bounds) == sorted(set(bounds))
