"""Values from pages, which may be anything: what is not what it should be is taken as missing."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

MAX_TITLE = 500
MAX_TEXT = 50_000  # characters of a description and the like
MAX_DEPTH = 8
MAX_ITEMS = 2_000
MAX_WHOLE = 2**53  # above it JSON's readers disagree
MAX_DURATION_S = 10 * 365 * 86_400
LAST_MOMENT = 4_102_444_800  # the year 2100

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
CONTROL_BUT_LINES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]+")


def one_line(value: Any, most: int = MAX_TITLE) -> str | None:
    """A text in one line, without what would confuse a terminal or a log."""
    if not isinstance(value, str):
        return None
    whole = " ".join(CONTROL.sub(" ", sound(value[: 4 * most])).split())
    return whole[:most].rstrip() or None


def sound(text: str) -> str:
    """Half characters, which cannot be written as UTF-8, become question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def number(value: Any, most: float) -> float | None:
    """From 0 to `most`, written as a number or not."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        as_float = float(value)
    except OverflowError:
        return None
    return as_float if math.isfinite(as_float) and 0 <= as_float <= most else None


def whole(value: Any) -> int | None:
    found = number(value, MAX_WHOLE)
    return None if found is None else int(found)


def duration_s(info: Mapping[str, Any]) -> float | None:
    found = number(info.get("duration"), MAX_DURATION_S)
    return None if found is None else round(found, 3)


def published_at(info: Mapping[str, Any]) -> int | None:
    """Seconds since 1970."""
    for name in ("timestamp", "release_timestamp"):
        moment = number(info.get(name), LAST_MOMENT)
        if moment is not None:
            return int(moment)
    for name in ("upload_date", "release_date"):
        day = info.get(name)
        if isinstance(day, str) and re.fullmatch(r"[0-9]{8}", day):
            try:
                moment = datetime.strptime(day, "%Y%m%d").replace(tzinfo=UTC).timestamp()
            except ValueError:
                continue
            if 0 <= moment <= LAST_MOMENT:
                return int(moment)
    return None


def plain(value: Any, depth: int = 0) -> Any:
    """Anything as JSON that everybody can read, in bounded size."""
    if isinstance(value, str):
        return CONTROL_BUT_LINES.sub("", sound(value[:MAX_TEXT]))
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return value if number(abs(value), MAX_WHOLE) is not None else None
    if depth >= MAX_DEPTH:
        return None
    if isinstance(value, Mapping):
        some = list(value.items())[:MAX_ITEMS]
        return {sound(str(key))[:MAX_TITLE]: plain(each, depth + 1) for key, each in some}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(each, depth + 1) for each in list(value)[:MAX_ITEMS]]
    return None
