"""Tasks: the routes of the task API."""

from __future__ import annotations

import shutil
from typing import Annotated, Any

import psutil
from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, Field

from headway.api import models
from headway.api.auth import Keeper, Operator, Overseer, Reader
from headway.api.bodies import Body, Name, Text
from headway.api.problems import documented
from headway.api.routes.jobs import JobId, Page, Size, steer, task_view
from headway.api.search import states_of
from headway.api.site import Reply, Site, TheSite, paged
from headway.api.views import SUBSCRIPTION, event_view
from headway.store import records

router = APIRouter(tags=["Tasks"])


def _list(site: Site, query: records.Query, page: int, size: int) -> Response:
    rows, total = site.page(query, page, size)
    items = site.views(rows)
    return paged(items, total, page, size)


@router.get(
    "/api/tasks",
    summary="List tasks",
    operation_id="listTasks",
    response_class=Reply,
    responses={200: {"model": models.JobPage}, **documented()},
)
def list_tasks(
    site: TheSite,
    principal: Reader,
    status: Annotated[Text | None, Query(description="One state, or several with commas.")] = None,
    type: Annotated[Name | None, Query(description="Of this type.")] = None,
    page: Page = 1,
    size: Size = 50,
) -> Response:
    query = records.Query(states=states_of(status) if status else (), type=type)
    return _list(site, site.narrowed(query, "", principal), page, size)


class TypeStatsModel(BaseModel):
    type: str
    count: int
    completed: int
    failed: int
    cancelled: int
    success_rate: float | None = Field(description="Of those that completed or failed.")
    mean_run_s: float | None
    p95_run_s: float | None
    mean_wait_s: float | None


class StatsModel(BaseModel):
    items: list[TypeStatsModel]


@router.get(
    "/api/tasks/stats",
    summary="How the tasks of each type fared",
    operation_id="getTaskStats",
    response_class=Reply,
    responses={200: {"model": StatsModel}, **documented()},
)
def stats(
    site: TheSite,
    principal: Reader,
    hours: Annotated[
        float | None, Query(gt=0, le=1_000_000, description="Only of the last hours.")
    ] = None,
) -> Response:
    since = 0.0 if hours is None else site.now() - hours * 3_600.0
    items = []
    for row in site.store.stats(since, principal.tenant):
        judged = row.completed + row.failed
        items.append({
            "type": row.type, "count": row.ended, "completed": row.completed,
            "failed": row.failed, "cancelled": row.cancelled,
            "success_rate": row.completed / judged if judged else None,
            "mean_run_s": row.mean_run_s, "p95_run_s": row.p95_run_s,
            "mean_wait_s": row.mean_wait_s,
        })  # fmt: skip
    return Reply({"items": items})


class CleanupBody(Body):
    """How old is old; what is not named is as set for every night."""

    completed_days: float | None = Field(
        None, ge=0, le=100_000, description="Of completed and cancelled tasks."
    )
    failed_days: float | None = Field(None, ge=0, le=100_000, description="Of failed tasks.")


class CleanupModel(BaseModel):
    jobs: int
    events: int
    results: int


@router.post(
    "/api/tasks/cleanup",
    summary="Remove what is old now",
    operation_id="cleanUpTasks",
    response_class=Reply,
    responses={200: {"model": CleanupModel}, **documented()},
)
def cleanup(site: TheSite, principal: Keeper, body: CleanupBody | None = None) -> Response:
    """Ended tasks that are older than so many days; by default what is set for every night."""
    completed, failed = (None, None) if body is None else (body.completed_days, body.failed_days)
    purged = site.steering(principal).purge(completed, failed)
    return Reply({"jobs": purged.jobs, "events": purged.events, "results": purged.results})


@router.get(
    "/api/tasks/{id}",
    summary="Look at a task",
    operation_id="getTask",
    response_class=Reply,
    responses={200: {"model": models.TaskModel}, **documented(404)},
)
def get_task(id: JobId, site: TheSite, principal: Reader) -> Response:
    return Reply(task_view(site, id, principal))


@router.get(
    "/api/tasks/{id}/events",
    summary="The audit trail of a task",
    operation_id="listTaskEvents",
    response_class=Reply,
    responses={200: {"model": models.Events}, **documented(404)},
)
def events(id: JobId, site: TheSite, principal: Reader) -> Response:
    row = site.job(id, principal)
    return Reply({"items": [event_view(each) for each in site.store.events_of(row.id)]})


def _verb(verb: str, summary: str) -> None:
    def act(id: JobId, site: TheSite, principal: Operator) -> Response:
        steer(site, id, principal, verb)
        return Reply(task_view(site, id, principal))

    router.post(
        f"/api/tasks/{{id}}/{verb}",
        summary=summary,
        operation_id=f"{verb}Task",
        response_class=Reply,
        responses={200: {"model": models.TaskModel}, **documented(404, 409)},
    )(act)


_verb("pause", "Set a task aside")
_verb("resume", "Let a paused task go on")
_verb("cancel", "Cancel a task")
_verb("retry", "A new round of attempts")


@router.get(
    "/api/subscriptions/{subscription}/tasks",
    summary="The tasks of a subscription",
    operation_id="listSubscriptionTasks",
    response_class=Reply,
    responses={200: {"model": models.JobPage}, **documented()},
)
def of_subscription(
    subscription: Annotated[Name, Path(description="Its number or name.")],
    site: TheSite,
    principal: Reader,
    page: Page = 1,
    size: Size = 50,
) -> Response:
    query = records.Query(key=f"{SUBSCRIPTION}{subscription}")
    return _list(site, site.narrowed(query, "", principal), page, size)


# ---------------------------------------------------------------------- the machine


class MemoryModel(BaseModel):
    total_bytes: int
    available_bytes: int
    percent: float
    process_rss_bytes: int


class DiskModel(BaseModel):
    total_bytes: int
    free_bytes: int
    percent: float


class ProcessModel(BaseModel):
    job: int
    pid: int
    rss_bytes: int
    cpu_percent: float


class ResourcesModel(BaseModel):
    cpu_count: int
    cpu_percent: float
    load_1m: float
    memory: MemoryModel
    disk: DiskModel
    processes: list[ProcessModel] = Field(description="The programs that jobs run just now.")


@router.get(
    "/api/system/resources",
    summary="CPU, memory, disk, and the programs that run",
    operation_id="getResources",
    response_class=Reply,
    responses={200: {"model": ResourcesModel}, **documented()},
)
def resources(site: TheSite, principal: Overseer) -> Response:  # noqa: ARG001 - it is checked
    memory = psutil.virtual_memory()
    disk = shutil.disk_usage(site.disk)
    return Reply({
        "cpu_count": psutil.cpu_count() or 1,
        "cpu_percent": psutil.cpu_percent(),
        "load_1m": psutil.getloadavg()[0],
        "memory": {
            "total_bytes": memory.total, "available_bytes": memory.available,
            "percent": memory.percent, "process_rss_bytes": psutil.Process().memory_info().rss,
        },
        "disk": {
            "total_bytes": disk.total, "free_bytes": disk.free,
            "percent": round(100.0 * disk.used / disk.total, 1) if disk.total else 0.0,
        },
        "processes": _processes(site),
    })  # fmt: skip


def _processes(site: Site) -> list[dict[str, Any]]:
    found = []
    for job, pid, started_at in site.store.processes():
        try:
            process = psutil.Process(pid)
            if abs(process.create_time() - started_at) > 2.0:
                continue  # another one has got its number
            family = [process, *process.children(recursive=True)]
            rss = sum(each.memory_info().rss for each in family)
            found.append({"job": job, "pid": pid, "rss_bytes": rss,
                          "cpu_percent": process.cpu_percent()})  # fmt: skip
        except psutil.Error:
            continue
    return found
