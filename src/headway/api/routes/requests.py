"""Requests: the routes of the request queue."""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from headway.api import models, quick
from headway.api.auth import Operator, Principal, Reader
from headway.api.bodies import WHOLE, Attempts, JobBody, Name, Text, UniqueBody
from headway.api.problems import Problem, documented
from headway.api.quick import read, whose
from headway.api.routes.events import SSE, LastEventId, following
from headway.api.routes.jobs import JobId, Page, Size, put_job, steer, store_job
from headway.api.site import Reply, Site, TheSite, paged
from headway.api.stream import request_words
from headway.api.views import (
    COOKIE_LANE,
    FROM_REQUEST_WORDS,
    NO_COOKIE_LANE,
    SUBSCRIPTION,
    USUAL_RANK,
    request_view,
)
from headway.store import records

router = APIRouter(tags=["Requests"])

Signed = Annotated[int, Field(gt=-100_000_000, lt=100_000_000), WHOLE]
Subscription = Annotated[int, Field(ge=0, lt=10**15), WHOLE] | Name
ALWAYS_WITH_COOKIE = frozenset({"download"})
STATUSES = ("queued", "running", "paused", "done", "failed", "canceled")


class EnqueueBody(BaseModel):
    """A request to an upstream. What it does not know is left alone."""

    model_config = ConfigDict(extra="ignore", strict=True)

    type: Name = Field(description="expected_total, parse, list_fetch, download, or any other.")
    subscription_id: Subscription | None = Field(
        None, description="Requests of one subscription run strictly one after the other."
    )
    url: Text | None = Field(None, description="Its host is the upstream.")
    requires_cookie: bool = Field(description="Decides the lane; downloads always need one.")
    ua_profile: Literal["desktop", "mobile", "alt"] | None = Field(
        None, description="Counts only without a cookie."
    )
    priority: Signed = Field(0, description="Higher goes first, 0 is usual.")
    max_attempts: Attempts | None = Field(None, description="Null: usual for the type.")
    payload: dict[str, Any] = Field(default_factory=dict, description="More for the handler.")


def job_of(body: EnqueueBody) -> JobBody:
    cookie = body.requires_cookie or body.type in ALWAYS_WITH_COOKIE
    said = {"url": body.url, "ua_profile": None if cookie else body.ua_profile}
    about = {name: value for name, value in said.items() if value is not None}
    host = None if body.url is None else host_of(body.url)
    key = None if body.subscription_id is None else f"{SUBSCRIPTION}{body.subscription_id}"
    return JobBody(
        type=body.type,
        args={
            **body.payload, "subscription_id": body.subscription_id, "requires_cookie": cookie,
            "url": body.url, "ua_profile": about.get("ua_profile"),
        },
        lane=COOKIE_LANE if cookie else NO_COOKIE_LANE,
        key=key,
        upstream=host,
        priority=USUAL_RANK - body.priority,
        about=about,
        unique=UniqueBody(key=f"{body.subscription_id}:{_short(body.url)}")
        if body.subscription_id is not None or body.url is not None else None,
        max_attempts=body.max_attempts,
    )  # fmt: skip


def _short(url: str | None) -> str:
    """As good as the address, and never too long for a key."""
    return "" if url is None else sha256(url.encode()).hexdigest()


def host_of(url: str) -> str | None:
    """The host is the upstream: its limits hold for all requests that go there."""
    try:
        host = urlsplit(url).hostname
    except ValueError:
        return None
    return host.lower()[:200] if host else None


@quick.post(
    router,
    "/api/requests/enqueue",
    EnqueueBody,
    status_code=202,
    summary="Enqueue a request",
    operation_id="enqueueRequest",
    response_class=Reply,
    responses={202: {"model": models.RequestAnswer}, **documented(404)},
)
async def enqueue(request: Request) -> Response:
    """A duplicate of an active request (same type, subscription and url) joins it."""
    site, principal = whose(request, "submit")
    return await enqueued(site, await read(request, EnqueueBody), principal)


async def enqueued(site: Site, body: EnqueueBody, principal: Principal) -> Response:
    """Put it into the queue, as whoever does requests of its type wants it, and say so."""
    maker = site.request_makers.get(body.type)
    if maker is None:
        view, joined = await store_job(site, job_of(body), principal)
    else:
        job = maker(body, principal)
        site.check_room(job.tenant, 1)
        view, joined = await put_job(site, job, principal)
    return accepted(view, joined)


def accepted(view: dict[str, Any], joined: bool) -> Response:
    answer = {**request_view(view), "joined": joined}
    return Reply(answer, 202, headers={"Location": f"/api/requests/{view['id']}"})


@router.get(
    "/api/requests",
    summary="List requests",
    operation_id="listRequests",
    response_class=Reply,
    responses={200: {"model": models.RequestPage}, **documented()},
)
def list_requests(
    site: TheSite,
    principal: Reader,
    lane: Annotated[
        Name | None, Query(description="requires_cookie, no_cookie or another.")
    ] = None,
    status: Annotated[
        Text | None,
        Query(
            description=f"One of {', '.join(STATUSES)}.",
            json_schema_extra={"enum": [*STATUSES, "", None]},
        ),
    ] = None,
    type: Annotated[Name | None, Query(description="Of this type.")] = None,
    subscription_id: Annotated[Name | None, Query(description="Of this subscription.")] = None,
    page: Page = 1,
    size: Size = 50,
) -> Response:
    """Newest first; filters combine."""
    states: tuple[str, ...] = ()
    if status:
        if status not in STATUSES:
            raise Problem(422, f"{status!r} is no status; known are {', '.join(STATUSES)}",
                          kind="bad-search")  # fmt: skip
        states = FROM_REQUEST_WORDS.get(status, (status,))
    key = f"{SUBSCRIPTION}{subscription_id}" if subscription_id else None
    query = records.Query(states=states, type=type or None, lane=lane_of(lane), key=key)
    rows, total = site.page(site.narrowed(query, "", principal), page, size)
    items = [request_view(view) for view in site.views(rows)]
    return paged(items, total, page, size)


def lane_of(name: str | None) -> str | None:
    """Clients of the request queue also say `cookie` and `nocookie`."""
    return {"cookie": COOKIE_LANE, "nocookie": NO_COOKIE_LANE, "": None}.get(name or "", name)


@router.get(
    "/api/requests/events",
    summary="Follow state changes",
    operation_id="followRequests",
    response_class=Response,
    responses={200: SSE, **documented()},
)
async def follow(
    site: TheSite,
    principal: Reader,
    last_event_id: LastEventId = None,
) -> Response:
    """Server-sent events. `Last-Event-ID` resumes without a gap or a repeat; when what came in
    between is gone, a `reset` event with a snapshot comes first.
    """
    return following(site, principal, last_event_id, request_words)


@router.get(
    "/api/requests/{id}",
    summary="Look at a request",
    operation_id="getRequest",
    response_class=Reply,
    responses={200: {"model": models.RequestModel}, **documented(404)},
)
def get_request(id: JobId, site: TheSite, principal: Reader) -> Response:
    return Reply(request_view(site.view(site.job(id, principal))))


def _verb(verb: str, summary: str) -> None:
    def act(id: JobId, site: TheSite, principal: Operator) -> Response:
        return Reply(request_view(steer(site, id, principal, verb)))

    router.post(
        f"/api/requests/{{id}}/{verb}",
        summary=summary,
        operation_id=f"{verb}Request",
        response_class=Reply,
        responses={200: {"model": models.RequestModel}, **documented(404, 409)},
    )(act)


_verb("pause", "Set a request aside")
_verb("resume", "Let a paused request go on")
_verb("cancel", "Cancel a request")


class PrioritizeBody(BaseModel):
    """Another priority."""

    model_config = ConfigDict(extra="ignore", strict=True)

    priority: Signed | None = Field(None, description="Higher goes first; null: to the front.")


@router.post(
    "/api/requests/{id}/prioritize",
    summary="To the front, or another priority",
    operation_id="prioritizeRequest",
    response_class=Reply,
    responses={200: {"model": models.RequestModel}, **documented(404, 409)},
)
def prioritize(
    id: JobId, site: TheSite, principal: Operator, body: PrioritizeBody | None = None
) -> Response:
    """Without a body it goes before everybody."""
    if body is None or body.priority is None:
        return Reply(request_view(steer(site, id, principal, "pin")))
    rank = USUAL_RANK - body.priority
    return Reply(request_view(steer(site, id, principal, "prioritise", rank)))
