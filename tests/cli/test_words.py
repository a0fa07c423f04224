"""Reading what people type."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import typer

from headway.api import search
from headway.api.tokens import SCOPES
from headway.cli import gates, words
from headway.engine import settings


def test_the_words_that_are_completed_are_those_that_are_known() -> None:
    assert set(words.QUALIFIERS) == set(search.KNOWN)
    assert words.STATES == search.STATES
    assert tuple(search.GROUPS) == words.GROUPS
    assert tuple(words.complete_scope("")) == SCOPES
    assert set(gates.PACES) == settings.PACES


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("sta", ["status:"]),
        ("status:fa", ["status:failed"]),
        ("status:c", ["status:completed", "status:cancelled", "status:canceled"]),
        ("x", []),
        ("type:", []),
    ],
)
def test_completing_a_search(typed: str, offered: list[str]) -> None:
    assert words.complete_search(typed) == offered


def test_a_search_of_words() -> None:
    assert words.search_of(None) == ""
    assert words.search_of(["type:a", "status:failed"]) == "type:a status:failed"
    assert words.search_of(["error:no route", 'error:a "b" c']) == (
        'error:"no route" error:"a \\"b\\" c"'
    )
    assert words.search_of(['error:"as it is"', "two words"]) == 'error:"as it is" two words'


def test_pairs() -> None:
    assert words.pairs_of(["a=1", "b=x", "c=[1]", "d=", "e=f=g", "f=null"]) == {
        "a": 1, "b": "x", "c": [1], "d": "", "e": "f=g", "f": None,
    }  # fmt: skip
    assert words.pairs_of(["a=1"], as_text=True) == {"a": "1"}
    assert words.pairs_of(None) == {}


def test_an_object_from_a_file_or_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "args.json").write_text('{"a": "ü"}', encoding="utf-8")
    monkeypatch.setattr("sys.stdin", io.StringIO('{"b": 2}'))

    assert words.object_of(f"@{tmp_path / 'args.json'}") == {"a": "ü"}
    assert words.object_of("-") == {"b": 2}
    with pytest.raises(typer.BadParameter, match="cannot be read"):
        words.object_of(f"@{tmp_path}")


def test_what_was_not_said_is_not_sent() -> None:
    body = words.job_body("t", None, None, lane=None, upstream=[], tool=["x"], label=["a=1"])

    assert body == {"type": "t", "args": {}, "tools": ["x"], "labels": {"a": "1"}}
