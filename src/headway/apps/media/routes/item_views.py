"""Items as people see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from fastapi import Path
from pydantic import BaseModel, Field

from headway.api import models
from headway.api.auth import Principal
from headway.api.problems import Problem
from headway.api.site import Site, number_of
from headway.api.views import moment
from headway.apps.media import items
from headway.apps.media.model import Item, State
from headway.apps.media.routes.finding import open_downloads
from headway.apps.media.routes.reach import TheMedia
from headway.store.filtering import is_number

ThisItem = Annotated[str, Path(max_length=40, description="The number of an item.")]
ItemState = Literal["found", "queued", "done", "skipped", "failed", "missing"]
assert set(ItemState.__args__) == set(State)  # type: ignore[attr-defined]


class ItemModel(BaseModel):
    id: int
    subscription: int | None = Field(description="Null: asked for by itself.")
    tenant: str | None = Field(None, description="For whoever sees those of all tenants.")
    key: str = Field(description="By which it is known again.")
    url: str
    title: str | None
    uploader: str | None
    published_at: models.Moment
    duration_s: float | None
    views: int | None
    place: int | None = Field(description="In the list, from 0.")
    state: ItemState
    reason: str | None = Field(description="Why it is skipped, or what went wrong last.")
    failure: str | None = Field(description="The class of that.")
    failures: int = Field(description="Attempts that failed since it was last here.")
    files: dict[str, str] | None = Field(description="On disk, relative to the library.")
    size_bytes: int | None
    found_at: models.Moment
    listed_at: models.Moment
    done_at: models.Moment
    gone_at: models.Moment = Field(description="Since when the list does not have it.")
    changed_at: models.Moment
    job: int | None = Field(description="The open request that gets it.")


class ItemPage(BaseModel):
    items: list[ItemModel]
    count: int
    total: int
    page: int
    size: int


def one_item(media: TheMedia, id: str, principal: Principal) -> Item:
    """Problem: there is none of that number, or it is somebody else's."""
    number = number_of(id)
    found = None if number is None or not is_number(number) else items.item(media.store, number)
    if found is None or principal.tenant not in (None, found.tenant):
        raise Problem(404, f"there is no item {id[:40]}", kind="unknown-item")
    return found


def items_shown(site: Site, principal: Principal, found: Sequence[Item]) -> list[dict[str, Any]]:
    jobs = open_downloads(site.store, found)
    views = [_view(each, jobs.get(each.id)) for each in found]
    if principal.tenant is None:
        for view, each in zip(views, found, strict=True):
            view["tenant"] = each.tenant
    return views


def _view(item: Item, job: int | None) -> dict[str, Any]:
    return {
        "id": item.id,
        "subscription": item.subscription or None,
        "key": item.key,
        "url": item.url,
        "title": item.title,
        "uploader": item.uploader,
        "published_at": moment(item.published_at),
        "duration_s": item.duration_s,
        "views": item.views,
        "place": item.place,
        "state": item.state,
        "reason": item.reason,
        "failure": item.failure,
        "failures": item.failures,
        "files": None if item.files is None else msgspec.json.decode(item.files),
        "size_bytes": item.size_bytes,
        "found_at": moment(item.found_at),
        "listed_at": moment(item.listed_at),
        "done_at": moment(item.done_at),
        "gone_at": moment(item.gone_at),
        "changed_at": moment(item.changed_at),
        "job": job,
    }
