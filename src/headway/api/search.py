"""Searching by qualifiers: `type:download status:failed upstream:x.com error:timeout`."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from headway.api.problems import Problem
from headway.core import State
from headway.core.lifecycle import TERMINAL
from headway.core.recurrence import duration_s
from headway.store.records import Query

STATES = tuple(state.value for state in State)
OPEN = tuple(state.value for state in State if state not in TERMINAL)
GROUPS = {
    "open": OPEN,
    "ended": tuple(state.value for state in State if state in TERMINAL),
    "waiting": ("pending", "queued"),
    "done": ("completed",),
    "canceled": ("cancelled",),
}
MAX_TEXT = 1_000

# A qualifier, a quoted value, or a word that stands alone.
_PART = re.compile(r'(?:(\w+):)?(?:"((?:[^"\\]|\\.)*)"|(\S+))')
_TEXTS = ("type", "lane", "tenant", "key", "upstream", "schedule", "error")
KNOWN = ("id", "status", *_TEXTS, "batch", "label", "created", "finished")


def states_of(text: str) -> tuple[str, ...]:
    """One state, several with commas, or the name of a group of them."""
    found: list[str] = []
    for word in text.lower().split(","):
        if word in STATES:
            found.append(word)
        elif word in GROUPS:
            found.extend(GROUPS[word])
        else:
            known = ", ".join((*STATES, *GROUPS))
            raise Problem(422, f"{word!r} is no status; known are {known}", kind="bad-search")
    return tuple(dict.fromkeys(found))


def parse(text: str, query: Query, now: float) -> Query:
    """Narrow a query by what the text says. Words that stand alone are looked for in errors."""
    if len(text) > MAX_TEXT:
        raise Problem(422, f"a search has at most {MAX_TEXT} characters", kind="bad-search")
    changes: dict[str, Any] = {}
    labels: list[tuple[str, str]] = list(query.labels)
    for match in _PART.finditer(text):
        name, quoted, plain = match.groups()
        value = plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        if name is None:
            name = "error"
        name = name.lower()
        if name == "label":
            labels.append(_label(value))
        else:
            changes |= _change(name, value, now)
    return replace(query, labels=tuple(labels), **changes)


def _change(name: str, value: str, now: float) -> dict[str, Any]:
    if name in ("status", "state"):
        return {"states": states_of(value)}
    if name in _TEXTS:
        return {name: value}
    if name == "id":
        return {"ids": tuple(_number("id", each) for each in value.split(","))}
    if name == "batch":
        return {"batch": _number("batch", value)}
    if name in ("created", "finished"):
        return _times(name, value, now)
    raise Problem(422, f"{name}: is no qualifier; known are {', '.join(KNOWN)}", kind="bad-search")


def _number(name: str, value: str) -> int:
    if not value.isdecimal() or len(value) > 18:
        raise Problem(422, f"{name}: needs a number, not {value!r}", kind="bad-search")
    return int(value)


def _label(value: str) -> tuple[str, str]:
    name, separator, text = value.partition("=")
    if not separator or not name:
        raise Problem(422, "write a label as label:name=value", kind="bad-search")
    return name, text


def _times(name: str, value: str, now: float) -> dict[str, Any]:
    """`created:>2026-01-31`, `created:<2026-01-31T12:00`, `finished:>1h` (in the last hour)."""
    if value[:1] not in (">", "<"):
        example = f"{name}:>2026-01-31 or {name}:>1h"
        raise Problem(422, f"write {example}, not {name}:{value}", kind="bad-search")
    side = "after" if value[0] == ">" else "before"
    return {f"{name}_{side}": _moment(value[1:].lstrip("="), now)}


def _moment(text: str, now: float) -> float:
    try:
        return now - duration_s(text)
    except (ValueError, TypeError):
        pass
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise Problem(
            422, f"{text!r} is no time; write 2026-01-31, or 1h for an hour ago", kind="bad-search"
        ) from None
