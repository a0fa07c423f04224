"""Whatever it does for an hour, it needs no more for the next one."""

from __future__ import annotations

import os

import pytest

from tests.endurance.hour import run
from tests.endurance.watching import Third, complaints


@pytest.mark.soak
@pytest.mark.timeout(5_400)
def test_an_hour_of_everything_at_once_leaves_nothing_behind() -> None:
    figures, found = run(float(os.environ.get("HEADWAY_SOAK_MINUTES", "60")), speed=2.0)
    print(figures)
    assert found == []


def third(rss_mb: float = 300.0, files: int = 60, threads: int = 20, p50_ms: float = 3.0) -> Third:
    return Third(rss_mb, files, threads, p50_ms, 10 * p50_ms, 0)


@pytest.mark.parametrize(
    ("last", "word"),
    [
        (third(rss_mb=340.0), "memory"),
        (third(files=80), "files"),
        (third(threads=30), "threads"),
        (third(p50_ms=20.0), "slower"),
    ],
)
def test_what_grows_is_noticed(last: Third, word: str) -> None:
    [complaint] = complaints([third(), third(), last])
    assert word in complaint


def test_what_fills_at_first_and_then_stays_is_no_growth() -> None:
    assert list(complaints([third(rss_mb=100.0, files=20), third(), third()])) == []
