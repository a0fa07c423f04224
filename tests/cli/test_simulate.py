"""`headway simulate` as people run it, and what it says when something is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.kit import Cli

POLICY = '[upstream."site.example"]\nlimit = 2\n'


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Cli:
    (tmp_path / "a.toml").write_text(POLICY)
    (tmp_path / "b.toml").write_text(POLICY.replace("2", "4"))
    return Cli(capsys)


def quick(cli: Cli, *arguments: str) -> str:
    said = cli("simulate", *arguments)
    assert said.code == 0, said.err
    return said.out


SHORT = ("--upstream", "cap", "--load", "backlog", "--duration", "30m")


def test_a_policy_is_told_in_figures_plots_and_sentences(cli: Cli) -> None:
    out = quick(cli, "a.toml", *SHORT)
    for said in ("backlog at cap", "completed", "true limit", "longest wait", "simulated in",
                 "█", "upstream site.example: in use", "Half waited", "Jain"):  # fmt: skip
        assert said in out, said


def test_two_policies_stand_side_by_side_with_a_verdict(cli: Cli) -> None:
    out = quick(cli, "a.toml", "b.toml", *SHORT)
    assert "• b finishes" in out
    assert "sooner" in out
    assert cli.json("simulate", "a.toml", "b.toml", *SHORT)["verdict"]


def test_what_if_changes_the_first_policy(cli: Cli) -> None:
    change = ("--set", "upstream:site.example:limit=4")
    found = cli.json("simulate", "a.toml", *change, *SHORT)
    assert [run["name"] for run in found["runs"]] == ["a", "limit=4"]
    assert [run["gates"][0]["cap"] for run in found["runs"]] == [2, 4]


def test_first_come_first_served_is_for_comparison(cli: Cli) -> None:
    found = cli.json("simulate", "a.toml", "--fifo", *SHORT)
    assert found["runs"][1]["name"] == "a, first come"


def test_the_same_seed_is_the_same_report(cli: Cli) -> None:
    def one(seed: str) -> object:
        found = cli.json("simulate", "a.toml", "--seed", seed, "--load", "random", *SHORT[:2],
                         *SHORT[4:])  # fmt: skip
        del found["runs"][0]["took_s"]
        return found

    assert one("5") == one("5")
    assert one("5") != one("6")


def test_the_page_is_one_file(cli: Cli, tmp_path: Path) -> None:
    out = quick(cli, "a.toml", "b.toml", *SHORT, "--html", "out.html")
    assert "The page is in out.html." in out
    text = (tmp_path / "out.html").read_text("utf-8")
    ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
    assert len(text) < 400_000


def test_names_of_models_are_listed(cli: Cli) -> None:
    out = quick(cli, "--list")
    for name in ("window", "strict", "office", "greedy"):
        assert name in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("missing.toml",), "missing.toml cannot be read"),
        (("a.toml", "--upstream", "windy"), "there is no upstream model 'windy'"),
        (("a.toml", "--load", "b.toml"), "b.toml: tenant is missing"),
        (("a.toml", "--replay", "none.jsonl"), "none.jsonl cannot be read"),
        (("a.toml", "--set", "upstream:x:limit=-1"), "--set upstream:x:limit=-1: cap must be"),
        (("a.toml", "--html", "no/where.html", *SHORT), "no/where.html cannot be written"),
    ],
)
def test_what_is_wrong_is_one_line(cli: Cli, arguments: tuple[str, ...], said: str) -> None:
    assert said in cli.refuses("simulate", *arguments).replace("the settings in ", "")


@pytest.mark.parametrize(
    "arguments",
    [(), ("a.toml", "--set", "limit=4"), ("a.toml", "--replay", "x", "--load", "office")],
)
def test_what_was_typed_wrong_is_a_matter_of_usage(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert cli("simulate", *arguments).code == 2


def test_what_a_server_recorded_is_replayed(direct: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(POLICY)
    for number in range(3):
        direct.add("visit", f"n={number}", "--upstream", "site.example", "--tenant", "ann")
    direct("jobs", "cancel", "3")
    recorded = direct.json("events", "--record", "log.jsonl", "--since", "1h")
    assert recorded["jobs"] == 3
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert lines[0]["kind"] == "headway-recording"
    (job, *_) = (line for line in lines if line["kind"] == "job")
    assert (job["upstreams"], job["tenant"]) == (["site.example"], "ann")
    assert "args" not in json.dumps(lines)


def test_what_ran_on_a_server_runs_again_under_another_policy(served: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("[lane.default]\nlimit = 1\n")
    for name in ("ann", "ben", "cho"):
        served("jobs", "wait", str(served.add("greet", f"name={name}", "--tenant", name)))
    assert served("events", "--record", "log.jsonl", "--since", "1h").code == 0
    found = Cli(served.capture).json("simulate", "a.toml", "--replay", "log.jsonl")
    (run,) = found["runs"]
    assert run["completed"] >= 3
    assert run["recorded"]["many"] >= 3
    assert any("ends as it was recorded" in note for note in found["notes"])


def test_a_store_in_which_nothing_happened_gives_an_empty_recording(direct: Cli) -> None:
    said = direct("events", "--record", "log.jsonl")
    assert said.code == 0
    assert "the recording is empty" in said.err
    assert direct("events", "--record", "log.jsonl", "--follow").code == 2
