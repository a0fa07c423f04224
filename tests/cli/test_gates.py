"""`headway lanes` and `upstreams`, by a server and without one."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from tests.cli.kit import Cli
from tests.hands.kit import eventually

nouns = pytest.mark.parametrize("noun", ["lanes", "upstreams", "tools", "types"])


def new_name() -> str:
    return f"g{uuid4().hex[:12]}.example"


@nouns
def test_a_gate_is_paused_and_resumed(cli: Cli, noun: str) -> None:
    name = new_name()

    assert cli.json(noun, "pause", name)["paused"] is True
    assert "paused" in cli(noun, "show", name).out
    assert cli.json(noun, "resume", name)["paused"] is False
    assert "open" in cli(noun, "show", name).out


def test_an_upstream_is_closed_and_opened(cli: Cli) -> None:
    name = new_name()
    said = cli("upstreams", "close", name, "--for", "10m", "--why", "they asked")

    assert "closed, opens in 10 min (they asked)" in said.out
    assert cli.json("upstreams", "show", name)["closed_until"] is not None
    assert name in cli("upstreams", "ls").out
    assert cli.json("upstreams", "open", name)["closed_until"] is None
    until = cli.json("upstreams", "close", name, "--until", "2099-01-31T12:00+00:00")
    assert until["closed_until"] == "2099-01-31T12:00:00.000000Z"


def test_settings_add_up_until_they_are_reset(cli: Cli) -> None:
    name = new_name()
    cli("upstreams", "set", name, "limit=3")
    gate = cli.json("upstreams", "set", name, "every=2s")

    assert gate["settings"]["value"] == {"limit": 3, "every": "2s"}
    assert gate["settings"]["overridden"] is True
    gate = cli.json("upstreams", "set", name, "per_minute=10")  # another way to say the same
    assert gate["settings"]["value"] == {"limit": 3, "per_minute": 10}
    assert "set by an operator" in cli("upstreams", "ls").out
    assert cli.json("upstreams", "reset", name)["settings"] is None


def test_what_cannot_be_set_is_refused(cli: Cli) -> None:
    assert "cannot be set" in cli.refuses("lanes", "set", new_name(), "colour=red")


@pytest.mark.parametrize(
    "arguments",
    [
        ("close", "x"),
        ("close", "x", "--for", "1m", "--until", "1h"),
        ("close", "x", "--for", "ten minutes"),
        ("set", "x"),
        ("set", "x", "limit"),
        ("set", "x", "limit=1", "limit=2"),
        ("show",),
    ],
)
def test_a_usage_error_is_2(bare: Cli, arguments: tuple[str, ...]) -> None:
    assert bare("lanes", *arguments).code == 2


def test_lanes_with_jobs_are_listed(cli: Cli) -> None:
    lane = new_name()
    cli.add(new_name(), "--lane", lane)

    def listed() -> list[dict[str, Any]]:
        lanes = cli.json("lanes", "ls")["items"]
        return [each for each in lanes if each["name"] == lane and each["counts"]]

    [found] = eventually(listed)  # a server's counts may be a second old
    assert found["counts"] == {"queued": 1}
    assert "1 queued" in cli("lanes", "show", lane).out


def test_holders_are_shown(served: Cli, tmp_path_factory: pytest.TempPathFactory) -> None:
    name, go = new_name(), tmp_path_factory.mktemp("go") / "go"
    id = served.add("hold", f"file={go}", "--upstream", name, "--tenant", "ann")
    gate = served.json("upstreams", "show", name)
    while not gate["holders"]:
        gate = served.json("upstreams", "show", name)

    assert [holder["id"] for holder in gate["holders"]] == [id]
    shown = served("upstreams", "show", name).out
    assert "held for" in shown
    assert "ann" in shown
    go.touch()
    assert served("jobs", "wait", str(id)).code == 0
