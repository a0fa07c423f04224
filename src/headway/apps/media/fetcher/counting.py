"""How many videos a list has, by what its first page says: nothing is enumerated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from yt_dlp.utils import (  # type: ignore[import-untyped]
    InAdvancePagedList,
    LazyList,
    OnDemandPagedList,
)

from .opening import Info, is_list, opened
from .protocol import Order
from .values import one_line, whole

FIELDS = ("playlist_count", "n_entries", "entry_count")


def count(ydl: Any, order: Order) -> dict[str, Any]:
    raw = opened(ydl, order.url)
    return {**total_of(raw), "title": one_line(raw.get("title"))}


def total_of(raw: Info) -> dict[str, Any]:
    if not is_list(raw):
        return _known(1, "single")
    for name in FIELDS:
        if (said := whole(raw.get(name))) is not None:
            return _known(said, "field")
    entries = raw.get("entries")
    if isinstance(entries, Sequence) and not isinstance(entries, (str, LazyList)):
        return _known(len(entries), "list")
    if isinstance(entries, InAdvancePagedList):
        return _known(_by_last_page(entries), "pages")
    if isinstance(entries, OnDemandPagedList):
        first = len(entries.getpage(0))
        if first < entries._pagesize:
            return _known(first, "pages")
        return _unknown(at_least=first)
    return _unknown(at_least=None)


def _by_last_page(entries: Any) -> int:
    pages = int(entries._pagecount)
    if pages <= 0:
        return 0
    return int((pages - 1) * entries._pagesize + len(entries.getpage(pages - 1)))


def _known(total: int, how: str) -> dict[str, Any]:
    return {"total": total, "exact": True, "how": how, "at_least": total}


def _unknown(at_least: int | None) -> dict[str, Any]:
    return {"total": None, "exact": False, "how": "unknown", "at_least": at_least}
