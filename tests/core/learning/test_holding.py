"""Silence after a refusal: long enough not to be banned, and no longer than needed."""

from __future__ import annotations

import pytest

from headway.core.learning.counting import Ring
from headway.core.learning.holding import FLOOR_S, OUTAGE_ROW, Hold, Why


@pytest.mark.parametrize(("refusals", "floor_s"), list(enumerate(FLOOR_S)))
def test_the_more_refusals_in_a_minute_the_longer_the_silence(
    refusals: int, floor_s: float
) -> None:
    hold = Hold()
    for number in range(refusals):
        hold.refused(100.0 + number)
    assert hold.floor_s(110.0) == floor_s
    assert hold.floor_s(200.0) == 0.0


def test_calls_sent_before_the_first_refusal_came_back_are_the_same_event() -> None:
    hold = Hold()
    hold.close(100.0, 5.0, Why.RATE)
    assert hold.same_event(99.9, tested=False)
    hold.reopen()
    assert hold.same_event(99.9, tested=False)
    assert not hold.same_event(100.1, tested=False)


def test_one_call_tests_when_the_hold_is_over_or_online_calls_do() -> None:
    hold = Hold()
    hold.close_softly(100.0, 5.0)
    assert hold.test_at(-1.0, online_per_s=0.0) == 105.0
    assert hold.test_at(-1.0, online_per_s=2.0) == 108.0, "they tell us first"
    hold.online_well()
    assert not hold.passed(104.0, -1.0, tested=False)
    assert hold.passed(105.0, -1.0, tested=False)


def test_a_full_window_is_waited_out_by_our_own_count() -> None:
    hold, ring = Hold(), Ring()
    for second in range(60):
        ring.add(1000.0 + second)
    hold.block(1060.0, 60.0, last_at=1058.0)
    hold.close(1060.0, 2.0, Why.BLOCKED)
    at = hold.drained_at(ring)
    assert 1071.0 <= at <= 1073.0, "a fifth of it has left"
    assert hold.test_at(at, 0.0) == at


def test_each_failed_test_waits_longer() -> None:
    hold = Hold()
    waits = []
    for _ in range(6):
        hold.block(1000.0, 100.0, last_at=999.0)
        waits.append(hold.block_s(None, 1.0, 1000.0))
    assert waits == sorted(waits)
    assert waits[-1] >= 240.0


def test_closed_longer_than_any_window_was_a_ban() -> None:
    hold = Hold()
    hold.block(1000.0, 100.0, last_at=990.0)
    hold.close(1000.0, 2.0, Why.BLOCKED)
    assert not hold.was_ban(1050.0)
    assert hold.was_ban(1070.0)


def test_isolated_faults_are_nothing_and_five_in_a_row_an_outage() -> None:
    hold = Hold()
    for _ in range(OUTAGE_ROW - 1):
        hold.fault(10.0, None, tested=False)
    assert not hold.testing
    hold.well()
    for _ in range(OUTAGE_ROW):
        hold.fault(20.0, None, tested=False)
    assert (hold.testing, hold.why, hold.until) == (True, Why.OUTAGE, 22.0)
    assert not hold.was_ban(500.0), "an outage says nothing about the limit, however long"


def test_a_long_silence_outlives_a_restart() -> None:
    hold, other = Hold(), Hold()
    assert hold.dump() is None
    hold.close(1000.0, 300.0, Why.BAN)
    state = hold.dump()
    assert state is not None
    other.load(state)
    assert (other.until, other.why, other.testing) == (1300.0, Why.BAN, True)
