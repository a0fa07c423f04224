"""What Headway promises to reach, and whether it did in this run. Pure.

The absolute bars were set on a machine whose limits are written here. On a slower machine they are
lowered by the same share, and what was asked before is still printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.peers.figures import Cell, Cells, Ratios
from bench.peers.products import HEADWAY, ON_DISK, PRODUCTS, RAW, W4

# The limits of the machine on which the bars were set.
SET_ON = {"fdatasync_per_s": 2_573.0, "plain_rows_per_s": 5_200.0}

RAW_SHARE = 0.6
FASTEST_PICK_UP_MS = 2.0
PER_S = {"w1b": 20_000.0, "w1c": 60_000.0, "w2": 20_000.0} | dict.fromkeys(W4, 10_000.0)


@dataclass(frozen=True, slots=True)
class Verdict:
    """`met` is None when something that the bar needs was not measured."""

    bar: str
    asked: float | None
    measured: float | None
    met: bool | None
    remark: str = ""


def scale(limits: Mapping[str, float]) -> float:
    """At most 1: the smallest share of a limit that this machine reaches."""
    return min([1.0, *(limits[name] / there for name, there in SET_ON.items() if name in limits)])


def verdicts(cells: Cells, ratios: Ratios, scaled_by: float) -> list[Verdict]:
    found = [_against_raw(ratios), _ahead(ratios, "w1", acknowledged=ON_DISK)]
    found += [_per_second(cells, workload, scaled_by) for workload in PER_S]
    found += [_ahead(ratios, "w2"), _pick_up(cells, scaled_by)]
    found += [_no_overlap(cells, workload) for workload in W4]
    return sorted(found, key=lambda verdict: verdict.bar)


def _ours(cells: Cells, workload: str) -> Cell | None:
    return cells.get(workload, {}).get(HEADWAY.name)


def _against_raw(ratios: Ratios) -> Verdict:
    reached = ratios.get("w1", {}).get(RAW.name)
    met = None if reached is None else reached >= RAW_SHARE
    return Verdict("w1 share of the raw limit", RAW_SHARE, reached, met)


def _ahead(ratios: Ratios, workload: str, acknowledged: str | None = None) -> Verdict:
    """Ahead of the best peer, or of the best of those that are as durable."""
    bar = f"{workload} over the best peer" + (f" {acknowledged}" if acknowledged else "")
    peers = {
        name: ratio
        for name, ratio in ratios.get(workload, {}).items()
        if name != RAW.name and acknowledged in {None, PRODUCTS[name].acknowledged}
    }
    if not peers:
        return Verdict(bar, 1.0, None, None)
    best = min(peers, key=lambda name: peers[name])
    return Verdict(bar, 1.0, peers[best], peers[best] > 1.0, f"that is {best}")


def _per_second(cells: Cells, workload: str, scaled_by: float) -> Verdict:
    bar, ours = f"{workload} jobs/s", _ours(cells, workload)
    asked = PER_S[workload] * scaled_by
    if ours is None:
        return Verdict(bar, asked, None, None)
    unscaled = ours.median >= PER_S[workload]
    return Verdict(bar, asked, ours.median, ours.median >= asked, _unscaled(scaled_by, unscaled))


def _pick_up(cells: Cells, scaled_by: float) -> Verdict:
    bar, ours = "w3 p50, ms at most", _ours(cells, "w3")
    asked = FASTEST_PICK_UP_MS / scaled_by
    if ours is None:
        return Verdict(bar, asked, None, None)
    unscaled = ours.median <= FASTEST_PICK_UP_MS
    return Verdict(bar, asked, ours.median, ours.median <= asked, _unscaled(scaled_by, unscaled))


def _no_overlap(cells: Cells, workload: str) -> Verdict:
    ours = _ours(cells, workload)
    bar = f"{workload} overlaps of a key"
    if ours is None:
        return Verdict(bar, 0, None, None)
    return Verdict(bar, 0, ours.overlaps, ours.overlaps == 0)


def _unscaled(scaled_by: float, met: bool) -> str:
    if scaled_by == 1.0:
        return ""
    return "also met unscaled" if met else "missed unscaled"
