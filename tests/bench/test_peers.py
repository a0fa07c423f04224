"""The benchmark beside the peers: what becomes of the measured numbers."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bench.peers import bars, raw, tables
from bench.peers.figures import Cell, cell, is_loaded, key_of, limit, overlaps, percentile, ratio
from bench.peers.products import (
    HEADWAY,
    ON_DISK,
    PEERS,
    PRODUCTS,
    RAW,
    WORKLOADS,
    chosen_products,
    chosen_workloads,
)
from bench.peers.recording import END
from headway import App
from headway.store.sqlite.connection import sql


def measured(median: float, *, overlaps: int = 0, p99: float | None = None) -> Cell:
    return Cell(median, median, median, runs=3, jobs=100, overlaps=overlaps, p99=p99)


def verdicts(
    cells: dict[str, dict[str, Cell]] | None = None,
    ratios: dict[str, dict[str, float]] | None = None,
    scaled_by: float = 1.0,
) -> dict[str, bars.Verdict]:
    return {each.bar: each for each in bars.verdicts(cells or {}, ratios or {}, scaled_by)}


def turns(*figures: float, loaded: tuple[int, ...] = ()) -> list[dict[str, float]]:
    """One run in each turn."""
    return [
        {"turn": turn, "figure": figure, "foreign": 0.5 if turn in loaded else 0.0}
        for turn, figure in enumerate(figures)
    ]


# Figures


def test_a_percentile_lies_between_the_two_nearest_ranks() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([0.0, 10.0], 0.99) == pytest.approx(9.9)
    assert percentile([7.0], 0.99) == 7.0


def test_a_figure_is_the_median_of_its_runs() -> None:
    found = cell([{"figure": figure, "jobs": 5} for figure in (10.0, 40.0, 20.0)])

    assert found == Cell(20.0, 10.0, 40.0, runs=3, jobs=5)


def test_runs_beside_foreign_load_are_left_out_when_enough_others_are_there() -> None:
    quiet = [{"figure": figure, "jobs": 5, "foreign": 0.02} for figure in (10.0, 12.0)]
    found = cell([*quiet, {"figure": 90.0, "jobs": 5, "foreign": 0.4}])

    assert found is not None
    assert (found.median, found.runs, found.loaded) == (11.0, 2, False)


def test_runs_beside_foreign_load_are_used_and_marked_when_there_are_too_few_others() -> None:
    found = cell(
        [
            {"figure": 10.0, "jobs": 5, "foreign": 0.0},
            {"figure": 20.0, "jobs": 5, "foreign": 0.4},
            {"figure": 30.0, "jobs": 5, "busy_before": 0.5},
        ]
    )

    assert found is not None
    assert (found.median, found.runs, found.loaded) == (20.0, 3, True)


def test_load_is_foreign_load_during_the_run_or_any_load_before_it() -> None:
    assert not is_loaded({})
    assert not is_loaded({"foreign": 0.10, "busy_before": 0.20})
    assert is_loaded({"foreign": 0.11})
    assert is_loaded({"busy_before": 0.21})


def test_what_failed_has_no_figure() -> None:
    assert cell([{"error": "no", "jobs": 5}]) is None
    assert cell([]) is None


def test_a_single_overlap_is_kept_whatever_the_median() -> None:
    found = cell([{"figure": 1.0, "jobs": 5, "overlaps": count} for count in (0, 3, 0)])

    assert found is not None
    assert found.overlaps == 3


def test_a_ratio_compares_within_each_turn() -> None:
    assert ratio(turns(20.0, 10.0, 60.0), turns(10.0, 5.0, 30.0)) == 2.0


def test_a_ratio_leaves_out_turns_beside_foreign_load_on_either_side() -> None:
    ours = turns(30.0, 30.0, 1.0, 30.0, loaded=(2,))
    theirs = turns(10.0, 10.0, 10.0, 99.0, loaded=(3,))

    assert ratio(ours, theirs) == 3.0


def test_a_ratio_needs_both_sides() -> None:
    assert ratio([], turns(20.0)) is None
    assert ratio(turns(30.0), []) is None
    assert ratio(turns(30.0), [{"turn": 0, "error": "no"}]) is None
    assert ratio(turns(30.0), [{"turn": 1, "figure": 20.0}]) is None


def test_foreign_load_does_not_lower_a_limit_of_the_machine() -> None:
    assert limit(turns(10.0, 12.0, 1.0, loaded=(2,))) == 11.0
    assert limit(turns(10.0, 5.0, 7.0, loaded=(0, 1))) == 10.0


# One at a time per key


def test_interleaved_jobs_take_all_keys_in_turn_and_bursts_one_after_another() -> None:
    assert [key_of("w4-rr", 6, keys=3)(number) for number in range(6)] == [0, 1, 2, 0, 1, 2]
    assert [key_of("w4-burst", 6, keys=3)(number) for number in range(6)] == [0, 0, 1, 1, 2, 2]


def test_jobs_that_do_not_divide_evenly_still_have_only_so_many_keys() -> None:
    key = key_of("w4-burst", 250, keys=100)

    assert {key(number) for number in range(250)} <= set(range(100))


def test_an_overlap_is_a_start_while_another_of_the_key_runs() -> None:
    def key(number: int) -> int:
        return number % 2

    in_turn = [(0, 1), (1, 2), (0 | END, 3), (2, 4), (2 | END, 5), (1 | END, 6)]
    at_once = [(0, 1), (2, 2), (0 | END, 3), (4, 4), (2 | END, 5), (4 | END, 6)]

    assert overlaps(in_turn, key) == 0
    assert overlaps(at_once, key) == 2


# Bars


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


# Tables


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0, "0"), (1.234, "1.23"), (99.5, "99.50"), (12_345.6, "12,346")],
)
def test_numbers_are_short(value: float | None, text: str) -> None:
    assert tables.number(value) == text


def test_columns_are_aligned() -> None:
    assert tables.table(["who", "n"], [["a", "1,000"], ["longer", "2"]]) == [
        "  who         n",
        "  a       1,000",
        "  longer      2",
    ]


def test_a_table_shows_the_best_first_and_how_headway_compares() -> None:
    cells = {"rq": measured(50.0), HEADWAY.name: measured(200.0)}

    title, _, first, second, failed = tables.workload_table(
        "w1", cells, {"rq": 4.0}, {"arq": "no Redis"}
    )

    assert title == WORKLOADS["w1"]
    assert first.split()[:1] == [HEADWAY.name]
    assert re.search(r"rq .* 4\.00 ", second)
    assert failed == "  arq: no Redis"


def test_the_shortest_latency_comes_first() -> None:
    cells = {"rq": measured(3.0, p99=9.0), HEADWAY.name: measured(1.0, p99=2.0)}

    lines = tables.workload_table("w3", cells, {}, {})

    assert [line.split()[0] for line in lines[2:4]] == [HEADWAY.name, "rq"]


def test_a_missed_bar_is_loud() -> None:
    lines = tables.verdict_table([bars.Verdict("w2 jobs/s", 20_000, 900, met=False)])

    assert "MISSED" in lines[1]


# What is measured


def test_products_are_chosen_by_name_or_by_its_first_part() -> None:
    chosen = [product.name for product in chosen_products(["headway", "huey"])]

    assert chosen == [RAW.name, "headway", "huey-sqlite", "huey-sqlite-off", "huey-redis"]
    assert chosen_products([]) == list(PRODUCTS.values())


def test_both_orders_of_keys_are_one_choice() -> None:
    assert chosen_workloads(["w4", "w1"]) == ["w1", "w4-rr", "w4-burst"]
    assert chosen_workloads([]) == list(WORKLOADS)


def test_a_misspelt_choice_says_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"'hury'; there are: .*huey-sqlite"):
        chosen_products(["hury"])
    with pytest.raises(ValueError, match="'w9'; there are: w1"):
        chosen_workloads(["w9"])


def test_every_workload_has_headway_and_a_peer() -> None:
    assert set(HEADWAY.workloads) == set(WORKLOADS)
    for workload in WORKLOADS:
        assert any(workload in peer.workloads for peer in PEERS)


def test_a_quick_run_has_fewer_jobs() -> None:
    assert HEADWAY.job_count("w2", quick=True) == 2_000
    assert HEADWAY.job_count("w2", quick=False) == 20_000
    for product in PRODUCTS.values():
        for workload in product.workloads:
            assert 25 <= product.job_count(workload, quick=True) <= 10_000


def test_the_raw_limit_writes_the_rows_that_headway_writes(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")

    @app.job(type="noop")
    async def noop(i: int) -> None: ...

    noop.enqueue(1)
    app.close()

    columns = sql("insert_job").partition("(id, ")[2].partition(")")[0]
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as db:
        [stored] = db.execute(f"select {columns} from jobs")
    assert stored == raw.row(stored[-2])
