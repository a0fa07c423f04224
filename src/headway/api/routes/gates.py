"""Lanes, upstreams, tools and types: what they are set to, who holds them, who waits, and why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from headway.api import gate_models as models
from headway.api.auth import Keeper, Overseer
from headway.api.bodies import NO_NUL, Body, Moment, Name, Seconds, Text, stamp
from headway.api.problems import Problem, documented
from headway.api.site import MAX_PAGE, Reply, Site, TheSite
from headway.api.views import moment
from headway.engine.inspection import glance, known_names, pictures
from headway.engine.preview import preview
from headway.engine.settings import policy_of
from headway.net.redaction import redact

router = APIRouter()

KINDS = {"lanes": "lane", "upstreams": "upstream", "tools": "tool", "types": "type"}
TIMES = frozenset({
    "closed_until", "closed_since", "opens_at", "granted_at", "lease_ends_at", "at", "next_at",
    "last_at", "waiting_since", "pushed_back_at",
})  # fmt: skip
PATTERN = "*"
USUAL_SIZE = 50
MAX_WHOLE = 100  # gates on a page that are shown with holders and tenants
# So many gates are looked at in one turn of the brain, so that nobody waits long.
GLANCES, LOOKS, WHOLE_LOOKS = 1_000, 100, 10

Lanes = dict[str, dict[str, int]]  # jobs by lane and state
Whole = Annotated[
    bool, Query(description="Each with its holders and tenants; 100 on a page at most.")
]
Part = Annotated[
    str, Query(max_length=200, pattern=NO_NUL, description="A part of the name, in any case.")
]
Order = Annotated[
    Literal["name", "activity"],
    Query(description="activity: where most runs and waits, then what is closed, then what was "
          "pushed back last, then by name."),
]  # fmt: skip
Page = Annotated[int | None, Query(ge=1, le=1_000_000, description="From 1.")]
Size = Annotated[int | None, Query(ge=1, le=MAX_PAGE, description="Items on a page.")]
DryRun = Annotated[bool, Query(description="Only say what would follow from it.")]
GateName = Annotated[Name, Path(description="Its name.")]


def shown(site: Site, seen: dict[str, Any], lanes: Lanes) -> dict[str, Any]:
    """Times in words, and which settings hold."""
    _say_times(seen)
    seen["settings"] = site.app.settings.behind(seen["kind"], seen["name"])
    if seen["kind"] == "lane":
        seen["counts"] = lanes.get(seen["name"], {})
        seen["waiting"] = seen["counts"].get("queued", 0)
    else:
        seen["counts"] = None
    return seen


def lanes_of(site: Site, kind: str) -> Lanes:
    """Jobs by lane and state, if it is lanes that are asked for."""
    lanes: Lanes = {}
    for lane, state, many in site.tally(None) if kind == "lane" else ():
        lanes.setdefault(lane, {})[state] = many
    return lanes


def _say_times(value: Any) -> None:
    if isinstance(value, list):
        for each in value:
            _say_times(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name in TIMES:
                value[name] = moment(each)
            elif name == "cooling_until":
                value[name] = [moment(at) for at in each]
            elif isinstance(each, list | dict) and name != "labels":
                _say_times(each)


def names_of(site: Site, kind: str, lanes: Lanes, part: str = "") -> list[str]:
    """Those that are there, that are declared, and (of lanes) that have jobs."""
    brain = site.engine.brain
    names = site.wait(site.engine.ask(lambda _: known_names(brain, kind)))
    names |= {n for k, n in site.app.settings.names() if k == kind and PATTERN not in n}
    names |= lanes.keys()
    part = part.casefold()
    return sorted(name for name in names if part in name.casefold())


def by_activity(site: Site, kind: str, names: list[str], lanes: Lanes) -> list[str]:
    """Most running and waiting first; of equals the closed ones, then the last pushed back."""
    brain = site.engine.brain
    ranks: dict[str, tuple[int, bool, float, str]] = {}

    def rank(now: float, some: list[str]) -> None:
        for name in some:
            seen = glance(brain, kind, name, now)
            busy = seen.busy + lanes.get(name, {}).get("queued", 0)
            ranks[name] = (-busy, not seen.closed, -seen.pushed_at, name)

    for start in range(0, len(names), GLANCES):
        some = names[start : start + GLANCES]
        site.wait(site.engine.ask(partial(rank, some=some)))
    return sorted(names, key=ranks.__getitem__)


def look(
    site: Site, kind: str, names: list[str], lanes: Lanes, *, whole: bool
) -> list[dict[str, Any]]:
    brain = site.engine.brain
    at_once = WHOLE_LOOKS if whole else LOOKS
    found: list[dict[str, Any]] = []
    for start in range(0, len(names), at_once):
        some = names[start : start + at_once]
        found += site.wait(
            site.engine.ask(
                lambda now, some=some: pictures(  # type: ignore[misc]
                    brain, kind, some, now, whole=whole
                )
            )
        )
    return [shown(site, seen, lanes) for seen in found]


def one(site: Site, kind: str, name: str) -> Reply:
    (seen,) = look(site, kind, [name], lanes_of(site, kind), whole=True)
    return Reply({**seen, "now": moment(site.now())})


class CloseBody(Body):
    """Until a time, or for some seconds."""

    until: Moment | None = Field(None, description="Seconds since 1970, or ISO 8601.")
    for_s: Seconds | None = Field(None, description="From now on.")
    why: Text = Field("", description="Shown to whoever wonders why nothing happens.")


def _describe(
    noun: str, method: str, path: str, operation: str, summary: str,
    answer: Any = models.OneGateModel,
) -> Any:  # fmt: skip
    """A route of one gate, which answers with the gate as it is then."""
    return router.api_route(
        f"/api/{noun}/{{name}}{path}",
        methods=[method],
        tags=[noun.capitalize()],
        summary=summary,
        operation_id=f"{operation}{noun.capitalize()}",
        response_class=Reply,
        responses={200: {"model": answer}, **documented()},
    )


@router.get(
    "/api/settings",
    tags=["Settings"],
    summary="All that is declared for gates, patterns included",
    operation_id="listSettings",
    response_class=Reply,
    responses={200: {"model": models.SettingsList}, **documented()},
)
def list_settings(site: TheSite, principal: Overseer) -> Response:  # noqa: ARG001 - it is checked
    """Code, file, environment and operators, in layers: which one each value comes from."""
    return Reply({"items": site.app.settings.shown()})


def _look_routes(noun: str, kind: str) -> None:
    @router.get(
        f"/api/{noun}",
        tags=[noun.capitalize()],
        summary=f"List {noun}",
        operation_id=f"list{noun.capitalize()}",
        response_class=Reply,
        responses={200: {"model": models.Gates}, **documented()},
    )
    def list_all(
        site: TheSite,
        principal: Overseer,  # noqa: ARG001 - it is checked
        whole: Whole = False,
        q: Part = "",
        order: Order = "name",
        page: Page = None,
        size: Size = None,
    ) -> Response:
        """All of them by name, unless something else is asked for: with `whole`, `page` or `size`
        they come in pages of 50.
        """
        lanes = lanes_of(site, kind)
        names = names_of(site, kind, lanes, q)
        total = len(names)
        if order == "activity":
            names = by_activity(site, kind, names, lanes)
        if whole or page or size:
            size = min(size or USUAL_SIZE, MAX_WHOLE if whole else MAX_PAGE)
            start = ((page or 1) - 1) * size
            names = names[start : start + size]
        items = look(site, kind, names, lanes, whole=whole)
        return Reply({"items": items, "count": len(items), "total": total, "page": page or 1,
                      "size": size, "now": moment(site.now())})  # fmt: skip

    def get_one(name: GateName, site: TheSite, principal: Overseer) -> Response:  # noqa: ARG001
        """A name that nobody has used yet shows what would hold for it."""
        return one(site, kind, name)

    summary = "Limits, paces, who holds it, who waits, until when it is closed and why"
    _describe(noun, "GET", "", "get", summary)(get_one)


def _door_routes(noun: str, kind: str) -> None:
    def act(verb: str, summary: str) -> None:
        def do(name: GateName, site: TheSite, principal: Keeper) -> Response:
            getattr(site.steering(principal), verb)(f"{kind}:{name}")
            return one(site, kind, name)

        _describe(noun, "POST", f"/{verb}", verb, summary)(do)

    act("pause", "Let nothing more through until it is resumed")
    act("resume", "End a pause")
    act("open", "End a closure before its time, and forget what a breaker has heard")

    def close(name: GateName, body: CloseBody, site: TheSite, principal: Keeper) -> Response:
        until = stamp(body.until)
        if (until is None) == (body.for_s is None):
            raise Problem(422, "send either until or for_s", kind="wrong-input")
        if until is None:
            until = site.now() + (body.for_s or 0.0)
        site.steering(principal).close_until(f"{kind}:{name}", until, redact(body.why))
        return one(site, kind, name)

    _describe(noun, "POST", "/close", "close", "Close it until a time")(close)


def previewed(site: Site, kind: str, name: str, value: dict[str, Any] | None) -> Reply:
    brain = site.engine.brain
    waiting = lanes_of(site, kind).get(name, {}).get("queued", 0) if kind == "lane" else None
    return Reply(
        site.wait(
            site.engine.ask(lambda now: preview(brain, kind, name, value, now, waiting=waiting))
        )
    )


@contextmanager
def sensible() -> Iterator[None]:
    """What the engine refuses is wrong with the settings that were sent."""
    try:
        yield
    except ValueError as error:
        raise Problem(422, str(error), kind="bad-settings") from error


def _settings_routes(noun: str, kind: str) -> None:
    def put_settings(
        name: GateName, body: dict[str, Any], site: TheSite, principal: Keeper,
        dry_run: DryRun = False,
    ) -> Response:  # fmt: skip
        """`{"limit": 2, "every": "1s"}`: wins over code, file and environment, is kept, and takes
        the place of what was set here before. A name such as `*.example.com` holds for many.
        """
        with sensible():
            policy_of(kind, body, name)  # before its names become those of arguments
            if dry_run:
                return previewed(site, kind, name, body)
            site.steering(principal).set(f"{kind}:{name}", **body)
        return one(site, kind, name)

    def reset(
        name: GateName, site: TheSite, principal: Keeper, dry_run: DryRun = False
    ) -> Response:
        if dry_run:
            with sensible():
                return previewed(site, kind, name, None)
        site.steering(principal).reset(f"{kind}:{name}")
        return one(site, kind, name)

    answer = models.OneGateModel | models.PreviewModel
    _describe(noun, "PUT", "/settings", "set", "Set limits at run time", answer)(put_settings)
    back = "Back to what code, file and environment say"
    _describe(noun, "DELETE", "/settings", "reset", back, answer)(reset)


for _noun, _kind in KINDS.items():
    _look_routes(_noun, _kind)
    _door_routes(_noun, _kind)
    _settings_routes(_noun, _kind)
