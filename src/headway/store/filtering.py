"""Which jobs a query means: SQL in which every value is bound, and the same for every store.

Whatever is asked for, the worst that comes of it is that nothing is found: text that no store can
hold, and numbers that no row can have, are nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from headway.store.records import Query

SMALLEST, LARGEST = -(2**63), 2**63 - 1  # the numbers that a row can have

SAME = ("type", "lane", "tenant", "key", "batch", "schedule")
TIMES = {
    "created_after": "created_at >= ?",
    "created_before": "created_at < ?",
    "finished_after": "finished_at >= ?",
    "finished_before": "finished_at < ?",
}


class Words(NamedTuple):
    """What stores say differently. Each question mark stands for one value."""

    many: Callable[[Iterable[Any]], Any]  # many numbers, or many texts, as one value
    among: str  # follows a column that is compared with many
    at_upstream: str  # twice the name: the one granted, or a candidate
    says: str  # what is in the error
    labelled: str  # JSON text of an object, all of which is among the labels


def is_number(value: int) -> bool:
    """Whether a row can have this number."""
    return SMALLEST <= value <= LARGEST


def nearest(value: int, smallest: int = SMALLEST) -> int:
    """The number nearest to it that a store can compare with."""
    return min(max(value, smallest), LARGEST)


def is_text(value: str) -> bool:
    """Whether a column can have this text: PostgreSQL has no NUL, and nobody half a character."""
    try:
        return b"\x00" not in value.encode()
    except UnicodeEncodeError:
        return False


def where(query: Query, words: Words) -> tuple[str, list[Any]] | None:
    """The condition and its values. None: there can be no such job."""
    parts: list[str] = []
    values: list[Any] = []

    def also(part: str, *bound: Any) -> None:
        parts.append(part)
        values.extend(bound)

    for column in SAME:
        wanted = getattr(query, column)
        if wanted is not None:
            also(f"{column} = ?", wanted)
    for name, part in TIMES.items():
        moment = getattr(query, name)
        if moment is not None:
            also(part, float(moment))
    if query.states:
        also(f"state {words.among}", words.many(filter(is_text, query.states)))
    if query.upstream is not None:
        also(words.at_upstream, query.upstream, query.upstream)
    if query.error is not None:
        also(words.says, query.error)
    if query.pinned:
        also("pin is not null")
    if query.ids is not None:
        also(f"id {words.among}", words.many(filter(is_number, query.ids)))
    if query.below is not None:
        also("id < ?", nearest(query.below))
    if query.labels:
        labels = dict(query.labels)
        contradicts = len(labels) < len(set(query.labels))
        if contradicts or not all(is_text(part) for pair in query.labels for part in pair):
            return None
        also(words.labelled, msgspec.json.encode(labels).decode())
    if not all(map(_is_value, values)):
        return None
    return ("where " + " and ".join(parts) if parts else ""), values


def _is_value(value: Any) -> bool:
    match value:
        case str():
            return is_text(value)
        case int():
            return is_number(value)
        case float():
            return not math.isnan(value)
    return True
