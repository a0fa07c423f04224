"""From runs to figures. Pure: numbers in, numbers out."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.peers.recording import END, Record

FOREIGN_LIMIT = 0.10  # of all CPUs, used by others during the run
BUSY_LIMIT = 0.20  # of all CPUs, used by anybody just before the run
FEWEST_CLEAN = 2


@dataclass(frozen=True, slots=True)
class Cell:
    """One product in one workload, over all repeats."""

    median: float
    low: float
    high: float
    runs: int
    jobs: int
    p99: float | None = None
    overlaps: int = 0
    loaded: bool = False  # other processes used the machine during these runs


Cells = Mapping[str, Mapping[str, Cell]]  # workload, product
Ratios = Mapping[str, Mapping[str, float]]  # workload, product: Headway divided by it


def percentile(values: Sequence[float], share: float) -> float:
    """Linear between the two nearest ranks."""
    ranked = sorted(values)
    place = (len(ranked) - 1) * share
    low = int(place)
    high = min(low + 1, len(ranked) - 1)
    return ranked[low] + (ranked[high] - ranked[low]) * (place - low)


def is_loaded(run: Mapping[str, Any]) -> bool:
    return run.get("foreign", 0.0) > FOREIGN_LIMIT or run.get("busy_before", 0.0) > BUSY_LIMIT


def cell(runs: Sequence[Mapping[str, Any]]) -> Cell | None:
    """The median. Runs on a machine that others used count only when few others are there."""
    good = [run for run in runs if "figure" in run]
    if not good:
        return None
    quiet = [run for run in good if not is_loaded(run)]
    used = quiet if len(quiet) >= min(FEWEST_CLEAN, len(good)) else good
    values = [run["figure"] for run in used]
    p99s = [run["p99"] for run in used if "p99" in run]
    return Cell(
        median=statistics.median(values),
        low=min(values),
        high=max(values),
        runs=len(used),
        jobs=used[0]["jobs"],
        p99=statistics.median(p99s) if p99s else None,
        overlaps=max(run.get("overlaps", 0) for run in good),
        loaded=used is not quiet,
    )


def ratio(ours: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]]) -> float | None:
    """The median over the turns, each turn compared within itself: a slow hour is slow for both."""
    by_turn = {run["turn"]: run for run in theirs if run.get("figure")}
    pairs = [
        (run, by_turn[run["turn"]]) for run in ours if "figure" in run and run["turn"] in by_turn
    ]
    quiet = [pair for pair in pairs if not any(is_loaded(run) for run in pair)]
    used = quiet if len(quiet) >= min(FEWEST_CLEAN, len(pairs)) else pairs
    return statistics.median(a["figure"] / b["figure"] for a, b in used) if used else None


def limit(samples: Sequence[Mapping[str, Any]]) -> float:
    """The median of the quiet samples. If there are too few, the best: others only ever slow us."""
    quiet = [sample["figure"] for sample in samples if not is_loaded(sample)]
    if len(quiet) >= min(FEWEST_CLEAN, len(samples)):
        return statistics.median(quiet)
    return max(sample["figure"] for sample in samples)


def overlaps(records: Sequence[Record], key_of: Callable[[int], int]) -> int:
    """How often a job started while another of its key was running; records in order of time."""
    running: dict[int, int] = {}
    found = 0
    for number, _ in records:
        key = key_of(number & (END - 1))
        if number & END:
            running[key] = running.get(key, 0) - 1
        else:
            running[key] = running.get(key, 0) + 1
            found += running[key] > 1
    return found


def key_of(workload: str, jobs: int, keys: int) -> Callable[[int], int]:
    """Which key a job has: all keys in turn, or all jobs of a key next to each other."""
    if workload == "w4-rr":
        return lambda number: number % keys
    each = -(-jobs // keys)
    return lambda number: number // each
