"""Comparing the archive with the disk over HTTP: asking for it, and what came of it."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from headway.api import models
from headway.api.auth import Principal, Reader, Submitter
from headway.api.bodies import Body, Id
from headway.api.models import Moment
from headway.api.problems import Problem, documented
from headway.api.routes.jobs import put_job
from headway.api.routes.requests import accepted
from headway.api.site import Reply, TheSite
from headway.apps.media.covering import FACT, Part
from headway.apps.media.jobs import BY_HAND, LANE
from headway.apps.media.reconciling import COUNTED_FOR, RECONCILE
from headway.apps.media.routes.reach import TheMedia, own
from headway.apps.media.tables import FACTS
from headway.store import Store
from headway.store.records import NewJob, Query, Unique

router = APIRouter(tags=["Archive"])

PATH = "/api/archive/reconcile"
OPEN = ("pending", "queued", "running", "paused")


class ReconcileBody(Body):
    """What to look at, and what may be changed."""

    subscription: Id | None = Field(None, description="Only this one; left out: all that is yours.")
    take_over: bool = Field(
        False,
        alias="import",
        description="Files that nobody knows become items: those that are wanted and not here, "
        "and with `subscription` also new ones of it, so that they are not downloaded again.",
    )
    dry_run: bool = Field(False, description="Only look, and report what would be changed.")
    force: bool = Field(
        False,
        description="Mark as missing what is missing, however much it is. For operators who are "
        "bound to no tenant.",
    )


class FileModel(BaseModel):
    item: int
    path: str = Field(description="Below the library.")


class ResizedModel(FileModel):
    size_bytes: int
    was_bytes: int | None


class Files(BaseModel):
    count: int
    items: list[FileModel] = Field(description="The first 100 of them.")


class Resized(BaseModel):
    count: int
    items: list[ResizedModel] = Field(description="The first 100 of them.")


class Paths(BaseModel):
    count: int
    items: list[str] = Field(description="The first 100 of them.")


class Numbers(BaseModel):
    count: int
    items: list[int] = Field(description="The first 100 of them.")


class Imported(BaseModel):
    matched: int = Field(description="Items that were known, and have a file now.")
    added: int = Field(description="Items that are new.")
    left: Paths = Field(description="Files of which nobody could say what they are.")


class ReportModel(BaseModel):
    """What a look at the disk has found."""

    at: Moment
    subscription: int | None = Field(description="What it was about; null: everything.")
    dry_run: bool
    forced: bool
    refused: str | None = Field(description="Why nothing was changed; null: all went well.")
    changed: int = Field(description="Items that are in another state now.")
    expected: int = Field(description="As many as the sites say, where they do.")
    listed: int = Field(description="Items that are known.")
    on_disk: int
    pending: int = Field(description="Found or queued.")
    failed: int
    missing: int
    skipped: int
    bytes: int = Field(description="Of videos on disk, as the store says.")
    free_bytes: int | None
    lost: Files = Field(description="Items that were on disk and are not.")
    found_again: Files = Field(description="Items that were missing and are not.")
    resized: Resized = Field(description="Files of another size than they had; nothing is changed.")
    unreadable: int = Field(description="Items whose directories cannot be read.")
    orphans: Paths = Field(description="Videos that no item has.")
    unfinished: Numbers = Field(description="Items with a file that is not complete.")
    imported: Imported


class LastReport(BaseModel):
    report: ReportModel | None = Field(description="Null: nobody has looked yet.")
    job: int | None = Field(description="The look that is under way or in line.")


@router.post(
    PATH,
    status_code=202,
    summary="Compare the archive with the disk",
    operation_id="reconcileArchive",
    response_class=Reply,
    responses={202: {"model": models.RequestAnswer}, **documented(404, 409)},
)
async def reconcile(
    body: ReconcileBody, principal: Submitter, site: TheSite, media: TheMedia
) -> Response:
    """What is gone becomes missing, and what is back is there again. If the library is away, or so
    much is gone that a fault of the disk is likelier, nothing is changed.
    """
    is_keeper = principal.tenant is None and principal.may("operate")
    if body.force and not is_keeper:
        raise Problem(403, "only operators who are bound to no tenant may force this",
                      kind="tenant" if principal.tenant is not None else "scope")  # fmt: skip
    part = _part(media, body, principal)
    job = _job(body, part, site.now(), foreign=is_keeper)
    site.check_room(job.tenant, 1)
    view, joined = await put_job(site, job, principal)
    flags = [name for name in ("import", "dry_run", "force") if _asked(body)[name]]
    subject = "archive" if part.subscription is None else f"subscription:{part.subscription}"
    await asyncio.to_thread(
        site.record, principal, "archive_reconcile", subject, ", ".join(flags)
    )  # fmt: skip
    return accepted(view, joined)


def _part(media: TheMedia, body: ReconcileBody, principal: Principal) -> Part:
    if body.subscription is None:
        return Part(principal.tenant)
    return Part(own(media, body.subscription, principal).tenant, body.subscription)


def _asked(body: ReconcileBody) -> dict[str, bool]:
    return {"import": body.take_over, "dry_run": body.dry_run, "force": body.force}


def _job(body: ReconcileBody, part: Part, now: float, *, foreign: bool) -> NewJob:
    """One look at a time, whoever asks; the same look is asked for once."""
    args = {**part._asdict(), "adopt": body.take_over, "foreign": foreign and body.take_over,
            "dry_run": body.dry_run, "force": body.force}  # fmt: skip
    payload = msgspec.json.encode(args).decode()
    return NewJob(
        RECONCILE, payload, created_at=now, lane=LANE, key=RECONCILE, priority=BY_HAND,
        tenant=COUNTED_FOR if part.tenant is None else part.tenant,
        unique=Unique(f"{RECONCILE}:{payload}"),
    )  # fmt: skip


@router.get(
    PATH,
    summary="What the last look at the disk has found",
    operation_id="getReconciliation",
    response_class=Reply,
    responses={200: {"model": LastReport}, **documented(409)},
)
def get_report(principal: Reader, site: TheSite, media: TheMedia) -> Response:  # noqa: ARG001
    query = Query(states=OPEN, type=RECONCILE, tenant=principal.tenant, limit=1)
    under_way = site.store.jobs(query)
    return Reply({
        "report": _last(site.store, principal.tenant),
        "job": under_way[0].id if under_way else None,
    })  # fmt: skip


def _last(store: Store, tenant: str | None) -> Any:
    """Whoever is bound to no tenant sees the newest of all."""
    names, values = "name = ?", (Part(tenant).fact,)
    if tenant is None:
        names, values = "(name = ? or name like ?)", (FACT, f"{FACT}:%")  # type: ignore[assignment]
    rows = store.rows(f"select value from {FACTS.name} where {names}", values)
    reports = [msgspec.json.decode(row[0]) for row in rows]
    return max(reports, key=lambda report: report["at"], default=None)
