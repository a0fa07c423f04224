"""What Celery workers and their producers say over HTTP."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, Field

from headway.api import quick
from headway.api.auth import Keeper, Overseer
from headway.api.bodies import NO_NUL, WHOLE, Body, Id, Name
from headway.api.problems import Problem, documented
from headway.api.quick import read, whose
from headway.api.routes.work import WorkModel
from headway.api.site import Reply, TheSite
from headway.api.work_bodies import MOST, TypeBody, Worker
from headway.api.working import policy_of_type, wire
from headway.apps.celery.courier import INF, Asked, Claim, Refused
from headway.apps.celery.tables import APP, CarriedType, Kind

if TYPE_CHECKING:
    from headway.apps.celery.application import Celery

router = APIRouter(tags=["Celery"])

WHY = {
    "stale": "is not held under this fence any more; do not begin it",
    "claimed": "was claimed by somebody else; do not begin it",
    "later": "may not begin soon, since its upstream has closed or is busy; do not begin it",
}


async def _celery(site: TheSite) -> Any:
    return site.application(APP)


if TYPE_CHECKING:
    TheCelery: TypeAlias = Celery
else:  # the application imports the routes, so they cannot import it
    TheCelery = Annotated[Any, Depends(_celery)]


# ---------------------------------------------------------------------- looking


class MemberModel(BaseModel):
    name: str
    queues: list[str]
    places: int = Field(description="How many jobs it runs at once.")
    silent_s: float = Field(description="Since it was heard last.")


class CeleryQueueModel(BaseModel):
    name: str
    types: list[str]
    places: int
    outstanding: int = Field(description="Jobs that were sent and have not ended.")
    unclaimed: int = Field(description="Those that no worker has begun.")
    why: str = Field(description="Why nothing is sent; empty: there is no reason.")


class CeleryModel(BaseModel):
    configured: bool
    trouble: str = Field(description="Why the broker cannot be reached; empty: it can.")
    sent: int = Field(description="Messages since the start.")
    counts: dict[str, int] = Field(description="What became of them.")
    workers: list[MemberModel]
    queues: list[CeleryQueueModel]


@router.get(
    "/api/celery",
    summary="The Celery fleet: its broker, workers and queues",
    operation_id="getCelery",
    response_class=Reply,
    responses={200: {"model": CeleryModel}, **documented()},
)
async def get_celery(celery: TheCelery, principal: Overseer) -> Response:  # noqa: ARG001
    return Reply(await celery.view())


# ---------------------------------------------------------------------- workers and producers


class CarriedBody(TypeBody):
    """A type of job that Celery carries."""

    queue: Name = Field(description="The queue whose workers run it.")
    kind: Literal["run", "task"] = Field(
        "run", description="task: its payload is the message of a Celery task."
    )


class CarriedTypesBody(Body):
    """Types of jobs that Celery carries from now on, also after a restart."""

    types: list[CarriedBody] = Field(max_length=MOST, description="The last word counts.")


class CarriedTypesModel(BaseModel):
    server: str = Field(description="Another text after each start of the server.")
    types: int = Field(description="How many Celery carries now.")


@router.post(
    "/api/celery/types",
    summary="Let Celery carry these types of jobs",
    operation_id="carryTypes",
    response_class=Reply,
    responses={200: {"model": CarriedTypesModel}, **documented(409)},
)
async def carry(body: CarriedTypesBody, celery: TheCelery, principal: Keeper) -> Response:  # noqa: ARG001
    _check_configured(celery)
    try:
        count = await celery.carry([_carried(each) for each in body.types])
    except ValueError as error:
        raise Problem(422, str(error), kind="wrong-input") from error
    return Reply({"server": celery.site.boot, "types": count})


def _carried(each: CarriedBody) -> CarriedType:
    said = each.model_dump(exclude_none=True, exclude={"queue", "kind", "keep_result_s"})
    return CarriedType(each.name, each.queue, Kind(each.kind), policy_of_type(said))


class HereBody(Body):
    """A Celery worker is there, or goes."""

    worker: Name = Field(description="Another name for each process.")
    queues: list[Name] = Field(default_factory=list, max_length=MOST, description="It reads these.")
    places: Annotated[int, Field(ge=0, le=10_000), WHOLE] = Field(
        1, description="How many jobs it runs at once; 0: it goes."
    )


class HereModel(BaseModel):
    server: str
    again_s: float = Field(description="Say it again within this time.")


@router.post(
    "/api/celery/here",
    summary="Say that a Celery worker is there",
    operation_id="hereCelery",
    response_class=Reply,
    responses={200: {"model": HereModel}, **documented(409)},
)
async def here(body: HereBody, celery: TheCelery, principal: Keeper) -> Response:  # noqa: ARG001
    _check_configured(celery)
    try:
        await celery.here(body.worker, body.queues, body.places)
    except ValueError as error:
        raise Problem(409, str(error), kind="too-many") from error
    return Reply({"server": celery.site.boot, "again_s": 10.0})


def _check_configured(celery: TheCelery) -> None:
    if not celery.configured:
        raise Problem(
            409,
            "this server knows no broker of Celery; start it with --celery-broker URL, or set "
            "celery_broker",
            kind="no-broker",
        )


class OneClaim(Body):
    """Somebody has got the message of a job and wants to begin."""

    id: Id = Field(description="The number of the job.")
    fence: Id = Field(description="As the message says it.")
    claim: str = Field(
        min_length=1, max_length=100, pattern=NO_NUL,
        description="Any text that nobody else uses; the same when it is asked again.",
    )  # fmt: skip
    slack_s: float = Field(
        0.0, ge=0, le=1, allow_inf_nan=False,
        description="It begins at most so much later than it is told, or asks again.",
    )  # fmt: skip
    within_s: float | None = Field(
        None, ge=0, allow_inf_nan=False,
        description="Its worker ends it after this time, begun or not: a start that would be more "
        "than half of that away is refused as later.",
    )  # fmt: skip


def _granted(found: Claim, now: float) -> dict[str, Any]:
    start_in_s = None if found.start_at is None else found.start_at - now
    job = {**wire(found.work), "lease_s": found.lease_s}
    return {"start_in_s": start_in_s, "job": job, "refused": None, "why": ""}


def _refused(said: OneClaim, refused: Refused) -> dict[str, Any]:
    why = f"job {said.id} {WHY[refused.why]}"
    return {"start_in_s": None, "job": None, "refused": refused.why, "why": why}


class ClaimsBody(Body):
    """Several messages have come to one process."""

    worker: Worker = ""
    member: Worker = Field("", description="The worker to which the process belongs, by the name "
                           "under which it says that it is there.")  # fmt: skip
    claims: list[OneClaim] = Field(max_length=MOST, description="They are answered in this order.")


def _asked(body: ClaimsBody, said: OneClaim) -> Asked:
    within_s = INF if said.within_s is None else said.within_s
    return Asked(
        said.id, said.fence, said.claim, body.worker, body.member, said.slack_s, within_s
    )  # fmt: skip


class ClaimedModel(BaseModel):
    start_in_s: float | None = Field(
        description="Begin when so many seconds have passed since the answer was sent, and at most "
        "slack_s later, or ask again; below 0: at once; null: at any time."
    )
    job: WorkModel | None = Field(description="null: there is nothing to begin.")
    refused: Literal["stale", "claimed", "later"] | None = Field(description="null: it is granted.")
    why: str = Field(description="Why not; empty: it is granted.")


class ClaimsModel(BaseModel):
    server: str
    took_s: float = Field(description="From the arrival of the request to this answer.")
    claims: list[ClaimedModel]


@quick.post(
    router,
    "/api/celery/claims",
    ClaimsBody,
    summary="Begin jobs whose messages have arrived",
    operation_id="claimWork",
    response_class=Reply,
    responses={200: {"model": ClaimsModel}, **documented()},
)
async def claims(request: Request) -> Response:
    """Each is granted or refused by itself; forget the message of one that is refused. From then on
    it is like any job that was taken: heartbeats and its end go to `/api/work`.
    """
    came_at = time.monotonic()
    site, _ = whose(request, "operate", all_tenants=True)
    body = await read(request, ClaimsBody)
    found = await site.application(APP).claim([_asked(body, each) for each in body.claims])
    now = site.now()
    answers = [
        _refused(said, each) if isinstance(each, Refused) else _granted(each, now)
        for said, each in zip(body.claims, found, strict=True)
    ]  # fmt: skip
    took_s = time.monotonic() - came_at
    return Reply({"server": site.boot, "took_s": took_s, "claims": answers})
