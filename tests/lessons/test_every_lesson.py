"""The lessons of the predecessors are numbered from 1 to 39, and each has a test that is called
after it: `test_lesson_07_…`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

LESSONS = range(1, 40)
TESTS = Path(__file__).parent.parent
NAME = re.compile(r"test_lesson_(\d\d)_\w+")


def lessons_in(source: str) -> Iterator[int]:
    """Of functions that run: a name in a comment shows nothing."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found = NAME.fullmatch(node.name)
            if found and not _is_left_out(node):
                yield int(found[1])


def _is_left_out(test: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    marks = " ".join(ast.unparse(each) for each in test.decorator_list)
    return re.search(r"mark\.(skip|xfail)\b", marks) is not None


def test_none_of_the_39_lessons_is_missing() -> None:
    shown = {
        number
        for file in TESTS.rglob("test_*.py")
        if "test_lesson_" in (source := file.read_text("utf-8"))
        for number in lessons_in(source)
    }

    assert shown == set(LESSONS)


def test_what_does_not_run_shows_nothing() -> None:
    assert list(lessons_in("def test_lesson_07_locks_have_owners(): ...")) == [7]
    assert not list(lessons_in("# def test_lesson_07_locks_have_owners"))
    assert not list(lessons_in("@pytest.mark.skip\ndef test_lesson_07_locks(): ..."))
    assert not list(lessons_in("def test_lesson_7(): ..."))
