"""The house is clean, and each rule that says so can also say otherwise."""

import os
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

from tests import tidy

ROOT = Path(__file__).resolve().parent.parent

# Written in pieces, so that this file does not break the rules it tests.
HOME_OF_ROOT = "/" + "root"
WORK_DIRECTORY = "/" + "work"
REGISTRY = "https://pypi" + ".org/simple"
LOCAL_FILE = "file" + "://"


# The files of the repository


@cache
def tracked_files() -> tuple[str, ...]:
    """The files that are, or are about to be, in the repository."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    # An unpacked archive is no git repository, and must pass too.
    names = listing.stdout.split("\0") if listing.returncode == 0 else walked_files()
    # A file that was deleted, but not yet committed so, is still listed.
    return tuple(sorted(name for name in set(names) if (ROOT / name).is_file()))


def walked_files() -> Iterator[str]:
    made_by_tools = {".git", ".venv", ".venv-tools", "build", "dist", "__pycache__", ".hypothesis"}
    for directory, children, names in os.walk(ROOT):
        children[:] = [
            child
            for child in children
            if child not in made_by_tools and not child.endswith("_cache")
        ]
        for name in names:
            yield (Path(directory) / name).relative_to(ROOT).as_posix()


def files_under(directory: str, suffix: str = "") -> list[str]:
    return [
        name
        for name in tracked_files()
        if name.startswith(f"{directory}/") and name.endswith(suffix)
    ]


def text_of(name: str) -> str:
    # What is not text has no lines to complain about.
    return (ROOT / name).read_text(encoding="utf-8", errors="ignore")


def complaints(rule: Callable[[str], list[str]], names: list[str]) -> str:
    """All that the rule says about the texts of the files; empty when they are clean."""
    return "\n".join(f"{name}: {found}" for name in names for found in rule(text_of(name)))


@pytest.mark.parametrize(
    "name", ["pyproject.toml", "requirements.lock", "src/headway/errors.py", "tests/test_tidy.py"]
)
def test_the_rules_are_shown_the_real_files(name: str) -> None:
    assert name in tracked_files()


def test_an_unpacked_archive_shows_the_same_files() -> None:
    assert set(tracked_files()) <= set(walked_files())


# Source


def test_every_module_has_a_docstring() -> None:
    assert not complaints(tidy.missing_docstring, files_under("src", ".py"))


@pytest.mark.parametrize("source", ["", "x = 1\n", '""\n', "# a comment\n"])
def test_a_missing_docstring_is_found(source: str) -> None:
    assert tidy.missing_docstring(source)


def test_no_source_file_is_too_long() -> None:
    assert not complaints(tidy.too_many_lines, files_under("src", ".py"))


def test_a_file_that_is_too_long_is_found() -> None:
    assert not tidy.too_many_lines("pass\n" * 400)
    assert tidy.too_many_lines("pass\n" * 401)


def test_no_function_is_too_long() -> None:
    assert not complaints(tidy.long_functions, files_under("src", ".py"))


@pytest.mark.parametrize("keyword", ["def", "async def"])
def test_a_function_that_is_too_long_is_found(keyword: str) -> None:
    head = f"class Any:\n    {keyword} act():\n"
    body = "        pass\n"

    assert not tidy.long_functions(head + body * 69)
    assert tidy.long_functions(head + body * 70) == [
        "line 2: act has 71 lines, over 70; name its parts and take them out"
    ]


def test_nothing_is_left_unfinished() -> None:
    assert not complaints(tidy.unfinished_work, files_under("src"))


@pytest.mark.parametrize(
    "line", ["# TODO later", "x = 1  # FIXME", "# XXX", "raise NotImplementedError"]
)
def test_unfinished_work_is_found(line: str) -> None:
    assert len(tidy.unfinished_work(f"x = 0\n{line}\n")) == 1


# Every file


def test_no_file_names_a_path_on_one_machine() -> None:
    assert not complaints(tidy.machine_paths, list(tracked_files()))


@pytest.mark.parametrize(
    "line",
    [
        f"cd {WORK_DIRECTORY}/main",
        f"cd {WORK_DIRECTORY}",
        f'HOME="{HOME_OF_ROOT}"',
        f"{LOCAL_FILE}{HOME_OF_ROOT}/wheels",
        "/" + "home/ann/headway",
        "/" + "Users/ann/headway",
    ],
)
def test_a_machine_path_is_found(line: str) -> None:
    assert len(tidy.machine_paths(f"first\n{line}\n")) == 1


@pytest.mark.parametrize("line", ["POST /v1/work", "./work/x", "/workers", "src/root.py"])
def test_what_only_resembles_a_machine_path_is_let_through(line: str) -> None:
    assert not tidy.machine_paths(line)


def test_no_file_names_a_registry() -> None:
    assert not complaints(tidy.registry_addresses, list(tracked_files()))


@pytest.mark.parametrize(
    "line",
    [
        f"--index-url {REGISTRY}",
        "https://files.pythonhosted" + ".org/packages/a.whl",
        "http://mirror.example:3141/team" + "/simple/",
        f"{LOCAL_FILE}/opt/wheels",
    ],
)
def test_a_registry_address_is_found(line: str) -> None:
    assert tidy.registry_addresses(line)


def test_an_ordinary_address_is_let_through() -> None:
    assert not tidy.registry_addresses("http://www.apache.org/licenses/ and a/simple/path")


def test_no_file_has_a_vague_name() -> None:
    assert not "\n".join(
        f"{name}: {found}" for name in tracked_files() for found in tidy.vague_name(name)
    )


@pytest.mark.parametrize(
    "path", ["src/headway/utils.py", "tests/helpers/clock.py", "slot_manager.py", "docs/misc.md"]
)
def test_a_vague_name_is_found(path: str) -> None:
    assert tidy.vague_name(path)


def test_a_telling_name_is_let_through() -> None:
    assert not tidy.vague_name("src/headway/core/miscount.py")


# Tests


def test_no_test_sleeps() -> None:
    assert not complaints(tidy.sleeps, files_under("tests", ".py"))


@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.sleep(0)",
        "import time as t\nt.sleep(1)",
        "from time import sleep",
        "import asyncio\nasync def f():\n    await asyncio.sleep(0.1)",
        "import asyncio\nasync def f(x):\n    await asyncio.sleep(x)",
        "import asyncio\nasync def f():\n    await asyncio.sleep(delay=1)",
        "from asyncio import sleep",
    ],
)
def test_a_sleep_is_found(source: str) -> None:
    assert len(tidy.sleeps(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "import asyncio\nasync def f():\n    await asyncio.sleep(0)",
        "def f(clock):\n    clock.sleep(5)",
        "import time\ntime.monotonic()",
    ],
)
def test_what_does_not_wait_is_let_through(source: str) -> None:
    assert not tidy.sleeps(source)


# The core


def test_the_core_is_pure() -> None:
    assert not "\n".join(
        f"{name}: {found}"
        for name in files_under("src/headway/core", ".py")
        for found in tidy.impure_core(text_of(name), package_of(name))
    )


def package_of(name: str) -> str:
    return ".".join(PurePosixPath(name).relative_to("src").parent.parts)


@pytest.mark.parametrize(
    "source",
    [
        "import typer",
        "from rich.table import Table",
        "import time",
        "import os.path",
        "from asyncio import Queue",
        "def late():\n    import threading",
        "import random",
        "from random import random",
        "from random import *",
        "import headway",
        "import headway.store",
        "from headway import store",
        "from headway import __version__",
        "from headway.corex import Job",
        "from .. import store",
        "from ..store import rows",
        "from datetime import datetime\ndatetime.now()",
        "import datetime\ndatetime.datetime.utcnow()",
        "from datetime import date\ndate.today()",
    ],
)
def test_an_impure_core_is_found(source: str) -> None:
    assert len(tidy.impure_core(source, package="headway.core")) == 1


@pytest.mark.parametrize(
    "source",
    [
        "from random import Random",
        "import heapq, dataclasses",
        "from datetime import datetime, timedelta",
        "from collections.abc import Iterator",
        "import headway.core.jobs",
        "from headway.core import jobs",
        "from headway import core",
        "from headway.core.jobs import Job",
        "from . import jobs",
        "from .jobs import Job",
        "def f(now):\n    return now",
    ],
)
def test_a_pure_core_is_let_through(source: str) -> None:
    assert not tidy.impure_core(source, package="headway.core")


def test_a_package_inside_the_core_may_import_the_core() -> None:
    assert not tidy.impure_core("from .. import jobs", package="headway.core.inner")
    assert tidy.impure_core("from ... import store", package="headway.core.inner")


# The lock, the Makefile, the decisions


def test_the_locks_have_no_address() -> None:
    assert not complaints(tidy.lock_addresses, ["requirements.lock", "requirements-dev.lock"])


def test_an_address_in_a_lock_is_found() -> None:
    assert tidy.lock_addresses("rich==1.0\nrich @ https://example.org/rich.whl\n")


def test_every_target_is_documented() -> None:
    assert not complaints(tidy.undocumented_targets, ["Makefile"])


@pytest.mark.parametrize("line", ["test: check", "bench-core:", "all : test # why"])
def test_an_undocumented_target_is_found(line: str) -> None:
    assert len(tidy.undocumented_targets(f"{line}\n\t@true\n")) == 1


@pytest.mark.parametrize(
    "line", ["test: check ## Run the tests", "bin := .venv/bin", ".PHONY: test", "\tmake: all"]
)
def test_a_documented_target_and_what_is_no_target_are_let_through(line: str) -> None:
    assert not tidy.undocumented_targets(line)


def test_there_are_no_more_targets_than_people_use() -> None:
    assert not complaints(tidy.too_many_targets, ["Makefile"])


def test_too_many_targets_are_found() -> None:
    targets = [f"a{'b' * number}: ## Does something\n" for number in range(16)]
    assert not tidy.too_many_targets("".join(targets[:15]))
    assert tidy.too_many_targets("".join(targets))


def test_decisions_are_numbered_without_gaps() -> None:
    names = [PurePosixPath(name).name for name in files_under("docs/decisions")]

    assert not "\n".join(tidy.misnumbered_decisions(names))


@pytest.mark.parametrize(
    "names",
    [
        ["1-short.md"],
        ["0001-Loud.md"],
        ["0001-title.txt"],
        ["0001.md"],
        ["0002-second.md"],
        ["0001-first.md", "0003-third.md"],
        ["0001-first.md", "0001-again.md"],
    ],
)
def test_a_misnumbered_decision_is_found(names: list[str]) -> None:
    assert len(tidy.misnumbered_decisions(names)) == 1


def test_well_numbered_decisions_are_let_through() -> None:
    assert not tidy.misnumbered_decisions(["0002-then-this.md", "0001-this.md"])
