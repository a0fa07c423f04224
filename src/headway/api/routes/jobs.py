"""Jobs: asking for them, looking at them, steering them."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from headway.api import models, quick
from headway.api.auth import Operator, Principal, Reader
from headway.api.bodies import (
    MAX_ID,
    WHOLE,
    Body,
    Id,
    JobBody,
    Moment,
    Name,
    Priority,
    Text,
    decoded,
    new_job,
    stamp,
)
from headway.api.bulk import ACTIONS, MOST_NAMED, Bulk
from headway.api.problems import Problem, documented
from headway.api.quick import read, whose
from headway.api.search import states_of
from headway.api.site import MAX_PAGE, Reply, Site, TheSite, paged
from headway.api.tracing import LABEL, traceparent
from headway.api.views import attempts, event_view, explanation_view, moment, plain_job
from headway.errors import ResultExpired
from headway.store import records
from headway.store.records import Job, NewJob

router = APIRouter(tags=["Jobs"])

JobId = Annotated[str, Path(max_length=40, description="The number of a job.")]
Page = Annotated[int, Query(ge=1, le=1_000_000, description="From 1.")]
Size = Annotated[int, Query(ge=1, le=MAX_PAGE, description="Items on a page.")]
Search = Annotated[
    str,
    Query(
        max_length=1_000,
        description="Qualifiers such as `type:download status:failed upstream:x.com "
        'error:timeout label:team=a created:>1h`; quote values with spaces: `error:"no route"`.',
    ),
]
MAX_WAIT_S = 60.0


def fresh_view(site: Site, job: NewJob, id: int) -> dict[str, Any]:
    """A job that was just stored, without asking the store for it."""
    waits = job.not_before > job.created_at or job.after
    state = "pending" if waits else "queued"
    row = Job(
        id, job.type, job.lane, job.tenant, job.key, job.upstreams, job.priority, job.not_before,
        job.deadline, job.created_at, job.spec, None, job.batch, job.schedule, state,
        job.created_at, None, 0, None, None, None, None, None, None, None,
    )  # fmt: skip
    return plain_job(row, site.policy(job.type))


async def store_job(site: Site, body: JobBody, principal: Principal) -> tuple[dict[str, Any], bool]:
    """(the job as it is shown, whether it was there before)"""
    tenant = site.tenant_for(body.tenant, principal)
    await site.make_room(tenant, 1)
    apart = principal.tenant is not None
    if site.tracing is not None and (span := traceparent()) is not None:
        body.about[LABEL] = span
    job = new_job(body, tenant, site.now(), site.config.max_payload, apart=apart)
    if apart and (job.after or job.batch):
        await asyncio.to_thread(check_own, site, [job], tenant)
    return await put_job(site, job, principal)


async def put_job(site: Site, job: NewJob, principal: Principal) -> tuple[dict[str, Any], bool]:
    """The same for a job that is what it must be."""
    handle = await site.app.aenqueue(job)
    if not handle.joined:
        return fresh_view(site, job, handle.id), False
    row = await asyncio.to_thread(site.job, handle.id, principal)
    return plain_job(row, site.policy(row.type)), True


def check_own(site: Site, jobs: list[NewJob], tenant: str) -> None:
    """Jobs and batches that a tenant names must be its own."""
    wanted = {id for job in jobs for id in job.after}
    query = records.Query(ids=tuple(wanted), tenant=tenant)
    if wanted and site.store.count(query) != len(wanted):
        raise Problem(422, "`after` names a job that is not there", kind="bad-job")
    for number in {job.batch for job in jobs if job.batch is not None}:
        batch = site.store.batch_row(number)
        if batch is None or batch.tenant != tenant:
            raise Problem(422, f"there is no batch {number}", kind="bad-job")


@quick.post(
    router,
    "/api/jobs",
    JobBody,
    status_code=202,
    summary="Enqueue a job",
    operation_id="enqueueJob",
    response_class=Reply,
    responses={202: {"model": models.JobAnswer}, **documented(409)},
)
async def enqueue(request: Request) -> Response:
    """Stores the job; it is safe when this answers. A job whose unique key is taken joins the one
    that is there.
    """
    site, principal = whose(request, "submit")
    body = await read(request, JobBody)
    view, joined = await store_job(site, body, principal)
    view["joined"] = joined
    return Reply(view, 202, headers={"Location": f"/api/jobs/{view['id']}"})


@router.get(
    "/api/jobs",
    summary="List and search jobs",
    operation_id="listJobs",
    response_class=Reply,
    responses={200: {"model": models.JobPage}, **documented()},
)
def list_jobs(
    site: TheSite,
    principal: Reader,
    q: Search = "",
    status: Annotated[Text | None, Query(description="One state, or several with commas.")] = None,
    type: Annotated[Name | None, Query(description="Of this type.")] = None,
    lane: Annotated[Name | None, Query(description="In this lane.")] = None,
    tenant: Annotated[Text | None, Query(description="Of this tenant.")] = None,
    key: Annotated[Text | None, Query(description="With this key.")] = None,
    upstream: Annotated[Name | None, Query(description="That may call this upstream.")] = None,
    batch: Annotated[int | None, Query(ge=1, le=MAX_ID, description="Of this batch.")] = None,
    schedule: Annotated[Name | None, Query(description="That this schedule has made.")] = None,
    page: Page = 1,
    size: Size = 50,
) -> Response:
    """Newest first."""
    query = records.Query(
        states=states_of(status) if status else (), type=type, lane=lane, tenant=tenant,
        key=key, upstream=upstream, batch=batch, schedule=schedule,
    )  # fmt: skip
    rows, total = site.page(site.narrowed(query, q, principal), page, size)
    items = site.views(rows)
    return paged(items, total, page, size)


class BulkBody(Body):
    """The same to all jobs that a search finds, or that are named. Nothing happens in a dry run."""

    action: str = Field(
        json_schema_extra={"enum": list(ACTIONS)}, max_length=20, description="What to do."
    )
    q: str | None = Field(
        None, max_length=1_000, description="As in `GET /api/jobs?q=`; may not be empty."
    )
    ids: list[Id] | None = Field(
        None, max_length=MOST_NAMED, description="Instead of `q`: the numbers of the jobs."
    )
    dry_run: bool = Field(True, description="Only say what would be done.")
    expected: Annotated[int, Field(ge=0, le=MAX_ID), WHOLE] | None = Field(
        None, description="Do nothing unless exactly so many jobs are matched."
    )
    priority: Priority | None = Field(None, description="With prioritise: the new one.")


@router.post(
    "/api/jobs/bulk",
    summary="Do something to all jobs that match",
    operation_id="bulkJobs",
    response_class=Reply,
    responses={200: {"model": models.BulkAnswer}, **documented(409)},
)
def bulk(body: BulkBody, site: TheSite, principal: Operator) -> Response:
    """Ask with `dry_run` first: it says how many jobs would be touched. Then send the number as
    `expected`, so that nothing happens if others match meanwhile. To undo it, send `touched` of the
    answer as `ids` with the opposite: resume after pause, retry after cancel, unpin after pin.
    """
    which = body.ids if body.q is None else body.q
    if which is None or (body.q is not None and body.ids is not None):
        raise Problem(422, "name the jobs either by q or by ids", kind="bad-search")
    return Reply(Bulk(site, principal).run(body.action, which, body.dry_run, body.expected,
                                           body.priority))  # fmt: skip


@router.get(
    "/api/jobs/{id}",
    summary="Look at a job",
    operation_id="getJob",
    response_class=Reply,
    responses={200: {"model": models.TaskModel}, **documented(404)},
)
async def get_job(
    id: JobId,
    site: TheSite,
    principal: Reader,
    wait_s: Annotated[
        float, Query(ge=0, le=MAX_WAIT_S, description="Answer when it has ended, or after this.")
    ] = 0.0,
) -> Response:
    row = await asyncio.to_thread(site.job, id, principal)
    if wait_s and row.finished_at is None:
        async with site.patience():
            await site.app.handle(row.id).await_end(wait_s)
    return Reply(await asyncio.to_thread(task_view, site, id, principal))


def task_view(site: Site, id: str | int, principal: Principal) -> dict[str, Any]:
    row = site.job(id, principal)
    return {**site.view(row), "attempts": attempts(site.store.events_of(row.id))}


@router.get(
    "/api/jobs/{id}/explain",
    summary="Why a job waits, and until when",
    operation_id="explainJob",
    response_class=Reply,
    responses={200: {"model": models.ExplanationModel}, **documented(404, 409)},
)
def explain(id: JobId, site: TheSite, principal: Reader) -> Response:
    row = site.job(id, principal)
    if row.finished_at is not None:
        raise Problem(409, f"job {row.id} has ended: it is {row.state}", kind="ended",
                      state=row.state)  # fmt: skip
    controls = site.engine.brain.controls
    why = site.wait(site.engine.ask(lambda now: controls.explain(row.id, now)))
    return Reply(explanation_view(why, site.now()))


@router.get(
    "/api/jobs/{id}/events",
    summary="The audit trail of a job",
    operation_id="listJobEvents",
    response_class=Reply,
    responses={200: {"model": models.Events}, **documented(404)},
)
def events(id: JobId, site: TheSite, principal: Reader) -> Response:
    row = site.job(id, principal)
    return Reply({"items": [event_view(each) for each in site.store.events_of(row.id)]})


@router.get(
    "/api/jobs/{id}/logs",
    summary="What a job has logged",
    operation_id="listJobLogs",
    response_class=Reply,
    responses={200: {"model": models.Logs}, **documented(404)},
)
def logs(id: JobId, site: TheSite, principal: Reader) -> Response:
    row = site.job(id, principal)
    lines = [{"at": moment(at), "level": level, "line": line}
             for at, level, line in site.store.logs(row.id)]  # fmt: skip
    return Reply({"items": lines})


@router.get(
    "/api/jobs/{id}/payload",
    summary="What a job is called with",
    operation_id="getJobPayload",
    response_class=Reply,
    responses={200: {"model": models.Value}, **documented(404)},
)
def payload(id: JobId, site: TheSite, principal: Reader) -> Response:
    row = site.job(id, principal)
    return Reply({"value": decoded(site.store.payload(row.id))})


@router.get(
    "/api/jobs/{id}/checkpoint",
    summary="Where a job can go on",
    operation_id="getJobCheckpoint",
    response_class=Reply,
    responses={200: {"model": models.Value}, **documented(404)},
)
def checkpoint(id: JobId, site: TheSite, principal: Reader) -> Response:
    row = site.job(id, principal)
    return Reply({"value": decoded(site.store.checkpoint(row.id))})


@router.get(
    "/api/jobs/{id}/result",
    summary="What a job has returned",
    operation_id="getJobResult",
    response_class=Reply,
    responses={200: {"model": models.ResultModel}, **documented(404, 409)},
)
def result(id: JobId, site: TheSite, principal: Reader) -> Response:
    """409 until it has completed, and when it has not; the value is null if it returned nothing."""
    row = site.job(id, principal)
    if row.state != "completed":
        raise Problem(409, f"job {row.id} has no result: it is {row.state}", kind="no-result",
                      state=row.state)  # fmt: skip
    kept = site.store.result(row.id)
    if kept is None:
        if site.app.handle(row.id).result_expired():
            raise Problem(404, f"the result of job {row.id} was kept no longer", kind="expired")
        return Reply({"value": None, "expires_at": None})
    if kept.expires_at <= site.now():
        raise ResultExpired(f"the result of job {row.id} was kept no longer")
    return Reply({"value": decoded(kept.value), "expires_at": moment(kept.expires_at)})


# ---------------------------------------------------------------------- steering


def steer(site: Site, id: str, principal: Principal, verb: str, *args: Any) -> dict[str, Any]:
    """Ask the engine, and show what became of the job."""
    row = site.job(id, principal)
    getattr(site.steering(principal), verb)(row.id, *args)
    return site.view(site.job(row.id, principal))


def _verb(verb: str, summary: str) -> None:
    def act(id: JobId, site: TheSite, principal: Operator) -> Response:
        return Reply(steer(site, id, principal, verb))

    router.post(
        f"/api/jobs/{{id}}/{verb}",
        summary=summary,
        operation_id=f"{verb}Job",
        response_class=Reply,
        responses={200: {"model": models.JobModel}, **documented(404, 409)},
    )(act)


_verb("cancel", "Cancel a job: at once if it waits, else it is really stopped first")
_verb("pause", "Set a job aside")
_verb("resume", "Let a paused job go on")
_verb("retry", "A new round of attempts for a job that failed or was cancelled")
_verb("pin", "Put a job to the front, before everybody")
_verb("unpin", "Put a pinned job back to the place that it would have without the pin")


class PriorityBody(Body):
    """Another priority."""

    priority: Priority = Field(description="Lower goes first; 1 to 10 by custom.")


@router.post(
    "/api/jobs/{id}/prioritise",
    summary="Give a job another priority",
    operation_id="prioritiseJob",
    response_class=Reply,
    responses={200: {"model": models.JobModel}, **documented(404, 409)},
)
def prioritise(id: JobId, body: PriorityBody, site: TheSite, principal: Operator) -> Response:
    return Reply(steer(site, id, principal, "prioritise", body.priority))


class TimeBody(Body):
    """Another time."""

    at: Moment


@router.post(
    "/api/jobs/{id}/reschedule",
    summary="Another time for a job that does not run",
    operation_id="rescheduleJob",
    response_class=Reply,
    responses={200: {"model": models.JobModel}, **documented(404, 409)},
)
def reschedule(id: JobId, body: TimeBody, site: TheSite, principal: Operator) -> Response:
    return Reply(steer(site, id, principal, "reschedule", stamp(body.at)))
