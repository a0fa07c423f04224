"""The installed `headway` command, run as a user runs it."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer

from headway.cli.root import app
from tests.cli.kit import Cli, without_headway

INSTALLED = [str(Path(sysconfig.get_path("scripts")) / "headway")]
AS_MODULE = [sys.executable, "-m", "headway"]
STAYING = ("demo", "serve", "worker")  # which print no data
ALONE = ("simulate",)  # which ask nobody
GATE = "ls show pause resume open close set reset"
COMMANDS = {
    "": "serve worker demo simulate top events audit attention servers doctor celery costs "
    "backup restore migrate export import",
    "jobs": "ls show explain logs add wait cancel retry pause resume pin unpin prioritize",
    "lanes": GATE,
    "upstreams": GATE,
    "tools": GATE,
    "types": GATE,
    "learned": "ls show pin reset export import",
    "schedules": "ls show add pause resume rm",
    "batches": "ls show",
    "slot": "run ls show end stats",
    "channels": "ls show add set rm capacity",
    "budgets": "ls set rm",
    "feeds": "ls show discover add edit pause resume rm articles read unread star unstar "
    "mark-read refresh rounds import export",
    "feeds rules": "ls try add rm apply",
    "archive": "ls show add edit pause resume rm podcast check status look count refresh "
    "download get items failures retry unblock skip",
    "archive accounts": "ls show add renew check enable disable rm",
    "tokens": "create ls revoke",
    "keys": "ls rotate reseal prune",
    "alerts": "ls test",
}

both_ways = pytest.mark.parametrize("command", [INSTALLED, AS_MODULE], ids=["script", "module"])


def run(command: list[str], *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = without_headway() | more
    environment.pop("COLUMNS")  # there is no terminal
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=False, env=environment
    )


def every_command() -> Iterator[tuple[str, ...]]:
    """The words that lead to each command. One that is hidden is another name of one of them."""
    for path, group in every_group():
        for name, command in group.commands.items():
            if not command.hidden and not hasattr(command, "commands"):
                yield (*path, name)


def every_group(path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Groups of commands, and the words that lead to them."""
    group: Any = typer.main.get_command(app)
    for name in path:
        group = group.commands[name]
    yield path, group
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from every_group((*path, name))


@both_ways
def test_version_is_the_version_of_the_package(command: list[str]) -> None:
    result = run(command, "--version")

    assert result.stdout == f"headway {version('headway')}\n"
    assert result.stderr == ""
    assert result.returncode == 0


@both_ways
def test_no_arguments_prints_help(command: list[str]) -> None:
    result = run(command)

    assert "Usage: headway" in result.stdout
    assert "--version" in result.stdout
    assert result.returncode == 0


def test_help_is_what_no_arguments_prints() -> None:
    assert run(INSTALLED, "--help").stdout.strip() == run(INSTALLED).stdout.strip()


def test_an_unknown_option_is_a_usage_error() -> None:
    result = run(INSTALLED, "--no-such-option")

    assert "no-such-option" in result.stderr
    assert result.stdout == ""
    assert result.returncode == 2


def test_an_error_is_one_line_without_a_traceback(tmp_path: Path) -> None:
    result = run(INSTALLED, "jobs", "ls", "--data", str(tmp_path / "nowhere"))

    assert result.stdout == ""
    assert result.stderr.startswith("error: there is no data directory")
    assert result.stderr.count("\n") == 1
    assert result.returncode == 1


def test_nothing_is_cut_where_nobody_looks(bare: Cli, tmp_path: Path) -> None:
    """What a program reads through a pipe has no width."""
    data = ("--data", str(tmp_path / "data"))
    bare("migrate", *data)
    long = "x" * 150
    bare("jobs", "add", long, "--tenant", "y" * 100, *data)
    lines = run(INSTALLED, "jobs", "ls", *data).stdout.splitlines()

    assert long in lines[-1]
    assert "no worker knows this type" in lines[-1]


def test_a_name_that_the_terminal_cannot_show_ends_no_command(bare: Cli, tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data"))
    bare("migrate", *data)
    bare("jobs", "add", "größe", *data)
    result = run(INSTALLED, "jobs", "ls", *data, PYTHONIOENCODING="ascii")

    assert result.returncode == 0
    assert "gr\\xf6" in result.stdout


@pytest.mark.parametrize("words", list(every_command()), ids=" ".join)
def test_every_command_has_help_and_answers_programs(bare: Cli, words: tuple[str, ...]) -> None:
    said = bare(*words, "--help")

    assert said.code == 0
    assert "Usage: headway" in said.out
    if words[0] not in STAYING:
        assert "--json" in said.out
        for option in ("--server", "--token", "--data", "--dsn"):
            assert (option in said.out) is (words[0] not in ALONE)


def test_the_commands_are_those_that_people_have_in_their_scripts() -> None:
    found: dict[tuple[str, ...], set[str]] = {}
    for *path, name in every_command():
        found.setdefault(tuple(path), set()).add(name)

    assert found == {tuple(path.split()): set(names.split()) for path, names in COMMANDS.items()}


def test_an_action_has_one_name_that_is_shown_and_another_that_works() -> None:
    others = {"list": "ls", "remove": "rm", "prioritise": "prioritize"}
    for path, group in every_group():
        hidden = {name for name, command in group.commands.items() if command.hidden}
        wanted = {other for other, name in others.items() if name in group.commands}
        assert hidden == wanted, path


LISTING = ("keys", "slot", "learned", "alerts", "channels", "budgets", "feeds", "feeds rules",
           "archive", "archive accounts")  # fmt: skip


@pytest.mark.parametrize("group", LISTING)
def test_a_group_without_a_command_lists_and_takes_options_behind_a_command(
    direct: Cli, group: str
) -> None:
    words = group.split()
    assert direct(*words).out == direct(*words, "ls").out
    said = direct(*words, "--json", "ls")
    assert said.code == 2
    assert f"`headway {group} ls …`" in said.err


def test_the_shell_completes_states() -> None:
    result = run(
        INSTALLED,
        _HEADWAY_COMPLETE="complete_bash",
        COMP_WORDS="headway jobs ls status:fa",
        COMP_CWORD="3",
    )

    assert result.stdout.split() == ["status:failed"]
