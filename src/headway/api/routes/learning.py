"""What was learned about upstreams: to look at, to pin, to forget, to take to another server."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from pydantic import ConfigDict, Field

from headway.api import gate_models as models
from headway.api.auth import Keeper, Overseer, Principal
from headway.api.bodies import WHOLE, Body, Name
from headway.api.problems import Problem, documented
from headway.api.site import Reply, Site, TheSite
from headway.api.views import moment
from headway.engine import learned
from headway.engine.learned import UNITS, NotLearning
from headway.engine.settings import LEAST_RATE
from headway.engine.settings import MOST as MOST_RATE

router = APIRouter(tags=["Upstreams"])

MOST = 10_000  # upstreams in one import
AT_ONCE = 100  # looked at in one turn of the brain
UpstreamName = Annotated[Name, Path(description="The upstream's name.")]
Rate = Annotated[float, Field(ge=LEAST_RATE, le=MOST_RATE, allow_inf_nan=False)]
Places = Annotated[int, Field(ge=1, le=MOST_RATE), WHOLE]


def shown(seen: dict[str, Any]) -> dict[str, Any]:
    """Times in words; the history in the words that people know it by."""
    history = seen.pop("history")
    return {
        **seen,
        "opens_at": moment(seen["opens_at"]),
        "closed_until": moment(seen["closed_until"]),
        "samples": [
            {"ts": moment(each["at"]), "rpm": each["rpm"], "avg_ms": each["response_ms"]}
            for each in history
        ],
    }


def look(site: Site, name: str) -> dict[str, Any]:
    brain = site.engine.brain
    try:
        return shown(site.wait(site.engine.ask(lambda now: learned.look_at(brain, name, now))))
    except NotLearning as error:
        raise not_learning(error) from error


def not_learning(error: NotLearning) -> Problem:
    return Problem(404, str(error), kind="not-learning")


def act(site: Site, principal: Principal, do: Callable[[float], Any]) -> Any:
    """In the brain's turn, and in somebody's name."""
    brain = site.engine.brain

    def turn(now: float) -> Any:
        with brain.controls.acting(principal.who):
            return do(now)

    try:
        return site.wait(site.engine.ask(turn))
    except NotLearning as error:
        raise not_learning(error) from error
    except ValueError as error:
        raise Problem(422, str(error), kind="bad-settings") from error


@router.get(
    "/api/learned",
    summary="All that was learned, of every upstream that learns",
    operation_id="listLearned",
    response_class=Reply,
    responses={200: {"model": models.LearnedList}, **documented()},
)
def list_learned(site: TheSite, principal: Overseer) -> Response:  # noqa: ARG001 - it is checked
    """Also what `POST /api/learned/import` takes on another server."""
    engine = site.engine
    brain = engine.brain
    names = site.wait(engine.ask(lambda _: learned.names_that_learn(brain)))
    found: list[dict[str, Any]] = []
    for start in range(0, len(names), AT_ONCE):
        some = names[start : start + AT_ONCE]
        look_at = partial(learned.look_at_some, brain, some)
        found += map(shown, site.wait(engine.ask(look_at)))
    return Reply({"items": found})


@router.get(
    "/api/upstreams/{name}/learned",
    summary="What is believed about an upstream, and what goes there now",
    operation_id="getLearned",
    response_class=Reply,
    responses={200: {"model": models.LearnedModel}, **documented(404)},
)
def get_learned(name: UpstreamName, site: TheSite, principal: Overseer) -> Response:  # noqa: ARG001
    """404: it does not learn; the detail says how to switch that on."""
    return Reply(look(site, name))


@router.post(
    "/api/upstreams/{name}/learned/reset",
    summary="Forget what was learned",
    operation_id="resetLearned",
    response_class=Reply,
    responses={200: {"model": models.LearnedModel}, **documented(404)},
)
def reset_learned(name: UpstreamName, site: TheSite, principal: Keeper) -> Response:
    """It starts again from its hints, or from nothing. Pins stay, and calls on their way count."""
    brain = site.engine.brain
    act(site, principal, lambda now: learned.reset(brain, name, now))
    return Reply(look(site, name))


class PinBody(Body):
    """Values that are believed and nothing else. Null takes a pin off, what is left out stays."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    rpm: Rate | None = Field(None, description="Requests per minute.")
    tpm: Rate | None = Field(None, description="Tokens per minute.")
    concurrency: Places | None = Field(None, description="Calls at once.")


@router.post(
    "/api/upstreams/{name}/learned/pin",
    summary="Pin what is believed about an upstream",
    operation_id="pinLearned",
    response_class=Reply,
    responses={200: {"model": models.LearnedModel}, **documented(404)},
)
def pin_learned(name: UpstreamName, body: PinBody, site: TheSite, principal: Keeper) -> Response:
    """Kept as an operator's setting of this upstream, and reset with them."""
    pins = body.model_dump(exclude_unset=True)
    if not pins:
        raise Problem(422, "say what to pin: rpm, tpm or concurrency", kind="wrong-input")
    brain = site.engine.brain
    act(site, principal, lambda now: learned.pin(brain, name, pins, now))
    return Reply(look(site, name))


class KnownBody(Body):
    """What was believed elsewhere. Null: nothing."""

    model_config = ConfigDict(extra="ignore")

    rpm: Rate | None = Field(None, description="Requests per minute.")
    tpm: Rate | None = Field(None, description="Tokens per minute.")
    concurrency: Rate | None = Field(None, description="Calls at once.")

    def hints(self) -> dict[str, float]:
        known = {unit: value for unit in UNITS if (value := getattr(self, unit)) is not None}
        if "concurrency" in known:
            known["concurrency"] = max(1, int(known["concurrency"]))
        return known


class LearnedBody(Body):
    """An upstream as it was exported; the rest of it is not read."""

    model_config = ConfigDict(extra="ignore")

    name: Name = Field(description="The upstream.")
    believed: KnownBody = Field(description="What to start from.")


class ImportBody(Body):
    """What `GET /api/learned` has answered on another server."""

    items: list[LearnedBody] = Field(max_length=MOST, description="Upstreams.")


@router.post(
    "/api/learned/import",
    summary="Start from what another server has learned",
    operation_id="importLearned",
    response_class=Reply,
    responses={200: {"model": models.ImportedModel}, **documented()},
)
def import_learned(body: ImportBody, site: TheSite, principal: Keeper) -> Response:
    """Beliefs become hints, set as by an operator, for upstreams that learn here and know nothing
    yet. The others are left out, and the answer says why.
    """
    brain = site.engine.brain
    found = {each.name: each.believed.hints() for each in body.items}
    hinted, left_out = act(site, principal, lambda now: learned.hint(brain, found, now))
    return Reply({
        "hinted": hinted,
        "left_out": [{"name": name, "why": why} for name, why in left_out.items()],
    })  # fmt: skip
