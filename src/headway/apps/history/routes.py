"""The history over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel, Field

from headway.api.auth import Overseer
from headway.api.bodies import Name
from headway.api.problems import Problem, documented
from headway.api.site import Reply, TheSite
from headway.apps.history.recorder import Kind, SpanName
from headway.apps.history.tables import APP

if TYPE_CHECKING:
    from headway.apps.history.application import History

router = APIRouter(tags=["History"])


async def _history(site: TheSite) -> Any:
    return site.application(APP)


if TYPE_CHECKING:
    TheHistory: TypeAlias = History
else:  # the application imports the routes, so they cannot import it
    TheHistory = Annotated[Any, Depends(_history)]

Counted = list[int | None]
Measured = list[float | None]


class SeriesModel(BaseModel):
    """One value for each bucket; null where nothing is known, since the server did not run or had
    not heard of the name yet.
    """

    started: Counted = Field(description="Attempts of jobs, and slots, that were let in.")
    completed: Counted = Field(description="Jobs that completed, and slots given back well.")
    failed: Counted = Field(
        description="Attempts that failed, whether they are tried again or not, and jobs that "
        "failed without one."
    )
    pushbacks: Counted = Field(description="Times that an upstream has pushed back.")
    submitted: Counted | None = Field(None, description="New jobs; with kind=all only.")
    wait_p50_s: Measured = Field(
        description="The median wait of what started in the bucket; null: nothing did."
    )
    wait_p95_s: Measured = Field(description="The 95th percentile of the same.")
    running: Measured = Field(description="How many ran, on average; online calls are among them.")
    waiting: Measured = Field(
        description="How many waited in line, on average: jobs; at an upstream clients of slots, "
        "too."
    )
    online: Counted = Field(description="Online calls that went.")
    refused_online: Counted = Field(description="Online calls that were refused here.")
    limit_rpm: Measured | None = Field(
        None, description="What was believed at the end of the bucket; with kind=upstream only."
    )
    limit_concurrency: Measured | None = Field(
        None, description="What was believed at the end of the bucket; with kind=upstream only."
    )
    closed: Measured | None = Field(
        None,
        description="The share of the time, 0 to 1, during which the gate was closed: by a "
        "pushback, a breaker, quiet hours or an operator. With kind=upstream only.",
    )


class HistoryModel(BaseModel):
    """Series of the same length, the oldest bucket first."""

    span: SpanName
    kind: Kind
    name: str | None = Field(description="Null with kind=all.")
    step_s: int = Field(description="The length of each bucket.")
    start: float = Field(description="When the first bucket begins, in seconds since 1970.")
    end: float = Field(description="When the last bucket ends.")
    series: SeriesModel


@router.get(
    "/api/history",
    summary="How the queue, a lane or an upstream has been, as series for charts",
    operation_id="getHistory",
    response_class=Reply,
    responses={200: {"model": HistoryModel}, **documented()},
)
async def get_history(
    history: TheHistory,
    principal: Overseer,  # noqa: ARG001 - it is checked
    span: Annotated[
        SpanName,
        Query(description="live: 5 minutes by 2 s; 1h: by 15 s; 24h: by 5 minutes."),
    ] = "1h",
    kind: Annotated[Kind, Query(description="Of everything, of a lane or of an upstream.")] = "all",
    name: Annotated[Name | None, Query(description="Of the lane or upstream.")] = None,
) -> Response:
    """The last bucket is the one in which it was three seconds ago: with `live` it is finished,
    with the others most often not. `1h` and `24h` outlive a restart. A name that nobody has used
    lately has nothing but nulls.
    """
    if kind != "all" and name is None:
        raise Problem(
            422, f"say which {kind} with name, as in ?kind={kind}&name=example", kind="wrong-input"
        )
    wanted = None if kind == "all" else name
    recorder = await history.recorder()
    found = recorder.read(span, (kind, wanted or ""), history.now())
    return Reply({"span": span, "kind": kind, "name": wanted, **found})
