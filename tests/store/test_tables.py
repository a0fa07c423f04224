"""What a table of an application may be, before any store sees it."""

from __future__ import annotations

from typing import Any

import pytest

from headway.store.tables import Table, Write, together

LINES = Table("lines", {"id": "bigint", "state": "text"}, key=("id",))


def test_a_write_is_the_same_however_often_it_is_made() -> None:
    assert {LINES.add(), LINES.add(), LINES.put()} == {LINES.add(), LINES.put()}
    assert len({LINES.add(), LINES.put(), LINES.change("state"), LINES.drop()}) == 4


OTHERS = Table("others", {"id": "bigint"}, key=("id",))
BY_HAND = Write(sqlite="select ?1", postgres="select $1")


def test_what_many_write_one_by_one_is_done_at_once() -> None:
    one_by_one = []
    for number in range(3):
        one_by_one += [(LINES.add(), [(number, "x")]), (OTHERS.add(), [(number,)])]

    assert together(one_by_one) == [
        (LINES.add(), [(0, "x"), (1, "x"), (2, "x")]),
        (OTHERS.add(), [(0,), (1,), (2,)]),
    ]
    assert one_by_one[0] == (LINES.add(), [(0, "x")])


def test_nothing_overtakes_what_may_touch_the_same_rows() -> None:
    add, drop, other = (LINES.add(), [(1, "x")]), (LINES.drop(), [(1,)]), (OTHERS.drop(), [(1,)])
    by_hand = (BY_HAND, [(1,)])

    for writes in ([add, drop, other, add], [add, by_hand, add], [by_hand, by_hand]):
        assert together(writes) == writes
    assert together([add, drop, other, drop]) == [add, (LINES.drop(), [(1,), (1,)]), other]


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"columns": {"id": "integer"}}, "'integer' is no type of a column; use one of text, "),
        ({"key": ()}, "at least one column"),
        ({"key": ("id", "id")}, "each once"),
        ({"key": ("number",)}, "lines has no column 'number'"),
    ],
)
def test_a_table_that_cannot_be(fields: dict[str, Any], complaint: str) -> None:
    known: dict[str, Any] = {"columns": {"id": "bigint"}, "key": ("id",)}
    with pytest.raises(ValueError, match=complaint):
        Table("lines", **{**known, **fields})


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ((), "say which columns"),
        (("id",), "a key does not"),
        (("state", "state"), "each once"),
        (("status",), "lines has no column 'status'"),
    ],
)
def test_a_change_that_cannot_be(columns: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        LINES.change(*columns)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"sqlite": "delete from lines"}, r"in \?1 for SQLite"),
        ({"postgres": "delete from lines"}, r"in \$1 for PostgreSQL"),
        ({"types": ("blob",)}, "'blob' is no type"),
        ({"key": (0,)}, "have types too"),
    ],
)
def test_a_statement_by_hand_that_cannot_be(fields: dict[str, Any], complaint: str) -> None:
    known: dict[str, Any] = {"sqlite": "select ?1", "postgres": "select $1"}
    with pytest.raises(ValueError, match=complaint):
        Write(**{**known, **fields})
