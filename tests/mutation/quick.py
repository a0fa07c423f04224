"""Mutants inside of functions, tried in copies of one process that has collected all tests.

A function gets the changed code in the place of its own, and a module its changed values, so a
mutant costs the tests that it runs and nothing else. What else is changed, such as the fields of a
class, needs a new process (`running`).
"""

from __future__ import annotations

import gc
import re
import resource
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType

import pytest
from _pytest.runner import runtestprotocol

from tests.mutation.mutants import Mutant
from tests.mutation.running import MEMORY_BYTES, PACKAGE, SPARE_S, Covered, forked, tests_for

PLAIN = (int, float, str, tuple, dict, frozenset, re.Pattern)

Heard = Callable[[Mutant, str], None]


class Campaign:
    """A plugin that tries mutants instead of running the tests."""

    def __init__(self, mutants: list[Mutant], known: Covered, heard: Heard) -> None:
        self._mutants = mutants
        self._known = known
        self._heard = heard

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        functions = _functions()
        gc.freeze()
        for mutant in self._mutants:
            self._heard(mutant, self._killed(mutant, items, functions))
        return True

    def _killed(
        self,
        mutant: Mutant,
        items: dict[str, pytest.Item],
        functions: dict[str, list[FunctionType]],
    ) -> str:
        tests = [(took_s, items[name]) for took_s, name in tests_for(mutant, self._known)]
        seconds = int(sum(took_s for took_s, _ in tests) * 3 + SPARE_S)
        chosen = [item for _, item in tests]

        def run() -> int:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            _put(mutant, functions)
            return 1 if _any_fails(chosen) else 0

        match forked(run) if chosen else 0:
            case 0:
                return ""
            case 1:
                return "a test fails"
            case code if code < 0:
                return "it does not end"
            case code:
                return f"it cannot be tried ({code})"


def _any_fails(items: list[pytest.Item]) -> bool:
    for item, following in zip(items, [*items[1:], None], strict=True):
        if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
            return True
    return False


def _functions() -> dict[str, list[FunctionType]]:
    """All functions of the package, by where their code begins."""
    found: dict[str, list[FunctionType]] = {}
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(str(PACKAGE)):
            found.setdefault(_place(each.__code__), []).append(each)
    return found


def _place(code: CodeType) -> str:
    return f"{code.co_filename}:{code.co_firstlineno}:{code.co_name}"


def _put(mutant: Mutant, functions: dict[str, list[FunctionType]]) -> None:
    file = PACKAGE / mutant.path
    changed = mutant.code(file.read_text("utf-8"), str(file))
    if mutant.is_value:
        _put_values(
            ".".join(("headway.core", *file.relative_to(PACKAGE).with_suffix("").parts)), changed
        )
        return
    for code in _inside(changed):
        if code.co_firstlineno == mutant.first_line and code.co_qualname == mutant.scope:
            there = functions[_place(code)]
            for function in there:
                function.__code__ = code
            return
    sys.exit(f"{mutant.name} is nowhere")


def _put_values(name: str, changed: CodeType) -> None:
    """In the module itself, and wherever somebody has imported them from it."""
    module = sys.modules[name]
    made: dict[str, object] = {"__name__": name, "__file__": module.__file__}
    exec(changed, made)
    for each, value in made.items():
        before = module.__dict__.get(each)
        if isinstance(value, PLAIN) and value != before:
            for other in list(sys.modules.values()):
                if other.__name__.startswith(("headway.core", "tests.")) and (
                    other.__dict__.get(each) is before
                ):
                    setattr(other, each, value)


def _inside(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _inside(each)
