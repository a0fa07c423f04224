"""Single calls over HTTP: asked for now, answered when there is room, told about if wanted."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, Field, StringConstraints

from headway.api.auth import Operator, Principal, Reader, Submitter
from headway.api.bodies import Body, Name, Priority, Tenant, Text, payload_text
from headway.api.models import Moment
from headway.api.problems import Problem, documented
from headway.api.routes.jobs import MAX_WAIT_S, fresh_view, steer
from headway.api.routes.requests import host_of
from headway.api.site import Reply, Site, TheSite
from headway.apps.channels.queue.callbacks import CALLBACK, key_of
from headway.apps.channels.queue.calls import TYPES, call_view, fault_in, new_call, outcome_shown
from headway.apps.channels.routes.reach import TheChannels, keys_at_hand
from headway.core.recurrence import duration_s
from headway.errors import UnknownJob
from headway.net.outbound import Refused, check_url
from headway.store.records import Job, NewJob
from headway.store.records import Query as JobQuery

router = APIRouter(tags=["Calls"])

YEAR_S = 366 * 86_400
CallId = Annotated[str, Path(max_length=40, description="The number of a call.")]
Status = Literal["pending", "queued", "running", "paused", "completed", "failed", "cancelled"]


class CallBody(Body):
    """A call that may wait for capacity."""

    endpoint: Literal["/v1/chat/completions", "/v1/embeddings"] = Field(
        description="Which of the provider's routes."
    )
    body: dict[str, Any] = Field(description="What is sent there; its model decides the channel.")
    callback_url: Text | None = Field(
        None, description="An http or https address that is told how the call has ended."
    )
    priority: Priority = Field(5, description="Lower goes first; 1 to 10 by custom.")
    within: Annotated[str, StringConstraints(max_length=40)] | None = Field(
        None, description="It fails if it has not started after 30s, 15m, 1h30m, …"
    )
    metadata: Annotated[dict[Name, Text], Field(max_length=16)] = Field(
        default_factory=dict, description="Yours; it comes back with the answer."
    )
    tenant: Tenant | None = Field(None, description="Whose call it is; a token may fix it.")


class ResponseModel(BaseModel):
    status_code: int
    request_id: str = Field(description="The provider's, if it has said one.")
    body: Any


class DeliveryModel(BaseModel):
    """How far the callback is."""

    job: int = Field(description="The job that delivers it.")
    status: Status
    failed_attempts: int
    error: str | None = Field(description="Of the last attempt.")
    next_attempt_at: Moment


class CallModel(BaseModel):
    id: int
    status: Status
    endpoint: str | None
    model: str | None
    response: ResponseModel | None = Field(description="What the provider has answered.")
    error: str | None = Field(description="Why it has not completed.")
    metadata: dict[str, str]
    callback_url: str | None
    callback: DeliveryModel | None = Field(description="Null until the call has ended.")
    tenant: str
    priority: int
    channel: str | None = Field(description="Where it runs, or has run.")
    created_at: Moment
    started_at: Moment
    finished_at: Moment
    deadline: Moment
    failed_attempts: int
    wait_reason: str | None = Field(description="What it waits for, in words.")
    wait_since: Moment
    position: int | None = Field(description="Its place in line; 1 is next.")
    eta: Moment = Field(description="When it should start, as far as anybody can tell.")
    opens_at: Moment


class SecretModel(BaseModel):
    tenant: str
    secret: str = Field(description="For a library of Standard Webhooks, as it is.")


# ---------------------------------------------------------------------- asking


@router.post(
    "/api/channels/calls",
    status_code=202,
    summary="Ask for a call that may wait",
    operation_id="makeCall",
    response_class=Reply,
    responses={202: {"model": CallModel}, **documented()},
)
async def make_call(
    body: CallBody, site: TheSite, channels: TheChannels, principal: Submitter
) -> Response:
    """It is stored when this answers, and runs on what online calls leave over. However it ends, a
    callback is sent for a day until it is heard: `id`, `status`, `response`, `error` and
    `metadata`, signed as Standard Webhooks say.
    """
    job = checked(body, site, channels, principal)
    site.check_room(job.tenant, 1)
    handle = await site.app.aenqueue(job)
    found = fresh_view(site, job, handle.id)
    outcome = {"id": handle.id, "status": found["status"], "response": None, "error": None,
               "metadata": body.metadata}  # fmt: skip
    view = {**call_view(found, outcome, job.args), "callback": None}
    return Reply(view, 202, headers={"Location": f"/api/channels/calls/{handle.id}"})


def checked(body: CallBody, site: Site, channels: TheChannels, principal: Principal) -> NewJob:
    """The job, if all of it makes sense."""
    tenant = site.tenant_for(body.tenant, principal)
    fault = fault_in(body.endpoint, body.body)
    if fault is not None:
        raise Problem(422, fault, kind="bad-call")
    model = body.body["model"]
    if not channels.directory.knows(model):
        raise Problem(422, f"no channel serves the model {model!r}; name another, or add a channel",
                      kind="unknown-model")  # fmt: skip
    host = None
    if body.callback_url is not None:
        try:
            check_url(body.callback_url, channels.callbacks.allowed)
        except Refused as error:
            raise Problem(422, f"callback_url: {error}", kind="bad-callback") from None
        host = host_of(body.callback_url)
    now = site.now()
    payload_text(body.body, site.config.max_payload)
    return new_call(
        body.endpoint, body.body, tenant=tenant, now=now, priority=body.priority,
        deadline=_deadline(body.within, now), callback=body.callback_url, host=host,
        metadata=body.metadata,
    )  # fmt: skip


def _deadline(within: str | None, now: float) -> float | None:
    if within is None:
        return None
    try:
        seconds = duration_s(within)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= YEAR_S:
        raise Problem(422, "within is a duration such as 30s, 15m or 2h", kind="bad-call")
    return now + seconds


# ---------------------------------------------------------------------- looking and steering


def own_call(site: Site, id: str | int, principal: Principal) -> Job:
    with suppress(UnknownJob):
        row = site.job(id, principal)
        if row.type in TYPES:
            return row
    raise Problem(404, f"there is no call {id}; it never existed, or its record was purged",
                  kind="unknown-call")  # fmt: skip


def shown(site: Site, id: str | int, principal: Principal) -> dict[str, Any]:
    row = own_call(site, id, principal)
    store = site.store
    view = call_view(site.view(row), outcome_shown(store, row), store.payload(row.id))
    return {**view, "callback": _delivery(site, row)}


def _delivery(site: Site, call: Job) -> dict[str, Any] | None:
    """The newest, if an operator has asked for the call again."""
    query = JobQuery(type=CALLBACK, key=key_of(call.id), limit=1)
    for view in site.views(site.store.jobs(query)):
        return {
            "job": view["id"],
            "status": view["status"],
            "failed_attempts": view["failed_attempts"],
            "error": view["last_error"],
            "next_attempt_at": view["next_attempt_at"],
        }
    return None


@router.get(
    "/api/channels/calls/{id}",
    summary="How far a call is, and its answer",
    operation_id="getCall",
    response_class=Reply,
    responses={200: {"model": CallModel}, **documented(404)},
)
async def get_call(
    id: CallId,
    site: TheSite,
    principal: Reader,
    wait_s: Annotated[
        float, Query(ge=0, le=MAX_WAIT_S, description="Answer when it has ended, or after this.")
    ] = 0.0,
) -> Response:
    row = await asyncio.to_thread(own_call, site, id, principal)
    if wait_s and row.finished_at is None:
        async with site.patience():
            await site.app.handle(row.id).await_end(wait_s)
    return Reply(await asyncio.to_thread(shown, site, id, principal))


@router.post(
    "/api/channels/calls/{id}/cancel",
    summary="Cancel a call",
    operation_id="cancelCall",
    response_class=Reply,
    responses={200: {"model": CallModel}, **documented(404, 409)},
)
def cancel_call(id: CallId, site: TheSite, principal: Operator) -> Response:
    """At once if it waits. Whoever is to be told hears of it."""
    row = own_call(site, id, principal)
    steer(site, str(row.id), principal, "cancel")
    return Reply(shown(site, row.id, principal))


# ---------------------------------------------------------------------- the signing secret

Whose = Annotated[Text | None, Query(description="Of this tenant; a token may fix it.")]


@router.get(
    "/api/channels/callback-secret",
    summary="What callbacks are signed with",
    operation_id="getCallbackSecret",
    response_class=Reply,
    responses={200: {"model": SecretModel}, **documented()},
)
def get_secret(
    site: TheSite, channels: TheChannels, principal: Submitter, tenant: Whose = None
) -> Response:
    """Each tenant has its own, made when it is first needed. Receivers verify with it that a
    message comes from here.
    """
    whose = site.tenant_for(tenant, principal)
    with keys_at_hand():
        secret = channels.callbacks.secrets.current(whose, site.now())
    return Reply({"tenant": whose, "secret": secret}, headers={"Cache-Control": "no-store"})


@router.post(
    "/api/channels/callback-secret",
    summary="Make a new one",
    operation_id="renewCallbackSecret",
    response_class=Reply,
    responses={200: {"model": SecretModel}, **documented()},
)
def renew_secret(
    site: TheSite, channels: TheChannels, principal: Operator, tenant: Whose = None
) -> Response:
    """For a day messages are signed with both, so that receivers can change over."""
    whose = site.tenant_for(tenant, principal)
    with keys_at_hand():
        secret = channels.callbacks.secrets.renew(whose, site.now())
    site.record(principal, "callback_secret_renewed", f"tenant:{whose or '-'}")
    return Reply({"tenant": whose, "secret": secret}, headers={"Cache-Control": "no-store"})
