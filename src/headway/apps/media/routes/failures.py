"""The ledger of failures: what has failed for good, why, and deciding about many at once."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from headway.api import models
from headway.api.auth import Principal, Reader, Submitter
from headway.api.bodies import MAX_ID, WHOLE, Body, Id, Name
from headway.api.problems import documented
from headway.api.routes.jobs import Page, Size
from headway.api.site import Reply, Site, TheSite
from headway.api.turns import in_own_name
from headway.api.views import moment
from headway.apps.media.blocking import Act, Failed, in_parts, try_again, unblock
from headway.apps.media.items import COLUMNS
from headway.apps.media.model import Item
from headway.apps.media.routes.items import OfSubscription
from headway.apps.media.routes.reach import TheMedia
from headway.store import Store

router = APIRouter(tags=["Archive"])

PATH = "/api/archive/failures"
MOST_IDS = 500


class FailureModel(BaseModel):
    id: int = Field(description="Of the item.")
    subscription: int | None = Field(description="Null: asked for by itself.")
    tenant: str | None = Field(None, description="For whoever sees those of all tenants.")
    title: str | None
    url: str
    failure_class: str = Field(alias="class", description="What kind of failure it was.")
    message: str | None
    failures: int = Field(description="Attempts that failed.")
    changed_at: models.Moment


class FailurePage(BaseModel):
    items: list[FailureModel]
    count: int
    total: int
    page: int
    size: int
    classes: dict[str, int] = Field(description="How many there are of each class.")


class FailuresBody(Body):
    """Which of the failures. What is left out does not matter: an empty one means all of yours."""

    subscription: Annotated[int, Field(ge=0, le=MAX_ID), WHOLE] | None = Field(
        None, description="Of this subscription; 0: of none."
    )
    kind: Name | None = Field(None, alias="class", description="Of this class.")
    ids: Annotated[list[Id], Field(max_length=MOST_IDS)] | None = Field(
        None, description="These items."
    )


class FailuresChanged(BaseModel):
    changed: int


@router.get(
    PATH,
    summary="What has failed for good",
    operation_id="listFailures",
    response_class=Reply,
    responses={200: {"model": FailurePage}, **documented(409)},
)
def list_failures(
    principal: Reader,
    media: TheMedia,
    subscription: OfSubscription = None,
    kind: Annotated[Name | None, Query(alias="class", description="Of this class.")] = None,
    page: Page = 1,
    size: Size = 50,
) -> Response:
    """The latest first. `classes` are those of the whole selection, whatever class is asked for."""
    wanted = Failed(principal.tenant, subscription, kind)
    found, total = _page(media.store, wanted, page, size)
    views = [
        {
            "id": each.id, "subscription": each.subscription or None, "title": each.title,
            "url": each.url, "class": each.failure or "unknown", "message": each.reason,
            "failures": each.failures, "changed_at": moment(each.changed_at),
            **({"tenant": each.tenant} if principal.tenant is None else {}),
        }
        for each in found
    ]  # fmt: skip
    return Reply({"items": views, "count": len(views), "total": total, "page": page, "size": size,
                  "classes": _classes(media.store, wanted._replace(kind=None))})  # fmt: skip


def _page(store: Store, wanted: Failed, page: int, size: int) -> tuple[list[Item], int]:
    where, values = wanted.where()
    rows = store.rows(
        f"select {COLUMNS} from media_items where {where} "
        "order by changed_at desc, id desc limit ? offset ?",
        (*values, size, (page - 1) * size),
    )
    total = store.rows(f"select count(*) from media_items where {where}", tuple(values))
    return [Item(*row) for row in rows], int(total[0][0])


def _classes(store: Store, wanted: Failed) -> dict[str, int]:
    where, values = wanted.where()
    rows = store.rows(
        f"select coalesce(failure, 'unknown'), count(*) from media_items where {where} group by 1",
        tuple(values),
    )
    return {kind: int(count) for kind, count in rows}


# ---------------------------------------------------------------------- many at once


@router.post(
    PATH + "/retry",
    summary="Try again what has failed",
    operation_id="retryFailures",
    response_class=Reply,
    responses={200: {"model": FailuresChanged}, **documented(409)},
)
def retry_failures(
    body: FailuresBody, site: TheSite, principal: Submitter, media: TheMedia
) -> Response:
    """They are in line at once."""
    wanted = _wanted(body, principal)
    for tenant, count in _tenants(site.store, wanted):
        site.check_room(tenant, count)
    return _decided(site, media, principal, wanted, "retry", try_again)


@router.post(
    PATH + "/unblock",
    summary="Take back that items were given up",
    operation_id="unblockFailures",
    response_class=Reply,
    responses={200: {"model": FailuresChanged}, **documented(409)},
)
def unblock_failures(
    body: FailuresBody, site: TheSite, principal: Submitter, media: TheMedia
) -> Response:
    """They are as if they had just been found: the next download of their list gets them."""
    return _decided(site, media, principal, _wanted(body, principal), "unblock", unblock)


def _wanted(body: FailuresBody, principal: Principal) -> Failed:
    ids = None if body.ids is None else tuple(dict.fromkeys(body.ids))
    return Failed(principal.tenant, body.subscription, body.kind, ids)


def _tenants(store: Store, wanted: Failed) -> list[tuple[str, int]]:
    where, values = wanted.where()
    rows = store.rows(
        f"select tenant, count(*) from media_items where {where} group by tenant", tuple(values)
    )
    return [(tenant, int(count)) for tenant, count in rows]


def _decided(
    site: Site, media: TheMedia, principal: Principal, wanted: Failed, verb: str, act: Act
) -> Response:
    changed = 0
    for some in in_parts(site.store, wanted):
        changed += in_own_name(site, principal, partial(act, media.register, some))
    said = [f"{changed} items"]
    if wanted.subscription is not None:
        said.append(f"of subscription {wanted.subscription}")
    if wanted.kind is not None:
        said.append(f"of class {wanted.kind}")
    site.record(principal, f"failures_{verb}", "failures", " ".join(said))
    return Reply({"changed": changed})
