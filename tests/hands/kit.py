"""Works that never end by themselves, and a way to wait for what must come."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from headway import App, Job, job

WAIT_S = 20.0  # for what comes at once, unless something is broken
KINDS = ("task", "thread", "program", "async program")


def eventually(
    happened: Callable[[], Any], within_s: float = WAIT_S, why: str = "it has not happened"
) -> Any:
    """Look until it is so; what it gave. The longer it takes the less often it is looked at, for
    that would keep others from their work.
    """
    deadline = time.monotonic() + within_s
    between, pause_s = threading.Event(), 0.002
    while not (found := happened()):
        assert time.monotonic() < deadline, why
        between.wait(pause_s)
        pause_s = min(0.05, 1.25 * pause_s)
    return found


def is_alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def pid_in(file: Path) -> int:
    """The number that a program has written into the file."""
    return int(eventually(lambda: file.exists() and file.read_text().strip()))


def state_is(app: App, id: int, state: str) -> None:
    eventually(lambda: app.handle(id).state == state)


def names_of(app: App, id: int) -> list[str]:
    """The names of the events in the trail of a job."""
    return [event.event for event in app.handle(id).events()]


def shell(text: str) -> list[str]:
    return ["sh", "-c", text]


class Endless:
    """A job that runs until somebody stops it, and tells whether it is still at work."""

    def __init__(self, app: App, kind: str, directory: Path, **options: Any) -> None:
        self._started = threading.Event()
        self._over = threading.Event()
        self._pid_file = directory / "endless.pid"
        self._is_program = "program" in kind
        self.attempts: list[int] = []
        handlers: dict[str, Callable[..., Any]] = {
            "task": self._task, "thread": self._thread, "program": self._program,
            "async program": self._async_program,
        }  # fmt: skip
        self.job: Job[[], Any] = app.job(type="endless", retries=0, **options)(handlers[kind])

    async def _task(self) -> None:
        self._begin()
        try:
            await asyncio.Event().wait()
        finally:
            self._over.set()

    def _thread(self) -> None:
        self._begin()
        between = threading.Event()
        try:
            while True:
                between.wait(0.005)
        finally:
            self._over.set()

    def _program(self) -> None:
        self._begin()
        job.run(self._command())

    async def _async_program(self) -> None:
        self._begin()
        await job.arun(self._command())

    def _command(self) -> list[str]:
        return shell(f"echo $$ > {self._pid_file}; exec sleep 1000")

    def _begin(self) -> None:
        self.attempts.append(job.attempt)
        self._pid_file.unlink(missing_ok=True)
        self._over.clear()
        self._started.set()

    def has_started(self) -> None:
        assert self._started.wait(WAIT_S)
        if self._is_program:
            self.pid = pid_in(self._pid_file)
        self._started.clear()

    def is_at_work(self) -> bool:
        return is_alive(self.pid) if self._is_program else not self._over.is_set()
