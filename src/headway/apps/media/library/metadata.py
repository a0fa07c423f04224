"""What is read of yt-dlp's information about a video.

It comes from pages of strangers: any key may be absent, of another type, endless or nonsense. Here
it becomes plain values with bounds; what makes no sense is taken for unknown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

MAX_LINE = 500  # characters of a title or name
MAX_TEXT = 20_000  # characters of a description
MAX_URL = 2_000
MAX_WORDS = 30  # categories or tags
MAX_WORD = 100
MAX_DURATION_S = 10 * 365 * 86400
_LAST_MOMENT = 253_402_300_799  # the end of the year 9999


@dataclass(frozen=True, slots=True)
class Metadata:
    """None or empty: unknown."""

    id: str | None = None
    extractor: str | None = None
    title: str | None = None
    description: str | None = None
    uploader: str | None = None
    published_at: int | None = None
    duration_s: float | None = None
    height: int | None = None
    url: str | None = None
    thumbnail_url: str | None = None
    categories: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> Metadata:
        height = _number(info.get("height"), 1, 100_000)
        return cls(
            id=line(info.get("id")),
            extractor=line(info.get("extractor_key")) or line(info.get("extractor")),
            title=line(info.get("title")) or line(info.get("fulltitle")),
            description=_text(info.get("description")),
            uploader=line(info.get("uploader")) or line(info.get("channel")),
            published_at=_published_at(info),
            duration_s=_number(info.get("duration"), 0, MAX_DURATION_S),
            height=None if height is None else int(height),
            url=web_address(info.get("webpage_url")) or web_address(info.get("original_url")),
            thumbnail_url=web_address(info.get("thumbnail")),
            categories=_words(info.get("categories")),
            tags=_words(info.get("tags")),
        )


def line(value: object, most: int = MAX_LINE) -> str | None:
    """One line of text; numbers are taken as their digits, since ids often are numbers."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**30:
        value = str(value)
    if not isinstance(value, str):
        return None
    # Cut twice: what is split must not be endless.
    return _whole(" ".join(value[: 4 * most].split())[:most]) or None


def web_address(value: object) -> str | None:
    """Only of the web. A media server would open an address of a local file, as it was told to."""
    if not isinstance(value, str) or len(value) > MAX_URL or not value.isprintable():
        return None
    if " " in value:
        return None
    try:
        parts = urlsplit(value)
    except ValueError:
        return None
    return value if parts.scheme in ("http", "https") and parts.netloc else None


def _text(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    whole = _whole(value[:MAX_TEXT].replace("\r\n", "\n").replace("\r", "\n"))
    return whole.strip() or None


def _words(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        return ()
    words = (line(each, MAX_WORD) for each in value[: 4 * MAX_WORDS])
    return tuple(dict.fromkeys(word for word in words if word))[:MAX_WORDS]


def _number(value: object, least: float, most: float) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if least <= value <= most else None


def _published_at(info: Mapping[str, Any]) -> int | None:
    for moment, day in (("timestamp", "upload_date"), ("release_timestamp", "release_date")):
        seconds = _number(info.get(moment), -_LAST_MOMENT, _LAST_MOMENT)
        if seconds is not None:
            return int(seconds)
        found = day_in(info.get(day))
        if found is not None:
            return found
    return None


def day_in(value: object) -> int | None:
    """The first second of a day that is written as `20261116` or `2026-11-16`."""
    if not isinstance(value, str) or not value.isascii():
        return None
    digits = value.replace("-", "") if len(value) == 10 else value
    if len(digits) != 8 or not digits.isdigit():
        return None
    try:
        day = datetime(int(digits[:4]), int(digits[4:6]), int(digits[6:]), tzinfo=UTC)
    except ValueError:
        return None
    return int(day.timestamp())


def _whole(text: str) -> str:
    """Without halves of characters, which cannot be written."""
    return text.encode("utf-8", "ignore").decode()
