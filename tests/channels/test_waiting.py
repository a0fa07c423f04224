"""How long a caller says that it would wait."""

from __future__ import annotations

import pytest

from headway.api.problems import Problem
from headway.apps.channels.online.waiting import wait_said


@pytest.mark.parametrize(("said", "seconds"), [
    (None, None), ("30s", 30.0), ("1m30s", 90.0), ("10m", 600.0), ("0", 0.0), ("0s", 0.0),
    ("2.5", 2.5), (" 5 ", 5.0), ("600", 600.0),
])  # fmt: skip
def test_a_time_or_a_number_of_seconds(said: str | None, seconds: float | None) -> None:
    assert wait_said(said) == seconds


@pytest.mark.parametrize("said", ["", "x", "-1", "inf", "nan", "1e2", "601", "11m", "1h", "٣", "."])
def test_anything_else_is_refused(said: str) -> None:
    with pytest.raises(Problem, match="30s") as refused:
        wait_said(said)
    assert refused.value.status == 400
