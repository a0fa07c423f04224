"""Runs tests against a changed module, in a process of its own that sees the change alone.

The process that starts them has everything in memory but Headway and its tests, so that one costs
little more than the tests that it runs. Limits are in seconds of the processor: a busy machine
makes nothing fail.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

import hypothesis.strategies
import pytest

from tests.mutation.mutants import Mutant

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "src" / "headway" / "core"
TESTS = (
    "tests/core", "tests/sim/test_sim.py", "tests/sim/test_histories.py",
    "tests/lessons/test_lessons_core.py", "tests/lessons/test_lessons_learning.py",
)  # fmt: skip
# No rewritten assertions, no servers of the other tests: only whether something fails counts.
FLAGS = (
    "-q", "--noconftest", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist",
    "-o", "timeout=0", "--no-header", "--tb=no",
)  # fmt: skip
SLOWEST_S = 3.0  # tests that take longer are left out, and so are those that look at the clock
ALL_S = 6.0  # for the tests of one mutant together; most are noticed at once
CLOCKED = ("test_cost.py", "costs_as_much", "ten_thousand")
LOOKED_AT = "is_the_one_that_was_looked_at"  # these notice most for what they cost
MEMORY_BYTES = 3 << 30
SPARE_S = 5.0  # for a mutant, beside three times what its tests usually take
QUIET = (hypothesis.Phase.explicit, hypothesis.Phase.generate)  # nobody reads the smallest example

Covered = dict[str, tuple[float, set[str]]]  # by test: its seconds, and the functions it entered


class Recorder:
    """Which functions of the package each test enters, and how long it takes."""

    def __init__(self) -> None:
        self.tests: dict[str, tuple[float, list[str]]] = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        entered: set[CodeType] = set()
        inside = str(PACKAGE)

        def enter(frame: FrameType, _event: str, _argument: object) -> None:
            if frame.f_code not in entered and frame.f_code.co_filename.startswith(inside):
                entered.add(frame.f_code)

        began = time.process_time()
        sys.settrace(enter)
        yield
        sys.settrace(None)
        took_s = time.process_time() - began
        self.tests[item.nodeid] = took_s, sorted({_place_of(code) for code in entered})


def _place_of(code: CodeType) -> str:
    return f"{Path(code.co_filename).relative_to(PACKAGE)}:{code.co_firstlineno}"


def covered(keep: Path) -> Covered:
    """What each test enters, from the file if it is there."""
    if not keep.exists():
        keep.parent.mkdir(parents=True, exist_ok=True)
        ended = forked(lambda: _record(keep))
        if ended != 0:
            raise SystemExit(f"the tests fail without any change (exit {ended})")
    said = json.loads(keep.read_text("utf-8"))
    return {test: (took_s, set(places)) for test, (took_s, places) in said.items()}


def _record(keep: Path) -> int:
    recorder = Recorder()
    code = run_pytest([*TESTS, *(f"--deselect={each}" for each in _too_slow())], [recorder])
    if code == 0:
        keep.write_text(json.dumps(recorder.tests), "utf-8")
    return code


def _too_slow() -> Iterable[str]:
    yield "tests/core/test_fairness.py"
    yield "tests/sim/test_sim.py::test_no_rule_is_ever_broken"
    yield "tests/sim/test_sim.py::test_the_same_seed_gives_the_same_history"


def tests_for(mutant: Mutant, known: Covered) -> list[tuple[float, str]]:
    """Those that enter what was changed, fastest first."""
    place = f"{mutant.path}:{mutant.first_line}"
    if not mutant.scope:
        wanted = [name for name, (_, places) in known.items()
                  if any(each.startswith(f"{mutant.path}:") for each in places)]  # fmt: skip
    else:
        wanted = [name for name, (_, places) in known.items() if place in places]
    usable = (
        (known[name][0], name)
        for name in wanted
        if known[name][0] <= SLOWEST_S and not any(word in name for word in CLOCKED)
    )
    fastest = sorted(usable, key=lambda test: test[0] / (5.0 if LOOKED_AT in test[1] else 1.0))
    spent_s = accumulate(took_s for took_s, _ in fastest)
    return [test for test, until_s in zip(fastest, spent_s, strict=True) if until_s <= ALL_S]


def killed(mutant: Mutant, known: Covered) -> str:
    """How it was noticed; empty: it was not."""
    tests = tests_for(mutant, known)
    if not tests:
        return ""
    seconds = int(sum(took_s for took_s, _ in tests) * 3 + SPARE_S)
    names = [name for _, name in tests]

    def run() -> int:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        sys.meta_path.insert(0, Changed(mutant))
        return run_pytest(["-x", *names], [])

    ended = forked(run)
    if ended == pytest.ExitCode.USAGE_ERROR:  # what a test is called depends on what was changed
        names = list(dict.fromkeys(name.partition("[")[0] for name in names))
        ended = forked(run)
    match ended:
        case pytest.ExitCode.OK:
            return ""
        case pytest.ExitCode.TESTS_FAILED:
            return "a test fails"
        case code if code < 0:
            return "it does not end"
        case code:
            return f"it cannot be loaded ({code})"


def run_pytest(arguments: Sequence[str], plugins: list[object]) -> int:
    hypothesis.settings.register_profile(
        "mutation", derandomize=True, deadline=None, phases=QUIET, database=None
    )
    hypothesis.settings.load_profile("mutation")
    return int(pytest.main([*FLAGS, *arguments], plugins=plugins))


def forked(run: Callable[[], int]) -> int:
    """The exit code of a copy of this process that runs this; negative: it was killed."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            quiet = os.open(os.devnull, os.O_RDWR)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            code = run()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module as the mutant has it, and no other."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant
        self._file = PACKAGE / mutant.path
        parts = ["headway", "core", *Path(mutant.path).with_suffix("").parts]
        self._package = parts[-1] == "__init__"
        self._name = ".".join(parts[:-1] if self._package else parts)

    def find_spec(
        self, fullname: str, path: object, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        return importlib.util.spec_from_file_location(
            fullname, self._file, loader=self,
            submodule_search_locations=[str(self._file.parent)] if self._package else None,
        )  # fmt: skip

    def exec_module(self, module: ModuleType) -> None:
        source = self._file.read_text("utf-8")
        exec(self._mutant.code(source, str(self._file)), module.__dict__)
