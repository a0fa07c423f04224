"""What is decided about a video before any byte of it is asked for: is it wanted, and which format.

yt-dlp asks both while it reads the page, and takes what it is told.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from .failures import Verdict
from .filters import reason_to_skip
from .protocol import FailureKind, Order
from .values import duration_s, one_line, published_at, whole

NOT_YET_OVER = {
    "is_live": "it is live now",
    "is_upcoming": "it has not begun",
    "post_live": "it has just ended and is not ready",
}


class Wanted:
    """yt-dlp's filter for videos. Its verdict is kept, since yt-dlp only passes over the video."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._verdict: Verdict | None = None

    def __call__(self, info: Mapping[str, Any], *, incomplete: Any = False) -> str | None:
        if incomplete is True:  # of a list: there is more to know, or nothing to judge
            return None
        state = info.get("live_status") or ("is_live" if info.get("is_live") is True else None)
        if state in NOT_YET_OVER:
            self._verdict = Verdict(FailureKind.LIVE, NOT_YET_OVER[state])
            return NOT_YET_OVER[state]
        reason = reason_to_skip(self._order.filters, *facts(info, self._order))
        if reason is not None:
            self._verdict = Verdict(FailureKind.FILTERED, reason)
        return reason

    def check(self) -> None:
        if self._verdict is not None:
            raise self._verdict


Facts = tuple[str | None, float | None, float | None, int | None]


def facts(info: Mapping[str, Any], order: Order) -> Facts:
    """Title, publication, length and views, as the page says them or else the list. Of a plain file
    yt-dlp only knows its name and when it was changed, which is less than any list says.
    """
    known = order.known
    listed = (known.title, known.published_at, known.duration_s, known.views)
    read = (
        one_line(info.get("title")), published_at(info), duration_s(info),
        whole(info.get("view_count")),
    )  # fmt: skip
    first, second = (listed, read) if info.get("direct") is True else (read, listed)
    return (
        second[0] if first[0] is None else first[0],
        second[1] if first[1] is None else first[1],
        second[2] if first[2] is None else first[2],
        second[3] if first[3] is None else first[3],
    )


class Choosing:
    """yt-dlp's choice of a format: the first selector that finds something it can be given."""

    def __init__(self, order: Order, *, can_merge: bool) -> None:
        self._selectors = order.formats
        self._can_merge = can_merge
        self.ydl: Any = None
        self.candidates: list[dict[str, Any]] = []

    def __call__(self, offered: Any) -> list[dict[str, Any]]:
        self.candidates = list(self._candidates(offered))
        if not self.candidates:
            raise Verdict(FailureKind.FORMAT, "there is no format of the wanted quality")
        return self.candidates[:1]

    def _candidates(self, offered: Any) -> Iterator[dict[str, Any]]:
        """Each once, in the order of the selectors."""
        seen = set()
        for selector in self._selectors:
            for chosen in self.ydl.build_format_selector(selector)(offered):
                tag = tag_of(chosen)
                if tag not in seen and (self._can_merge or len(parts_of(chosen)) == 1):
                    seen.add(tag)
                    yield chosen
                break


def parts_of(chosen: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The files that it is made of: one, or video and sound that have to be merged."""
    return list(chosen.get("requested_formats") or [dict(chosen)])


def tag_of(chosen: Mapping[str, Any]) -> str:
    """Tells one choice from another, so that the rest of one is never appended to the other."""
    said = [
        [part.get(name) for name in ("format_id", "ext", "protocol", "filesize")]
        for part in parts_of(chosen)
    ]
    return hashlib.sha256(json.dumps(said, default=str).encode()).hexdigest()[:16]


def size_of(chosen: Mapping[str, Any]) -> int | None:
    """What the file will need, as far as the site says it."""
    sizes = [
        whole(part.get("filesize")) or whole(part.get("filesize_approx"))
        for part in parts_of(chosen)
    ]
    return None if None in sizes else sum(size or 0 for size in sizes)
