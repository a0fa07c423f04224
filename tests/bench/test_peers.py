"""The benchmark beside the peers: what becomes of the measured numbers."""

import re
from pathlib import Path

import pytest

from bench.peers import bars, tables
from bench.peers.__main__ import Session
from bench.peers.figures import Cell, cell, is_loaded, key_of, limit, overlaps, percentile, ratio
from bench.peers.load import Patience
from bench.peers.products import HEADWAY, HEADWAY_PG, HEADWAY_PG_LIMITS, WORKLOADS
from bench.peers.recording import END
from bench.peers.servers import Servers


def measured(median: float, *, overlaps: int = 0, p99: float | None = None) -> Cell:
    return Cell(median, median, median, runs=3, jobs=100, overlaps=overlaps, p99=p99)


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


def test_a_session_compares_each_product_with_headway_on_its_store() -> None:
    session = Session(Path(), Servers(), quick=True, patience=Patience(0.0))
    figures = {HEADWAY.name: 30.0, "rq": 10.0, HEADWAY_PG.name: 8.0, "chancy": 4.0}
    for name, figure in figures.items():
        session.runs["w2", name] = turns(figure)

    assert session.ratios() == {"w2": {"rq": 3.0, "chancy": 2.0}}


def test_a_peer_that_failed_once_is_judged_by_its_other_runs_but_headway_is_not() -> None:
    session = Session(Path(), Servers(), quick=True, patience=Patience(0.0))
    for name in (HEADWAY_PG.name, HEADWAY_PG_LIMITS.name, "chancy"):
        session.runs["w2", name] = [
            {"turn": 0, "error": "no", "jobs": 5},
            {"turn": 1, "figure": 4.0, "jobs": 5},
        ]

    assert list(session.cells()["w2"]) == ["chancy"]


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


def test_a_table_says_which_store_a_figure_is_from() -> None:
    cells = {HEADWAY.name: measured(200.0), HEADWAY_PG.name: measured(100.0)}

    lines = tables.workload_table("w1", cells, {}, {})

    assert [line.split()[:2] for line in lines[2:]] == [
        [HEADWAY.name, "sqlite"],
        [HEADWAY_PG.name, "postgres"],
    ]


def test_the_shortest_latency_comes_first() -> None:
    cells = {"rq": measured(3.0, p99=9.0), HEADWAY.name: measured(1.0, p99=2.0)}

    lines = tables.workload_table("w3", cells, {}, {})

    assert [line.split()[0] for line in lines[2:4]] == [HEADWAY.name, "rq"]


def test_a_missed_bar_is_loud() -> None:
    lines = tables.verdict_table([bars.Verdict("headway", "w2 jobs/s", 20_000, 900, met=False)])

    assert "MISSED" in lines[1]
