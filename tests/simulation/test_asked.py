"""What a server asks for, in a process of its own: both runs, bounded, and comparable."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from typing import Any

import pytest

from headway.simulation.asked import said

QUESTION: dict[str, Any] = {
    "kind": "upstream", "name": "a.example", "before": {"limit": 1}, "after": {"limit": 4},
    "settings": [["upstream", "a.example", {"limit": 1}], ["lane", "default", {"limit": 50}]],
    "load": "steady", "upstream": "cap", "duration_s": 1_800.0, "seed": 1, "calls": 50_000,
    "wall_s": 60.0, "rows": None,
}  # fmt: skip


def standing_still() -> float:
    return 0.0


def test_both_are_answered_with_the_gate_that_was_asked_about_first() -> None:
    answer = said(QUESTION, standing_still)
    assert [run["name"] for run in answer["runs"]] == ["as it is", "what if"]
    assert [run["gates"][0]["cap"] for run in answer["runs"]] == [1, 4]
    assert answer["shortened_to_s"] is None
    assert answer["facts"][0]


def test_where_time_is_short_both_see_the_same_time() -> None:
    ticks = itertools.count()
    answer = said({**QUESTION, "duration_s": 28_800.0, "wall_s": 8.0}, lambda: next(ticks) / 16)
    assert answer["shortened_to_s"] is not None
    assert answer["shortened_to_s"] < 28_800
    came = [run["came"] for run in answer["runs"]]
    assert came[0] == came[1] > 0
    assert [run["stopped"] for run in answer["runs"]].count("asked") == 0


def test_a_lane_is_asked_about_as_if_there_was_one_upstream() -> None:
    many = [["upstream", f"h{number}.example", {"limit": 2}] for number in range(300)]
    lane = ["lane", "slow", {"limit": 2}]
    asked = {**QUESTION, "kind": "lane", "name": "slow", "before": {"limit": 2},
             "after": {"limit": 1}, "settings": [*many, lane]}  # fmt: skip
    answer = said(asked, standing_still)
    assert answer["shortened_to_s"] is None
    assert [run["gates"][0]["cap"] for run in answer["runs"]] == [2, 1]
    assert 100 < answer["runs"][0]["came"] < 10_000


def test_what_was_cut_short_is_never_made_longer() -> None:
    ticks = itertools.count()
    asked = {**QUESTION, "load": "overload", "duration_s": 600.0, "wall_s": 12.0}
    answer = said(asked, lambda: float(next(ticks)))
    assert 60 <= answer["shortened_to_s"] <= 300


def test_of_all_that_comes_at_once_a_part_comes_instead() -> None:
    asked = {**QUESTION, "upstream": "open", "load": "backlog", "duration_s": 86_400.0,
             "calls": 2_000}  # fmt: skip
    answer = said(asked, standing_still)
    assert answer["shortened_to_s"] >= 60
    assert answer["runs"][0]["came"] == answer["runs"][1]["came"] > 500
    assert answer["facts"][0]


def test_what_cannot_be_simulated_at_all_is_said() -> None:
    asked = {**QUESTION, "upstream": "open", "load": "backlog", "duration_s": 300.0, "calls": 5}
    assert "no time to simulate" in said(asked, standing_still)["error"]


def test_settings_that_make_no_sense_are_an_answer_too() -> None:
    assert "cap must be" in said({**QUESTION, "after": {"limit": -1}}, standing_still)["error"]


@pytest.mark.parametrize("rows", [[], [{"kind": "job", "id": 1}]])
def test_a_log_without_events_is_an_answer_too(rows: list[Any]) -> None:
    assert "no events" in said({**QUESTION, "rows": rows}, standing_still)["error"]


def test_the_program_answers_on_its_output() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "headway.simulation"], input=json.dumps(QUESTION).encode(),
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    answer = json.loads(done.stdout)
    assert len(answer["runs"]) == 2
    assert done.stderr == b""
