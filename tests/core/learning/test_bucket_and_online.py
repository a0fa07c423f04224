"""The shadow bucket, and the room that online calls are left."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headway.core.learning.bucket import DEEPEST_S, Bucket
from headway.core.learning.online import MOST_TOKENS, Online


def test_queued_work_goes_when_it_is_full_and_online_calls_delay_that() -> None:
    bucket = Bucket(1.0)
    assert bucket.full_in_s(2.0, 1.0) == 0.0
    bucket.take(1.0)  # a queued call
    assert bucket.full_in_s(2.0, 1.0) == 0.5
    bucket.take(1.0)  # an online one
    assert bucket.full_in_s(2.0, 1.0) == 1.0


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 50)), max_size=50), st.floats(0.1, 50))
def test_it_is_never_above_its_brim_nor_deeper_than_half_a_minute(
    steps: list[tuple[float, float]], rate: float
) -> None:
    bucket = Bucket(1.0)
    for passed_s, amount in steps:
        bucket.take(amount)
        bucket.fill(passed_s, rate, 1.0)
        assert -DEEPEST_S * rate <= bucket.level <= 1.0
        assert bucket.full_in_s(rate, 1.0) <= DEEPEST_S + 1.0 / rate + 1e-6


def test_without_online_calls_nothing_is_kept_for_them() -> None:
    online = Online()
    assert (online.rate(5.0), online.tokens(), online.places(1.0)) == (0.0, 0.0, 0.0)
    assert online.slots(5.0, 20, 1.0) == 0


def test_more_online_calls_keep_more_of_everything() -> None:
    few, many = Online(), Online()
    for second in range(60):
        few.sent(float(second))
        for part in range(5):
            many.sent(second + part / 5)
    assert few.rate(60.0) < many.rate(60.0)
    assert few.tokens() < many.tokens() <= MOST_TOKENS
    assert few.places(1.0) < many.places(1.0)
    assert 1 <= few.slots(60.0, 20, 1.0) <= many.slots(60.0, 20, 1.0) <= 6


def test_fast_queued_work_can_give_way_in_time_so_it_keeps_less() -> None:
    online = Online()
    for second in range(60):
        online.sent(float(second))
    assert online.places(10.0) < online.places(0.1)


def test_the_rate_fades_and_long_gone_traffic_keeps_no_slots() -> None:
    online = Online()
    for second in range(10):
        online.sent(float(second))
    assert online.quick_rate(60.0) < 0.001
    online.ring.advance(700.0)
    assert online.slots(700.0, 20, 1.0) == 0
