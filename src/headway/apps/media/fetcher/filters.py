"""Which videos of a list are wanted: by title, date, length and views.

A fact that nobody knows excludes nothing. Lists often say little, so a video may pass here and be
looked at again when its page is read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

MAX_WORDS = 100
MAX_WORD = 200  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What a video must be like. Words are plain text, found anywhere in a title, in any case."""

    title_any: tuple[str, ...] = ()  # at least one of them
    title_none: tuple[str, ...] = ()  # none of them
    after: float | None = None  # published then or later, in seconds since 1970
    before: float | None = None  # published earlier than that
    min_duration_s: float | None = None
    max_duration_s: float | None = None
    min_views: int | None = None
    max_views: int | None = None

    def __post_init__(self) -> None:
        for name in ("title_any", "title_none"):
            _check_words(name, getattr(self, name))
        for name in ("after", "before", "min_duration_s", "max_duration_s"):
            _check_number(name, getattr(self, name), only_whole=False)
        for name in ("min_views", "max_views"):
            _check_number(name, getattr(self, name), only_whole=True)
        _check_order("after", self.after, "before", self.before)
        _check_order("min_duration_s", self.min_duration_s, "max_duration_s", self.max_duration_s)
        _check_order("min_views", self.min_views, "max_views", self.max_views)

    def to_dict(self) -> dict[str, Any]:
        """Only what says something."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
            if value not in (None, ())
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Filters:
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(given) - known):
            raise ValueError(f"there is no filter {unknown[0]!r}; there are {', '.join(known)}")
        made = dict(given)
        for name in ("title_any", "title_none"):
            words = made.get(name, ())
            if isinstance(words, str) or not isinstance(words, (list, tuple)):
                raise ValueError(f"{name} is a list of words")
            made[name] = tuple(words)
        return cls(**made)


def _check_words(name: str, words: tuple[str, ...]) -> None:
    if len(words) > MAX_WORDS:
        raise ValueError(f"{name} has {len(words)} words; {MAX_WORDS} are the most")
    for word in words:
        if not isinstance(word, str) or not word.strip() or len(word) > MAX_WORD:
            raise ValueError(f"{name} has words of 1 to {MAX_WORD} characters; {word!r} is none")


def _check_number(name: str, value: Any, *, only_whole: bool) -> None:
    if value is None:
        return
    kinds = int if only_whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise ValueError(f"{name} is a {'whole ' if only_whole else ''}number")
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{name} is {value}; it must be 0 or more")


def _check_order(lower: str, least: float | None, upper: str, most: float | None) -> None:
    if least is not None and most is not None and least > most:
        raise ValueError(f"{lower} is above {upper}, so nothing would pass")


def reason_to_skip(
    filters: Filters,
    title: str | None,
    published_at: float | None,
    duration_s: float | None,
    views: int | None,
) -> str | None:
    """Why this video is not wanted. None: it is, as far as the facts are known."""
    if title is not None and (reason := _by_title(filters, title)):
        return reason
    if published_at is not None:
        if filters.after is not None and published_at < filters.after:
            return "it was published too early"
        if filters.before is not None and published_at >= filters.before:
            return "it was published too late"
    if duration_s is not None:
        if filters.min_duration_s is not None and duration_s < filters.min_duration_s:
            return f"it is shorter than {filters.min_duration_s:g} s"
        if filters.max_duration_s is not None and duration_s > filters.max_duration_s:
            return f"it is longer than {filters.max_duration_s:g} s"
    if views is not None:
        if filters.min_views is not None and views < filters.min_views:
            return f"it has fewer than {filters.min_views} views"
        if filters.max_views is not None and views > filters.max_views:
            return f"it has more than {filters.max_views} views"
    return None


def _by_title(filters: Filters, title: str) -> str | None:
    folded = title.casefold()
    for word in filters.title_none:
        if word.casefold() in folded:
            return f"its title has {word!r}"
    if filters.title_any and not any(word.casefold() in folded for word in filters.title_any):
        return "its title has none of the words"
    return None
