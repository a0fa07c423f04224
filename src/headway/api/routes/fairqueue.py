"""Slots for clients of the fair queue: `/api/v0/fairqueue/*`, and the control API beside it.

Clients that exist speak this already, so nothing here looks like the rest of the API: any method is
taken, field names are theirs, and what is no answer to them is no answer here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from headway.api import quick
from headway.api.fairqueue.acquiring import acquire as acquire_slot
from headway.api.fairqueue.acquiring import cancel as cancel_session
from headway.api.fairqueue.acquiring import release as release_slot
from headway.api.fairqueue.acquiring import report as hear_report
from headway.api.fairqueue.bodies import (
    AcquireBody,
    AcquireModel,
    CancelBody,
    CancelModel,
    DoneModel,
    RefreshBody,
    ReleaseBody,
    ReportBody,
    read,
)
from headway.api.fairqueue.service import TARGETS
from headway.api.problems import Problem, documented
from headway.api.quick import whose
from headway.api.site import Reply
from headway.errors import HeadwayError

router = APIRouter(tags=["Fair queue"])
logger = logging.getLogger("headway.fairqueue")

QUEUE = "/api/v0/fairqueue"
OK = {"result": "ok"}


def _post(
    path: str, model: type[BaseModel], answer: type[BaseModel], summary: str, operation_id: str
) -> Callable[[quick.Endpoint], quick.Endpoint]:
    return quick.post(
        router, QUEUE + path, model, any_method=True, summary=summary, operation_id=operation_id,
        response_class=Reply, responses={200: {"model": answer}, **documented(400)},
    )  # fmt: skip


@_post("/acquire", AcquireBody, AcquireModel, "Ask for a slot, or ask again", "acquireFairQueue")
async def acquire(request: Request) -> Response:
    """Answers as soon as the slot is granted, and in any case within 8 seconds."""
    site, _ = whose(request, "submit", all_tenants=True)
    body = await read(request, AcquireBody)
    return Reply(await acquire_slot(site, request, body))


@_post("/release", ReleaseBody, DoneModel, "Give a slot back", "releaseFairQueue")
async def release(request: Request) -> Response:
    """Always `ok`, and at once; the slot opens when its minimum hold is over."""
    site, _ = whose(request, "submit", all_tenants=True)
    await release_slot(site, await read(request, ReleaseBody))
    return Reply(OK)


@_post("/cancel", CancelBody, CancelModel, "Want no slot any more", "cancelFairQueue")
async def cancel(request: Request) -> Response:
    site, _ = whose(request, "submit", all_tenants=True)
    body = await read(request, CancelBody)
    return Reply({"result": await cancel_session(site, body.query_token)})


@_post("/report", ReportBody, DoneModel, "Say what a host answered", "reportFairQueue")
async def report(request: Request) -> Response:
    """An outcome without a slot, for the breaker."""
    site, _ = whose(request, "submit", all_tenants=True)
    await hear_report(site, await read(request, ReportBody))
    return Reply(OK)


# ---------------------------------------------------------------------- control


@router.get(
    "/api/v0/health", status_code=204, summary="Alive, and by which settings",
    operation_id="healthFairQueue", responses=documented(404),
)  # fmt: skip
async def health(request: Request) -> Response:
    """With the internal token only; others hear that there is no such thing."""
    site, _ = whose(request, "operate")
    config = site.fairqueue.config
    controller = config.controller
    return Response(status_code=204, headers={
        "X-App-Name": controller.app_name, "X-App-Version": controller.app_version,
        "X-Env": controller.env, "X-Role": controller.role,
        "X-Instance-Id": controller.instance_id, "X-Config-Version": config.config_version,
    })  # fmt: skip


@router.post(
    "/api/v0/refresh", status_code=204, summary="Read the settings again",
    operation_id="refreshFairQueue", responses=documented(400, 404, 502),
    openapi_extra=quick.body_of(RefreshBody, required=False),
)  # fmt: skip
async def refresh(request: Request) -> Response:
    site, principal = whose(request, "operate")
    body = await read(request, RefreshBody, b"{}")
    unknown = sorted(set(body.targets) - TARGETS)
    if unknown:
        raise Problem(400, f"targets are {', '.join(sorted(TARGETS))}, not {', '.join(unknown)}",
                      kind="wrong-input")  # fmt: skip
    done = await _done("refreshing", site.fairqueue.refresh(body.targets))
    said = ", ".join(body.targets)
    await asyncio.to_thread(site.record, principal, "refresh", "fairqueue", said)
    return done


@router.post(
    "/api/v0/flush", status_code=204, summary="Clean up, and report to the controller",
    operation_id="flushFairQueue", responses=documented(404, 502),
)  # fmt: skip
async def flush(request: Request) -> Response:
    site, _ = whose(request, "operate")
    return await _done("flushing", site.fairqueue.flush())


async def _done(what: str, work: Awaitable[None]) -> Response:
    try:
        await work
    except HeadwayError as error:
        logger.warning("%s failed: %s", what, error)
        raise Problem(502, str(error), kind="controller") from error
    return Response(status_code=204)
