"""The lessons of docs/lessons.md are numbered from 1 to 39, and each has a test that is called
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
ROW = re.compile(r"^\| (\d+) \| \S.* \| `(tests/\S+\.py)::(test_\w+)` \|$", re.MULTILINE)


def named_tests_in(source: str) -> Iterator[tuple[int, str]]:
    """Of functions that run: a name in a comment shows nothing."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found = NAME.fullmatch(node.name)
            if found and not _is_left_out(node):
                yield int(found[1]), node.name


def lessons_in(source: str) -> Iterator[int]:
    return (number for number, _ in named_tests_in(source))


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


def test_the_document_has_every_lesson_and_a_test_that_is_there() -> None:
    rows = ROW.findall((TESTS.parent / "docs" / "lessons.md").read_text("utf-8"))

    assert [int(number) for number, _, _ in rows] == list(LESSONS)
    for number, file, name in rows:
        assert (int(number), name) in named_tests_in((TESTS.parent / file).read_text("utf-8"))


def test_what_does_not_run_shows_nothing() -> None:
    assert list(lessons_in("def test_lesson_07_locks_have_owners(): ...")) == [7]
    assert not list(lessons_in("# def test_lesson_07_locks_have_owners"))
    assert not list(lessons_in("@pytest.mark.skip\ndef test_lesson_07_locks(): ..."))
    assert not list(lessons_in("def test_lesson_7(): ..."))
