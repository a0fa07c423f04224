"""Subscriptions as people see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from fastapi import Path
from pydantic import BaseModel, Field

from headway.api import models
from headway.api.auth import Principal
from headway.api.problems import Problem
from headway.api.site import Site, number_of
from headway.api.views import moment
from headway.apps.media.model import State, Subscription
from headway.apps.media.register import plan_name
from headway.apps.media.routes.finding import Busy, Tally, busy_ones, tallies
from headway.apps.media.routes.reach import TheMedia, own

TIMES = ("after", "before")  # among filters

ThisSubscription = Annotated[
    str, Path(max_length=40, description="The number of a subscription.")
]  # fmt: skip


class FiltersModel(BaseModel):
    title_any: list[str]
    title_none: list[str]
    after: models.Moment
    before: models.Moment
    min_duration_s: float | None
    max_duration_s: float | None
    min_views: int | None
    max_views: int | None


class ItemCounts(BaseModel):
    listed: int = Field(description="That the list has now.")
    gone: int = Field(description="That the list has no more.")
    on_disk: int
    pending: int = Field(description="Wanted, and not here yet.")
    queued: int = Field(description="Of these: in line.")
    skipped: int
    failed: int
    missing: int = Field(description="That were on disk.")
    bytes: int = Field(description="Of the videos on disk.")


class TotalModel(BaseModel):
    value: int | None
    how: str | None = Field(description="By what it is known.")
    checked_at: models.Moment
    is_fresh: bool = Field(description="Whether it is answered without asking the site again.")


class ListingModel(BaseModel):
    under_way: bool = Field(description="The list is being read to its end.")
    cursor: int = Field(description="Where that goes on.")
    started_at: models.Moment


class BusyModel(BaseModel):
    """What is being done already: asking for it again joins it."""

    listing: int | None = Field(description="The request that reads the list.")
    counting: int | None = Field(description="The request that counts.")
    downloads_open: int


class SubscriptionModel(BaseModel):
    id: int
    url: str
    site: str = Field(description="The upstream whose limits hold.")
    preset: str
    title: str | None = Field(description="Your own.")
    found_title: str | None = Field(description="That of the site.")
    name: str = Field(description="The first of: your title, that of the site, the address.")
    tenant: str | None = Field(None, description="For whoever sees those of all tenants.")
    quality: str
    filters: FiltersModel
    template: str
    nfo: str
    depth: int
    interval_s: float
    download: bool
    paused: bool
    next_refresh_at: models.Moment
    counts: ItemCounts
    expected_total: TotalModel
    complete: bool = Field(description="The list was read to its end.")
    listing: ListingModel
    listed_at: models.Moment
    full_at: models.Moment = Field(description="When the list was last read to its end.")
    error: str | None
    failures: int = Field(description="Looks at the list in a row that failed.")
    created_at: models.Moment
    busy: BusyModel


class SubscriptionPage(BaseModel):
    items: list[SubscriptionModel]
    count: int
    total: int
    page: int
    size: int


def one_of(media: TheMedia, site: Site, id: str, principal: Principal) -> Subscription:
    """Problem: there is none of that number, or it is somebody else's."""
    assert media.register.brain is site.engine.brain
    number = number_of(id)
    if number is None:
        raise Problem(404, f"there is no subscription {id[:40]}", kind="unknown-subscription")
    return own(media, number, principal)


def shown(
    site: Site, media: TheMedia, principal: Principal, rows: Sequence[Subscription]
) -> list[dict[str, Any]]:
    counted = tallies(site.store, [row.id for row in rows])
    busy = busy_ones(site.store, rows) if rows else {}
    now = site.now()
    views = []
    for row in rows:
        view = _view(media, row, counted[row.id], busy[row.id], now)
        if principal.tenant is None:
            view["tenant"] = row.tenant
        views.append(view)
    return views


def is_fresh(media: TheMedia, row: Subscription, now: float) -> bool:
    """Whether the count is as good as a new one."""
    return row.total_at is not None and 0 <= now - row.total_at < media.settings.count_fresh_s


def _view(
    media: TheMedia, row: Subscription, tally: Tally, busy: Busy, now: float
) -> dict[str, Any]:
    plan = media.register.brain.schedules.rows.get(plan_name(row.id))
    return {
        "id": row.id,
        "url": row.url,
        "site": row.site,
        "preset": row.preset,
        "title": row.title,
        "found_title": row.found_title,
        "name": row.name,
        "quality": row.quality,
        "filters": filters_view(row),
        "template": row.template,
        "nfo": row.nfo,
        "depth": row.depth,
        "interval_s": row.interval_s,
        "download": bool(row.download),
        "paused": bool(row.paused),
        "next_refresh_at": None if plan is None else moment(plan.next_due_at),
        "counts": counts_view(tally),
        "expected_total": {
            "value": row.total, "how": row.total_how, "checked_at": moment(row.total_at),
            "is_fresh": is_fresh(media, row, now),
        },
        "complete": bool(row.is_complete),
        "listing": {
            "under_way": row.walk_at is not None, "cursor": row.cursor,
            "started_at": moment(row.walk_at),
        },
        "listed_at": moment(row.listed_at),
        "full_at": moment(row.full_at),
        "error": row.error,
        "failures": row.failures,
        "created_at": moment(row.created_at),
        "busy": {**busy._asdict(), "downloads_open": tally.states.get(State.QUEUED, 0)},
    }  # fmt: skip


def filters_view(row: Subscription) -> dict[str, Any]:
    said = msgspec.json.decode(row.filters)
    found: dict[str, Any] = {
        name: said.get(name) for name in FiltersModel.model_fields if name not in TIMES
    }
    found |= {name: moment(said.get(name)) for name in TIMES}
    for name in ("title_any", "title_none"):
        found[name] = found[name] or []
    return found


def counts_view(tally: Tally) -> dict[str, int]:
    states = tally.states
    queued = states.get(State.QUEUED, 0)
    return {
        "listed": tally.listed,
        "gone": tally.gone,
        "on_disk": states.get(State.DONE, 0),
        "pending": states.get(State.FOUND, 0) + queued,
        "queued": queued,
        "skipped": states.get(State.SKIPPED, 0),
        "failed": states.get(State.FAILED, 0),
        "missing": states.get(State.MISSING, 0),
        "bytes": tally.bytes,
    }
