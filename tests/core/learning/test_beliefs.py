"""What is written down of changing beliefs."""

from __future__ import annotations

from itertools import pairwise

from headway.core.learning.beliefs import AT_ONCE, Beliefs, Diary

HOUR = 3600


def test_what_changes_now_and_then_is_all_written_down() -> None:
    diary = Diary()
    for hour in range(100):
        diary.note(hour * HOUR, Beliefs(rpm=100.0 + hour % 2 * 50), "a refusal")
    assert len(diary.take()) == 100


def test_a_limit_that_is_another_one_with_each_answer_does_not_flood_the_trail() -> None:
    diary = Diary()
    found = []
    for second in range(HOUR):
        diary.note(second, Beliefs(rpm=200.0 + second % 3 * 20), "rate-limit headers")
        found += diary.take()
    diary.note(HOUR + 60, Beliefs(rpm=7.0), "rate-limit headers")
    found += diary.take()
    assert len(found) <= AT_ONCE + HOUR / 60 + 1
    assert (found[0].before, found[0].after) == (None, 200.0)
    assert found[-1].after == 7.0
    for earlier, later in pairwise(found):
        assert later.before == earlier.after  # each goes on from the one before
