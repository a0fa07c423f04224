"""What Headway promises to reach, and whether it did in this run. Pure.

The absolute bars were set on a machine whose limits are written here. On a slower machine they are
lowered by the same share, and what was asked before is still printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.peers.figures import Cell, Cells, Ratios
from bench.peers.products import (
    HEADWAY,
    HEADWAY_LIMITS,
    HEADWAY_OPEN,
    HEADWAY_PG,
    HEADWAY_PG_LIMITS,
    HEADWAY_PG_OPEN,
    ON_DISK,
    PEERS,
    RAW,
    W4,
    WORKLOADS,
    Product,
    compared_with,
)

# The limits of the machine on which the bars were set.
SET_ON = {"fdatasync_per_s": 2_573.0, "plain_rows_per_s": 5_200.0}

LIMITS_SHARE = 0.75  # of the drain of the same jobs without limits


@dataclass(frozen=True, slots=True)
class Promise:
    """What Headway on one store has to reach. Its peers are those that are compared with it."""

    product: Product
    open: Product  # the same with upstreams and tenants
    limits: Product  # and with limits
    per_s: Mapping[str, float]
    ahead: Mapping[str, str | None]  # by workload: of all peers, or of those that are as durable
    pick_up_ms: float | None = None
    raw: Product | None = None
    raw_share: float = 0.0


PROMISES = (
    Promise(
        HEADWAY,
        HEADWAY_OPEN,
        HEADWAY_LIMITS,
        per_s={"w1b": 20_000.0, "w1c": 60_000.0, "w2": 20_000.0} | dict.fromkeys(W4, 10_000.0),
        ahead={"w1": ON_DISK, "w2": None},
        pick_up_ms=2.0,
        raw=RAW,
        raw_share=0.6,
    ),
    Promise(
        HEADWAY_PG,
        HEADWAY_PG_OPEN,
        HEADWAY_PG_LIMITS,
        per_s={"w1b": 5_000.0, "w1c": 40_000.0, "w2": 15_000.0},
        ahead=dict.fromkeys(WORKLOADS),
    ),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """`met` is None when something that the bar needs was not measured."""

    product: str
    bar: str
    asked: float | None
    measured: float | None
    met: bool | None
    remark: str = ""


def scale(limits: Mapping[str, float]) -> float:
    """At most 1: the smallest share of a limit that this machine reaches."""
    return min([1.0, *(limits[name] / there for name, there in SET_ON.items() if name in limits)])


def verdicts(cells: Cells, ratios: Ratios, scaled_by: float) -> list[Verdict]:
    found: list[Verdict] = []
    for promise in PROMISES:
        of_store = [_per_second(promise, cells, workload, scaled_by) for workload in promise.per_s]
        of_store += [_ahead(promise, ratios, workload) for workload in promise.ahead]
        of_store += [_no_overlap(promise, cells, workload) for workload in W4]
        of_store += [_with_limits(promise, ratios)]
        if promise.raw is not None:
            of_store.append(_against_raw(promise, promise.raw, ratios))
        if promise.pick_up_ms is not None:
            of_store.append(_pick_up(promise, promise.pick_up_ms, cells, scaled_by))
        found += sorted(of_store, key=lambda verdict: verdict.bar)
    return found


def _ours(promise: Promise, cells: Cells, workload: str) -> Cell | None:
    return cells.get(workload, {}).get(promise.product.name)


def _against_raw(promise: Promise, raw: Product, ratios: Ratios) -> Verdict:
    reached = ratios.get("w1", {}).get(raw.name)
    met = None if reached is None else reached >= promise.raw_share
    bar = "w1 share of the raw limit"
    return Verdict(promise.product.name, bar, promise.raw_share, reached, met)


def _with_limits(promise: Promise, ratios: Ratios) -> Verdict:
    name, bar = promise.product.name, "w2 with limits, share of w2 without"
    found = ratios.get("w2", {})
    slower_by, open_slower_by = found.get(promise.limits.name), found.get(promise.open.name)
    if slower_by is None or open_slower_by is None:
        return Verdict(name, bar, LIMITS_SHARE, None, None)
    share = open_slower_by / slower_by
    remark = f"and {1.0 / slower_by:.2f} of plain jobs"
    return Verdict(name, bar, LIMITS_SHARE, share, share >= LIMITS_SHARE, remark)


def _ahead(promise: Promise, ratios: Ratios, workload: str) -> Verdict:
    """Ahead of the best peer, or of the best of those that are as durable."""
    acknowledged = promise.ahead[workload]
    name, bar = promise.product.name, f"{workload} over the best peer"
    bar += f" {acknowledged}" if acknowledged else ""
    latency = workload == "w3"
    bar += ", below" if latency else ""
    peers = {
        peer.name: ratios[workload][peer.name]
        for peer in PEERS
        if compared_with(peer) is promise.product
        and acknowledged in {None, peer.acknowledged}
        and peer.name in ratios.get(workload, {})
    }
    if not peers:
        return Verdict(name, bar, 1.0, None, None)
    best = (max if latency else min)(peers, key=lambda peer: peers[peer])
    met = peers[best] < 1.0 if latency else peers[best] > 1.0
    return Verdict(name, bar, 1.0, peers[best], met, f"that is {best}")


def _per_second(promise: Promise, cells: Cells, workload: str, scaled_by: float) -> Verdict:
    name, bar, ours = promise.product.name, f"{workload} jobs/s", _ours(promise, cells, workload)
    unscaled = promise.per_s[workload]
    asked = unscaled * scaled_by
    if ours is None:
        return Verdict(name, bar, asked, None, None)
    remark = _unscaled(scaled_by, ours.median >= unscaled)
    return Verdict(name, bar, asked, ours.median, ours.median >= asked, remark)


def _pick_up(promise: Promise, unscaled_ms: float, cells: Cells, scaled_by: float) -> Verdict:
    name, bar, ours = promise.product.name, "w3 p50, ms at most", _ours(promise, cells, "w3")
    asked = unscaled_ms / scaled_by
    if ours is None:
        return Verdict(name, bar, asked, None, None)
    remark = _unscaled(scaled_by, ours.median <= unscaled_ms)
    return Verdict(name, bar, asked, ours.median, ours.median <= asked, remark)


def _no_overlap(promise: Promise, cells: Cells, workload: str) -> Verdict:
    ours = _ours(promise, cells, workload)
    name, bar = promise.product.name, f"{workload} overlaps of a key"
    if ours is None:
        return Verdict(name, bar, 0, None, None)
    return Verdict(name, bar, 0, ours.overlaps, ours.overlaps == 0)


def _unscaled(scaled_by: float, met: bool) -> str:
    if scaled_by == 1.0:
        return ""
    return "also met unscaled" if met else "missed unscaled"
