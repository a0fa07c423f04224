"""Killed at any point, a process loses nothing that it acknowledged and does nothing twice."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.crash.checks import check
from tests.crash.points import A_WRITE, ONCE, points
from tests.stores import PLACES, SECOND_STORE_IN_THE_SOAK

ROOT = Path(__file__).resolve().parents[2]
PASSINGS = range(1, 10)
SOAK_RUNS = 1_500
# On PostgreSQL a life takes long: some of the points now, the others in the soak.
EVERYWHERE = [
    pytest.param(store, point, marks=pytest.mark.soak if store == "postgres" and n % 16 else ())
    for store in PLACES
    for n, point in enumerate(points(store))
]


class Template:
    """Forks lives; see `template.py`."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.template"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def live(
        self, url: str, directory: Path, life: int, crash: tuple[str, int] | None, *,
        producing: bool,
    ) -> int:  # fmt: skip
        """How that life ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = json.dumps([url, str(directory), life, crash, producing])
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate(timeout=60)


@pytest.fixture(scope="module")
def template() -> Iterator[Template]:
    template = Template()
    yield template
    template.close()


def survives(template: Template, store: str, directory: Path, *crashes: tuple[str, int]) -> int:
    """Crash, crash again, then drain and check. How many of the crash points were reached."""
    directory.mkdir()
    url = PLACES[store](directory)
    reached = 0
    for life, crash in enumerate(crashes, start=1):
        status = template.live(url, directory, life, crash, producing=life == 1)
        assert status in (0, -signal.SIGKILL)
        reached += status != 0
    last = len(crashes) + 1
    assert template.live(url, directory, last, None, producing=last == 1) == 0
    check(url, directory)
    return reached


@pytest.mark.parametrize("store", PLACES)
def test_a_life_without_a_crash_passes_all_checks(
    template: Template, memory: Path, store: str
) -> None:
    assert survives(template, store, memory / "calm") == 0


@pytest.mark.parametrize(("store", "point"), EVERYWHERE)
def test_nothing_is_lost_or_doubled_by_a_crash(
    template: Template, memory: Path, store: str, point: str
) -> None:
    passings = [1] if point.endswith(ONCE) else PASSINGS
    reached = [
        survives(template, store, memory / str(passing), (point, passing)) for passing in passings
    ]
    assert sum(reached) >= len(reached) / 2, "this crash point is hardly ever reached"


@pytest.mark.parametrize("store", SECOND_STORE_IN_THE_SOAK)
@pytest.mark.parametrize("point", ["before load", "after load", "before turn", "after turn"])
def test_a_crash_during_the_recovery_from_a_crash_does_no_harm(
    template: Template, memory: Path, store: str, point: str
) -> None:
    for passing in (3, 6, 9):
        crashes = ((A_WRITE[store], passing), (point, 1), (point, 1))
        assert survives(template, store, memory / str(passing), *crashes) >= 2


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("store", PLACES)
@pytest.mark.parametrize("seed", range(SOAK_RUNS // 100))
def test_any_series_of_crashes_does_no_harm(
    template: Template, memory: Path, store: str, seed: int
) -> None:
    random = Random(seed)
    for run in range(100):
        crashes = [
            (random.choice(points(store)), int(random.expovariate(0.08)) + 1)
            for _ in range(random.randint(1, 4))
        ]
        try:
            survives(template, store, memory / str(run), *crashes)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, run {run}, crashes {crashes}") from error
        shutil.rmtree(memory / str(run))
