"""Stopping the engine: what runs may end, and what does not is given back unharmed."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headway import App, job
from headway.engine import engine as engine_module
from headway.errors import EngineStopped
from tests.hands.kit import KINDS, WAIT_S, Endless, eventually, is_alive, names_of, pid_in

SERVICE = Path(__file__).with_name("service.py")


def test_what_runs_may_end_within_the_time(app: App) -> None:
    started, free = threading.Event(), threading.Event()

    @app.job()
    def last() -> str:
        started.set()
        free.wait(WAIT_S)
        return "done"

    @app.job()
    def later() -> None: ...

    app.start()
    handle = last.enqueue()
    assert started.wait(WAIT_S)
    stopping = threading.Thread(target=app.stop, args=(WAIT_S,))
    stopping.start()
    eventually(lambda: app.engine is None)
    waits = later.enqueue()
    free.set()
    stopping.join(WAIT_S)
    assert handle.state == "completed"
    assert waits.state == "queued"  # nothing is started any more


def test_an_engine_without_work_stops_at_once(app: App) -> None:
    app.start()
    began_at = time.monotonic()
    app.stop(drain=30)
    assert time.monotonic() - began_at < 5


@pytest.mark.parametrize("kind", KINDS)
def test_what_does_not_end_in_time_is_given_back_without_a_burnt_attempt(
    app: App, tmp_path: Path, kind: str
) -> None:
    endless = Endless(app, kind, tmp_path)
    app.start()
    handle = endless.job.enqueue()
    endless.has_started()
    app.stop(drain=0.05)
    assert not endless.is_at_work()
    assert handle.state == "queued"
    assert handle.row().tries is None
    assert names_of(app, handle.id) == ["submit", "grant", "return"]

    app.start()
    endless.has_started()
    assert endless.attempts == [1, 1]
    handle.cancel()
    assert handle.wait(WAIT_S) == "cancelled"


def test_a_handler_that_will_not_stop_does_not_keep_the_engine(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "GRACE_S", 0.3)
    started, free = threading.Event(), threading.Event()

    @app.job()
    def deaf() -> None:
        started.set()
        free.wait(WAIT_S)  # a call into C: no exception reaches it

    app.start()
    handle = deaf.enqueue()
    assert started.wait(WAIT_S)
    app.stop(drain=0)
    assert handle.state == "queued"
    free.set()


def test_the_late_word_of_such_a_handler_changes_nothing(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "GRACE_S", 0.3)
    started, free, over = threading.Event(), threading.Event(), threading.Event()
    runs = []

    @app.job()
    def deaf_at_first() -> str:
        runs.append(job.fence)
        try:
            if len(runs) == 1:
                started.set()
                free.wait(WAIT_S)
                return "stale"
            return "right"
        finally:
            over.set()

    app.start()
    handle = deaf_at_first.enqueue()
    assert started.wait(WAIT_S)
    app.stop(drain=0)
    app.start()
    assert handle.result(WAIT_S) == "right"
    over.clear()
    free.set()
    assert over.wait(WAIT_S)
    app.stop()
    assert handle.result(WAIT_S) == "right"
    assert runs[0] < runs[1]


def test_a_job_that_was_paused_stays_paused_when_the_engine_stops(app: App) -> None:
    started = threading.Event()

    @app.job()
    async def walk() -> None:
        started.set()
        await asyncio.Event().wait()

    app.start()
    handle = walk.enqueue()
    assert started.wait(WAIT_S)
    app.pause(handle.id)
    app.stop(drain=0)
    assert handle.state == "paused"


def test_whoever_asks_an_engine_that_has_stopped_is_told(app: App) -> None:
    app.start()
    engine = app.engine
    assert engine is not None
    app.stop()
    with pytest.raises(EngineStopped):
        engine.ask(lambda _: None)


def test_an_engine_that_breaks_tells_everybody_who_waits(app: App, tmp_path: Path) -> None:
    endless = Endless(app, "task", tmp_path)
    app.start()
    engine = app.engine
    assert engine is not None
    endless.job.enqueue()
    endless.has_started()

    def broken(_: Any) -> None:
        raise RuntimeError("the store makes no sense")

    engine.brain.store.send = broken  # type: ignore[method-assign]
    with pytest.raises(EngineStopped, match="makes no sense"):
        app.cancel(1)
    assert engine.done.wait(WAIT_S)
    eventually(lambda: not endless.is_at_work())


# A process of its own


@pytest.fixture
def command(url: str, tmp_path: Path) -> list[str]:
    """A program with a job that never ends by itself, run by `app.run(drain=60)`."""
    return [sys.executable, str(SERVICE), url, str(tmp_path)]


@pytest.fixture
def service(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command)
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_running_jobs_end(
    service: subprocess.Popen[bytes], app: App, tmp_path: Path, number: int
) -> None:
    pid_in(tmp_path / "started")
    service.send_signal(number)
    (tmp_path / "free").touch()
    assert service.wait(WAIT_S) == 0
    assert app.handle(1).state == "completed"


def test_a_second_signal_ends_at_once_and_gives_everything_back(
    service: subprocess.Popen[bytes], app: App, tmp_path: Path
) -> None:
    pid_in(tmp_path / "started")
    program = pid_in(tmp_path / "program")
    began_at = time.monotonic()
    service.send_signal(signal.SIGTERM)
    service.send_signal(signal.SIGINT)
    assert service.wait(WAIT_S) == 0
    assert time.monotonic() - began_at < 15  # its drain time is 60 s
    assert not is_alive(program)
    assert [app.handle(id).state for id in (1, 2)] == ["queued", "queued"]
    assert names_of(app, 1)[-1] == "return"


def test_programs_of_an_engine_that_was_killed_are_ended_by_the_next_one(
    app: App, tmp_path: Path, command: list[str]
) -> None:
    service = subprocess.Popen(command)
    program, grandchild = pid_in(tmp_path / "program"), pid_in(tmp_path / "grandchild")
    eventually(app.store.processes)
    service.kill()
    service.wait()
    eventually(lambda: not is_alive(program))  # the kernel sees to it
    assert is_alive(grandchild)

    app.job(type="wait")(lambda: None)
    with app.running():
        eventually(lambda: not is_alive(grandchild))


def test_a_service_whose_engine_breaks_ends_with_the_reason(command: list[str]) -> None:
    broken = subprocess.run(
        [*command, "break"],
        capture_output=True, text=True, timeout=WAIT_S, check=False,
    )  # fmt: skip
    assert broken.returncode != 0
    assert "the store makes no sense" in broken.stderr
