"""Subscriptions over HTTP: what a tenant has, and changing it."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from headway.api.auth import Reader, Submitter
from headway.api.problems import Problem, documented
from headway.api.routes.jobs import Page, Size
from headway.api.site import Reply, Site, TheSite, paged
from headway.api.turns import in_own_name
from headway.apps.media.jobs import BY_HAND
from headway.apps.media.model import Subscription
from headway.apps.media.register import Duplicate
from headway.apps.media.requesting import usable_url
from headway.apps.media.routes.deleting import delete_subscription
from headway.apps.media.routes.reach import TheMedia, own, owner
from headway.apps.media.routes.subscription_bodies import (
    SubscriptionBody,
    SubscriptionChangeBody,
    kept,
    wrong,
)
from headway.apps.media.routes.subscription_views import (
    SubscriptionModel,
    SubscriptionPage,
    ThisSubscription,
    one_of,
    shown,
)
from headway.apps.media.sifting import goes_further, sift
from headway.net.addresses import Allowed
from headway.net.urls import host_of

router = APIRouter(tags=["Archive"])

PATH = "/api/subscriptions"
SIFTED = {"filters", "depth"}  # what decides which items are wanted


class SubscriptionRemoved(BaseModel):
    subscription_deleted: Literal[True]
    items_deleted: int = Field(description="Records of videos.")
    jobs_cancelled: int = Field(description="That were open for it.")
    files_deleted: int = Field(description="That were in the library.")


# ---------------------------------------------------------------------- looking


@router.get(
    PATH,
    summary="List your subscriptions",
    operation_id="listSubscriptions",
    response_class=Reply,
    responses={200: {"model": SubscriptionPage}, **documented(409)},
)
def list_subscriptions(
    site: TheSite,
    principal: Reader,
    media: TheMedia,
    q: Annotated[str, Query(max_length=200, description="In the name or the address.")] = "",
    page: Page = 1,
    size: Size = 50,
) -> Response:
    """Newest first. Whoever is bound to no tenant sees those of all."""
    assert media.register.brain is site.engine.brain
    text = q.strip().casefold()
    found = sorted(
        (
            row
            for row in list(media.register.subscriptions.values())
            if principal.tenant in (None, row.tenant)
            if text in row.name.casefold() or text in row.url.casefold()
        ),
        key=lambda row: -row.id,
    )
    some = found[(page - 1) * size : page * size]
    return paged(shown(site, media, principal, some), len(found), page, size)


@router.get(
    PATH + "/{id}",
    summary="Look at a subscription",
    operation_id="getSubscription",
    response_class=Reply,
    responses={200: {"model": SubscriptionModel}, **documented(404, 409)},
)
def get_subscription(
    id: ThisSubscription, site: TheSite, principal: Reader, media: TheMedia
) -> Response:
    row = one_of(media, site, id, principal)
    return Reply(shown(site, media, principal, [row])[0])


# ---------------------------------------------------------------------- adding


@router.post(
    PATH,
    status_code=201,
    summary="Subscribe to a collection or an uploader",
    operation_id="addSubscription",
    response_class=Reply,
    responses={201: {"model": SubscriptionModel}, **documented(409)},
)
def add_subscription(
    body: SubscriptionBody, site: TheSite, principal: Submitter, media: TheMedia
) -> Response:
    """Its list is read at once, unless it is paused or `start` is false; what it has is downloaded
    if `download` is true. With 409 the answer names in `existing_id` what is there already.
    """
    tenant = owner(principal)
    url = usable_url(body.url, Allowed(site.config.outbound_allow))
    columns = kept(body, set(SubscriptionBody.model_fields) - {"url", "start"})
    begins = body.start and not body.paused
    site.check_room(tenant, 1)
    add = partial(_add, site, media, tenant, url, columns, begins)
    try:
        row = in_own_name(site, principal, add)
    except Duplicate as error:
        raise Problem(409, f"{error}; change that one instead", kind="duplicate",
                      existing_id=error.there.id) from error  # fmt: skip
    view = shown(site, media, principal, [row])[0]
    return Reply(view, 201, headers={"Location": f"{PATH}/{row.id}"})


def _add(
    site: Site, media: TheMedia, tenant: str, url: str, columns: dict[str, Any], begins: bool,
    now: float,
) -> Subscription:  # fmt: skip
    """In the brain's turn."""
    register, limit = media.register, media.settings.max_subscriptions
    mine = register.of_tenant(tenant)
    if len(mine) >= limit and all(each.url != url for each in mine):
        raise Problem(409, f"a tenant has at most {limit} subscriptions; remove some, or let the "
                      "operator raise max_subscriptions",
                      kind="too-many-subscriptions")  # fmt: skip
    row = register.add(tenant, url, now, **columns)
    if begins:
        if row.download:
            row = row._replace(wanted=1)
            register.put(row)
        register.list_again(row, now, priority=BY_HAND)
    site.engine.brain.record(
        now, "subscription_add", subject=f"subscription:{row.id}", detail=host_of(url)
    )
    return row


# ---------------------------------------------------------------------- changing


@router.patch(
    PATH + "/{id}",
    summary="Change a subscription",
    operation_id="changeSubscription",
    response_class=Reply,
    responses={200: {"model": SubscriptionModel}, **documented(404, 409)},
)
def change_subscription(
    id: ThisSubscription,
    body: SubscriptionChangeBody,
    site: TheSite,
    principal: Submitter,
    media: TheMedia,
) -> Response:
    """What is left out stays. Other filters, or another depth, are for what was found earlier, too,
    unless it is in line or here already; quality and template are for what is downloaded from now
    on.
    """
    row = one_of(media, site, id, principal)
    if body.url is not None and body.url != row.url:
        raise wrong("url", "the address of a subscription cannot be changed; add another "
                    "subscription, and remove this one if it is not wanted any more")  # fmt: skip
    sent = body.model_fields_set - {"url"}
    columns = kept(body, sent)
    register, brain = media.register, site.engine.brain

    def change(now: float) -> bool:
        before = own(media, row.id, principal)
        changes = dict(columns)
        if goes_further(before.depth, changes.get("depth", before.depth)):
            changes["is_complete"] = 0  # what is beyond was never read
        after = register.change(before.id, now, **changes)
        brain.record(
            now, "subscription_change", subject=f"subscription:{row.id}",
            detail=", ".join(sorted(sent)),
        )  # fmt: skip
        return any(getattr(after, name) != getattr(before, name) for name in SIFTED)

    if in_own_name(site, principal, change):
        sift(site.store, register, row.id, lambda do: site.wait(site.engine.ask(do)))
    return Reply(shown(site, media, principal, [own(media, row.id, principal)])[0])


# ---------------------------------------------------------------------- removing


@router.delete(
    PATH + "/{id}",
    summary="Remove a subscription",
    operation_id="removeSubscription",
    response_class=Reply,
    responses={200: {"model": SubscriptionRemoved}, **documented(404, 409)},
)
def remove_subscription(
    id: ThisSubscription,
    site: TheSite,
    principal: Submitter,
    media: TheMedia,
    files: Annotated[bool, Query(description="Delete what is on disk, too.")] = False,
) -> Response:
    """What is in line for it is cancelled, and what runs is stopped. Files stay where they are,
    unless you say otherwise.
    """
    row = one_of(media, site, id, principal)
    return Reply(delete_subscription(site, media, principal, row, with_files=files))
