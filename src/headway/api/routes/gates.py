"""Lanes, upstreams, tools and types: what they are set to, who holds them, who waits, and why."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from pydantic import Field

from headway.api import gate_models as models
from headway.api.auth import Keeper, Overseer
from headway.api.bodies import Body, Moment, Name, Seconds, Text, stamp
from headway.api.problems import Problem, documented
from headway.api.site import Reply, Site, TheSite
from headway.api.views import moment
from headway.engine.inspection import known_names, picture
from headway.engine.settings import policy_of
from headway.net.redaction import redact

router = APIRouter()

KINDS = {"lanes": "lane", "upstreams": "upstream", "tools": "tool", "types": "type"}
TIMES = ("closed_until", "closed_since", "opens_at", "granted_at", "lease_ends_at", "at")
PATTERN = "*"
GateName = Annotated[Name, Path(description="Its name.")]


def shown(site: Site, seen: dict[str, Any]) -> dict[str, Any]:
    """Times in words, and which settings hold."""
    _say_times(seen)
    seen["settings"] = site.app.settings.behind(seen["kind"], seen["name"])
    if seen["kind"] == "lane":
        seen["counts"] = {s: n for lane, s, n in site.tally(None) if lane == seen["name"]}
        seen["waiting"] = seen["counts"].get("queued", 0)
    else:
        seen["counts"] = None
    return seen


def _say_times(value: Any) -> None:
    if isinstance(value, list):
        for each in value:
            _say_times(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name in TIMES:
                value[name] = moment(each)
            elif isinstance(each, list | dict):
                _say_times(each)


def names_of(site: Site, kind: str) -> list[str]:
    """Those that are there, that are declared, and (of lanes) that have jobs."""
    brain = site.engine.brain
    names = site.wait(site.engine.ask(lambda _: known_names(brain, kind)))
    names |= {n for k, n in site.app.settings.names() if k == kind and PATTERN not in n}
    if kind == "lane":
        names |= {lane for lane, _, _ in site.tally(None)}
    return sorted(names)


def look(site: Site, kind: str, names: list[str], *, whole: bool) -> list[dict[str, Any]]:
    brain = site.engine.brain
    found: list[dict[str, Any]] = []
    for start in range(0, len(names), 100):
        some = names[start : start + 100]
        found += site.wait(
            site.engine.ask(
                lambda now, some=some: [  # type: ignore[misc]
                    picture(brain, kind, name, now, whole=whole) for name in some
                ]
            )
        )
    return [shown(site, seen) for seen in found]


class CloseBody(Body):
    """Until a time, or for some seconds."""

    until: Moment | None = Field(None, description="Seconds since 1970, or ISO 8601.")
    for_s: Seconds | None = Field(None, description="From now on.")
    why: Text = Field("", description="Shown to whoever wonders why nothing happens.")


def _describe(noun: str, method: str, path: str, operation: str, summary: str) -> Any:
    """A route of one gate, which answers with the gate as it is then."""
    return router.api_route(
        f"/api/{noun}/{{name}}{path}",
        methods=[method],
        tags=[noun.capitalize()],
        summary=summary,
        operation_id=f"{operation}{noun.capitalize()}",
        response_class=Reply,
        responses={200: {"model": models.WholeGateModel}, **documented()},
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
    def list_all(site: TheSite, principal: Overseer) -> Response:  # noqa: ARG001
        return Reply({"items": look(site, kind, names_of(site, kind), whole=False)})

    def get_one(name: GateName, site: TheSite, principal: Overseer) -> Response:  # noqa: ARG001
        """A name that nobody has used yet shows what would hold for it."""
        return Reply(look(site, kind, [name], whole=True)[0])

    summary = "Limits, paces, who holds it, who waits, until when it is closed and why"
    _describe(noun, "GET", "", "get", summary)(get_one)


def _door_routes(noun: str, kind: str) -> None:
    def act(verb: str, summary: str) -> None:
        def do(name: GateName, site: TheSite, principal: Keeper) -> Response:
            getattr(site.steering(principal), verb)(f"{kind}:{name}")
            return Reply(look(site, kind, [name], whole=True)[0])

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
        return Reply(look(site, kind, [name], whole=True)[0])

    _describe(noun, "POST", "/close", "close", "Close it until a time")(close)


def _settings_routes(noun: str, kind: str) -> None:
    def put_settings(
        name: GateName, body: dict[str, Any], site: TheSite, principal: Keeper
    ) -> Response:
        """`{"limit": 2, "every": "1s"}`: wins over code, file and environment, is kept, and takes
        the place of what was set here before. A name such as `*.example.com` holds for many.
        """
        try:
            policy_of(kind, body, name)  # before its names become those of arguments
            site.steering(principal).set(f"{kind}:{name}", **body)
        except ValueError as error:
            raise Problem(422, str(error), kind="bad-settings") from error
        return Reply(look(site, kind, [name], whole=True)[0])

    def reset(name: GateName, site: TheSite, principal: Keeper) -> Response:
        site.steering(principal).reset(f"{kind}:{name}")
        return Reply(look(site, kind, [name], whole=True)[0])

    _describe(noun, "PUT", "/settings", "set", "Set limits at run time")(put_settings)
    back = "Back to what code, file and environment say"
    _describe(noun, "DELETE", "/settings", "reset", back)(reset)


for _noun, _kind in KINDS.items():
    _look_routes(_noun, _kind)
    _door_routes(_noun, _kind)
    _settings_routes(_noun, _kind)
