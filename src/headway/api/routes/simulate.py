"""What if: the settings of a gate as they are and as they might be, on a virtual clock."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Response
from pydantic import Field

from headway.api import simulating
from headway.api.auth import Keeper
from headway.api.bodies import WHOLE, Body, Name
from headway.api.problems import Problem, documented
from headway.api.routes.gates import sensible
from headway.api.simulate_models import SimulationModel
from headway.api.site import Reply, TheSite

router = APIRouter(tags=["Simulation"])

DAY_S = 86_400.0
Load = Literal["recent", "office", "steady", "random", "overload", "bursts", "backlog", "greedy",
               "priorities", "online"]  # fmt: skip
Upstream = Literal["window", "fixed-window", "bucket", "gcra", "headers", "cap", "strict",
                   "per-tenant", "changes", "slow", "shaky", "open"]  # fmt: skip


class SimulateBody(Body):
    """A gate, and what would be set there."""

    kind: Literal["upstream", "lane"] = Field(description="What kind of gate.")
    name: Name = Field(description="Its name.")
    settings: dict[str, Any] = Field(
        description='What would be changed: `{"limit": 4}`; null takes a setting away.'
    )
    load: Load = Field(
        "recent", description="What comes: what has happened here of late, or one that has a name."
    )
    upstream: Upstream | None = Field(
        None,
        description="What the upstream really bears. Null: what is replayed ends as it did, and a "
        "load meets `window`.",
    )
    duration_s: float = Field(
        21_600.0, ge=60, le=DAY_S, allow_inf_nan=False,
        description="How much time is simulated, or how far back recent things go.",
    )  # fmt: skip
    seed: Annotated[int, Field(ge=0, le=1_000_000), WHOLE] = Field(
        1, description="Another one, another chance."
    )


@router.post(
    "/api/simulate",
    summary="What if a gate had other settings: both side by side, on a virtual clock",
    operation_id="simulate",
    response_class=Reply,
    responses={200: {"model": SimulationModel}, **documented(409)},
)
async def simulate(body: SimulateBody, site: TheSite, principal: Keeper) -> Response:  # noqa: ARG001
    """Changes nothing. It runs in a process of its own, one at a time (503 while another does), for
    15 seconds at most; where that is not enough, less is simulated (`shortened_to_s`).
    """
    if site.simulating.locked():
        raise Problem(503, "another simulation runs; try again in some seconds", kind="busy",
                      headers={"Retry-After": "5"})  # fmt: skip
    async with site.simulating:
        model = body.upstream
        if model is None and body.load != simulating.RECENT:
            model = "window"
        prepare = partial(
            simulating.question_of, site, body.kind, body.name, body.settings, body.load, model,
            body.duration_s, body.seed,
        )  # fmt: skip
        with sensible():
            question = await asyncio.to_thread(prepare)
        async with site.patience():
            return Reply(await simulating.run(question))
    raise Problem(503, "the server is stopping; try again when it is back", kind="busy",
                  headers={"Retry-After": "5"})  # fmt: skip
