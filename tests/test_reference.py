"""The reference is what the docstrings say, and they say something about every public name."""

from __future__ import annotations

import inspect

import pytest

import headway
import headway.testing
from tools.reference import INTRODUCTION, REFERENCE, doc_of, members_of, page, public_names

FEWEST_WORDS = 2


@pytest.mark.parametrize("name", INTRODUCTION)
def test_the_reference_is_up_to_date(name: str) -> None:
    file = REFERENCE / f"{name}.md"
    assert file.read_text("utf-8") == page(name), "run `make reference`"


def test_every_public_name_is_described() -> None:
    pages = public_names()
    assert set(headway.__all__) - {"__version__"} <= pages["python"].keys()
    assert set(headway.testing.__all__) == pages["testing"].keys()


def test_every_public_name_and_method_says_what_it_does() -> None:
    silent = []
    for things in public_names().values():
        for name, thing in things.items():
            said = {name: doc_of(thing)}
            if inspect.isclass(thing):
                said |= {f"{name}.{each}": doc_of(member) for each, member in members_of(thing)}
            silent += [each for each, text in said.items() if len(text.split()) < FEWEST_WORDS]
    assert silent == []
