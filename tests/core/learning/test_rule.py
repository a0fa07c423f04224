"""What a rule for the learner may say."""

from __future__ import annotations

from typing import Any

import pytest

from headway.core.learning import LearnRule


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"hint_rpm": 0}, "hint_rpm must be above 0"),
        ({"pin_concurrency": float("inf")}, "pin_concurrency must be above 0"),
        ({"min_rpm": -1}, "min_rpm must be from 0"),
        ({"min_rpm": 10, "max_rpm": 9}, "min_rpm must be from 0 to max_rpm"),
        ({"min_concurrency": 0}, "min_concurrency must be from 1"),
        ({"min_concurrency": 5, "max_concurrency": 4}, "from 1 to max_concurrency"),
        ({"remaining_threshold": -0.1}, "a share from 0 to below 1"),
        ({"remaining_threshold": 1}, "a share from 0 to below 1"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(said: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        LearnRule(**said)


def test_the_bounds_themselves_are_allowed() -> None:
    LearnRule(min_rpm=9, max_rpm=9, min_concurrency=4, max_concurrency=4, remaining_threshold=0)
