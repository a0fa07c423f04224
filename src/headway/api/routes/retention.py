"""For how many days ended jobs are kept: what is configured, and what an operator has set."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from headway.api.auth import Keeper, Reader
from headway.api.bodies import Body
from headway.api.models import Moment
from headway.api.problems import documented
from headway.api.site import Reply, Site, TheSite
from headway.api.views import moment
from headway.engine.retention import KIND, MOST_DAYS, NAME

router = APIRouter(tags=["System"])
TARGET = f"{KIND}:{NAME}"


class DaysModel(BaseModel):
    completed_days: float = Field(description="Of completed and cancelled jobs.")
    failed_days: float = Field(description="Of failed jobs.")


class RetentionModel(DaysModel):
    said_by: dict[str, str] = Field(
        alias="from",
        description="For each, which layer said so: code, file, environment or operator.",
    )
    overridden: bool = Field(description="An operator has set something at run time.")
    declared: DaysModel = Field(description="What holds when that is reset.")
    purge_at: str = Field(description="When old jobs are removed each night, in local time.")
    next_purge_at: Moment = Field(description="When that is next, if an engine runs here.")


class RetentionBody(Body):
    """What is not named, or null, is as configured."""

    completed_days: float | None = Field(
        None, ge=0, le=MOST_DAYS, description="Of completed and cancelled jobs."
    )
    failed_days: float | None = Field(None, ge=0, le=MOST_DAYS, description="Of failed jobs.")


@router.get(
    "/api/retention",
    summary="For how many days ended jobs are kept",
    operation_id="getRetention",
    response_class=Reply,
    responses={200: {"model": RetentionModel}, **documented()},
)
def get_retention(site: TheSite, principal: Reader) -> Response:  # noqa: ARG001
    return Reply(retention_view(site))


@router.put(
    "/api/retention",
    summary="Keep ended jobs for another time",
    operation_id="setRetention",
    response_class=Reply,
    responses={200: {"model": RetentionModel}, **documented()},
)
def put_retention(body: RetentionBody, site: TheSite, principal: Keeper) -> Response:
    """Holds from the next purge on, and after a restart too, in the place of what was set before.
    `POST /api/tasks/cleanup` removes what is old at once.
    """
    said = body.model_dump(exclude_none=True)
    if said:
        site.steering(principal).set(TARGET, **said)
    else:
        site.steering(principal).reset(TARGET)
    return Reply(retention_view(site))


@router.delete(
    "/api/retention",
    summary="Keep ended jobs for as long as is configured",
    operation_id="resetRetention",
    response_class=Reply,
    responses={200: {"model": RetentionModel}, **documented()},
)
def reset_retention(site: TheSite, principal: Keeper) -> Response:
    site.steering(principal).reset(TARGET)
    return Reply(retention_view(site))


def retention_view(site: Site) -> dict[str, Any]:
    retention = site.app.retention
    if site.app.engine is None:  # one that runs elsewhere has its orders from the store
        retention.load(site.store.settings())
    return {**retention.shown(), "next_purge_at": moment(retention.next_at)}
