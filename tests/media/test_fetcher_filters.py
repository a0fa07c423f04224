"""Filters: what is wanted, what is not, and what nobody knows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.apps.media.fetcher.filters import Filters, reason_to_skip

FACTS: dict[str, Any] = {
    "title": "The Straße of Cats", "published_at": 1_000.0, "duration_s": 60.0, "views": 10,
}  # fmt: skip


@pytest.mark.parametrize(
    ("filters", "passes"),
    [
        ({}, True),
        ({"title_any": ["dogs", "CATS"]}, True),
        ({"title_any": ["STRASSE"]}, True),
        ({"title_any": ["dogs"]}, False),
        ({"title_any": ["c.ts"]}, False),
        ({"title_none": ["cats"]}, False),
        ({"title_any": ["cats"], "title_none": ["the"]}, False),
        ({"after": 1_000}, True),
        ({"after": 1_001}, False),
        ({"before": 1_000}, False),
        ({"before": 1_001}, True),
        ({"min_duration_s": 60, "max_duration_s": 60}, True),
        ({"min_duration_s": 61}, False),
        ({"max_duration_s": 59.5}, False),
        ({"min_views": 10, "max_views": 10}, True),
        ({"min_views": 11}, False),
        ({"max_views": 9}, False),
    ],
)
def test_a_video_passes_or_it_is_said_why_not(filters: dict[str, Any], passes: bool) -> None:
    reason = reason_to_skip(Filters.from_dict(filters), **FACTS)
    assert (reason is None) is passes


words = st.lists(st.text(min_size=1).filter(str.strip), max_size=3).map(tuple)
numbers = st.none() | st.integers(0, 10**6)


@st.composite
def any_filters(draw: st.DrawFn) -> Filters:
    pairs = [sorted(draw(st.tuples(st.integers(0, 99), st.integers(0, 99)))) for _ in range(3)]
    given_ = dict(zip(("after", "min_duration_s", "min_views"), (p[0] for p in pairs), strict=True))
    given_ |= dict(
        zip(("before", "max_duration_s", "max_views"), (p[1] for p in pairs), strict=True)
    )
    kept = {name: value for name, value in given_.items() if draw(st.booleans())}
    return Filters(title_any=draw(words), title_none=draw(words), **kept)  # type: ignore[arg-type]


@given(any_filters())
def test_what_is_not_known_excludes_nothing(filters: Filters) -> None:
    assert reason_to_skip(filters, None, None, None, None) is None


@given(any_filters())
def test_filters_survive_json(filters: Filters) -> None:
    assert Filters.from_dict(json.loads(json.dumps(filters.to_dict()))) == filters


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"titel_any": ["x"]}, "titel_any"),
        ({"title_any": "cats"}, "list of words"),
        ({"title_any": [" "]}, "characters"),
        ({"title_none": ["x"] * 101}, "100"),
        ({"title_any": [3]}, "characters"),
        ({"after": "2020"}, "number"),
        ({"min_views": 1.5}, "whole number"),
        ({"min_views": True}, "whole number"),
        ({"max_duration_s": -1}, "0 or more"),
        ({"max_duration_s": float("nan")}, "0 or more"),
        ({"after": 2, "before": 1}, "nothing would pass"),
        ({"min_views": 2, "max_views": 1}, "nothing would pass"),
    ],
)
def test_filters_that_make_no_sense_are_refused_in_words(given_: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Filters.from_dict(given_)
