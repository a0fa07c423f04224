"""Subscriptions and items, as the store has them."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from headway.engine.ledger import clean

MAX_ERROR = 500  # characters
MAX_TITLE = 300
QUALITIES = ("best", "2160p", "1440p", "1080p", "720p", "480p", "360p", "audio")
HOUR_S, DAY_S = 3_600.0, 86_400.0
LEAST_INTERVAL_S, MOST_INTERVAL_S = 600.0, 30 * DAY_S


class State(StrEnum):
    """What became of an item."""

    FOUND = "found"  # in the list, and nobody has asked for it yet
    QUEUED = "queued"  # a job of type download is open for it
    DONE = "done"  # on disk
    SKIPPED = "skipped"  # not wanted; `reason` says why
    FAILED = "failed"  # for good, until somebody says otherwise
    MISSING = "missing"  # it was on disk


class Subscription(NamedTuple):
    """The columns of `media_subscriptions`."""

    id: int
    tenant: str
    url: str
    site: str  # the upstream
    preset: str
    title: str | None  # chosen by its tenant; None: that of the site
    found_title: str | None
    quality: str
    filters: str  # JSON
    template: str  # of names of files; empty: the usual one
    nfo: str  # movie or episode
    depth: int  # how many of the newest are wanted; 0: all
    interval_s: float  # between two looks; 0: only when somebody asks
    download: int  # whether a look by the clock downloads what it has found
    with_cookie: int  # lists are not shown to strangers
    paused: int
    podcast: str | None  # the secret part of the address of its podcast
    wanted: int  # the listing that is under way is to be followed by downloads
    cursor: int  # where the walk through the whole list goes on
    walk_at: float | None  # when that has begun; None: none is under way
    is_complete: int  # the list was read to its end once
    total: int | None  # how many there should be
    total_how: str | None
    total_at: float | None
    listed_at: float | None
    full_at: float | None  # when the list was last read to its end
    error: str | None
    failures: int
    created_at: float

    @property
    def name(self) -> str:
        return self.title or self.found_title or self.url


class Item(NamedTuple):
    """The columns of `media_items`: one video of a subscription."""

    id: int
    tenant: str
    subscription: int  # 0: asked for by itself
    key: str  # by which it is known again
    url: str
    title: str | None
    uploader: str | None
    published_at: float | None
    duration_s: float | None
    views: int | None
    place: int | None  # in the list, when it was last seen there
    state: str
    reason: str | None  # why it is skipped, or what went wrong
    failure: str | None  # the kind of the last failure, or of the reason why it is skipped
    failures: int
    files: str | None  # JSON: what is on disk, relative to the library
    size_bytes: int | None
    found_at: float
    listed_at: float  # when the list last had it
    done_at: float | None
    gone_at: float | None  # since when the list does not have it any more
    changed_at: float


def new_subscription(
    id: int, tenant: str, url: str, site: str, preset: str, now: float
) -> Subscription:
    return Subscription(
        id, tenant, url, site, preset, title=None, found_title=None, quality="best", filters="{}",
        template="", nfo="movie", depth=0, interval_s=0.0, download=1, with_cookie=0, paused=0,
        podcast=None, wanted=0, cursor=0, walk_at=None, is_complete=0, total=None,
        total_how=None, total_at=None, listed_at=None, full_at=None, error=None, failures=0,
        created_at=now,
    )  # fmt: skip


def error_text(said: str) -> str:
    """What went wrong, as it may be stored and shown, whoever said so."""
    return clean(said)[:MAX_ERROR]
