"""Times in words, and back."""

from __future__ import annotations

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from headway.cli import times

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.004, "4 ms"),
        (0.4, "0.4 s"),
        (1, "1 s"),
        (9.9, "9.9 s"),
        (9.97, "10 s"),
        (89, "89 s"),
        (90, "2 min"),
        (3_600, "60 min"),
        (7_500, "2 h 5 min"),
        (7_200, "2 h"),
        (40_000, "11 h"),
        (172_800, "2 d"),
        (864_000, "10 d"),
        (-5, "0 s"),
    ],
)
def test_a_span(seconds: float, words: str) -> None:
    assert times.span(seconds) == words


@pytest.mark.parametrize(
    ("gone_s", "words"), [(180, "3 min ago"), (-12, "in 12 s"), (0.4, "now"), (-0.4, "now")]
)
def test_how_long_ago(gone_s: float, words: str) -> None:
    assert times.ago(times.stamp(NOW - gone_s), NOW) == words


def test_no_time_is_no_words() -> None:
    assert times.ago(None) == times.at_and_ago(None) == times.clock(None) == ""
    assert times.moment(None) is None


def test_a_clock_shows_the_date_of_other_days() -> None:
    assert len(times.clock(times.stamp(NOW), NOW)) == len("06:00:00")
    assert len(times.clock(times.stamp(NOW - 2 * 86_400), NOW)) == len("2026-01-31 06:00:00")


def test_a_stamp_is_read_back() -> None:
    assert times.moment(times.stamp(NOW + 0.25)) == NOW + 0.25


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("1h30m", 5_400), ("2d", 172_800)])
def test_a_duration(text: str, seconds: float) -> None:
    assert times.seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["10", "soon", "", "-5s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is no duration"):
        times.seconds_of(text)


def test_a_time() -> None:
    assert times.time_of("2026-01-31T12:00+00:00") == 1_769_860_800.0
    assert times.time_of("2099-01-31T12:00") > times.time_of("1h")
    with pytest.raises(typer.BadParameter, match="is no time"):
        times.time_of("tomorrow")


@given(st.integers(1, 30_000_000_000))
def test_a_duration_is_read_back(ms: int) -> None:
    assert times.seconds_of(times.duration_text(ms / 1000)) == pytest.approx(ms / 1000)


def test_rules() -> None:
    assert times.rule_words({"every_s": 5_400.0}) == "every 1h30m"
    assert times.rule_words({"cron": "0 3 * * *", "zone": "UTC"}) == "0 3 * * * (UTC)"
