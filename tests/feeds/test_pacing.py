"""Feeds keep their places, sites are left alone as they wish, and nothing is given up for good."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise
from math import floor
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.apps.feeds.pacing import (
    DAY_S,
    DRIFT,
    HOUR_S,
    JITTER,
    LATE,
    MAX_INTERVAL_S,
    MIN_INTERVAL_S,
    NO_HINTS,
    Because,
    Hints,
    Next,
    adapted_interval_s,
    backoff_s,
    due_after_restart,
    interval_within_bounds_s,
    next_refresh,
)

NOW = 1_790_000_000.0  # a Monday, 14:13:20 UTC
HALF_AN_HOUR_S = 1_800.0

FEEDS = st.text(min_size=1, max_size=20)
INTERVALS_S = st.floats(MIN_INTERVAL_S, MAX_INTERVAL_S)
NOWS = st.floats(1.6e9, 2.2e9)


def after(
    feed: str, interval_s: float, due_at: float, now: float | None = None, **more: object
) -> Next:
    return next_refresh(
        feed,
        interval_s,
        due_at=due_at,
        now=due_at if now is None else now,
        **more,  # type: ignore[arg-type]
    )


def runs(feed: str, interval_s: float, start: float, count: int) -> list[float]:
    due = [start]
    while len(due) < count:
        due.append(after(feed, interval_s, due[-1]).due_at)
    return due


# --- the usual interval


def test_half_an_hour_is_half_an_hour() -> None:
    found = after("a", HALF_AN_HOUR_S, NOW)
    assert found.due_at == pytest.approx(NOW + HALF_AN_HOUR_S, rel=0, abs=0.03 * HALF_AN_HOUR_S)
    assert found.because is Because.INTERVAL


@given(FEEDS, INTERVALS_S, NOWS, st.integers(0, 60))
def test_the_next_run_is_one_interval_after_the_last_was_due(
    feed: str, interval_s: float, due_at: float, took_s: int
) -> None:
    took_s = min(took_s, int(interval_s / 3))
    wait_s = after(feed, interval_s, due_at, due_at + took_s).due_at - due_at
    tiny = 1e-5 * interval_s
    assert (1 - DRIFT) * interval_s - tiny <= wait_s <= (1 + DRIFT + JITTER) * interval_s + tiny


@given(st.floats(allow_nan=False))
def test_an_interval_is_from_a_minute_to_a_week(interval_s: float) -> None:
    assert 60 <= interval_within_bounds_s(interval_s) <= 7 * 86_400
    wait_s = after("a", interval_s, NOW).due_at - NOW
    assert 58 <= wait_s <= 1.03 * 7 * 86_400


@given(FEEDS, INTERVALS_S, NOWS, st.floats(0, 30))
def test_however_late_a_run_is_the_next_is_neither_at_once_nor_far_away(
    feed: str, interval_s: float, due_at: float, late: float
) -> None:
    now = due_at + late * interval_s
    wait_s = after(feed, interval_s, due_at, now).due_at - now
    assert 0.499 * interval_s <= wait_s <= 1.52 * interval_s


@given(FEEDS, INTERVALS_S, NOWS)
def test_a_run_that_was_asked_for_before_it_was_due_is_followed_by_a_whole_interval(
    feed: str, interval_s: float, now: float
) -> None:
    early = after(feed, interval_s, now + interval_s / 2, now).due_at
    assert early == after(feed, interval_s, now).due_at
    assert early >= now + 0.97 * interval_s


# --- places


def settled(feed: str, interval_s: float, start: float) -> list[float]:
    """Where in the interval it stands, when it has had the time to find its place."""
    return [due_at % interval_s for due_at in runs(feed, interval_s, start, 80)[60:]]


def apart_s(one: float, other: float, interval_s: float) -> float:
    """How far two places are apart, round the end of the interval if that is shorter."""
    return min((one - other) % interval_s, (other - one) % interval_s)


@given(FEEDS, st.integers(60, 7 * 86_400), NOWS, NOWS)
def test_a_feed_comes_to_the_same_place_from_wherever_it_starts(
    feed: str, interval_s: int, one: float, other: float
) -> None:
    places = settled(feed, interval_s, one) + settled(feed, interval_s, other)
    for place in places:
        assert apart_s(place, places[0], interval_s) <= JITTER * interval_s + 0.01


def test_lateness_is_never_added_up() -> None:
    """A year of runs, each of which ends up to a third of an interval late."""
    rng = Random(1)
    due_at = runs("a", HALF_AN_HOUR_S, NOW, 80)[-1]
    place, count = due_at % HALF_AN_HOUR_S, 17_520
    first = due_at
    for _ in range(count):
        due_at = after("a", HALF_AN_HOUR_S, due_at, due_at + rng.random() * 600).due_at
    assert apart_s(due_at % HALF_AN_HOUR_S, place, HALF_AN_HOUR_S) <= JITTER * HALF_AN_HOUR_S
    assert round((due_at - first) / HALF_AN_HOUR_S) == count


def test_a_feed_does_not_tick() -> None:
    due = runs("a", HALF_AN_HOUR_S, NOW, 80)[60:]
    gaps = {round(late - early, 3) for early, late in pairwise(due)}
    assert len(gaps) > 10


def is_even(moments: list[float], start: float, window_s: float, parts: int = 20) -> bool:
    """Whether each part of the window has its share, but for what chance may do."""
    counted = Counter(floor((at - start) / window_s * parts) for at in moments)
    share = len(moments) / parts
    return all(abs(counted[part] - share) <= 5 * share**0.5 for part in range(parts))


def test_feeds_that_were_added_at_once_stand_spread_over_the_interval() -> None:
    places = [runs(f"feed-{n}", HALF_AN_HOUR_S, NOW, 60)[-1] % HALF_AN_HOUR_S for n in range(2_000)]
    assert is_even(places, 0.0, HALF_AN_HOUR_S, parts=8)


# --- after a restart


@pytest.mark.parametrize("interval_s", [300.0, HALF_AN_HOUR_S, DAY_S, MAX_INTERVAL_S])
def test_ten_thousand_feeds_do_not_come_at_once(interval_s: float) -> None:
    missed_at = NOW - 3 * interval_s
    due = [due_after_restart(f"feed-{n}", interval_s, missed_at, NOW) for n in range(10_000)]
    window_s = min(interval_s, HOUR_S)
    assert min(due) >= NOW
    assert max(due) <= NOW + window_s * (1 + JITTER)
    assert is_even([min(at, NOW + window_s * 0.9999) for at in due], NOW, window_s)


@given(FEEDS, INTERVALS_S, st.floats(-MAX_INTERVAL_S, LATE))
def test_who_is_due_later_or_hardly_late_keeps_its_time(
    feed: str, interval_s: float, late: float
) -> None:
    due_at = NOW - min(late, LATE * 0.999) * interval_s
    assert due_after_restart(feed, interval_s, due_at, NOW) == due_at


def test_a_feed_takes_its_own_place_again_after_a_restart() -> None:
    due = runs("a", HALF_AN_HOUR_S, NOW, 80)
    again = due_after_restart("a", HALF_AN_HOUR_S, due[-1], due[-1] + 10.3 * HALF_AN_HOUR_S)
    place = due[-1] % HALF_AN_HOUR_S
    assert apart_s(again % HALF_AN_HOUR_S, place, HALF_AN_HOUR_S) <= JITTER * HALF_AN_HOUR_S


# --- failures


@given(st.floats(1, 1e7), st.integers(0, 10**9))
def test_the_wait_grows_with_failures_up_to_a_day(interval_s: float, failures: int) -> None:
    interval_s = interval_within_bounds_s(interval_s)
    now_s, then_s = backoff_s(interval_s, failures), backoff_s(interval_s, failures + 1)
    assert interval_s <= now_s <= then_s <= max(interval_s, DAY_S)
    assert then_s <= 2 * now_s


def test_the_wait_doubles_after_the_second_failure() -> None:
    assert [backoff_s(600, failures) for failures in (0, 1, 2, 3, 4, 50)] == [
        600, 600, 1_200, 2_400, 4_800, DAY_S,
    ]  # fmt: skip


@given(FEEDS, INTERVALS_S, NOWS, st.integers(2, 10**6))
def test_a_failing_feed_waits_longer_and_is_never_given_up(
    feed: str, interval_s: float, now: float, failures: int
) -> None:
    found = after(feed, interval_s, now, failures=failures)
    wait_s = backoff_s(interval_s, failures)
    assert 0.97 * wait_s <= found.due_at - now <= 1.04 * wait_s
    assert found.because is Because.BACKOFF


# --- what a site asks for

HINTS = st.builds(
    Hints,
    ttl_s=st.none() | st.floats(-1e6, 1e9),
    fresh_until=st.none() | st.floats(NOW - 1e6, NOW + 1e9),
    retry_at=st.none() | st.floats(NOW - 1e6, NOW + MAX_INTERVAL_S),
    skip_hours=st.frozensets(st.integers(-2, 25)),
    skip_days=st.frozensets(st.integers(-1, 7)),
)


@given(FEEDS, INTERVALS_S, st.integers(0, 20), st.floats(0, 20), HINTS)
def test_hints_only_ever_lengthen_a_wait_and_never_without_end(
    feed: str, interval_s: float, failures: int, late: float, hints: Hints
) -> None:
    due_at = NOW - late * interval_s
    plain = after(feed, interval_s, due_at, NOW, failures=failures)
    hinted = after(feed, interval_s, due_at, NOW, failures=failures, hints=hints)
    assert hinted.due_at >= plain.due_at
    assert hinted.due_at <= NOW + 1.6 * MAX_INTERVAL_S + 8 * DAY_S
    if hints.retry_at is not None:
        assert hinted.due_at >= hints.retry_at
    if hinted == plain:
        return
    assert hinted.because in (Because.HINT, Because.RETRY_AFTER, Because.SKIPPED_HOURS)


def test_retry_after_is_kept_to_the_second_and_spread_behind_it() -> None:
    hints = Hints(retry_at=NOW + HOUR_S)
    due = [after(f"feed-{n}", 600, NOW, hints=hints) for n in range(2_000)]
    assert {found.because for found in due} == {Because.RETRY_AFTER}
    assert min(found.due_at for found in due) >= NOW + HOUR_S
    assert is_even([found.due_at for found in due], NOW + HOUR_S, 300)


def test_a_short_retry_after_changes_nothing() -> None:
    hints = Hints(retry_at=NOW + 10)
    assert after("a", 600, NOW, hints=hints) == after("a", 600, NOW)


@pytest.mark.parametrize(
    "hints",
    [
        Hints(ttl_s=HOUR_S),
        Hints(fresh_until=NOW + HOUR_S),
        Hints(ttl_s=5, fresh_until=NOW + HOUR_S),
    ],
)
def test_a_feed_that_lives_longer_is_asked_later_at_its_own_place(hints: Hints) -> None:
    found = after("a", 600, NOW, hints=hints)
    assert NOW + HOUR_S - 60 <= found.due_at <= NOW + HOUR_S + 606
    assert found.because is Because.HINT
    place = runs("a", 600, NOW, 80)[-1] % 600
    assert apart_s(found.due_at % 600, place, 600) <= JITTER * 600 + 0.01


def test_a_life_as_long_as_the_interval_makes_nothing_drift() -> None:
    first = due_at = runs("a", HALF_AN_HOUR_S, NOW, 80)[-1]
    for _ in range(1_000):
        now = due_at + 20  # when the answer came, and its life began
        due_at = after(
            "a", HALF_AN_HOUR_S, due_at, now, hints=Hints(fresh_until=now + HALF_AN_HOUR_S)
        ).due_at
    assert abs(due_at - first - 1_000 * HALF_AN_HOUR_S) <= JITTER * HALF_AN_HOUR_S


@pytest.mark.parametrize("hints", [Hints(ttl_s=1e9), Hints(fresh_until=NOW + 1e9)])
def test_a_feed_that_wants_to_be_left_alone_for_years_is_asked_each_day(hints: Hints) -> None:
    assert NOW + 0.98 * DAY_S <= after("a", 600, NOW, hints=hints).due_at <= NOW + 1.02 * DAY_S


@pytest.mark.parametrize("hints", [Hints(ttl_s=60), Hints(ttl_s=-5), Hints(fresh_until=NOW - 9)])
def test_a_short_life_is_no_reason_to_ask_more_often(hints: Hints) -> None:
    assert after("a", 600, NOW, hints=hints) == after("a", 600, NOW)


# --- hours and days to be skipped


def utc(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def test_a_feed_is_left_alone_in_the_hours_it_names() -> None:
    found = after("a", HOUR_S, NOW, hints=Hints(skip_hours=frozenset(range(15, 24))))
    assert (utc(found.due_at).weekday(), utc(found.due_at).hour) == (1, 0)
    assert found.because is Because.SKIPPED_HOURS


def test_a_feed_is_left_alone_on_the_days_it_names() -> None:
    weekdays = frozenset({1, 2, 3, 4})
    found = after("a", DAY_S, NOW, hints=Hints(skip_days=weekdays, skip_hours=frozenset({0})))
    assert (utc(found.due_at).weekday(), utc(found.due_at).hour) == (5, 1)


@given(FEEDS, INTERVALS_S, st.frozensets(st.integers(0, 23)), st.frozensets(st.integers(0, 6)))
def test_no_skipped_hour_is_ever_used_unless_all_are_skipped(
    feed: str, interval_s: float, hours: frozenset[int], days: frozenset[int]
) -> None:
    found = after(feed, interval_s, NOW, hints=Hints(skip_hours=hours, skip_days=days))
    if len(hours) == 24 or len(days) == 7:
        assert found == after(feed, interval_s, NOW)
    else:
        assert utc(found.due_at).hour not in hours
        assert utc(found.due_at).weekday() not in days


def test_feeds_that_skip_the_same_hours_do_not_come_all_when_those_end() -> None:
    hints = Hints(skip_hours=frozenset(range(14, 20)))
    due = [after(f"feed-{n}", 600, NOW, hints=hints).due_at for n in range(2_000)]
    start = NOW // DAY_S * DAY_S + 20 * HOUR_S
    assert is_even(due, start, HOUR_S)


# --- how often it really changes


def every(gap_s: float, count: int = 30, last: float = NOW) -> list[float]:
    return [last - n * gap_s for n in range(count)]


def adapted(base_s: float, changed_at: list[float], now: float = NOW, rounds: int = 30) -> float:
    """Where it comes to when the feed goes on like that."""
    current_s = base_s
    for _ in range(rounds):
        current_s = adapted_interval_s(base_s, current_s, changed_at, now)
    return current_s


def test_a_busy_feed_is_asked_more_often_and_a_quiet_one_less() -> None:
    base_s = HOUR_S
    assert adapted(base_s, every(HOUR_S)) == pytest.approx(HOUR_S / 4, rel=0.3)
    assert adapted(base_s, every(DAY_S)) == pytest.approx(DAY_S / 4, rel=0.3)
    assert adapted(base_s, every(60)) == base_s / 4  # never more often than that
    assert adapted(base_s, every(365 * DAY_S)) == MAX_INTERVAL_S


def test_a_busy_feed_that_falls_silent_is_asked_less() -> None:
    busy, asleep = every(HOUR_S), every(HOUR_S, last=NOW - 30 * DAY_S)
    assert adapted(HOUR_S, asleep) > 10 * adapted(HOUR_S, busy)


@pytest.mark.parametrize("changed_at", [[], [NOW - 9], [NOW + 5, NOW + 9], [NOW - 5, NOW - 6]])
def test_without_evidence_it_is_the_interval_that_was_set(changed_at: list[float]) -> None:
    assert adapted(HOUR_S, changed_at) == HOUR_S
    assert adapted_interval_s(HOUR_S, 4 * HOUR_S, changed_at, NOW) == 2 * HOUR_S  # on its way back


def test_entries_that_come_together_are_one_change() -> None:
    daily_bulk = [at - n for at in every(DAY_S) for n in range(25)]
    assert adapted(HOUR_S, daily_bulk) == adapted(HOUR_S, every(DAY_S))


def test_one_busy_hour_does_not_throw_it_about() -> None:
    busy = [NOW - 300, NOW - 1_300, NOW - 2_300, *every(DAY_S, last=NOW - DAY_S)]
    now_s = adapted(HOUR_S, every(DAY_S))
    assert adapted_interval_s(HOUR_S, now_s, busy, NOW) == now_s


INTERVAL_AND_CHANGES = st.tuples(
    INTERVALS_S, INTERVALS_S, st.lists(st.floats(NOW - 1e8, NOW + 1e6), max_size=40)
)


@given(INTERVAL_AND_CHANGES)
def test_it_stays_within_bounds_and_moves_in_steps(
    given_: tuple[float, float, list[float]],
) -> None:
    base_s, current_s, changed_at = given_
    fastest_s = max(base_s / 4, MIN_INTERVAL_S)
    next_s = adapted_interval_s(base_s, current_s, changed_at, NOW)
    assert fastest_s <= next_s <= MAX_INTERVAL_S
    current_s = max(current_s, fastest_s)
    assert current_s / 2.001 <= next_s <= current_s * 2.001
    assert next_s == current_s or not current_s / 1.24 < next_s < current_s * 1.24


@given(INTERVAL_AND_CHANGES)
def test_it_comes_to_rest(given_: tuple[float, float, list[float]]) -> None:
    base_s, current_s, changed_at = given_
    for _ in range(20):
        current_s = adapted_interval_s(base_s, current_s, changed_at, NOW)
    assert adapted_interval_s(base_s, current_s, changed_at, NOW) == current_s


@given(INTERVAL_AND_CHANGES, st.floats(0, 1e7))
def test_silence_never_makes_it_ask_more_often(
    given_: tuple[float, float, list[float]], silence_s: float
) -> None:
    base_s, current_s, changed_at = given_
    known = [at for at in changed_at if at <= NOW]
    now_s = adapted_interval_s(base_s, current_s, known, NOW)
    assert adapted_interval_s(base_s, current_s, known, NOW + silence_s) >= now_s


def test_no_hints_are_no_hints() -> None:
    assert after("a", 600, NOW, hints=NO_HINTS) == after("a", 600, NOW)
