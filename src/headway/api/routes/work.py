"""Work for workers in any language: put, take, heartbeat, complete. In batches, and fenced."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, Field

from headway.api import quick
from headway.api.auth import Keeper
from headway.api.bodies import MAX_ID, new_job
from headway.api.problems import Problem, documented
from headway.api.quick import read, whose
from headway.api.routes.jobs import check_own
from headway.api.site import Reply, Site, TheSite
from headway.api.work_bodies import (
    BeatBody,
    BeatsBody,
    CompletionBody,
    CompletionsBody,
    HelloBody,
    PutBody,
    TakeBody,
)
from headway.api.working import Beating, Completing, Introduction, Taking, wire
from headway.store.records import NewJob

router = APIRouter(tags=["Work"])

WorkId = Annotated[int, Path(ge=1, le=MAX_ID, description="The number of a job.")]


class ReceiptModel(BaseModel):
    id: int
    joined: bool


class ReceiptsModel(BaseModel):
    jobs: list[ReceiptModel]


@quick.post(
    router,
    "/api/work/put",
    PutBody,
    status_code=202,
    summary="Enqueue many jobs, all or none",
    operation_id="putWork",
    response_class=Reply,
    responses={202: {"model": ReceiptsModel}, **documented(409)},
)
async def put(request: Request) -> Response:
    site, principal = whose(request, "submit")
    body = await read(request, PutBody)
    now, limit = site.now(), site.config.max_payload
    apart = principal.tenant is not None
    jobs: list[NewJob] = []
    many: dict[str, int] = {}
    for each in body.jobs:
        tenant = site.tenant_for(each.tenant, principal)
        many[tenant] = many.get(tenant, 0) + 1
        jobs.append(new_job(each, tenant, now, limit, apart=apart))
    for tenant, count in many.items():
        await site.make_room(tenant, count)
    if principal.tenant is not None:
        await asyncio.to_thread(check_own, site, jobs, principal.tenant)
    handles = await site.app.aenqueue_many(jobs)
    return Reply({"jobs": [{"id": h.id, "joined": h.joined} for h in handles]}, 202)


# ---------------------------------------------------------------------- workers


class HelloModel(BaseModel):
    server: str = Field(description="Another text after each start of the server.")
    lease_s: float
    heartbeat_s: float


@router.post(
    "/api/work/hello",
    summary="Say what a worker can run, and by which rules",
    operation_id="helloWork",
    response_class=Reply,
    responses={200: {"model": HelloModel}, **documented()},
)
def hello(body: HelloBody, site: TheSite, principal: Keeper) -> Response:
    """Optional: a type that is only named in `take` runs by the usual rules. Say it again when
    `server` in an answer is another one than before.
    """
    Introduction(site, principal).make(
        body.worker,
        [each.model_dump(exclude_none=True) for each in body.types],
        [each.model_dump() for each in body.settings],
        [each.model_dump() for each in body.schedules],
    )
    lease_s = site.config.lease_s
    return Reply({"server": site.boot, "lease_s": lease_s, "heartbeat_s": lease_s / 3})


class WorkModel(BaseModel):
    id: int
    fence: int = Field(description="Send it with every word about this job.")
    type: str
    args: dict[str, Any]
    attempt: int
    upstream: str | None
    tenant: str
    key: str | None
    lane: str
    timeout_s: float
    lease_s: float = Field(description="Send a heartbeat before this is over.")
    checkpoint: Any


class StopModel(BaseModel):
    id: int
    fence: int
    why: str


class WorksModel(BaseModel):
    server: str
    jobs: list[WorkModel]
    stops: list[StopModel]


@quick.post(
    router,
    "/api/work/take",
    TakeBody,
    summary="Wait for jobs, or for orders to stop some",
    operation_id="takeWork",
    response_class=Reply,
    responses={200: {"model": WorksModel}, **documented()},
)
async def take(request: Request) -> Response:
    """Answers as soon as there is something, or when the time is over."""
    site, _ = whose(request, "operate", all_tenants=True)
    body = await read(request, TakeBody)
    types = [*body.types, *body.queues]
    if body.size and not types:
        raise Problem(422, "name the types that this worker can run", kind="wrong-input")
    works, stops = await Taking(site, request).run(body.worker, types, body.size, body.wait_ms)
    return Reply({
        "server": site.boot,
        "jobs": [wire(work) for work in works],
        "stops": [{"id": stop.id, "fence": stop.fence, "why": stop.why} for stop in stops],
    })  # fmt: skip


# ---------------------------------------------------------------------- reports


class BeatModel(BaseModel):
    id: int
    fence: int
    lease_s: float | None = Field(description="How long it lasts now; null: it is over, stop.")
    stop: Literal["cancel", "pause", "timeout", "lost"] | None


class BeatsModel(BaseModel):
    server: str
    jobs: list[BeatModel]


@quick.post(
    router,
    "/api/work/heartbeat",
    BeatsBody,
    summary="Prolong leases, and say how far the work is",
    operation_id="beatWork",
    response_class=Reply,
    responses={200: {"model": BeatsModel}, **documented()},
)
async def heartbeat(request: Request) -> Response:
    site, _ = whose(request, "operate", all_tenants=True)
    body = await read(request, BeatsBody)
    beats = await Beating(site).run(body.worker, [each.model_dump() for each in body.jobs])
    return Reply({"server": site.boot, "jobs": beats})


@router.post(
    "/api/work/{id}/heartbeat",
    summary="Prolong one lease",
    operation_id="beatOneWork",
    response_class=Reply,
    responses={200: {"model": BeatModel}, **documented(409)},
)
async def heartbeat_one(
    id: WorkId, body: BeatBody, site: TheSite, principal: Keeper  # noqa: ARG001
) -> Response:  # fmt: skip
    (beat,) = await Beating(site).run("", [{"id": id, **body.model_dump()}])
    if beat["lease_s"] is None:
        raise _stale(id, body.fence)
    return Reply(beat)


def _stale(id: int, fence: int) -> Problem:
    return Problem(
        409, f"job {id} is not held under the fence {fence} any more; stop working on it",
        kind="stale-fence",
    )  # fmt: skip


class CompletionModel(BaseModel):
    id: int
    fence: int
    accepted: bool = Field(description="False: the fence is stale, and nothing has changed.")
    state: str | None


class CompletionsModel(BaseModel):
    server: str
    jobs: list[CompletionModel]


async def _complete(site: Site, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return await Completing(site).run(jobs)


@quick.post(
    router,
    "/api/work/complete",
    CompletionsBody,
    summary="Say how attempts ended",
    operation_id="completeWork",
    response_class=Reply,
    responses={200: {"model": CompletionsModel}, **documented()},
)
async def complete(request: Request) -> Response:
    """May be sent again when the answer was lost: what was accepted is accepted again."""
    site, _ = whose(request, "operate", all_tenants=True)
    body = await read(request, CompletionsBody)
    answers = await _complete(site, [each.model_dump() for each in body.jobs])
    return Reply({"server": site.boot, "jobs": answers})


@router.post(
    "/api/work/{id}/complete",
    summary="Say how one attempt ended",
    operation_id="completeOneWork",
    response_class=Reply,
    responses={200: {"model": CompletionModel}, **documented(409)},
)
async def complete_one(
    id: WorkId, body: CompletionBody, site: TheSite, principal: Keeper  # noqa: ARG001
) -> Response:  # fmt: skip
    (answer,) = await _complete(site, [{"id": id, **body.model_dump()}])
    if not answer["accepted"]:
        raise _stale(id, body.fence)
    return Reply(answer)
