"""Intervals keep their phase, lose nothing, double nothing, and name their units."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise, takewhile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.recurrence import (
    LONGEST_INTERVAL_S,
    MISSED_CAP,
    Every,
    Occurrence,
    Recurrence,
    duration_s,
    next_run,
    occurrence_key,
    spread_anchor,
)

HOUR_S = 3600.0
YEAR_S = 365 * 86_400.0
NOW = 1_800_000_000.0  # divisible by an hour

moments = st.floats(min_value=-1e9, max_value=4e9)
lateness_s = st.one_of(st.just(0.0), st.floats(0, 10), st.floats(0, 100_000))


@st.composite
def rules(draw: st.DrawFn) -> Every:
    interval_ms = draw(st.integers(1, 10**8))
    return Every(
        interval_ms / 1000,
        anchor_at=draw(moments),
        jitter_s=draw(st.integers(0, interval_ms - 1)) / 1000,
        growth=draw(st.floats(1.0, 4.0)),
        seed=draw(st.text(max_size=5)),
    )


@st.composite
def stretched_rules(draw: st.DrawFn) -> Every:
    return draw(rules()).stretched(draw(st.integers(0, 6)))


def index_of(rule: Every, due_at: float) -> int:
    """Which occurrence this is; fails if it is none."""
    near = round((due_at - rule.anchor_at) / rule.interval_s)
    return next(k for k in (near - 1, near, near + 1) if rule.due_at(k) == due_at)


# --- Every: examples


def test_occurrences_are_at_the_anchor_and_whole_intervals_from_it() -> None:
    rule = Every(HOUR_S, anchor_at=600)
    assert rule.after(NOW, NOW) == NOW + 600
    assert rule.after(NOW + 600, NOW + 600) == NOW + HOUR_S + 600
    assert [rule.due_at(k) for k in (-1, 0, 1)] == [-3000, 600, 4200]


def test_the_next_run_is_strictly_after_both_times() -> None:
    rule = Every(60)
    assert rule.after(NOW, NOW) == NOW + 60
    assert rule.after(NOW, NOW + 59.9999) == NOW + 60
    assert rule.after(NOW, NOW + 60) == NOW + 120
    assert rule.after(NOW + 120, NOW) == NOW + 180, "a clock that was set back repeats nothing"


def test_a_run_that_ends_late_does_not_shift_the_phase() -> None:
    rule, due_at = Every(60), NOW
    for late_s in (3.7, 59.0, 61.2, 0.0, 12.345):
        due_at = rule.after(due_at, due_at + late_s)
        assert due_at % 60 == 0


def test_a_schedule_that_slept_through_ten_occurrences_runs_once_and_keeps_its_phase() -> None:
    slept = next_run(Every(60), NOW, NOW + 10 * 60 + 5)
    assert slept == Occurrence(due_at=NOW + 11 * 60, missed=10)


def test_a_run_in_time_misses_nothing() -> None:
    assert next_run(Every(60), NOW, NOW + 59) == Occurrence(NOW + 60, missed=0)


def test_missed_runs_are_counted_without_walking_through_years_of_them() -> None:
    rule = Every(0.001)
    assert next_run(rule, NOW, NOW + 30 * YEAR_S).missed == 30 * 365 * 86_400_000


def test_an_occurrence_a_hair_after_now_is_not_lost() -> None:
    due_at = 1_700_000_000.123
    just_before = 1_700_000_000.1229997  # the next smaller float but one
    assert just_before < due_at
    assert Every(0.001).after(just_before, just_before) == due_at


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"interval_s": 0}, "interval_s must be from"),
        ({"interval_s": -60}, "interval_s must be from"),
        ({"interval_s": 0.0004}, "interval_s must be from"),
        ({"interval_s": LONGEST_INTERVAL_S + 1}, "interval_s must be from"),
        ({"interval_s": float("nan")}, "number of seconds"),
        ({"interval_s": float("inf")}, "number of seconds"),
        ({"interval_s": "30m"}, r"duration_s\('30m'\)"),
        ({"interval_s": 60, "anchor_at": 1e12}, "anchor_at must be a number of seconds"),
        ({"interval_s": 60, "jitter_s": 60}, "jitter_s must be 0 or more and below interval_s"),
        ({"interval_s": 60, "jitter_s": -1}, "jitter_s must be 0 or more"),
        ({"interval_s": 60, "growth": 0.5}, "growth must be 1 or more"),
        ({"interval_s": 60, "growth": float("inf")}, "growth must be 1 or more"),
        ({"interval_s": 60, "min_s": 61}, "from 61 to"),
        ({"interval_s": 60, "max_s": 59}, "to 59 seconds"),
        ({"interval_s": 60, "stride": 0}, "stride must be 1 or more"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Every(**settings)


def test_what_the_fields_say_is_what_is_used() -> None:
    rule = Every(1 / 3, anchor_at=0.12345)
    assert (rule.interval_s, rule.anchor_at) == (0.333, 0.123)
    assert rule.due_at(1000) == 333.123


# --- Every: properties


@given(stretched_rules(), moments, lateness_s)
def test_every_answer_is_an_occurrence_and_lies_after_both_times(
    rule: Every, last_due_at: float, late_s: float
) -> None:
    due_at = rule.after(last_due_at, last_due_at + late_s)
    index_of(rule, due_at)
    assert due_at > last_due_at
    assert due_at > last_due_at + late_s


@given(stretched_rules(), moments, lateness_s)
def test_asking_twice_gives_the_same_answer(rule: Every, last_due_at: float, late_s: float) -> None:
    now = last_due_at + late_s
    due_at = rule.after(last_due_at, now)
    assert rule.after(last_due_at, now) == due_at
    same_again = Every(
        rule.interval_s, anchor_at=rule.anchor_at, jitter_s=rule.jitter_s, seed=rule.seed
    )
    assert replace(same_again, stride=rule.stride).after(last_due_at, now) == due_at


@given(rules(), moments, st.floats(0, 200))
def test_coalescing_equals_walking_through_all_occurrences(
    rule: Every, last_due_at: float, intervals_late: float
) -> None:
    now = last_due_at + intervals_late * rule.interval_s
    first = round((last_due_at - rule.anchor_at) / rule.interval_s) - 3
    walk = [rule.due_at(k) for k in range(first, first + int(intervals_late) + 10)]
    coming = [due_at for due_at in walk if due_at > last_due_at]
    skipped = list(takewhile(lambda due_at: due_at <= now, coming))
    assert next_run(rule, last_due_at, now) == Occurrence(coming[len(skipped)], len(skipped))


@given(stretched_rules(), st.integers(-(10**5), 10**5), st.lists(lateness_s, max_size=20))
def test_nothing_is_lost_or_doubled_however_late_each_run_is(
    rule: Every, start: int, late: list[float]
) -> None:
    k = start
    for late_s in late:
        due_at = rule.due_at(k)
        run = next_run(rule, due_at, due_at + late_s)
        following = index_of(rule, run.due_at)
        assert following == k + (run.missed + 1) * rule.stride
        k = following


@given(rules(), st.integers(-(10**5), 10**5))
def test_jitter_stays_in_bounds_and_in_order(rule: Every, start: int) -> None:
    due = [rule.due_at(k) for k in range(start, start + 5)]
    assert all(early < late for early, late in pairwise(due))
    for k, due_at in enumerate(due, start):
        offset_s = due_at - replace(rule, jitter_s=0).due_at(k)
        assert -1e-6 <= offset_s < max(rule.jitter_s, 1e-6)


# --- jitter, phase and keys


def test_jitter_differs_between_occurrences_and_between_schedules() -> None:
    rule = Every(HOUR_S, jitter_s=600)
    offsets = {rule.due_at(k, "feed 1") - k * HOUR_S for k in range(100)}
    assert len(offsets) > 90
    assert max(offsets) > 500
    assert rule.due_at(7, "feed 1") != rule.due_at(7, "feed 2")
    assert rule.due_at(7, "feed 1") == replace(rule, seed="feed 1").due_at(7)


def test_jitter_and_phase_are_the_same_in_another_process() -> None:
    assert Every(HOUR_S, jitter_s=600, seed="a").due_at(7) == 25625.666
    assert spread_anchor("a", HOUR_S) == 2641.667


def test_ten_thousand_schedules_do_not_fire_together() -> None:
    buckets = Counter(int(spread_anchor(f"feed {n}", HOUR_S) / 36) for n in range(10_000))
    assert set(buckets) == set(range(100))
    assert max(buckets.values()) < 160, "100 are expected in each hundredth of the hour"


@given(st.text(), st.integers(1, 10**10))
def test_a_spread_anchor_is_stable_and_within_the_interval(name: str, interval_ms: int) -> None:
    anchor_at = spread_anchor(name, interval_ms / 1000)
    assert 0 <= anchor_at < interval_ms / 1000
    assert spread_anchor(name, interval_ms / 1000) == anchor_at


def test_a_spread_anchor_needs_an_interval() -> None:
    with pytest.raises(ValueError, match=r"at least 0\.001 seconds"):
        spread_anchor("feed", 0)


def test_a_key_names_the_schedule_and_the_millisecond() -> None:
    assert occurrence_key("feed-7", 1_800_000_000.25) == "feed-7@1800000000250"
    assert occurrence_key("feed-7", 0.1 + 0.2) == occurrence_key("feed-7", 0.3)
    assert occurrence_key("a@1", 2) != occurrence_key("a", 1)


@given(rules(), st.integers(-(10**5), 10**5))
def test_no_two_occurrences_share_a_key(rule: Every, start: int) -> None:
    keys = {occurrence_key("s", rule.due_at(k)) for k in range(start, start + 20)}
    assert len(keys) == 20


@pytest.mark.parametrize(("schedule_id", "due_at"), [("", 1.0), ("s", float("nan"))])
def test_a_key_of_nothing_is_refused(schedule_id: str, due_at: float) -> None:
    with pytest.raises(ValueError, match=r"is empty|number of seconds"):
        occurrence_key(schedule_id, due_at)


# --- stretching


def test_failures_stretch_the_interval_up_to_the_bound() -> None:
    rule = Every(60, growth=2, max_s=600)
    assert [rule.stretched(n).step_s for n in range(6)] == [60, 120, 240, 480, 600, 600]
    assert rule.stretched(100_000).step_s == 600, "a long outage does not overflow"


def test_a_stretched_interval_is_a_whole_number_of_intervals_and_never_more_than_asked() -> None:
    rule = Every(60, growth=1.5)
    assert [rule.stretched(n).step_s for n in range(5)] == [60, 60, 120, 180, 300]


def test_without_a_bound_a_year_is_the_bound() -> None:
    assert Every(60, growth=1.5).stretched(10**9).step_s == LONGEST_INTERVAL_S


def test_a_stretched_rule_backs_off_in_full_from_the_last_run() -> None:
    rule = Every(60, anchor_at=7, growth=2).stretched(3)
    assert rule.after(NOW + 7, NOW + 20) == NOW + 7 + 8 * 60
    assert next_run(rule, NOW + 7, NOW + 7 + 17 * 60) == Occurrence(NOW + 7 + 24 * 60, missed=2)


def test_a_rule_that_recovers_falls_back_into_phase() -> None:
    rule = Every(60, anchor_at=7, growth=3, jitter_s=20, seed="s")
    due_at = rule.stretched(4).after(NOW, NOW)
    recovered = rule.stretched(4).stretched(0)
    assert recovered == rule
    assert index_of(rule, recovered.after(due_at, due_at)) == index_of(rule, due_at) + 1


def test_a_negative_count_of_failures_is_refused() -> None:
    with pytest.raises(ValueError, match="0 or more, not -1"):
        Every(60).stretched(-1)


@given(rules(), st.integers(0, 10) | st.integers(0, 10**6), st.floats(1, 100))
def test_stretching_stays_within_growth_and_bounds(rule: Every, n: int, bound: float) -> None:
    max_s = min(rule.interval_s * bound, LONGEST_INTERVAL_S)
    rule = replace(rule, min_s=rule.interval_s, max_s=max(max_s, rule.interval_s))
    step_s = rule.stretched(n).step_s
    assert rule.min_s is not None
    assert rule.max_s is not None
    assert rule.min_s <= step_s <= rule.max_s
    assert step_s <= rule.stretched(n + 1).step_s
    if n < 100:
        wanted_s = min(rule.interval_s * rule.growth**n, rule.max_s)
        # Within one interval below what was asked; the slack is for rounding in the power.
        assert wanted_s - rule.interval_s < step_s + 1e-3
        assert step_s <= wanted_s * (1 + 1e-9)


# --- any other rule


class Primes:
    """A rule that can do no more than the protocol asks for."""

    def after(self, last_due_at: float, now: float) -> float:
        n = int(max(last_due_at, now)) + 1
        while any(n % d == 0 for d in range(2, int(n**0.5) + 1)):
            n += 1
        return float(n)


def test_any_rule_has_its_missed_runs_counted_up_to_a_cap() -> None:
    rule: Recurrence = Primes()
    assert next_run(rule, 7, 19) == Occurrence(23.0, missed=4)
    assert next_run(rule, 7, 1e5).missed == MISSED_CAP


# --- units


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("45s", 45),
        ("30m", 1800),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("2d", 172_800),
        ("1w", 604_800),
        ("1w2d3h4m5s", 788_645),
        ("1.5h", 5400),
        ("0.25s", 0.25),
        (" 5m ", 300),
        ("0s", 0),
    ],
)
def test_durations_are_read_by_their_units(text: str, seconds: float) -> None:
    assert duration_s(text) == seconds


def test_lesson_16_a_number_without_its_unit_is_refused() -> None:
    for unitless in ("30", "1800", "0.5", "1h30", "30 ", 30):
        with pytest.raises(ValueError, match="name the unit of each number"):
            duration_s(unitless)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="name the unit of each number"):
            Every.parse(unitless)  # type: ignore[arg-type]


def test_lesson_16_thirty_minutes_are_never_thirty_seconds() -> None:
    assert Every.parse("30m") == Every(1800) != Every.parse("30s")
    assert Every.parse("30m").after(NOW, NOW) == NOW + 30 * 60


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "m",
        "30M",
        "30 m",
        "-30m",
        "+30m",
        "500ms",
        "30min",
        "30m1h",
        "1h1h",
        "1,5h",
        "\u0663m",
    ],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        duration_s(text)


@given(st.text(alphabet="0123456789.wdhms ", max_size=12))
def test_a_duration_is_refused_or_finite(text: str) -> None:
    try:
        seconds = duration_s(text)
    except ValueError:
        return
    assert 0 <= seconds <= 1e11
    assert any(unit in text for unit in "wdhms")
