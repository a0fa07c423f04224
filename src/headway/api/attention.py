"""What needs somebody's attention: one sentence each, as data that a page can translate.

`kind` and `values` say it for a page, `text` in English for everybody else. Who finds something
makes an `Attention` of it; `api.noticing` looks at the engine, applications at themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

FEW = 10  # of one kind; more are one sentence
NAMED = 5  # of those, by their names


class Level(StrEnum):
    BAD = "bad"  # something does not work
    WARN = "warn"  # something will not, or not well
    INFO = "info"  # somebody wanted it so, or it passes by itself


ORDER = tuple(Level)  # the worst first


class Attention(NamedTuple):
    """`subject`: the kind and the name of what it is about. Times as numbers; None: not known.
    `of`: the kinds of those that it stands for, if it is one sentence for many.
    """

    kind: str
    level: Level
    subject: tuple[str, str]
    text: str
    values: Mapping[str, Any] = {}
    since: float | None = None
    until: float | None = None
    of: tuple[str, ...] = ()


def bundled(
    kind: str, items: Sequence[Attention], say: Callable[[int, str], str]
) -> Sequence[Attention]:
    """As they are, or one sentence of this kind for all if they are many. `say` is given how many
    there are, and the names of a few.
    """
    if len(items) <= FEW:
        return items
    level = min((each.level for each in items), key=ORDER.index)
    names = [each.subject[1] for each in items]
    noun = items[0].subject[0]
    values = {"count": len(items), "names": names[:NAMED]}
    of = tuple(dict.fromkeys(each.kind for each in items))
    return [Attention(kind, level, (noun, ""), say(len(items), listed(names)), values, of=of)]


def listed(names: Sequence[str]) -> str:
    """The first of them: `a, b, c and 12 more`."""
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")


def several(count: int, noun: str) -> str:
    """`1 job`, `2 jobs`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def on_the_clock(at: float | None) -> str:
    """For a sentence: `until 2026-01-31 12:00 UTC`, or `until somebody opens it`."""
    if at is None or not at < 1e11:
        return "until somebody opens it"
    return datetime.fromtimestamp(at, UTC).strftime("until %Y-%m-%d %H:%M UTC")
