"""No pattern of ours takes long, whatever it is shown: each is tried on texts that are made to have
it look at everything again and again.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

import headway
from headway.core.recurrence import duration_s

LONG = 2_000  # characters; the exponential and the cubic take minutes for these
MOST_S = 0.5  # of the processor
APART = ("headway.demo", "headway.testing", "headway.__main__", "headway.apps.media.fetcher.boot")
# Of the text of a pattern, what stands for characters that it looks for.
LETTERS = re.compile(r"\\[dwsDWS]|[^\\\[\](){}|?*+.^$-]")
STANDS_FOR = {r"\d": "0", r"\w": "a", r"\s": " ", r"\D": "x", r"\W": " ", r"\S": "x"}


def modules() -> Iterator[str]:
    for found in pkgutil.walk_packages(headway.__path__, "headway."):
        if not found.name.startswith(APART) and not found.name.endswith("__main__"):
            yield found.name


def patterns() -> dict[str, re.Pattern[Any]]:
    found: dict[str, re.Pattern[Any]] = {}
    for name in modules():
        try:
            module = importlib.import_module(name)
        except ImportError:  # what an extra would bring
            continue
        for each, value in vars(module).items():
            if isinstance(value, re.Pattern):
                found.setdefault(value.pattern, value)
                found[f"{name}.{each}"] = found.pop(value.pattern)
    return found


def traps(pattern: re.Pattern[Any]) -> Iterator[str]:
    """Each letter that it knows many times, pairs of them, and an end that never fits."""
    text = (
        pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    )
    letters = list(dict.fromkeys(STANDS_FOR.get(each, each) for each in LETTERS.findall(text)))[:24]
    for letter in letters:
        yield letter * LONG + "\x00"
    for first, second in pairwise(letters):
        yield (first + second) * (LONG // 2) + "\x00"
    yield "".join(letters) * (LONG // max(1, len(letters))) + "\x00"


PATTERNS = patterns()


def test_there_are_patterns_to_try() -> None:
    assert len(PATTERNS) > 60


@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_a_pattern_takes_no_time_to_speak_of(name: str) -> None:
    pattern = PATTERNS[name]
    is_text = isinstance(pattern.pattern, str)
    for trap in traps(pattern):
        shown = trap if is_text else trap.encode("utf-8", "replace")
        began = time.process_time()
        pattern.fullmatch(shown)
        for _ in pattern.finditer(shown):
            pass
        assert time.process_time() - began < MOST_S, f"{trap[:20]!r}…"


def test_the_traps_are_made_of_what_a_pattern_knows() -> None:
    shown = list(traps(re.compile(r"(a+)+\s*b")))

    assert "a" * LONG + "\x00" in shown
    assert " " * LONG + "\x00" in shown


@pytest.mark.parametrize("text", ["1w" + " " * 5_000 + "x", " ".join("1" * 2_000), "1h" * 2_000])
def test_a_duration_is_read_in_time_that_grows_with_it(text: str) -> None:
    """It took the fourth power of the number of blanks, and stood in searches and settings."""
    began = time.process_time()
    with pytest.raises(ValueError, match="is not a duration"):
        duration_s(text)
    assert time.process_time() - began < MOST_S
