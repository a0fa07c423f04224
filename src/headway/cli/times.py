"""Times and durations in words, and back."""

from __future__ import annotations

from datetime import UTC, datetime
from time import time
from typing import Any

import typer

from headway.core.recurrence import UNITS_S, duration_s

MINUTE_S, HOUR_S, DAY_S = 60.0, 3_600.0, 86_400.0


def moment(text: str | None) -> float | None:
    """Seconds since 1970 of a time as the API writes it."""
    return None if text is None else datetime.fromisoformat(text).timestamp()


def span(seconds: float) -> str:
    """`40 ms`, `0.4 s`, `12 s`, `3 min`, `2 h 5 min`, `4 d`: as exact as anybody needs to know."""
    seconds = max(0.0, seconds)
    if 0 < seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * MINUTE_S:
        return f"{seconds / MINUTE_S:.0f} min"
    if seconds < 2 * DAY_S:
        hours, rest = divmod(seconds, HOUR_S)
        minutes = int(rest / MINUTE_S)
        return f"{hours:.0f} h {minutes} min" if minutes and hours < 10 else f"{hours:.0f} h"
    return f"{seconds / DAY_S:.0f} d"


def ago(text: str | None, now: float | None = None) -> str:
    """`3 min ago`, `in 12 s`, `now`; empty for no time at all."""
    at = moment(text)
    if at is None:
        return ""
    gone_s = (time() if now is None else now) - at
    if abs(gone_s) < 1:
        return "now"
    return f"{span(gone_s)} ago" if gone_s > 0 else f"in {span(-gone_s)}"


def at_and_ago(text: str | None, now: float | None = None) -> str:
    """`2026-11-16 06:00:00 (3 min ago)`, in the local time zone."""
    at = moment(text)
    if at is None:
        return ""
    return f"{datetime.fromtimestamp(at).strftime('%Y-%m-%d %H:%M:%S')} ({ago(text, now)})"


def clock(text: str | None, now: float | None = None) -> str:
    """`06:00:00`, with the date unless it is today, in the local time zone."""
    at = moment(text)
    if at is None:
        return ""
    then = datetime.fromtimestamp(at)
    today = datetime.fromtimestamp(time() if now is None else now).date()
    return then.strftime("%H:%M:%S" if then.date() == today else "%Y-%m-%d %H:%M:%S")


def seconds_of(text: str) -> float:
    """`30s`, `5m`, `1h30m`. A number alone is refused: nobody knows its unit."""
    try:
        return duration_s(text)
    except (ValueError, TypeError):
        raise typer.BadParameter(f"{text!r} is no duration; write 30s, 5m, 2h or 1d") from None


def time_of(text: str) -> float:
    """`2026-01-31T12:00` in the local time zone unless it names one, or `10m` from now."""
    try:
        return time() + duration_s(text)
    except (ValueError, TypeError):
        pass
    try:
        at = datetime.fromisoformat(text)
        return at.timestamp()
    except (ValueError, OverflowError, OSError):
        raise typer.BadParameter(
            f"{text!r} is no time; write 2026-01-31T12:00, or 10m for in ten minutes"
        ) from None


def stamp(at: float) -> str:
    """A time as the API reads it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def rule_words(rule: dict[str, Any]) -> str:
    """A schedule's rule: `every 1h30m`, `0 3 * * * (UTC)`."""
    if "cron" in rule:
        return f"{rule['cron']} ({rule['zone']})"
    return f"every {duration_text(rule['every_s'])}"


def duration_text(seconds: float) -> str:
    """The whole of it, as `seconds_of` reads it: `1h30m`."""
    left = round(seconds * 1000)
    text = ""
    for unit, unit_s in UNITS_S.items():
        many, rest = divmod(left, round(unit_s * 1000))
        if unit == "s":
            return f"{text}{left / 1000:g}s" if left or not text else text
        if many:
            text, left = f"{text}{many}{unit}", rest
    return text
