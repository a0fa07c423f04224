"""Series say what was counted: nothing twice, nothing lost, and nothing where nobody looked."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.apps.history.bucket import NO_WAITS, Gauges, quantiles
from headway.apps.history.recorder import ALL, BY_NAME, Look, Recorder, SpanName
from headway.engine.meters import LONG_BOUNDS_S
from headway.engine.tallies import Reckoning, Tallied

NOON = 1_800_000_000.0  # the beginning of a bucket of each span
SPAN_NAMES: tuple[SpanName, ...] = ("live", "1h", "24h")


def tallied(
    started: int = 0, completed: int = 0, failed: int = 0, pushbacks: int = 0, online: int = 0,
    refused: int = 0, waiting: int = 0,
) -> Tallied:  # fmt: skip
    waits = (started, *NO_WAITS[1:])
    return Tallied(completed, failed, pushbacks, online, refused, waiting, waits)


def reckoning(upstream: Tallied | None = None, submitted: int = 0, **lanes: Tallied) -> Reckoning:
    return Reckoning(submitted, lanes, {} if upstream is None else {"x": upstream})


def known(found: dict[str, Any], name: str) -> list[float]:
    return [value for value in found["series"][name] if value is not None]


def look(name: str = "x", **seen: float) -> Look:
    return Look(int(seen.get("running", 0)), {}, {name: Gauges(**{"running": 0, **seen})})


def test_each_bucket_has_what_was_counted_in_it() -> None:
    recorder = Recorder()
    recorder.record(NOON, reckoning(), None)
    recorder.record(NOON + 2.01, reckoning(tallied(3, 1), 5, a=tallied(3, 1)), None)
    recorder.record(NOON + 4.01, reckoning(tallied(3, 2, 1), 5, a=tallied(3, 2, 1)), None)

    found = recorder.read("live", ALL, NOON + 5.5)

    assert (found["step_s"], found["end"] - found["start"]) == (2, 300)
    assert found["end"] == NOON + 4, "the last one is over"
    assert {len(each) for each in found["series"].values()} == {150}
    assert found["series"]["started"][-2:] == [3, 0]
    assert found["series"]["completed"][-2:] == [1, 1]
    assert found["series"]["failed"][-2:] == [0, 1]
    assert found["series"]["submitted"][-2:] == [5, 0]
    assert recorder.read("1h", ("upstream", "x"), NOON + 5.5)["series"]["started"][-1] == 3
    assert recorder.read("1h", ("lane", "a"), NOON + 5.5)["series"]["failed"][-1] == 1
    assert set(known(recorder.read("24h", ("lane", "nobody"), NOON), "started")) == set()


def test_each_kind_has_the_series_that_make_sense_for_it() -> None:
    recorder = Recorder()
    names = {
        kind: set(recorder.read("1h", (kind, "x"), NOON)["series"])
        for kind in ("all", "lane", "upstream")
    }
    assert names["all"] - names["lane"] == {"submitted"}
    assert names["upstream"] - names["lane"] == {"limit_rpm", "limit_concurrency", "closed"}
    assert names["lane"] <= names["all"] & names["upstream"]


def test_what_is_seen_of_gates_is_a_mean_and_beliefs_are_the_last() -> None:
    recorder = Recorder()
    recorder.record(NOON, reckoning(), look(running=1))
    recorder.record(NOON + 4, reckoning(), look(running=4, waiting=9, closed=1.0, limit_rpm=60))
    recorder.record(NOON + 8, reckoning(), look(running=2, waiting=1, closed=0.0, limit_rpm=90))

    series = recorder.read("1h", ("upstream", "x"), NOON + 10)["series"]

    assert series["running"][-1] == pytest.approx((1 * 2 + 4 * 4 + 2 * 4) / 10)
    assert series["waiting"][-1] == 5
    assert series["closed"][-1] == 0.5
    assert (series["limit_rpm"][-1], series["limit_concurrency"][-1]) == (90, None)


def test_where_nobody_could_look_at_gates_the_counts_are_known_all_the_same() -> None:
    recorder = Recorder()
    recorder.record(NOON + 1, reckoning(tallied(2), a=tallied(2, waiting=7)), None)

    series = recorder.read("1h", ("upstream", "x"), NOON + 4)["series"]

    assert series["started"][-1] == 2
    assert [series[each][-1] for each in ("running", "waiting", "closed")] == [None] * 3
    assert recorder.read("1h", ALL, NOON + 4)["series"]["waiting"][-1] == 7


def test_what_happened_while_nobody_looked_is_unknown_and_a_late_look_is_no_gap() -> None:
    recorder = Recorder()
    for at in (0, 2, 7, 60, 62):
        recorder.record(NOON + at, reckoning(a=tallied(at)), None)

    started = recorder.read("live", ALL, NOON + 64)["series"]["started"][-31:]

    assert started == [2, 0, 5, *[None] * 27, 55], "what was counted meanwhile is not lost"


def test_a_new_bucket_takes_the_place_of_the_one_a_span_ago() -> None:
    recorder = Recorder()
    for step in range(400):
        recorder.record(NOON + 2 * step, reckoning(a=tallied(step)), None)
    assert sum(known(recorder.read("live", ALL, NOON + 800), "started")) <= 150
    assert sum(known(recorder.read("1h", ALL, NOON + 800), "started")) == 399
    assert known(recorder.read("live", ALL, NOON + 10_000), "started") == []


# ---------------------------------------------------------------------- properties

PAUSES = st.floats(min_value=0.0, max_value=30.0)
MORE = st.tuples(*[st.integers(min_value=0, max_value=1_000)] * 4)
STEPS = st.lists(st.tuples(PAUSES, MORE, st.booleans()), min_size=1, max_size=40)


def readings(steps: list[tuple[float, tuple[int, ...], bool]]) -> Iterator[tuple[float, Reckoning]]:
    """Counters that grow, and at times begin anew."""
    at, sums = NOON, [0, 0, 0, 0]
    for pause_s, more, begins_anew in steps:
        at += pause_s
        # A counter that began anew and has passed what it was would be taken for one that grew.
        low = begins_anew and all(each <= before for each, before in zip(more, sums, strict=True))
        sums = [each + (0 if low else before) for each, before in zip(more, sums, strict=True)]
        yield at, reckoning(tallied(*sums), sums[3], a=tallied(*sums))


@settings(max_examples=50)
@given(STEPS)
def test_the_sum_of_all_buckets_is_what_was_counted(
    steps: list[tuple[float, tuple[int, ...], bool]],
) -> None:
    recorder = Recorder()
    at, last = NOON, reckoning()
    totals = [0, 0, 0]
    for at, reading in readings(steps):
        before = last.upstreams.get("x", tallied())
        after = reading.upstreams["x"]
        pairs = [(before.started, after.started), (before.completed, after.completed),
                 (before.failed, after.failed), (before.pushbacks, after.pushbacks)]  # fmt: skip
        anew = any(new < old for old, new in pairs)
        for place, (old, new) in enumerate(pairs[:3]):
            totals[place] += new if anew else new - old
        recorder.record(at, reading, None)
        last = reading
    names = ("started", "completed", "failed")
    for span in ("1h", "24h"):
        for subject in (ALL, ("lane", "a"), ("upstream", "x")):
            found = recorder.read(BY_NAME[span].name, subject, at + 3)  # type: ignore[index]
            assert [sum(known(found, name)) for name in names] == totals


@settings(max_examples=50)
@given(STEPS, st.integers(min_value=0, max_value=39))
def test_a_restart_loses_nothing_that_was_stored(
    steps: list[tuple[float, tuple[int, ...], bool]], after: int
) -> None:
    recorder, stored = Recorder(), {}
    at = NOON
    total = 0
    for place, (pause_s, more, _) in enumerate(steps):
        at += pause_s
        begun = Recorder() if place == after else None
        if begun is not None:
            rows = recorder.unsaved()
            stored |= {(step_s, number): each for step_s, number, each in rows}
            begun.load([(*key, each) for key, each in sorted(stored.items(), reverse=True)], at)
            recorder, steps_before = begun, place
        base = steps[steps_before : place + 1] if place >= after else steps[: place + 1]
        started = sum(step[1][0] for step in base)
        recorder.record(at, reckoning(a=tallied(started), submitted=started), None)
        total += more[0]
    for span in ("1h", "24h"):
        found = recorder.read(BY_NAME[span].name, ALL, at + 3)  # type: ignore[index]
        assert sum(known(found, "started")) == total
        assert sum(known(found, "submitted")) == total


@settings(max_examples=30)
@given(st.lists(st.floats(min_value=-200_000.0, max_value=200_000.0), max_size=30))
def test_a_clock_that_jumps_does_no_harm(jumps: list[float]) -> None:
    recorder = Recorder()
    at = NOON
    for number, jump_s in enumerate(jumps):
        at += jump_s
        recorder.record(at, reckoning(tallied(number), number, a=tallied(number)), look())
        for span in SPAN_NAMES:
            found = recorder.read(span, ALL, at)
            assert {len(each) for each in found["series"].values()} == {BY_NAME[span].length}
            assert all(value >= 0 for value in known(found, "started"))
    recorder.record(at + 2, reckoning(a=tallied(10_000)), None)
    assert sum(known(recorder.read("24h", ALL, at + 6), "started")) >= 10_000 - len(jumps)


def test_a_clock_that_is_set_back_a_little_loses_nothing() -> None:
    recorder = Recorder()
    for at, started in ((0, 1), (2, 2), (4, 3), (6, 4), (3, 5), (1, 6), (8, 7)):
        recorder.record(NOON + at, reckoning(a=tallied(started)), None)
    assert sum(known(recorder.read("live", ALL, NOON + 12), "started")) == 7


# ---------------------------------------------------------------------- room


def test_there_is_room_for_so_many_and_the_longest_idle_makes_way() -> None:
    recorder = Recorder(most_upstreams=2, most_lanes=1)
    for number, at in enumerate((0, 10, 20)):
        names = {f"u{each}": tallied(1) for each in range(number + 1)}
        recorder.record(NOON + at, Reckoning(0, {}, names), None)
    assert recorder.names("upstream") == ["u0", "u1"], "both are busy"
    names = {"u0": tallied(1), "u1": tallied(2), "u2": tallied(1), "u3": tallied(1)}
    recorder.record(NOON + 35, Reckoning(0, {}, names), None)
    assert recorder.names("upstream") == ["u1", "u3"]
    names = {**names, "u3": tallied(2), "u4": tallied(1)}
    recorder.record(NOON + 100, Reckoning(0, {}, names), None)
    assert recorder.names("upstream") == ["u3", "u4"], "one that moves after long stays"
    names = {**names, "u5": tallied(1)}
    recorder.record(NOON + 102, Reckoning(0, {}, names), None)
    assert recorder.names("upstream") == ["u3", "u4"]
    recorder.record(NOON + 104, Reckoning(0, {"a": tallied(1), "b": tallied(1)}, {}), None)
    assert len(recorder.names("lane")) == 1
    assert sum(known(recorder.read("live", ALL, NOON + 108), "started")) == 2, "all are counted"


def test_one_where_somebody_waits_is_followed_although_nothing_was_counted() -> None:
    recorder = Recorder()
    recorder.record(NOON, reckoning(a=tallied(waiting=3)), look("idle"))
    recorder.record(NOON + 2, reckoning(), look("closed", waiting=4, closed=1.0))
    assert recorder.names("upstream") == ["closed"]
    assert recorder.names("lane") == ["a"]


def test_tallies_of_those_that_are_idle_may_go_once_there_are_many() -> None:
    recorder = Recorder(most_upstreams=10)
    names = {f"u{each}": tallied(1) for each in range(200)}
    recorder.record(NOON, Reckoning(0, {}, dict(names)), None)
    followed = set(recorder.names("upstream"))
    assert followed.isdisjoint(recorder.stale(Reckoning(0, {}, dict(names))))
    names |= {name: tallied(2) for name in followed}
    recorder.record(NOON + 100, Reckoning(0, {}, dict(names)), None)

    stale = recorder.stale(Reckoning(0, {}, dict(names)))

    assert 0 < len(stale) <= 50
    assert followed.isdisjoint(stale), "they have moved just now"
    assert recorder.stale(Reckoning(0, {}, {"u1": tallied(1)})) == {}, "there is room"


def test_what_waits_to_be_stored_is_bounded_and_goes_when_it_is_stored() -> None:
    recorder = Recorder()
    for step in range(2_000):
        recorder.record(NOON + 15 * step, reckoning(a=tallied(step)), None)
    rows = recorder.unsaved()
    assert 500 < len(rows) <= 602
    recorder.saved(rows)
    assert len(recorder.unsaved()) == 2, "those that are open"


def test_what_was_stored_by_another_time_or_version_is_left_alone() -> None:
    recorder = Recorder()
    recorder.record(NOON, reckoning(tallied(3), a=tallied(3)), None)
    rows = recorder.unsaved()
    for now in (NOON - 4_000_000, NOON + 4_000_000):
        other = Recorder()
        other.load(rows, now)
        assert other.names("upstream") == []
    other = Recorder(most_upstreams=0)
    other.load([(7, 1, {"all:": 0}), *rows, (15, int(NOON // 15), {"what:x": 0})], NOON)
    assert (other.names("upstream"), other.names("lane")) == ([], ["a"])


@given(st.lists(st.integers(min_value=0, max_value=50), min_size=len(NO_WAITS),
                max_size=len(NO_WAITS)))  # fmt: skip
def test_quantiles_lie_in_the_bucket_that_has_them(waits: list[int]) -> None:
    median, late = quantiles(waits)
    if not any(waits):
        assert math.isnan(median)
        return
    times = [time for many, time in zip(waits, (*LONG_BOUNDS_S, LONG_BOUNDS_S[-1]), strict=True)
             for _ in range(many)]  # fmt: skip
    assert 0 < median <= late
    for found, share in ((median, 0.5), (late, 0.95)):
        upper = times[max(0, -int(-share * len(times) // 1) - 1)]
        lower = max(each for each in (0.0, *LONG_BOUNDS_S) if each < upper)
        assert lower <= found <= upper
