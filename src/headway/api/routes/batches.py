"""Batches: jobs that are counted together."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from pydantic import Field

from headway.api import models
from headway.api.auth import Principal, Reader, Submitter
from headway.api.bodies import Body, Tenant, Text
from headway.api.problems import Problem, documented
from headway.api.routes.jobs import Page, Size
from headway.api.site import Reply, Site, TheSite, number_of, paged
from headway.api.views import moment
from headway.core.lifecycle import TERMINAL
from headway.store.records import BatchRow

router = APIRouter(tags=["Batches"])

BatchId = Annotated[str, Path(max_length=40, description="The number of a batch.")]


class BatchBody(Body):
    """A new batch."""

    label: Text = Field(default="", description="For people.")
    tenant: Tenant | None = Field(
        default=None, description="Whose batch it is; a token may fix it."
    )


def view(site: Site, row: BatchRow) -> dict[str, Any]:
    counts = site.store.batch(row.id) or {}
    return {
        "id": row.id,
        "label": row.label,
        "tenant": row.tenant,
        "created_at": moment(row.created_at),
        "counts": counts,
        "total": sum(counts.values()),
        "done": counts.keys() <= TERMINAL,
    }


@router.post(
    "/api/batches",
    status_code=201,
    summary="Open a batch",
    operation_id="openBatch",
    response_class=Reply,
    responses={201: {"model": models.BatchModel}, **documented()},
)
def open_batch(site: TheSite, principal: Submitter, body: BatchBody | None = None) -> Response:
    """Then name its number as `batch` when you enqueue jobs."""
    body = body or BatchBody()
    tenant = site.tenant_for(body.tenant, principal)
    id = site.store.open_batch(body.label, site.now(), tenant)
    return Reply(_own(site, id, principal), 201, headers={"Location": f"/api/batches/{id}"})


def _own(site: Site, id: str | int, principal: Principal) -> dict[str, Any]:
    number = number_of(id)
    row = None if number is None else site.store.batch_row(number)
    if row is None or principal.tenant not in (None, row.tenant):
        raise Problem(404, f"there is no batch {id}", kind="unknown-batch")
    return view(site, row)


@router.get(
    "/api/batches",
    summary="List batches",
    operation_id="listBatches",
    response_class=Reply,
    responses={200: {"model": models.BatchPage}, **documented()},
)
def list_batches(site: TheSite, principal: Reader, page: Page = 1, size: Size = 50) -> Response:
    rows = site.store.batches(principal.tenant, size, (page - 1) * size)
    total = site.store.count_batches(principal.tenant)
    items = [view(site, row) for row in rows]
    return paged(items, total, page, size)


@router.get(
    "/api/batches/{id}",
    summary="How far a batch is",
    operation_id="getBatch",
    response_class=Reply,
    responses={200: {"model": models.BatchModel}, **documented(404)},
)
def get_batch(id: BatchId, site: TheSite, principal: Reader) -> Response:
    return Reply(_own(site, id, principal))
