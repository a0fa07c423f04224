"""Subscriptions as people see them, and what they look like in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, Field

from headway.api.models import Moment
from headway.api.views import moment
from headway.apps.feeds.model import Source, Subscription
from headway.apps.feeds.register import Register
from headway.core import State, Ticket
from headway.net.urls import host_of
from headway.store import Store

MINUTE_S = 60.0

FeedStatus = Literal["new", "ok", "error", "gone", "moved", "paused"]


class FeedModel(BaseModel):
    """A feed that somebody subscribes to."""

    id: str
    url: str = Field(description="Where it is fetched; another one after it has moved for good.")
    title: str = Field(description="What its tenant calls it, or else what it calls itself.")
    own_title: str | None = Field(description="What its tenant calls it; null: nothing else.")
    site_url: str | None = Field(description="The page that it belongs to.")
    description: str | None = Field(description="What it says of itself.")
    language: str | None = Field(description="What it says that it is written in.")
    folder: str = Field(description="Names that lead to it, with a slash between; empty: in none.")
    refresh_interval: float = Field(description="Minutes between two visits, as it was set.")
    effective_interval: float = Field(
        description="The same, as it is now: what is adaptive follows how often the feed changes."
    )
    adaptive: bool = Field(description="Whether the interval follows how often the feed changes.")
    paused: bool = Field(description="Whether it is left alone for now.")
    status: FeedStatus = Field(
        description="How the last visit went (new: there was none yet; gone: it has ended for "
        "good; moved: to one that you have, too), or paused."
    )
    error: str | None = Field(description="Why the last visit failed; null: it did not.")
    failures: int = Field(description="Refreshes in a row that have failed.")
    last_fetched: Moment = Field(description="When it was last fetched well.")
    last_tried: Moment = Field(description="When somebody was there last, however that went.")
    next_refresh_at: Moment = Field(
        description="When it is due; null: it is being refreshed now, or is not refreshed at all."
    )
    refreshing: bool = Field(description="Whether it is being refreshed now.")
    article_count: int = Field(description="Articles that are there.")
    unread_count: int = Field(description="Those of them that were not read.")
    note: str | None = Field(description="What you should know, such as that it has moved.")
    created_at: Moment


class FeedList(BaseModel):
    feeds: list[FeedModel] = Field(description="In the order in which they were added.")


class Numbers(NamedTuple):
    articles: int = 0
    unread: int = 0


def numbers_of(store: Store, tenant: str, feed: str | None = None) -> dict[str, Numbers]:
    """Articles of each feed of a tenant, or of one. Both halves are answered by an index alone; the
    `|| ''` keeps SQLite from taking one that has the feeds in order, but not what is unread.
    """
    ours, values = "tenant = ?", [tenant]
    if feed is not None:
        ours, values = "tenant = ? and feed = ?", [tenant, feed]
    rows = store.rows(
        f"select feed, count(*), 0 from feed_entries where {ours} group by feed union all "
        f"select feed || '' as name, 0, count(*) from feed_entries where {ours} and is_read = 0 "
        "group by name",
        (*values, *values),
    )
    found: dict[str, Numbers] = {}
    for name, articles, unread in rows:
        before = found.get(name, Numbers())
        found[name] = Numbers(before.articles + articles, before.unread + unread)
    return found


def minutes(interval_s: float) -> float:
    """A whole number where it is one."""
    found = round(interval_s / MINUTE_S, 2)
    return int(found) if found.is_integer() else found


def status_of(subscription: Subscription, row: Source) -> str:
    return "paused" if subscription.paused and not row.has_ended else row.status


def title_of(subscription: Subscription, row: Source | None) -> str:
    """What its tenant calls it, or else what it calls itself, or else where it is."""
    said = subscription.title or (row and row.title)
    return said or host_of(subscription.url if row is None else row.url)


def open_ticket(register: Register, source: int) -> Ticket | None:
    """Of its open job; None: it has none, or that is on its way. From any thread."""
    return register.brain.core.tickets.get(register.schedule.jobs.get(source, 0))


def counted(views: Iterable[dict[str, Any]], numbers: Mapping[str, Numbers]) -> None:
    """How many articles each of them has."""
    for view in views:
        found = numbers.get(view["id"], Numbers())
        view["article_count"], view["unread_count"] = found.articles, found.unread


def feed_view(register: Register, subscription: Subscription) -> dict[str, Any] | None:
    """Without its numbers. From any thread. None: it has gone just now."""
    row = register.sources.get(subscription.source)
    if row is None:
        return None
    ticket = open_ticket(register, row.id)
    running = ticket is not None and ticket.state is State.RUNNING
    is_due = not (running or subscription.paused or row.has_ended)
    due_at = row.due_at if ticket is None else ticket.not_before
    adapted_s = row.adapted_s if subscription.adaptive else None
    return {
        "id": subscription.id,
        "url": row.url,
        "title": title_of(subscription, row),
        "own_title": subscription.title,
        "site_url": row.site_link,
        "description": row.description,
        "language": row.language,
        "folder": subscription.folder,
        "refresh_interval": minutes(subscription.interval_s),
        "effective_interval": minutes(adapted_s or subscription.interval_s),
        "adaptive": bool(subscription.adaptive),
        "paused": bool(subscription.paused),
        "status": status_of(subscription, row),
        "error": row.error,
        "failures": row.failures,
        "last_fetched": moment(row.fetched_at),
        "last_tried": moment(row.tried_at),
        "next_refresh_at": moment(due_at) if is_due else None,
        "refreshing": running,
        "article_count": 0,
        "unread_count": 0,
        "note": subscription.note,
        "created_at": moment(subscription.created_at),
    }
