"""The videos of a list, flat: what the list itself says, and no page of any video is asked for."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from yt_dlp.utils import (  # type: ignore[import-untyped]
    LazyList,
    PagedList,
    sanitize_url,
    unsmuggle_url,
)

from .opening import Info, first_entries, is_list, iterated, opened
from .protocol import MAX_URL, Order
from .values import duration_s, one_line, published_at, whole

MOST_AT_ONCE = 100_000  # of a list that came as a whole
LAZY_FACTOR = 10  # a list that cannot be entered in the middle is read further while it goes well
MAX_ID = 200
GENERIC = "Generic"  # its ids are names of files, and distinct on one site at best
FORCED_ID = {"force_videoid"}

Tell = Callable[[dict[str, Any]], None]


def list_entries(ydl: Any, order: Order, tell: Tell) -> dict[str, Any]:
    raw = opened(ydl, order.url)
    told = 0
    following: int | None = None
    for position, entry in _wanted(raw, order):
        if entry is None:
            following = position
            break
        line = flat(ydl, entry, position)
        if line is not None:
            tell(line)
            told += 1
    return {
        "count": told,
        "next": following,
        "title": one_line(raw.get("title")),
        "uploader": uploader_of(raw),
    }


def _wanted(raw: Info, order: Order) -> Iterator[tuple[int, Any]]:
    """Positions and entries; at last a position without one, where there may be more."""
    if not is_list(raw):
        yield from ([(0, raw)] if order.start == 0 else [])
        return
    entries = raw.get("entries")
    start = order.start
    if isinstance(entries, PagedList):
        some = entries.getslice(start, start + order.most)
        yield from enumerate(some, start)
        if len(some) >= order.most:
            yield start + order.most, None
    elif isinstance(entries, Sequence) and not isinstance(entries, (str, LazyList)):
        yield from enumerate(entries[start : start + MOST_AT_ONCE], start)
        if len(entries) > start + MOST_AT_ONCE:
            yield start + MOST_AT_ONCE, None
    else:
        yield from _while_it_goes_well(iterated(entries), order)


def _while_it_goes_well(entries: Iterator[Any], order: Order) -> Iterator[tuple[int, Any]]:
    deadline = time.monotonic() + order.budget_s
    end = order.start + LAZY_FACTOR * order.most
    for position, entry in enumerate(entries):
        if position < order.start:
            continue
        # One at least, however long the way to it was, or the next call would be no further.
        if position >= end or (position > order.start and time.monotonic() > deadline):
            yield position, None
            return
        yield position, entry


def look(ydl: Any, order: Order, total: Callable[[Info], dict[str, Any]]) -> dict[str, Any]:
    """What an address is, for somebody who is about to subscribe to it."""
    raw = opened(ydl, order.url)
    heads = first_entries(raw, 10) if is_list(raw) else []
    entries = [flat(ydl, entry, position) for position, entry in enumerate(heads)]
    return {
        "kind": "playlist" if is_list(raw) else "video",
        "extractor": one_line(raw.get("extractor")),
        "id": one_line(raw.get("id")),
        "title": one_line(raw.get("title")),
        "uploader": uploader_of(raw),
        "uploader_url": _address(raw.get("uploader_url") or raw.get("channel_url")),
        "webpage_url": _address(raw.get("webpage_url")) or order.url,
        "thumbnail": _address(raw.get("thumbnail")) or _last_thumbnail(raw),
        "total": total(raw)["total"],
        "entries": [entry for entry in entries if entry is not None],
    }


def _last_thumbnail(raw: Info) -> str | None:
    thumbnails = raw.get("thumbnails")
    last = thumbnails[-1] if isinstance(thumbnails, list) and thumbnails else None
    return _address(last.get("url")) if isinstance(last, dict) else None


# ---------------------------------------------------------------------- one entry


def flat(ydl: Any, entry: Any, position: int) -> dict[str, Any] | None:
    """None: it cannot be asked for on its own."""
    if not isinstance(entry, dict):
        return None
    is_reference = entry.get("_type", "video") in ("url", "url_transparent")
    url = _address(entry.get("url") if is_reference else entry.get("webpage_url"))
    url = _without_id(url or _address(entry.get("url")))
    if url is None:
        return None
    return {
        "key": _key(ydl, entry, url),
        "url": url,
        "title": one_line(entry.get("title")),
        "duration_s": duration_s(entry),
        "published_at": published_at(entry),
        "views": whole(entry.get("view_count")),
        "uploader": uploader_of(entry),
        "position": position,
    }


def uploader_of(info: Info) -> str | None:
    return one_line(info.get("uploader")) or one_line(info.get("channel"))


def _address(value: Any) -> str | None:
    if not isinstance(value, str) or len(value) > MAX_URL:
        return None
    url = str(sanitize_url(value.strip(), scheme="https"))
    is_sound = url.isprintable() and url.startswith(("http://", "https://"))
    return url if is_sound else None


def _without_id(url: str | None) -> str | None:
    """yt-dlp hides the identity that a feed gives in the address, where nobody needs it."""
    if url is None:
        return None
    plain, hidden = _apart(url)
    return plain if set(hidden) <= FORCED_ID else url


def _key(ydl: Any, entry: Info, url: str) -> str:
    """The same for the same video, whatever list it stands in."""
    extractor = entry.get("ie_key") or entry.get("extractor_key")
    if isinstance(extractor, str) and extractor != GENERIC:
        found = entry.get("id") or _id_in(ydl, extractor, url)
        if isinstance(found, str) and 0 < len(found) <= MAX_ID and found.isprintable():
            return f"{extractor.lower()}:{found}"
    plain, _ = _apart(url)
    return "url:" + hashlib.sha256(plain.encode("utf-8", "replace")).hexdigest()[:32]


def _apart(url: str) -> tuple[str, dict[str, Any]]:
    """An address, and what yt-dlp has hidden in it."""
    try:
        plain, hidden = unsmuggle_url(url, {})
    except ValueError:  # only yt-dlp writes it so that it can be read
        return url, {}
    return str(plain), hidden if isinstance(hidden, dict) else {}


def _id_in(ydl: Any, extractor: str, url: str) -> Any:
    try:
        return ydl.get_info_extractor(extractor).get_temp_id(url)
    except Exception:  # whatever the site has named: there is no such extractor
        return None
