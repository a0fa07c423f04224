"""The benchmark beside the peers: what Headway has to reach on each of its stores."""

import pytest

from bench.peers import bars
from bench.peers.figures import Cell
from bench.peers.products import (
    HEADWAY,
    HEADWAY_LIMITS,
    HEADWAY_OPEN,
    HEADWAY_PG,
    HEADWAY_PG_LIMITS,
    HEADWAY_PG_OPEN,
    ON_DISK,
    PEERS,
    POSTGRES,
    RAW,
    RAW_PG,
    WORKLOADS,
    Product,
)


def measured(median: float, *, overlaps: int = 0) -> Cell:
    return Cell(median, median, median, runs=3, jobs=100, overlaps=overlaps)


def verdicts(
    cells: dict[str, dict[str, Cell]] | None = None,
    ratios: dict[str, dict[str, float]] | None = None,
    scaled_by: float = 1.0,
    of: Product = HEADWAY,
) -> dict[str, bars.Verdict]:
    found = bars.verdicts(cells or {}, ratios or {}, scaled_by)
    return {each.bar: each for each in found if each.product == of.name}


def test_bars_are_lowered_on_a_slower_machine_and_never_raised() -> None:
    there = bars.SET_ON
    assert bars.scale(there) == 1.0
    assert bars.scale({name: 2 * limit for name, limit in there.items()}) == 1.0
    assert bars.scale(there | {"fdatasync_per_s": there["fdatasync_per_s"] / 2}) == 0.5


def test_one_by_one_is_held_against_the_raw_limit_of_the_same_run() -> None:
    bar = "w1 share of the raw limit"

    assert verdicts(ratios={"w1": {RAW.name: 0.60}}, scaled_by=0.5)[bar].met is True
    assert verdicts(ratios={"w1": {RAW.name: 0.59}}, scaled_by=0.5)[bar].met is False


def test_one_by_one_is_held_against_peers_that_are_as_durable() -> None:
    ratios = {RAW.name: 0.9, "persist-queue": 1.2, "huey-sqlite": 1.3, "litequeue": 0.1}

    verdict = verdicts(ratios={"w1": ratios})[f"w1 over the best peer {ON_DISK}"]

    assert (verdict.measured, verdict.met) == (1.2, True)


def test_draining_is_held_against_every_peer() -> None:
    verdict = verdicts(ratios={"w2": {"rq": 9.0, "litequeue": 1.0}})["w2 over the best peer"]

    assert (verdict.measured, verdict.met) == (1.0, False)
    assert "litequeue" in verdict.remark


def test_a_scaled_bar_says_what_it_would_have_been_unscaled() -> None:
    cells = {"w1b": {HEADWAY.name: measured(15_000.0)}, "w3": {HEADWAY.name: measured(1.9)}}

    found = verdicts(cells, scaled_by=0.5)

    assert (found["w1b jobs/s"].asked, found["w1b jobs/s"].met) == (10_000.0, True)
    assert found["w1b jobs/s"].remark == "missed unscaled"
    assert (found["w3 p50, ms at most"].asked, found["w3 p50, ms at most"].met) == (4.0, True)
    assert found["w3 p50, ms at most"].remark == "also met unscaled"
    assert verdicts(cells)["w1b jobs/s"].met is False


def test_two_of_a_key_at_once_miss_the_bar_however_fast() -> None:
    found = verdicts({"w4-rr": {HEADWAY.name: measured(99_000.0, overlaps=1)}})

    assert found["w4-rr jobs/s"].met is True
    assert found["w4-rr overlaps of a key"].met is False


def test_nothing_is_met_that_was_not_measured() -> None:
    assert {each.met for each in verdicts().values()} == {None}


# On PostgreSQL


def test_a_store_is_held_against_the_peers_that_are_compared_with_it() -> None:
    ratios = {"w2": {"litequeue": 1.5, "huey-redis": 1.4, "pgqueuer-100": 1.1, "chancy": 1.2}}

    on_sqlite = verdicts(ratios=ratios)["w2 over the best peer"]
    on_postgres = verdicts(ratios=ratios, of=HEADWAY_PG)["w2 over the best peer"]

    assert (on_sqlite.measured, on_sqlite.remark) == (1.4, "that is huey-redis")
    assert (on_postgres.measured, on_postgres.remark) == (1.1, "that is pgqueuer-100")


@pytest.mark.parametrize("workload", WORKLOADS)
def test_on_postgres_headway_is_held_against_every_peer_in_every_workload(workload: str) -> None:
    peers = [each for each in PEERS if each.store == POSTGRES and workload in each.workloads]
    behind, ahead = (2.0, 0.5) if workload == "w3" else (0.5, 2.0)
    for slow in peers:
        ratios = {peer.name: behind if peer is slow else ahead for peer in peers}
        found = verdicts(ratios={workload: ratios}, of=HEADWAY_PG)
        [verdict] = [each for bar, each in found.items() if bar.startswith(f"{workload} over the")]
        assert (verdict.measured, verdict.met) == (behind, False)
        assert slow.name in verdict.remark


def test_ahead_in_latency_means_less_of_it() -> None:
    bar = "w3 over the best peer, below"

    ahead = verdicts(ratios={"w3": {"chancy": 0.5, "huey-postgres": 0.9}}, of=HEADWAY_PG)[bar]
    behind = verdicts(ratios={"w3": {"chancy": 0.5, "huey-postgres": 1.1}}, of=HEADWAY_PG)[bar]

    assert (ahead.measured, ahead.met) == (0.9, True)
    assert (behind.measured, behind.met) == (1.1, False)


@pytest.mark.parametrize(("workload", "asked"), [("w1b", 5_000), ("w1c", 40_000), ("w2", 15_000)])
def test_postgres_has_absolute_bars_of_its_own(workload: str, asked: float) -> None:
    cells = {workload: {HEADWAY.name: measured(1.0), HEADWAY_PG.name: measured(asked)}}

    verdict = verdicts(cells, of=HEADWAY_PG)[f"{workload} jobs/s"]

    assert (verdict.asked, verdict.met) == (asked, True)


def test_the_raw_limit_of_postgres_is_no_peer() -> None:
    found = verdicts(ratios={"w1": {RAW_PG.name: 0.3}}, of=HEADWAY_PG)

    assert found["w1 over the best peer"].met is None


# With limits


@pytest.mark.parametrize(
    ("plain", "open", "limited"),
    [
        (HEADWAY, HEADWAY_OPEN, HEADWAY_LIMITS),
        (HEADWAY_PG, HEADWAY_PG_OPEN, HEADWAY_PG_LIMITS),
    ],
)
def test_limits_may_cost_a_quarter_of_the_drain(
    plain: Product, open: Product, limited: Product
) -> None:
    def verdict(ratio: float) -> bars.Verdict:
        found = verdicts(ratios={"w2": {open.name: 2.0, limited.name: ratio}}, of=plain)
        return found["w2 with limits, share of w2 without"]

    assert (verdict(2.5).measured, verdict(2.5).met) == (0.8, True)
    assert (verdict(4.0).measured, verdict(4.0).met) == (0.5, False)
    assert verdict(4.0).remark == "and 0.25 of plain jobs"


def test_headway_with_limits_is_no_peer_of_headway() -> None:
    found = verdicts(ratios={"w2": {HEADWAY_LIMITS.name: 1.2}})

    assert found["w2 over the best peer"].met is None
