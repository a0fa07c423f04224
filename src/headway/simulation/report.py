"""The figures of a run, as plain data: what the terminal, the page and programs are shown."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from headway.core import State
from headway.simulation.limiters import INF
from headway.simulation.recorder import GateSeries, Recorder
from headway.simulation.scenario import Scenario
from headway.simulation.upstream import AWAY, BANNED, BUSY, OK, UNWELL

LONG = 0.1  # of what the one was due who had to share for the longest time
MOST_ROWS = 100  # tenants that are listed; the rest is in the sums


class Waits(msgspec.Struct):
    """From asking until the first start, or until the end for whoever never started, in seconds."""

    many: int = 0
    p50_s: float = 0.0
    p95_s: float = 0.0
    p99_s: float = 0.0
    longest_s: float = 0.0


class TenantRow(msgspec.Struct):
    name: str
    waits: Waits
    share: float | None = None  # of what was due while several wanted more; None: it never had to


class PriorityRow(msgspec.Struct):
    priority: int
    waits: Waits


class GateRow(msgspec.Struct):
    kind: str
    name: str
    cap: float | None
    mean: float
    peak: int
    closed: float  # share of the time
    learns: bool
    inside: list[float]
    closed_in: list[float]
    believed: list[float | None]


class Series(msgspec.Struct):
    """One value for each span: calls are per minute, people in line are means."""

    span_s: float
    came: list[float]
    taken: list[float]
    refused: list[float]
    failed: list[float]
    limit: list[float | None]
    waiting: list[float]
    running: list[float]


class Recorded(msgspec.Struct):
    """Of a replay: the waits as they were, and those of the same jobs as they would be."""

    many: int
    p50_s: float
    p95_s: float
    would_p50_s: float
    would_p95_s: float


class Report(msgspec.Struct):
    name: str
    seed: int
    duration_s: float
    ended_after_s: float
    finished_after_s: float | None  # when the last queued job ended; None: some never did
    stopped: str  # why it ended before its time: time, calls, asked; nothing: it did not
    came: int
    calls: int
    completed: int
    failed: int
    taken: int
    refused: int
    banned: int
    unwell: int
    online: int  # calls of people who never wait
    online_failed: (
        int  # of them: refused by the upstream, by Headway while it was closed, or failed
    )
    turned_away: int
    left: int  # not done when it ended
    limit_per_minute: float | None
    use: float | None  # share of the limit that was used while somebody waited all the time
    fairness: float | None  # Jain's index; None: nobody had to share
    waits: Waits
    done_p50_s: float
    done_p95_s: float
    tenants: list[TenantRow]
    priorities: list[PriorityRow]
    gates: list[GateRow]
    series: Series
    recorded: Recorded | None = None
    took_s: float | None = None  # of the wall's clock; whoever has one writes it here

    def plain(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that so many are not above."""
    if not ordered:
        return 0.0
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def waits_of(values: Iterable[float]) -> Waits:
    ordered = sorted(values)
    return Waits(
        len(ordered),
        percentile(ordered, 0.50),
        percentile(ordered, 0.95),
        percentile(ordered, 0.99),
        ordered[-1] if ordered else 0.0,
    )


def jain(shares: Iterable[float]) -> float | None:
    """1: all got the same; 1/n: one got everything."""
    values = list(shares)
    squares = sum(value * value for value in values)
    return None if len(values) < 2 or not squares else sum(values) ** 2 / (len(values) * squares)


def report_of(scenario: Scenario, seen: Recorder, stopped: str) -> Report:
    totals = seen.totals
    shares = _long_enough(seen.shares())
    limit = scenario.limit_per_minute(0.0, scenario.load.duration_s)
    ended = sum(seen.ends.values()) + sum(seen.online_ends.values())
    open_left = totals["came"] - totals["turned_away"] - ended
    everything = array("d")
    for values in seen.waits.values():
        everything.extend(values)
    done = sorted(seen.sojourns)
    return Report(
        name=scenario.name,
        seed=scenario.seed,
        duration_s=scenario.load.duration_s,
        ended_after_s=seen.closed_at - seen.start_at,
        finished_after_s=seen.last_end_at - seen.start_at if seen.ends and not open_left else None,
        stopped=stopped,
        came=totals["came"],
        calls=totals["started"],
        completed=seen.ends.get(State.COMPLETED, 0),
        failed=seen.ends.get(State.FAILED, 0),
        taken=totals[OK] + totals[UNWELL],
        refused=totals[BUSY],
        banned=totals[BANNED],
        unwell=totals[UNWELL] + totals[AWAY],
        online=totals["online"] + seen.online_turned_away,
        online_failed=seen.online_ends.get(State.FAILED, 0) + seen.online_turned_away,
        turned_away=totals["turned_away"],
        left=open_left,
        limit_per_minute=None if limit == INF else limit,
        use=_use(scenario, seen),
        fairness=jain(got / due for got, due in shares.values()),
        waits=waits_of(everything),
        done_p50_s=percentile(done, 0.5),
        done_p95_s=percentile(done, 0.95),
        tenants=_tenants(seen, shares),
        priorities=_priorities(seen),
        gates=[_gate(each) for each in seen.gates],
        series=_series(scenario, seen),
        recorded=_recorded(seen),
    )


def _long_enough(shares: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Without those who had to share for a moment only: their share is a matter of chance."""
    longest = max((due for _, due in shares.values()), default=0.0)
    return {name: (got, due) for name, (got, due) in shares.items() if due >= LONG * longest}


def _tenants(seen: Recorder, shares: dict[str, tuple[float, float]]) -> list[TenantRow]:
    by_name: dict[str, array[float]] = {}
    for (tenant, _), values in seen.waits.items():
        by_name.setdefault(tenant, array("d")).extend(values)
    rows = []
    for name, values in by_name.items():
        got, due = shares.get(name, (0.0, 0.0))
        rows.append(TenantRow(name, waits_of(values), got / due if due else None))
    rows.sort(key=lambda row: (-row.waits.many, row.name))
    return sorted(rows[:MOST_ROWS], key=lambda row: row.name)


def _priorities(seen: Recorder) -> list[PriorityRow]:
    found: dict[int, array[float]] = {}
    for (_, priority), values in seen.waits.items():
        found.setdefault(priority, array("d")).extend(values)
    return [PriorityRow(priority, waits_of(values)) for priority, values in sorted(found.items())]


def _gate(seen: GateSeries) -> GateRow:
    many = max(1, len(seen.inside))
    return GateRow(
        seen.kind,
        seen.name,
        seen.cap,
        sum(seen.inside) / many,
        seen.peak,
        sum(seen.closed) / many,
        seen.learns,
        [round(each, 3) for each in seen.inside],
        [round(each, 3) for each in seen.closed],
        [None if each is None else round(each, 2) for each in seen.believed],
    )


def _limits(scenario: Scenario, seen: Recorder) -> list[float | None]:
    span_s = seen.span_s
    found: list[float | None] = []
    for number in range(len(seen.always_waiting)):
        limit = scenario.limit_per_minute(number * span_s, (number + 1) * span_s)
        found.append(None if limit == INF else round(limit, 3))
    return found


def _use(scenario: Scenario, seen: Recorder) -> float | None:
    used = possible = 0.0
    for number, limit in enumerate(_limits(scenario, seen)):
        if seen.always_waiting[number] and limit is not None:
            used += seen.series[OK][number] + seen.series[UNWELL][number]
            possible += limit * seen.span_s / 60.0
    # Calls at once bear what they bear on average: by chance it may be a little more.
    return min(1.0, used / possible) if possible else None


def _series(scenario: Scenario, seen: Recorder) -> Series:
    minutes = seen.span_s / 60.0

    def rate(*names: str) -> list[float]:
        lists = [seen.series[name] for name in names]
        return [round(sum(values) / minutes, 3) for values in zip(*lists, strict=True)]

    return Series(
        span_s=seen.span_s,
        came=rate("came"),
        taken=rate(OK, UNWELL),
        refused=rate(BUSY, BANNED),
        failed=rate(UNWELL, AWAY),
        limit=_limits(scenario, seen),
        waiting=[round(each, 2) for each in seen.series["waiting"]],
        running=[round(each, 2) for each in seen.series["running"]],
    )


def _recorded(seen: Recorder) -> Recorded | None:
    if not seen.recorded:
        return None
    before = sorted(was for was, _ in seen.recorded)
    after = sorted(now for _, now in seen.recorded)
    return Recorded(
        len(before),
        percentile(before, 0.5),
        percentile(before, 0.95),
        percentile(after, 0.5),
        percentile(after, 0.95),
    )
