"""The queue as a whole, for clients of the request queue: its numbers, and pausing all or parts."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from headway.api.auth import Keeper, Reader
from headway.api.bodies import NO_NUL, WHOLE
from headway.api.problems import Problem, documented
from headway.api.queue_stats import queue_stats
from headway.api.site import Reply, TheSite
from headway.api.views import COOKIE_LANE, NO_COOKIE_LANE

router = APIRouter(tags=["Queue"])

Scope = Annotated[
    str,
    Query(
        max_length=210,
        pattern=NO_NUL,
        description="all, requires_cookie, no_cookie, lane:NAME, upstream:NAME, type:NAME or "
        "tool:NAME.",
        json_schema_extra={
            "pattern": r"^(all|(requires_|no_?)?cookie|(lane|upstream|type|tool):[^\x00]+)$"
        },
    ),
]
Many = Annotated[int | None, Query(ge=0, le=100_000, description="How many run at once.")]


class PausedModel(BaseModel):
    all: bool
    requires_cookie: bool
    no_cookie: bool


class CountsModel(BaseModel):
    total: int
    queued: int
    running: int
    paused: int
    done: int
    failed: int
    canceled: int


class ByChannelModel(BaseModel):
    queued_cookie: int
    queued_nocookie: int


class CapacityModel(BaseModel):
    requires_cookie: int | None
    no_cookie: int | None
    running_cookie: int
    running_nocookie: int
    available_cookie: int | None
    available_nocookie: int | None


class StatsModel(BaseModel):
    paused: PausedModel
    counts: CountsModel
    counts_by_channel: ByChannelModel
    capacity: CapacityModel
    lanes: dict[str, dict[str, int]] = Field(description="For each lane, jobs by their state.")


@router.get(
    "/api/queue/stats",
    summary="The numbers of the queue",
    operation_id="getQueueStats",
    response_class=Reply,
    responses={200: {"model": StatsModel}, **documented()},
)
def stats(site: TheSite, principal: Reader) -> Response:
    """At most a second old."""
    return Reply(queue_stats(site, principal.tenant))


def target_of(scope: str) -> str:
    lane = {"cookie": COOKIE_LANE, "nocookie": NO_COOKIE_LANE}.get(scope, scope)
    if lane in (COOKIE_LANE, NO_COOKIE_LANE):
        return f"lane:{lane}"  # clients of the request queue say both
    kind, _, name = scope.partition(":")
    if scope == "all" or (kind in ("lane", "upstream", "type", "tool") and name):
        return scope
    raise Problem(422, f"{scope!r} is no scope; write all, requires_cookie, no_cookie, lane:NAME, "
                  "upstream:NAME, type:NAME or tool:NAME", kind="bad-scope")  # fmt: skip


class ScopeModel(BaseModel):
    scope: str
    paused: bool


def _verb(verb: str, summary: str) -> None:
    def act(site: TheSite, principal: Keeper, scope: Scope = "all") -> Response:
        getattr(site.steering(principal), verb)(target_of(scope))
        return Reply({"scope": scope, "paused": verb == "pause"})

    router.post(
        f"/api/queue/{verb}",
        summary=summary,
        operation_id=f"{verb}Queue",
        response_class=Reply,
        responses={200: {"model": ScopeModel}, **documented()},
    )(act)


_verb("pause", "Let nothing more start, everywhere or in a part")
_verb("resume", "Let it start again")


Capacity = Annotated[int, Field(ge=0, le=100_000), WHOLE]


class CapacityBody(BaseModel):
    """How many run at once; what is not named stays."""

    model_config = ConfigDict(extra="ignore", strict=True)

    requires_cookie: Capacity | None = Field(None, description="With a cookie.")
    no_cookie: Capacity | None = Field(None, description="Without one.")


@router.post(
    "/api/queue/capacity",
    summary="How many run at once, with and without a cookie",
    operation_id="setQueueCapacity",
    response_class=Reply,
    responses={200: {"model": StatsModel}, **documented()},
)
def capacity(
    site: TheSite,
    principal: Keeper,
    requires_cookie: Many = None,
    no_cookie: Many = None,
    body: CapacityBody | None = None,
) -> Response:
    """As a query or as a body; holds at once, and after a restart too."""
    wanted: dict[str, Any] = {}
    for lane, asked in ((COOKIE_LANE, requires_cookie), (NO_COOKIE_LANE, no_cookie)):
        limit = getattr(body, lane) if asked is None and body is not None else asked
        if limit is not None:
            wanted[lane] = limit
    if not wanted:
        raise Problem(422, "name requires_cookie, no_cookie or both", kind="wrong-input")
    steering = site.steering(principal)
    for lane, limit in wanted.items():
        steering.set(f"lane:{lane}", limit=limit)
    return Reply(queue_stats(site, principal.tenant))
