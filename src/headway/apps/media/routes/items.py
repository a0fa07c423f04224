"""Videos over HTTP: what became of each, and what somebody decides about one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from headway.api.auth import Principal, Reader, Submitter
from headway.api.bodies import MAX_ID
from headway.api.problems import Problem, documented
from headway.api.routes.jobs import Page, Size
from headway.api.site import Reply, Site, TheSite, paged
from headway.api.turns import in_own_name
from headway.apps.media import items
from headway.apps.media.blocking import (
    LEFT_OUT,
    TRIED_AGAIN,
    UNBLOCKED,
    Act,
    forget_file,
    leave_out,
    try_again,
    unblock,
)
from headway.apps.media.model import Item, State
from headway.apps.media.routes.deleting import cancel, checked, delete_files, files_of
from headway.apps.media.routes.finding import Wanted, items_page, open_download
from headway.apps.media.routes.item_views import (
    ItemModel,
    ItemPage,
    ItemState,
    ThisItem,
    items_shown,
    one_item,
)
from headway.apps.media.routes.reach import TheMedia
from headway.apps.media.routes.subscription_views import ThisSubscription, one_of

router = APIRouter(tags=["Archive"])

PATH = "/api/archive/items"

Text = Annotated[
    str, Query(max_length=200, description="In the title, the uploader or the address.")
]
InState = Annotated[ItemState | None, Query(description="Those in this state.")]
OfSubscription = Annotated[
    int | None, Query(ge=0, le=MAX_ID, description="Of this one; 0: of none.")
]


class ItemRemoved(BaseModel):
    item: ItemModel
    files_deleted: int = Field(description="That were in the library.")


# ---------------------------------------------------------------------- looking


@router.get(
    "/api/subscriptions/{id}/items",
    summary="List the videos of a subscription",
    operation_id="listSubscriptionItems",
    response_class=Reply,
    responses={200: {"model": ItemPage}, **documented(404, 409)},
)
def list_of_subscription(
    id: ThisSubscription,
    site: TheSite,
    principal: Reader,
    media: TheMedia,
    state: InState = None,
    q: Text = "",
    page: Page = 1,
    size: Size = 50,
) -> Response:
    """Newest first, as the list has them."""
    row = one_of(media, site, id, principal)
    return _page(site, media, principal, Wanted(row.tenant, row.id, state, q.strip()), page, size)


@router.get(
    PATH,
    summary="List the videos of the archive",
    operation_id="listItems",
    response_class=Reply,
    responses={200: {"model": ItemPage}, **documented(409)},
)
def list_items(
    site: TheSite,
    principal: Reader,
    media: TheMedia,
    state: InState = None,
    subscription: OfSubscription = None,
    q: Text = "",
    page: Page = 1,
    size: Size = 50,
) -> Response:
    """Newest first. Whoever is bound to no tenant sees those of all."""
    wanted = Wanted(principal.tenant, subscription, state, q.strip())
    return _page(site, media, principal, wanted, page, size)


def _page(
    site: Site, media: TheMedia, principal: Principal, wanted: Wanted, page: int, size: int
) -> Response:
    found, total = items_page(media.store, wanted, page, size)
    return paged(items_shown(site, principal, found), total, page, size)


@router.get(
    PATH + "/{id}",
    summary="Look at a video",
    operation_id="getItem",
    response_class=Reply,
    responses={200: {"model": ItemModel}, **documented(404, 409)},
)
def get_item(id: ThisItem, site: TheSite, principal: Reader, media: TheMedia) -> Response:
    return Reply(items_shown(site, principal, [one_item(media, id, principal)])[0])


# ---------------------------------------------------------------------- deciding


@router.post(
    PATH + "/{id}/retry",
    summary="Download a video, or try it again",
    operation_id="retryItem",
    response_class=Reply,
    responses={200: {"model": ItemModel}, **documented(404, 409)},
)
def retry(id: ThisItem, site: TheSite, principal: Submitter, media: TheMedia) -> Response:
    """Before what waits by itself. 409: it is in line or here already."""
    item = one_item(media, id, principal)
    site.check_room(item.tenant, 1)
    return _decided(site, media, principal, item, "retry", TRIED_AGAIN, try_again)


@router.post(
    PATH + "/{id}/unblock",
    summary="Take back that a video was given up",
    operation_id="unblockItem",
    response_class=Reply,
    responses={200: {"model": ItemModel}, **documented(404, 409)},
)
def unblock_item(id: ThisItem, site: TheSite, principal: Submitter, media: TheMedia) -> Response:
    """It is as if it had just been found: the next download of its subscription gets it."""
    item = one_item(media, id, principal)
    return _decided(site, media, principal, item, "unblock", UNBLOCKED, unblock)


@router.post(
    PATH + "/{id}/skip",
    summary="Leave a video out",
    operation_id="skipItem",
    response_class=Reply,
    responses={200: {"model": ItemModel}, **documented(404, 409)},
)
def skip(id: ThisItem, site: TheSite, principal: Submitter, media: TheMedia) -> Response:
    """What is in line is cancelled, and what runs is stopped."""
    item = one_item(media, id, principal)
    return _decided(site, media, principal, item, "skip", LEFT_OUT, leave_out)


def _decided(
    site: Site, media: TheMedia, principal: Principal, item: Item, verb: str,
    states: Sequence[State], act: Act,
) -> Response:  # fmt: skip
    if item.state not in states:
        possible = " or ".join(states)
        raise Problem(409, f"item {item.id} is {item.state}; {verb} is for what is {possible}",
                      kind="wrong-state", state=item.state)  # fmt: skip
    job = open_download(site.store, item)

    def turn(now: float) -> int:
        done = act(media.register, [item], now)
        _record(site, verb, item, now)
        if job is not None:
            cancel(site, principal, [job], now)
        return done

    if not in_own_name(site, principal, turn):
        raise Problem(409, f"nobody subscribes to item {item.id} any more", kind="wrong-state",
                      state=item.state)  # fmt: skip
    return Reply(items_shown(site, principal, [_again(site, item)])[0])


@router.delete(
    PATH + "/{id}",
    summary="Delete a video",
    operation_id="removeItem",
    response_class=Reply,
    responses={200: {"model": ItemRemoved}, **documented(404, 409)},
)
def remove_item(
    id: ThisItem,
    site: TheSite,
    principal: Submitter,
    media: TheMedia,
    files: Annotated[bool, Query(description="Delete its files; else they are left alone.")] = True,
) -> Response:
    """It is skipped from now on, so that it does not come again."""
    item = one_item(media, id, principal)
    mine = files_of(site.store, item) if files else []
    if mine:
        with checked():
            media.library.open()  # it is there
    job = open_download(site.store, item)

    def turn(now: float) -> None:
        forget_file(media.register, item, now)
        _record(site, "delete", item, now)
        if job is not None:
            cancel(site, principal, [job], now)

    in_own_name(site, principal, turn)
    deleted = delete_files(media, [mine]) if mine else 0
    view = items_shown(site, principal, [_again(site, item)])[0]
    return Reply({"item": view, "files_deleted": deleted})


def _record(site: Site, verb: str, item: Item, now: float) -> None:
    detail = f"subscription {item.subscription}" if item.subscription else ""
    site.engine.brain.record(now, f"item_{verb}", subject=f"item:{item.id}", detail=detail)


def _again(site: Site, item: Item) -> Item:
    """As it is now; its subscription may have been removed meanwhile."""
    return items.item(site.store, item.id) or item
