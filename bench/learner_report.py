"""Classes of scenarios, what is demanded of each, and the tables that people read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from bench.learning.measures import Measures
from bench.learning.scenarios import NAMED, Scenario

Figures = dict[str, Any]


@dataclass(frozen=True)
class Row:
    scenario: Scenario
    measures: Measures

    @property
    def kind(self) -> str:
        scenario = self.scenario
        if scenario.online is not None and not scenario.online_seen:
            return "hidden online, headers" if scenario.headers else "hidden online"
        if scenario.headers:
            return "headers"
        unit = "rate" if scenario.by_calls else "concurrency"
        return f"{'online' if scenario.online is not None else 'alone'}, {unit}"

    def line(self) -> str:
        found = self.measures
        return (
            f"  {self.scenario.name:28s} {self.kind:22s} used {100 * found.used:5.1f}  "
            f"warm {100 * found.used_warm:5.1f}  429 {100 * found.refused:6.3f}  "
            f"bans {found.bans}  harm {100 * found.harm:6.2f}  slower {100 * found.slower:5.1f}  "
            f"recovery {found.recovery_s}"
        )


def figures(rows: Iterable[Row]) -> Figures:
    """In percent; use is capped at 100 for each scenario."""
    found = [row.measures for row in rows]
    if not found:
        return {"scenarios": 0}
    return {
        "scenarios": len(found),
        "used": round(100 * fmean(min(1.0, each.used) for each in found), 2),
        "used_warm": round(100 * fmean(min(1.0, each.used_warm) for each in found), 2),
        "refused": round(100 * fmean(each.refused for each in found), 4),
        "bans": sum(each.bans for each in found),
        "harm_median": round(100 * median(each.harm for each in found), 3),
        "harm_mean": round(100 * fmean(each.harm for each in found), 3),
        "harm_worst": round(100 * max(each.harm for each in found), 3),
        "slower_worst": round(100 * max(each.slower for each in found), 2),
    }


def totals(rows: list[Row]) -> Figures:
    """The drawn scenarios."""
    return figures(row for row in rows if _is_drawn(row))


def _is_drawn(row: Row) -> bool:
    return row.scenario not in NAMED and not row.scenario.outages


def classes(rows: list[Row]) -> dict[str, Figures]:
    usual = [row for row in rows if not row.scenario.outages]
    found = {
        kind: figures(row for row in usual if row.kind == kind)
        for kind in sorted({row.kind for row in usual})
    }
    found["named"] = figures(row for row in usual if row.scenario in NAMED)
    found["named"] |= _worst_of_named(usual)
    found["drawn"] = totals(rows)
    found["recovery_s"] = recoveries(rows)
    return found


def _worst_of_named(rows: list[Row]) -> Figures:
    """Of the means over the seeds."""
    harm, slower = [0.0], [0.0]
    for scenario in NAMED:
        found = [row.measures for row in rows if row.scenario is scenario]
        harm.append(100 * fmean(each.harm for each in found))
        slower.append(100 * fmean(each.slower for each in found))
    return {"harm_worst": round(max(harm), 3), "slower_worst": round(max(slower), 2)}


def recoveries(rows: list[Row]) -> Figures:
    """Median seconds after a step down, a step up, the end of an outage."""
    times: dict[str, list[int]] = {"down": [], "up": [], "outage": []}
    for row in rows:
        scenario = row.scenario
        limit = scenario.limiter().limit
        for step_at, seconds in zip(scenario.steps_at, row.measures.recovery_s, strict=True):
            risen = limit.at(step_at) > limit.at(step_at - 1)
            times["outage" if scenario.outages else "up" if risen else "down"].append(seconds)
    return {what: median(seconds) for what, seconds in times.items() if seconds}


def bars(rows: list[Row], oracle: list[Row] | None) -> dict[str, bool]:
    """What is demanded, and whether it holds."""
    found = classes(rows)

    def of(kind: str, figure: str, missing: float) -> float:
        return float(found.get(kind, {}).get(figure, missing))

    recovery, named, drawn = found["recovery_s"], found["named"], found["drawn"]
    held = {
        "headers: used >= 97": of("headers", "used", 100) >= 97,
        "headers: 429s <= 0.05": of("headers", "refused", 0) <= 0.05,
        "headers: no ban": of("headers", "bans", 0) == 0,
        "headers: harm <= 0.1": of("headers", "harm_mean", 0) <= 0.1,
        "alone, rate: warm >= 93": of("alone, rate", "used_warm", 100) >= 93,
        "alone, rate: 429s <= 0.5": of("alone, rate", "refused", 0) <= 0.5,
        "alone, rate: no ban": of("alone, rate", "bans", 0) == 0,
        "alone, concurrency: warm >= 97": of("alone, concurrency", "used_warm", 100) >= 97,
        "alone, concurrency: 429s <= 0.1": of("alone, concurrency", "refused", 0) <= 0.1,
        "alone, concurrency: no ban": of("alone, concurrency", "bans", 0) == 0,
        "online, rate: warm >= 87": of("online, rate", "used_warm", 100) >= 87,
        "online, rate: median harm <= 1": of("online, rate", "harm_median", 0) <= 1,
        "online, concurrency: warm >= 70": of("online, concurrency", "used_warm", 100) >= 70,
        "online, concurrency: median harm <= 0.5": of("online, concurrency", "harm_median", 0)
        <= 0.5,
        "named: warm >= 94": named["used_warm"] >= 94,
        "named: no ban": named["bans"] == 0,
        "named: worst harm <= 0.2": named["harm_worst"] <= 0.2,
        "named: online latency <= +10": named["slower_worst"] <= 10,
        "recovery: step down <= 120 s": recovery.get("down", 0) <= 120,
        "recovery: step up <= 310 s": recovery.get("up", 0) <= 310,
        "recovery: outage <= 220 s": recovery.get("outage", 0) <= 220,
    }
    if oracle:
        told = totals(oracle)
        held["drawn: fewer bans than the oracle"] = drawn["bans"] < max(1, told["bans"])
        held["drawn: less harm than the oracle"] = drawn["harm_mean"] < told["harm_mean"]
        held["drawn: used >= the oracle's - 3"] = drawn["used"] >= told["used"] - 3
    return held


# ------------------------------------------------------------------ tables


def print_totals(found: dict[str, Figures]) -> None:
    print("\ndrawn scenarios        used    warm   429s    bans  harm mean  median")
    for name, each in found.items():
        print(
            f"  {name:19s} {each['used']:6.1f}  {each['used_warm']:6.1f} {each['refused']:6.2f}"
            f"  {each['bans']:6d}  {each['harm_mean']:9.2f}  {each['harm_median']:6.2f}"
        )


def print_classes(found: dict[str, Figures], held: dict[str, bool]) -> None:
    print("\nHeadway by class            n    used    warm   429s  bans  harm median   worst")
    for kind, each in found.items():
        if kind != "recovery_s" and each["scenarios"]:
            print(
                f"  {kind:23s} {each['scenarios']:3d}  {each['used']:6.1f}  "
                f"{each['used_warm']:6.1f} {each['refused']:6.3f}  {each['bans']:4d}  "
                f"{each['harm_median']:11.2f}  {each['harm_worst']:6.2f}"
            )
    print("  recovery in seconds     " + str(found["recovery_s"]))
    print()
    for bar, holds in held.items():
        print(f"  {'holds' if holds else 'FALLS SHORT':11s}  {bar}")
