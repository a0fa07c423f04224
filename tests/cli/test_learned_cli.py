"""`headway learned`, by a server and without one."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest

from tests.cli.kit import Cli


def learning(cli: Cli, learn: str = "true") -> str:
    name = f"g{uuid4().hex[:12]}.example"
    assert cli("upstreams", "set", name, f"learn={learn}").code == 0
    return name


def test_upstreams_that_learn_are_listed_with_what_is_believed(cli: Cli) -> None:
    name = learning(cli, '{"rpm": 600, "pin_concurrency": 4}')
    (line,) = (row for row in cli("learned").out.splitlines() if name in row)
    assert line.split() == [name, "600", "-", "4", "pinned", "0", "0", "100", "%", "open", "cruise"]
    assert name in [each["name"] for each in cli.json("learned")["items"]]
    assert cli("learned", "ls").code == 0


def test_one_is_shown(cli: Cli) -> None:
    name = learning(cli, '{"rpm": 600}')
    said = cli("learned", "show", name).out
    assert name in said
    assert "requests per minute  600" in said
    assert cli.json("learned", "show", name)["believed"]["rpm"] == 600


def test_pins_are_set_and_taken_off(cli: Cli) -> None:
    name = learning(cli)
    assert "300 pinned" in cli("learned", "pin", name, "--rpm", "300", "--concurrency", "4").out
    seen = cli.json("learned", "pin", name, "--no-rpm", "--tpm", "90000")
    assert seen["pins"] == {"rpm": None, "tpm": 90_000, "concurrency": 4}


def test_what_was_learned_is_reset(cli: Cli) -> None:
    name = learning(cli, '{"rpm": 600}')
    assert cli.json("learned", "reset", name)["believed"]["rpm"] == 600
    assert "learned_reset" in cli("audit").out


def test_it_is_exported_and_imported(cli: Cli, tmp_path: Path) -> None:
    name = learning(cli, '{"rpm": 450}')
    assert name in cli("learned", "export").out
    file = tmp_path / "learned.json"
    assert f"to {file}" in cli("learned", "export", "--output", str(file)).out
    assert cli.json("learned", "export", "-o", str(file))["upstreams"] >= 1
    found = json.loads(file.read_text())
    target = learning(cli)
    items = [{**each, "name": target} for each in found["items"] if each["name"] == name]
    file.write_text(json.dumps({"items": items}))
    assert f"{target}: starts from" in cli("learned", "import", str(file)).out
    assert cli.json("learned", "show", target)["believed"]["rpm"] == 450
    assert "left out" in cli("learned", "import", str(file)).out


def test_what_cannot_be_done_is_said(cli: Cli, tmp_path: Path) -> None:
    assert "does not learn" in cli.refuses("learned", "show", "nobody.example")
    assert "learn=true" in cli.refuses("learned", "pin", "nobody.example", "--rpm", "5")
    assert "cannot be read" in cli.refuses("learned", "import", str(tmp_path / "none"))
    (tmp_path / "bad").write_text("{")
    assert "is no export" in cli.refuses("learned", "import", str(tmp_path / "bad"))
    assert "cannot be written" in cli.refuses("learned", "export", "-o", str(tmp_path / "a" / "b"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("pin", "x"),
        ("pin", "x", "--rpm", "5", "--no-rpm"),
        ("pin", "x", "--rpm", "many"),
        ("show",),
        ("--data", "elsewhere", "show", "x"),
    ],
)
def test_a_usage_error_is_2(bare: Cli, arguments: tuple[str, ...]) -> None:
    assert bare("learned", *arguments).code == 2
