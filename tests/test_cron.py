"""Cron keeps wall time over clock changes, refuses what can never fire, and repeats nothing."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.recurrence import MISSED_CAP, Occurrence, Recurrence, next_run
from headway.cron import MAX_TEXT, Cron

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC).timestamp()

expressions = st.sampled_from(
    [
        "* * * * *",
        "*/7 * * * *",
        "15 * * * 1-5",
        "30 2 * * *",
        "0,30 2,3 * * *",
        "0 2-4 * * *",
        "*/15 2 * * *",
        "*/10 * * * * *",
        "0 0 L * *",
        "0 12 * * MON#2",
        "0 0 29 2 *",
    ]
)
zones = st.sampled_from(
    [
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Asia/Kathmandu",
        "Asia/Beirut",  # changes its clocks at midnight
        "Australia/Lord_Howe",  # by half an hour
        "Pacific/Apia",  # once left out a day
    ]
)
moments = st.floats(min_value=1_000_000_000, max_value=2_500_000_000)


def berlin(text: str, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold).timestamp()


def runs(rule: Cron, start_at: float, count: int) -> list[str]:
    """The next runs as Berlin shows them, with the offset from UTC that holds then."""
    shown = []
    for _ in range(count):
        start_at = rule.after(start_at, start_at)
        shown.append(datetime.fromtimestamp(start_at, BERLIN).strftime("%d %H:%M%z"))
    return shown


def test_a_cron_rule_is_a_recurrence() -> None:
    rule: Recurrence = Cron("0 13 * * *")
    assert rule.after(NOW, NOW) == NOW + 3600


def test_the_next_run_is_strictly_after_both_times() -> None:
    rule = Cron("* * * * *")
    assert rule.after(NOW, NOW) == NOW + 60
    assert rule.after(NOW, NOW + 60.5) == NOW + 120
    assert rule.after(NOW + 300, NOW) == NOW + 360, "a clock that was set back repeats nothing"


def test_an_occurrence_a_hair_after_now_is_not_lost() -> None:
    just_before = NOW + 60 - 3e-7
    assert just_before < NOW + 60
    assert Cron("* * * * *").after(just_before, just_before) == NOW + 60


def test_a_sixth_field_in_front_means_seconds() -> None:
    assert Cron("*/20 * * * * *").after(NOW, NOW) == NOW + 20


def test_missed_runs_are_coalesced_and_counted() -> None:
    rule = Cron("0 * * * *")
    assert next_run(rule, NOW, NOW + 10 * 3600 + 5) == Occurrence(NOW + 11 * 3600, missed=10)
    assert next_run(rule, NOW, NOW + 10 * 3600) == Occurrence(NOW + 11 * 3600, missed=10)
    assert next_run(rule, NOW, NOW + 3599) == Occurrence(NOW + 3600, missed=0)


def test_counting_stops_at_a_cap_and_the_next_run_is_right_all_the_same() -> None:
    slept = next_run(Cron("* * * * *"), NOW, NOW + 30 * 365 * 86_400)
    assert slept == Occurrence(NOW + 30 * 365 * 86_400 + 60, missed=MISSED_CAP)


# --- clock changes: Berlin goes 02:00 → 03:00 on 29 March and 03:00 → 02:00 on 25 October 2026


def test_in_spring_a_daily_run_keeps_its_wall_time() -> None:
    rule = Cron("30 6 * * *", zone="Europe/Berlin")
    expected = ["28 06:30+0100", "29 06:30+0200", "30 06:30+0200"]
    assert runs(rule, berlin("2026-03-28T00:00"), 3) == expected


def test_in_spring_a_run_in_the_skipped_hour_comes_right_after_it() -> None:
    rule = Cron("30 2 * * *", zone="Europe/Berlin")
    expected = ["28 02:30+0100", "29 03:00+0200", "30 02:30+0200"]
    assert runs(rule, berlin("2026-03-28T00:00"), 3) == expected


def test_in_autumn_a_run_in_the_repeated_hour_comes_once() -> None:
    rule = Cron("30 2 * * *", zone="Europe/Berlin")
    expected = ["24 02:30+0200", "25 02:30+0200", "26 02:30+0100"]
    assert runs(rule, berlin("2026-10-24T00:00"), 3) == expected


def test_in_autumn_asking_within_the_second_hour_never_leads_back() -> None:
    rule = Cron("30 2 * * *", zone="Europe/Berlin")
    now = berlin("2026-10-25T02:15", fold=1)
    assert rule.after(berlin("2026-10-24T02:30"), now) == berlin("2026-10-26T02:30")


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        ("2026-03-29", ["29 01:00+0100", "29 03:00+0200", "29 04:00+0200"]),
        ("2026-10-25", ["25 01:00+0200", "25 02:00+0200", "25 02:00+0100", "25 03:00+0100"]),
    ],
)
def test_an_hourly_run_follows_real_time_over_the_change(day: str, expected: list[str]) -> None:
    rule = Cron("0 * * * *", zone="Europe/Berlin")
    assert runs(rule, berlin(f"{day}T00:00"), len(expected)) == expected


# --- validation


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "every hour",
        "* * * *",
        "* * * * * * *",
        "61 * * * *",
        "* 25 * * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * * 9",
        "*/0 * * * *",
        "5-1 * * * *",
        "0 0 30 2 *",
        "0 0 31 4,6 *",
    ],
)
def test_a_bad_expression_is_refused_at_once(expression: str) -> None:
    with pytest.raises(ValueError, match=r"is not a cron expression .*; write 'minute hour"):
        Cron(expression)


def test_an_expression_that_never_fires_is_refused() -> None:
    # The fifth Monday of a February is always the 29th.
    with pytest.raises(ValueError, match="never fires: no day satisfies all"):
        Cron("0 0 */10 2 MON#5")


def test_an_expression_that_seldom_fires_is_fine() -> None:
    rule = Cron("0 0 * 2 MON#5")
    assert datetime.fromtimestamp(rule.after(NOW, NOW), UTC).isoformat()[:10] == "2044-02-29"


@pytest.mark.parametrize(
    "zone",
    ["", "Mars/Base", "Europe", "../Europe/Berlin", "/etc/localtime", "a\0b", "x" * 5000],
)
def test_an_unknown_zone_is_refused(zone: str) -> None:
    with pytest.raises(ValueError, match="is not a known time zone; use an IANA name"):
        Cron("* * * * *", zone=zone)


def test_an_endless_expression_is_refused() -> None:
    with pytest.raises(ValueError, match=f"at most {MAX_TEXT} characters"):
        Cron("*/" + "9" * 5000 + " * * * *")


@given(st.text(alphabet="0123456789*/-,#LWMONJAN ", max_size=30))
def test_any_text_is_a_rule_or_a_clear_refusal(text: str) -> None:
    try:
        rule = Cron(text, zone="Europe/Berlin")
    except ValueError as error:
        refusal = str(error)
        assert "is not a cron expression" in refusal or "never fires" in refusal
    else:
        assert rule.after(NOW, NOW) > NOW


# --- properties


@given(expressions, zones, moments, st.floats(0, 500_000))
def test_every_answer_is_after_both_times_and_the_same_when_asked_twice(
    expression: str, zone: str, last_due_at: float, late_s: float
) -> None:
    rule, now = Cron(expression, zone=zone), last_due_at + late_s
    due_at = rule.after(last_due_at, now)
    assert due_at > now >= last_due_at
    assert Cron(expression, zone=zone).after(last_due_at, now) == due_at


@given(expressions, zones, moments, st.floats(0, 300_000))
def test_coalescing_equals_walking_through_all_occurrences(
    expression: str, zone: str, last_due_at: float, late_s: float
) -> None:
    rule, now = Cron(expression, zone=zone), last_due_at + late_s
    walk = [rule.after(last_due_at, last_due_at)]
    while walk[-1] <= now and len(walk) <= MISSED_CAP:
        walk.append(rule.after(walk[-1], walk[-1]))
    assert all(early < late for early, late in pairwise(walk))
    run = next_run(rule, last_due_at, now)
    assert run.missed == len(walk) - 1
    if run.missed < MISSED_CAP:
        assert run.due_at == walk[-1]


@given(moments)
def test_quarter_hours_equal_those_found_by_looking_at_every_minute(start_at: float) -> None:
    rule = Cron("*/15 2-3 * * *", zone="Europe/Berlin")
    minute = datetime.fromtimestamp(start_at // 60 * 60, UTC) + timedelta(minutes=1)
    while True:
        local = minute.astimezone(BERLIN)
        if local.hour in (2, 3) and local.minute % 15 == 0:
            break
        minute += timedelta(minutes=1)
    assert rule.after(start_at, start_at) == minute.timestamp()
