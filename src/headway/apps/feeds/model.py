"""Sources and subscriptions, as the store has them."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import msgspec

from headway.apps.feeds.pacing import Hints
from headway.engine.ledger import clean
from headway.net.urls import host_of

DEFAULT_INTERVAL_S = 1_800.0
MAX_ERROR = 500  # characters


class Status(StrEnum):
    """How the last visit to a source went."""

    NEW = "new"  # nobody has been there yet
    OK = "ok"
    ERROR = "error"
    GONE = "gone"  # it has ended for good (410)
    MOVED = "moved"  # to a source that there is already


ENDED = frozenset({Status.GONE.value, Status.MOVED.value})


class Source(NamedTuple):
    """The columns of `feed_sources`: one address that is fetched."""

    id: int
    url: str
    host: str  # whose pace it keeps
    title: str | None
    site_link: str | None
    description: str | None
    language: str | None
    etag: str | None
    modified: str | None
    validators_of: str | None  # the address that `etag` and `modified` came from
    body_hash: str | None  # of the last document that was read well
    status: str
    error: str | None
    failures: int  # runs in a row that have failed
    tried_at: float | None
    fetched_at: float | None  # the last time that it went well
    due_at: float
    adapted_s: float | None  # the interval that follows how often it changes
    hints: str  # JSON
    created_at: float

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED


class Subscription(NamedTuple):
    """The columns of `feed_subscriptions`: what a tenant calls a feed."""

    tenant: str
    id: str
    source: int
    url: str  # as it was subscribed to
    title: str | None  # chosen by the tenant; None: that of the source
    folder: str  # names that lead to it, with a slash between; empty: in none
    interval_s: float
    adaptive: int
    paused: int
    paused_at: float | None
    note: str | None  # what its tenant should know, such as that it has moved
    led: int  # it came here from another source, some of whose articles it still has
    created_at: float

    @property
    def name(self) -> tuple[str, str]:
        return self.tenant, self.id


def new_source(id: int, url: str, now: float) -> Source:
    return Source(
        id, url, host_of(url), title=None, site_link=None, description=None, language=None,
        etag=None, modified=None, validators_of=None, body_hash=None, status=Status.NEW.value,
        error=None, failures=0, tried_at=None, fetched_at=None, due_at=now, adapted_s=None,
        hints="{}", created_at=now,
    )  # fmt: skip


def error_text(said: str) -> str:
    """What went wrong, as it may be stored and shown, whoever said so."""
    return clean(said)[:MAX_ERROR]


class _Kept(msgspec.Struct, omit_defaults=True):
    """Hints in the store."""

    ttl_s: float | None = None
    fresh_until: float | None = None
    retry_at: float | None = None
    skip_hours: tuple[int, ...] = ()
    skip_days: tuple[int, ...] = ()


_kept = msgspec.json.Decoder(_Kept)


def hints_text(hints: Hints) -> str:
    kept = _Kept(
        hints.ttl_s, hints.fresh_until, hints.retry_at,
        tuple(sorted(hints.skip_hours)), tuple(sorted(hints.skip_days)),
    )  # fmt: skip
    return msgspec.json.encode(kept).decode()


def hints_of(text: str) -> Hints:
    kept = _kept.decode(text)
    return Hints(
        ttl_s=kept.ttl_s, fresh_until=kept.fresh_until, retry_at=kept.retry_at,
        skip_hours=frozenset(kept.skip_hours), skip_days=frozenset(kept.skip_days),
    )  # fmt: skip
