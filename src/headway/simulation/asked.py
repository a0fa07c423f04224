"""What a server asks for: its settings as they are beside the same with one change. Plain data in,
plain data out, so that it can be done in a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headway.engine.settings import Settings
from headway.simulation.comparing import CUT_SHORT, comparison
from headway.simulation.errors import BadModel
from headway.simulation.presets import LOADS, UPSTREAMS
from headway.simulation.reading import lasting
from headway.simulation.replay import Recording, recording_of
from headway.simulation.report import Report
from headway.simulation.running import simulate
from headway.simulation.scenario import Bounds, Models, Scenario, replayed, scenario

AS_IT_IS, CHANGED = "as it is", "what if"
MOST_GATES = 8
SHORTER = 0.5  # of what there was time for: what is open at the end takes time, too
LEAST_S = 60.0  # below that there is nothing to be seen

Clock = Callable[[], float]


def answer(asked: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """Both runs and what differs. `clock` counts seconds of the wall, which are bounded."""
    runs = _both(asked, clock, None)
    shortened: float | None = None
    if any(run.stopped in CUT_SHORT for run in runs):
        # Both must see the same time, or nothing could be compared: as much as there is time for.
        shortened = _shorter(asked, runs)
        runs = _both(asked, clock, shortened)
    target = (asked["kind"], asked["name"])
    for run in runs:
        run.gates.sort(key=lambda gate: (gate.kind, gate.name) != target)
        del run.gates[MOST_GATES:]
    recorded = _recording(asked, None)
    return {
        "kind": asked["kind"],
        "name": asked["name"],
        "load": asked["load"],
        "shortened_to_s": shortened,
        "left_out": 0 if recorded is None else recorded.left_out,
        **comparison(runs),
    }


def _shorter(asked: dict[str, Any], runs: list[Report]) -> float:
    """The time that can be simulated. Where all comes at once, a part of it comes instead, as large
    as the part of the time that is left.
    """
    whole_s: float = asked["duration_s"]
    found = SHORTER * min(whole_s, *(run.ended_after_s for run in runs))
    if found < LEAST_S:
        many = _scenario(asked, AS_IT_IS, "before", None).load.at_once
        found = SHORTER * whole_s * min(1.0, asked["calls"] / max(1, many))
    if found < LEAST_S:
        raise BadModel("so much comes at once that there is no time to simulate it; choose a "
                       "smaller load, or try it with `headway simulate`")  # fmt: skip
    return found


def _both(asked: dict[str, Any], clock: Clock, lasts_s: float | None) -> list[Report]:
    """As it is and what if, each in a quarter of the time, since it may have to be done twice."""
    return [
        _run(_scenario(asked, name, which, lasts_s), clock, asked["wall_s"] / 4)
        for name, which in ((AS_IT_IS, "before"), (CHANGED, "after"))
    ]


def _recording(asked: dict[str, Any], lasts_s: float | None) -> Recording | None:
    if asked.get("rows") is None:
        return None
    found = recording_of(asked["rows"], "what happened")
    if lasts_s is not None:
        found.duration_s = lasts_s
        found.arrivals = [each for each in found.arrivals if each.at < lasts_s]
    return found


def _scenario(asked: dict[str, Any], name: str, which: str, lasts_s: float | None) -> Scenario:
    settings = Settings()
    for kind, of, value in asked["settings"]:
        try:
            settings.declare("file", kind, of, value)
        except ValueError:
            continue  # what an application declares of its own need not be known here
    if asked[which] is not None:
        settings.undeclare("file", asked["kind"], asked["name"])
        settings.declare("file", asked["kind"], asked["name"], asked[which])
    bounds = Bounds(asked["calls"]) if lasts_s is None else Bounds(asked["calls"], lasts_s)
    model, seed = asked["upstream"], asked["seed"]
    models = Models({} if model is None else {"*": UPSTREAMS[model]}, model or "")
    recorded = _recording(asked, lasts_s)
    if recorded is not None:
        return replayed(name, settings, models, recorded, seed=seed, bounds=bounds)
    load = lasting(LOADS[asked["load"]], lasts_s or asked["duration_s"])
    target = (asked["kind"], asked["name"])
    return scenario(name, settings, models, load, target=target, seed=seed, bounds=bounds)


def _run(made: Scenario, clock: Clock, wall_s: float) -> Report:
    began = clock()
    report = simulate(made, lambda _share, _calls: clock() - began < wall_s)
    report.took_s = round(clock() - began, 3)
    return report


def said(asked: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """The answer, or what is wrong with the question."""
    try:
        return answer(asked, clock)
    except (BadModel, ValueError) as error:
        return {"error": str(error)}
