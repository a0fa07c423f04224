"""The installed `headway` command, run as a user runs it."""

import subprocess
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path

import pytest

INSTALLED = [str(Path(sysconfig.get_path("scripts")) / "headway")]
AS_MODULE = [sys.executable, "-m", "headway"]

both_ways = pytest.mark.parametrize("command", [INSTALLED, AS_MODULE], ids=["script", "module"])


def run(command: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)


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
