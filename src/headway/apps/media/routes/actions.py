"""What can be asked for a subscription: counting, reading its list, downloading; and what is behind
an address. All of it goes through the queue, and what is under way already is joined.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from headway.api import models
from headway.api.auth import Principal, Reader, Submitter, allowed
from headway.api.problems import Problem, documented
from headway.api.routes.jobs import put_job
from headway.api.routes.requests import accepted
from headway.api.site import Reply, Site, TheSite
from headway.api.turns import in_turn
from headway.api.views import moment, request_view
from headway.apps.media.jobs import BY_HAND, COUNT, LIST, LOOK, key_of, new_request
from headway.apps.media.model import Subscription
from headway.apps.media.requesting import usable_url
from headway.apps.media.routes.reach import TheMedia, own, owner
from headway.apps.media.routes.subscription_bodies import CollectionBody, DownloadBody, RefreshBody
from headway.apps.media.routes.subscription_views import ThisSubscription, is_fresh, one_of
from headway.net.addresses import Allowed
from headway.store import records
from headway.store.records import NewJob

router = APIRouter(tags=["Archive"])

PATH = "/api/subscriptions"
MORE_S = 5.0  # than a program has, for whoever waits for it
Asked = tuple[dict[str, Any], bool]  # a job as it is shown, and whether it was there before


class ExpectedTotal(BaseModel):
    subscription_id: int
    expected_total: int | None = Field(description="As it was last known.")
    how: str | None = Field(description="By what it is known.")
    cached: bool = Field(description="Nobody was asked: it is fresh enough.")
    checked_at: models.Moment
    status: models.RequestStatus = Field(description="Of the request; done if there is none.")
    request: models.RequestAnswer | None


class DownloadStarted(BaseModel):
    subscription_id: int
    queued: int = Field(description="Downloads that are in line now and were not before.")
    request: models.RequestAnswer | None = Field(
        description="Reads the list first; downloads follow when it has."
    )


class Looked(BaseModel):
    """What is behind an address."""

    model_config = ConfigDict(extra="allow")

    url: str
    site: str
    preset: str
    kind: str | None = Field(None, description="playlist or video")
    title: str | None = None
    uploader: str | None = None
    total: int | None = Field(None, description="How many videos a list has, if it says so.")
    entries: list[dict[str, Any]] = Field([], description="The first of them.")


# ---------------------------------------------------------------------- counting


@router.get(
    PATH + "/{id}/expected-total",
    summary="How many videos there should be",
    operation_id="getExpectedTotal",
    response_class=Reply,
    responses={
        200: {"model": ExpectedTotal},
        202: {"model": ExpectedTotal, "description": "It is being counted."},
        **documented(404, 409, 502),
    },
)
async def expected_total(
    id: ThisSubscription,
    site: TheSite,
    principal: Reader,
    media: TheMedia,
    sync: Annotated[bool, Query(description="Wait until it is counted.")] = False,
    refresh: Annotated[bool, Query(description="Ask the site, however fresh it is.")] = False,
) -> Response:
    """What was counted within the hour is answered at once. To ask the site, the scope `submit` is
    needed, too.
    """
    row = one_of(media, site, id, principal)
    if not refresh and is_fresh(media, row, site.now()):
        return Reply(_total(row, None, cached=True))
    allowed(principal, "submit")
    job = new_request(COUNT, row.url, site.now(), subscription=row, cookie=False, priority=BY_HAND)
    asked = await _put(site, principal, job)
    if sync:
        within_s = media.settings.count_timeout_s + MORE_S
        ended = await _ended(site, principal, asked[0]["id"], within_s, row)
        if ended is not None:
            return Reply(_total(own(media, row.id, principal), None, cached=False))
    headers = {"Location": f"/api/requests/{asked[0]['id']}"}
    return Reply(_total(row, asked, cached=False), 202, headers=headers)


def _total(row: Subscription, asked: Asked | None, *, cached: bool) -> dict[str, Any]:
    request = None if asked is None else _request(asked)
    return {
        "subscription_id": row.id,
        "expected_total": row.total,
        "how": row.total_how,
        "cached": cached,
        "checked_at": moment(row.total_at),
        "status": "done" if request is None else request["status"],
        "request": request,
    }


# ---------------------------------------------------------------------- reading the list


@router.post(
    PATH + "/{id}/refresh-list",
    status_code=202,
    summary="Read the list of a subscription",
    operation_id="refreshList",
    response_class=Reply,
    responses={202: {"model": models.RequestAnswer}, **documented(404, 409)},
)
async def refresh_list(
    id: ThisSubscription,
    site: TheSite,
    principal: Submitter,
    media: TheMedia,
    body: RefreshBody | None = None,
) -> Response:
    """From its head until something is known, or to its end if that is due or asked for. A second
    request while one is open joins it.
    """
    row = one_of(media, site, id, principal)
    full = body is not None and body.full
    site.check_room(row.tenant, 1)

    def note(now: float) -> None:
        there = own(media, row.id, principal)
        if full:  # also for one that is joined, and has not begun
            media.register.put(there._replace(full_at=None))
        site.engine.brain.record(
            now, "subscription_refresh", subject=f"subscription:{row.id}",
            detail="full" if full else "",
        )  # fmt: skip

    await _in_own_name(site, principal, note)
    return accepted(*await _put(site, principal, _listing(row, site.now(), full=full)))


@router.post(
    PATH + "/{id}/download",
    status_code=202,
    summary="Download what a subscription has",
    operation_id="downloadSubscription",
    response_class=Reply,
    responses={202: {"model": DownloadStarted}, **documented(404, 409)},
)
async def download(
    id: ThisSubscription,
    site: TheSite,
    principal: Submitter,
    media: TheMedia,
    body: DownloadBody | None = None,
    use_cache_only: Annotated[
        bool, Query(description="What was found earlier, without looking at the list again.")
    ] = False,
) -> Response:
    """The list is read first, and all that is wanted and not here is downloaded then. A second
    request while one is open joins it.
    """
    row = one_of(media, site, id, principal)
    from_cache = use_cache_only or (body is not None and body.use_cache_only)
    site.check_room(row.tenant, 1)

    def note(now: float) -> None:
        there = own(media, row.id, principal)
        if not from_cache:
            media.register.put(there._replace(wanted=1))
        site.engine.brain.record(
            now, "subscription_download", subject=f"subscription:{row.id}",
            detail="found earlier" if from_cache else "",
        )  # fmt: skip

    await _in_own_name(site, principal, note)
    if from_cache:
        queued = await media.starter.start_found(row, by_hand=True)
        return Reply({"subscription_id": row.id, "queued": queued, "request": None}, 202)
    asked = await _put(site, principal, _listing(row, site.now()))
    answer = {"subscription_id": row.id, "queued": 0, "request": _request(asked)}
    return Reply(answer, 202, headers={"Location": f"/api/requests/{asked[0]['id']}"})


def _listing(row: Subscription, now: float, *, full: bool = False) -> NewJob:
    more: dict[str, Any] = {"full": True} if full else {}
    return new_request(
        LIST, row.url, now, subscription=row, cookie=bool(row.with_cookie), priority=BY_HAND, **more
    )


# ---------------------------------------------------------------------- looking at an address


@router.post(
    PATH + "/parse-collection",
    status_code=202,
    summary="Look what is behind an address",
    operation_id="parseCollection",
    response_class=Reply,
    responses={
        200: {"model": Looked, "description": "With `sync`: what was found."},
        202: {"model": models.RequestAnswer},
        **documented(409, 502),
    },
)
async def parse_collection(
    body: CollectionBody, site: TheSite, principal: Submitter, media: TheMedia
) -> Response:
    """Before somebody subscribes to it. What was found is the result of the request."""
    url = usable_url(body.url, Allowed(site.config.outbound_allow))
    tenant = owner(principal)
    site.check_room(tenant, 1)
    job = new_request(
        LOOK, url, site.now(), tenant=tenant, cookie=body.requires_cookie, priority=BY_HAND
    )
    view, joined = await _put(site, principal, job)
    if body.sync:
        found = await _ended(site, principal, view["id"], media.settings.meta_timeout_s + MORE_S)
        if found is not None:
            return Reply(found)
    return accepted(view, joined)


# ---------------------------------------------------------------------- how


async def _put(site: Site, principal: Principal, job: NewJob) -> Asked:
    site.check_room(job.tenant, 1)
    return await put_job(site, job, principal)


def _request(asked: Asked) -> dict[str, Any]:
    view, joined = asked
    return {**request_view(view), "joined": joined}


async def _in_own_name(site: Site, principal: Principal, do: Callable[[float], None]) -> None:
    """In the brain's turn, and in the trail with who did it."""
    brain = site.engine.brain

    def turn(now: float) -> None:
        with brain.controls.acting(principal.who):
            do(now)

    await in_turn(site.engine, turn)


async def _ended(
    site: Site, principal: Principal, id: int, within_s: float, row: Subscription | None = None
) -> dict[str, Any] | None:
    """What a job has found, once it has. None: that takes longer. Problem: it found nothing.

    Where strangers are sent away a second job follows, with a cookie: then that one's.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + within_s
    number: int | None = id
    while number is not None:
        ends: list[str] = []
        async with site.patience():
            ends.append(await site.app.handle(number).await_end(max(0.0, until - loop.time())))
        if not ends:
            return None
        found = await asyncio.to_thread(_found, site, principal, number)
        if found.get("stage") != "cookie" or row is None:
            return found
        number = await asyncio.to_thread(_following, site, number, row)
    return None


def _found(site: Site, principal: Principal, id: int) -> dict[str, Any]:
    row = site.job(id, principal)
    match row.state:
        case "completed":
            kept = site.store.result(id)
            return {} if kept is None else dict(msgspec.json.decode(kept.value))
        case "cancelled":
            raise Problem(409, f"request {id} was cancelled; ask again", kind="cancelled",
                          state=row.state)  # fmt: skip
    why = row.error or "it said nothing more"
    raise Problem(502, f"the site was asked, and this went wrong: {why}", kind="site-failed",
                  request_id=id)  # fmt: skip


def _following(site: Site, after: int, row: Subscription) -> int | None:
    """The newest job that counts the same."""
    query = records.Query(type=COUNT, tenant=row.tenant, key=key_of(row.id), limit=1)
    newest = site.store.jobs(query)
    return newest[0].id if newest and newest[0].id > after else None
