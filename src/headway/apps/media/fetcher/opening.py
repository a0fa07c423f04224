"""Finds out what stands behind an address: a video, or a list that has not been read yet."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from yt_dlp.utils import PagedList  # type: ignore[import-untyped]

from .failures import Verdict
from .protocol import FailureKind

HOPS = 5
LISTS = ("playlist", "multi_video", "compat_list")
# What a page says about a video it shows counts more than what the video says, but for these.
OF_THE_VIDEO = frozenset({"_type", "url", "ie_key", "id", "extractor", "extractor_key"})

Info = dict[str, Any]


def opened(ydl: Any, url: str, ie_key: str | None = None) -> Info:
    """Follows references from one page to the next; reads no list and looks at no format."""
    said: Info = {}
    for _ in range(HOPS):
        raw = ydl.extract_info(url, download=False, process=False, ie_key=ie_key)
        if not isinstance(raw, dict):
            raise Verdict(FailureKind.EXTRACTOR, "yt-dlp found nothing at this address")
        kind = raw.get("_type", "video")
        if kind not in ("url", "url_transparent"):
            return {**raw, **said}
        if kind == "url_transparent":
            said = {**_of_the_page(raw), **said}
        url, ie_key = str(raw.get("url")), raw.get("ie_key")
    raise Verdict(FailureKind.UNSUPPORTED, f"the address leads on more than {HOPS} times")


def _of_the_page(raw: Info) -> Info:
    return {
        name: value for name, value in raw.items() if value is not None and name not in OF_THE_VIDEO
    }


def is_list(raw: Info) -> bool:
    return raw.get("_type", "video") in LISTS


def first_entries(raw: Info, most: int) -> list[Any]:
    """The head of a list, with no more pages than that needs."""
    entries = raw.get("entries")
    if isinstance(entries, PagedList):
        return list(entries.getslice(0, most))
    return list(itertools.islice(iterated(entries), most))


def iterated(entries: Any) -> Iterator[Any]:
    return iter(entries if entries is not None else ())
