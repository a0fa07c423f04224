"""Lesson 10 of docs/lessons.md: the admin page called a route with another shape than the server's.

The page names every call in one table. Here each is held against the document and the contract
tests; `tests/browser` holds what the page really asks, and what it is answered, against both.
"""

from __future__ import annotations

import ast
import re

import pytest

from tests.browser.calls import PAGE, table_of_calls
from tests.contract.document import Document, document_of
from tests.contract.exercised import calls_in, exercised
from tests.servers import server_on

# Whatever can ask a server for anything.
ASKS = re.compile(
    r"\b(?:fetch\s*\(|EventSource\b|XMLHttpRequest\b|WebSocket\b|sendBeacon\b|importScripts\b)"
)
MAY_ASK = re.compile(r"(?:api|stream|live[\w-]*)\.js")
COMMENT = re.compile(r"/\*.*?\*/|(?<![:\"'`])//[^\n]*", re.DOTALL)
NAMED = re.compile(r"\b(?:call|addressOfCall)\(\s*[\"'](\w+)[\"']")


@pytest.fixture(scope="module")
def document() -> Document:
    with server_on("sqlite") as server:
        return document_of(server.url)


def sources() -> dict[str, str]:
    """Every module of the page, without what only people read."""
    found = {
        path.relative_to(PAGE).as_posix(): COMMENT.sub("", path.read_text(encoding="utf-8"))
        for path in sorted(PAGE.rglob("*.js"))
    }
    assert len(found) > 3, f"the page is not where it was: {PAGE}"
    return found


def test_lesson_10_every_call_of_the_page_is_an_operation_of_the_server(document: Document) -> None:
    known = {operation.name for operation in document.operations}
    assert sorted(set(table_of_calls().values()) - known) == []
    assert len(set(table_of_calls().values())) == len(table_of_calls())


def test_lesson_10_every_call_of_the_page_has_a_contract_test(document: Document) -> None:
    assert sorted(set(table_of_calls().values()) - exercised(document)) == []


def test_lesson_10_the_page_has_no_other_way_to_the_server() -> None:
    asking = {name for name, source in sources().items() if ASKS.search(source)}
    assert sorted(name for name in asking if not MAY_ASK.fullmatch(name.rpartition("/")[2])) == []
    assert asking, "nothing asks the server at all"


def test_lesson_10_the_page_names_no_call_that_is_not_in_the_table() -> None:
    named = {name for source in sources().values() for name in NAMED.findall(source)}
    assert sorted(named - set(table_of_calls())) == []
    assert len(named) > 5


@pytest.mark.parametrize(
    ("source", "call"),
    [
        ('api.get("/api/jobs", page=2)', ("GET", "/api/jobs")),
        ('api.problem(404, "PUT", f"/api/lanes/{name}/x?y=1")', ("PUT", "/api/lanes/\0/x")),
        ('A, B = "/a", "/b"\ndef test(): send("POST", f"{B}/c")', ("POST", "/b/c")),
        ('ROWS = [("DELETE", "/a/{id}", 404)]', ("DELETE", "/a/{id}")),
    ],
)
def test_a_call_is_recognised(source: str, call: tuple[str, str]) -> None:
    assert call in set(calls_in(ast.parse(source)))


def test_what_is_no_call_is_not_taken_for_one() -> None:
    assert set(calls_in(ast.parse('PROMISED = "GET /api/jobs"\nx = ["/api/jobs"]'))) == set()
