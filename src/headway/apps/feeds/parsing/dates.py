"""When an entry says that it was written, if that can be true."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

# A machine's zero, and years far away, are no dates but mistakes. How to treat a date that is
# merely in the future is for whoever knows what time it is.
EARLIEST = datetime(1970, 1, 2, tzinfo=UTC)
LATEST = datetime(2100, 1, 1, tzinfo=UTC)

_ISO = re.compile(
    r"(\d{4})-(\d\d?)-(\d\d?)"
    r"(?:[T\s]\s*(\d\d?):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?\s*(?:(Z|UTC|GMT)|([+-])(\d\d):?(\d\d))?)?",
    re.IGNORECASE,
)
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)")
_CHINESE = re.compile(
    r"(\d{4})\s*年\s*(\d\d?)\s*月\s*(\d\d?)\s*日(?:\s*(\d\d?):(\d\d)(?::(\d\d))?)?"
)
_YEAR_FIRST = re.compile(r"\d{4}|\d+$")


def moment(text: object, guessed: Any = None) -> datetime | None:
    """The moment in UTC. `guessed` is what feedparser makes of it: it knows many notations, but
    finds some date in almost any number, and the 2nd of March in the 31st of February.
    """
    if not isinstance(text, str):
        return None
    text = text.strip()[:100]
    try:
        if _YEAR_FIRST.match(text):
            return _plausible(_year_first(text))
        return _plausible(_in_utc(guessed[:6])) if guessed else None
    except (ValueError, OverflowError, TypeError):
        return None


def _year_first(text: str) -> datetime | None:
    for form in (_ISO, _COMPACT, _CHINESE):
        if found := form.fullmatch(text):
            written = _in_utc([int(number or 0) for number in found.groups()[:6]])
            return written if form is not _ISO else written - _offset(*found.groups()[7:])
    return None


def _in_utc(numbers: Sequence[int]) -> datetime:
    year, month, day, hour, minute, second = (*numbers, 0, 0, 0)[:6]
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC)


def _offset(sign: str | None, hours: str, minutes: str) -> timedelta:
    if sign is None:
        return timedelta()
    ahead = timedelta(hours=int(hours), minutes=int(minutes))
    timezone(ahead)  # raises if no place on earth is that far ahead
    return ahead if sign == "+" else -ahead


def _plausible(moment: datetime | None) -> datetime | None:
    return moment if moment is not None and EARLIEST <= moment < LATEST else None
