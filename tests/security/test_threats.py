"""Each threat in docs/security.md names tests that show how it is met, and they exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
DOCUMENT = TESTS.parent / "docs" / "security.md"
ROW = re.compile(r"^\| (T\d\d) \|(.*)\|$", re.MULTILINE)
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


def threats() -> dict[str, str]:
    """The rest of its row, by its id."""
    return dict(ROW.findall(DOCUMENT.read_text("utf-8")))


@cache
def names_in(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_text("utf-8"))
    names = (
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return frozenset(name for name in names if name.startswith("test_"))


def test_ids_are_without_gaps() -> None:
    found = ROW.findall(DOCUMENT.read_text("utf-8"))

    assert [id for id, _ in found] == [f"T{number:02}" for number in range(1, len(found) + 1)]
    assert len(found) >= 40


@pytest.mark.parametrize("id", threats())
def test_a_threat_says_all_there_is_to_say(id: str) -> None:
    cells = [cell.strip() for cell in threats()[id].split("|")]

    assert len(cells) == 4
    assert all(cells), "what, how, the tests, and what is left; a dash where nothing is"


@pytest.mark.parametrize("id", threats())
def test_a_threat_names_tests_that_there_are(id: str) -> None:
    named = NAMED.findall(threats()[id])

    assert named, f"{id} names no test"
    for file, name in named:
        assert (TESTS / file).is_file(), f"{id} names {file}, which is not there"
        assert name in names_in(file), f"{id} names {name}, which is not in {file}"


def test_threats_that_are_mentioned_are_there() -> None:
    mentioned = set(re.findall(r"\bT\d\d\b", DOCUMENT.read_text("utf-8")))

    assert mentioned == set(threats())
