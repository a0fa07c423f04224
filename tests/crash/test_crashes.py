"""Killed at any point, a process loses nothing that it acknowledged and does nothing twice."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.crash.checks import check
from tests.crash.scenario import POINTS

ROOT = Path(__file__).resolve().parents[2]
PASSINGS = range(1, 10)
SOAK_RUNS = 1_500


class Template:
    """Forks lives; see `template.py`."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.template"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def live(
        self, directory: Path, life: int, crash: tuple[str, int] | None, *, producing: bool
    ) -> int:
        """How that life ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(directory), life, crash, producing]) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate(timeout=60)


@pytest.fixture(scope="module")
def template() -> Iterator[Template]:
    template = Template()
    yield template
    template.close()


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory: a kill, unlike a power cut, loses nothing that was written."""
    in_memory = Path("/dev/shm")
    directory = Path(tempfile.mkdtemp(dir=in_memory if in_memory.is_dir() else tmp_path))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


def survives(template: Template, directory: Path, *crashes: tuple[str, int]) -> int:
    """Crash, crash again, then drain and check. How many of the crash points were reached."""
    directory.mkdir()
    reached = 0
    for life, crash in enumerate(crashes, start=1):
        status = template.live(directory, life, crash, producing=life == 1)
        assert status in (0, -signal.SIGKILL)
        reached += status != 0
    assert template.live(directory, len(crashes) + 1, None, producing=False) == 0
    check(directory)
    return reached


def test_a_life_without_a_crash_passes_all_checks(template: Template, memory: Path) -> None:
    assert template.live(memory, 1, None, producing=True) == 0
    check(memory)


@pytest.mark.parametrize("point", POINTS)
def test_nothing_is_lost_or_doubled_by_a_crash(
    template: Template, memory: Path, point: str
) -> None:
    passings = [1] if "load" in point else PASSINGS
    reached = [survives(template, memory / str(passing), (point, passing)) for passing in passings]
    assert sum(reached) >= len(reached) / 2, "this crash point is hardly ever reached"


@pytest.mark.parametrize("point", ["before load", "after load", "before turn", "after turn"])
def test_a_crash_during_the_recovery_from_a_crash_does_no_harm(
    template: Template, memory: Path, point: str
) -> None:
    for passing in (3, 6, 9):
        crashes = (("before writer runs alone", passing), (point, 1), (point, 1))
        assert survives(template, memory / str(passing), *crashes) >= 2


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(SOAK_RUNS // 100))
def test_any_series_of_crashes_does_no_harm(template: Template, memory: Path, seed: int) -> None:
    random = Random(seed)
    for run in range(100):
        crashes = [
            (random.choice(POINTS), int(random.expovariate(0.08)) + 1)
            for _ in range(random.randint(1, 4))
        ]
        try:
            survives(template, memory / str(run), *crashes)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, run {run}, crashes {crashes}") from error
        shutil.rmtree(memory / str(run))
