"""What the server says to the program, and what the program answers.

The order is one JSON object on standard input. Each line of output is a JSON object too: `entry`
lines while a list is read, `progress` lines while a file comes, and at last exactly one `end` line
with a result or a failure. A program that ends without it is broken.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from urllib.parse import urlsplit

from .filters import Filters

MAX_URL = 4_096
MAX_LINE = 1_000_000  # characters of one line of output


class Task(StrEnum):
    COUNT = "count"  # how many videos there are, without reading them all
    LOOK = "look"  # what this address is
    LIST = "list"
    DOWNLOAD = "download"


class Line(StrEnum):
    ENTRY = "entry"
    PROGRESS = "progress"
    END = "end"


class FailureKind(StrEnum):
    PUSHBACK = "pushback"  # 412, 429, 503: the site wants to be left alone
    CREDENTIAL = "credential"  # 401, 403
    GONE = "gone"  # 404, 410
    SERVER = "server"  # any other 5xx
    NETWORK = "network"  # no answer, or not all of it
    GEO = "geo"
    UNSUPPORTED = "unsupported"  # there is no video, or it is a list where a video was expected
    LIVE = "live"
    FORMAT = "format"  # nothing of the wanted quality
    REFUSED_BY_SITE = "refused_by_site"  # private, paid, deleted: the site says no
    EXTRACTOR = "extractor"  # yt-dlp does not understand the site any more
    FILTERED = "filtered"
    DISK = "disk"
    TOO_LARGE = "too_large"
    REFUSED = "refused"  # our own guard says no
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a list has said about a video. The page of the video knows better, if it says anything;
    a plain media file says nothing but its name.
    """

    title: str | None = None
    published_at: float | None = None
    duration_s: float | None = None
    views: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """All that the program is told. Times are seconds, sizes bytes."""

    task: Task
    url: str
    user_agent: str
    referer: str | None = None
    cookie_file: str | None = None  # in Netscape's format; it is read and never written
    socket_timeout_s: float = 20.0
    sleep_s: float = 0.0  # between two requests for pages
    retries: int = 2  # after network errors, inside of yt-dlp
    extractor_args: Mapping[str, Mapping[str, list[str]]] = field(default_factory=dict)
    allowed: tuple[str, ...] = ()  # what may be called though it is not public

    # list
    start: int = 0
    most: int = 100
    budget_s: float = 60.0  # after which no further page is asked for

    # download
    directory: str | None = None  # exists, and is for this download only
    formats: tuple[str, ...] = ("b",)  # yt-dlp's selectors, the best first
    filters: Filters = field(default_factory=Filters)
    known: Known = field(default_factory=Known)
    thumbnail: bool = True
    limit_bytes_per_s: float | None = None
    min_free_bytes: int = 0
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "task", Task(self.task))
        _check_url(self.url)
        for name in ("socket_timeout_s", "sleep_s", "retries", "start", "min_free_bytes"):
            if not math.isfinite(getattr(self, name)) or getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be 0 or more")
        if self.most < 1:
            raise ValueError(f"most is {self.most}; at least one entry must be asked for")
        if self.task is Task.DOWNLOAD and not (self.directory and self.formats):
            raise ValueError("a download needs a directory, and at least one format selector")

    def to_json(self) -> bytes:
        told = asdict(self)
        told["filters"] = self.filters.to_dict()
        return json.dumps(told).encode("ascii")

    @classmethod
    def from_json(cls, text: bytes) -> Order:
        told = json.loads(text)
        if not isinstance(told, dict):
            raise ValueError("an order is a JSON object")
        names = {each.name for each in fields(cls)}
        if unknown := sorted(set(told) - names):
            raise ValueError(f"there is no {unknown[0]!r} in an order")
        for name in ("allowed", "formats"):
            told[name] = tuple(told.get(name) or ())
        told["filters"] = Filters.from_dict(told.get("filters") or {})
        told["known"] = Known(**(told.get("known") or {}))
        return cls(**told)


def _check_url(url: str) -> None:
    if len(url) > MAX_URL:
        raise ValueError(f"the address has more than {MAX_URL} characters")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("the address must begin with http:// or https:// and name a host")
