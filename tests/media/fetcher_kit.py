"""The real program, run by the real runner, for a job that is only a stand-in."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headway.apps.media.fetcher.protocol import Order, Task
from headway.apps.media.running import Answer, Failure, fetch
from headway.engine.hands import processes
from tests.media.video_site import VideoSite

TIMEOUT_S = 60.0


class Alone:
    """What the runner needs of a job."""

    def __init__(self) -> None:
        self.programs: set[Any] = set()
        self.groups: set[Any] = set()
        self.stop = None
        self.commands: list[list[str]] = []
        self.options: dict[str, Any] = {}
        self.lines: list[str] = []

    def check(self) -> None:
        """Nobody stops it."""

    def note_process(self, pid: int | None, started_at: float | None) -> None:
        """Nobody asks."""

    async def arun(self, command: list[str], **options: Any) -> processes.Completed:
        self.commands.append(command)
        self.options = options
        take = options["on_line"]

        def heard(line: str) -> None:
            self.lines.append(line)
            take(line)

        return await processes.run(self, command, **options | {"on_line": heard})  # type: ignore[arg-type]


@dataclass
class Ran:
    answer: Answer
    entries: list[dict[str, Any]] = field(default_factory=list)
    progress: list[tuple[float, float | None, str]] = field(default_factory=list)
    job: Alone = field(default_factory=Alone)

    @property
    def result(self) -> dict[str, Any]:
        assert self.answer.failure is None, self.answer.failure
        assert self.answer.result is not None
        return self.answer.result

    @property
    def failure(self) -> Failure:
        assert self.answer.failure is not None, self.answer.result
        return self.answer.failure

    @property
    def said(self) -> str:
        """All that came out of the program."""
        return "\n".join(self.job.lines)


def order(site: VideoSite, task: Task, url: str, **more: Any) -> Order:
    usual: dict[str, Any] = {"user_agent": "Visitor/1.0", "allowed": site.allowed, "retries": 0}
    return Order(task=task, url=url, **usual | more)


def run(made: Order, **options: Any) -> Ran:
    job = Alone()
    ran = Ran(Answer(), job=job)
    ran.answer = asyncio.run(
        fetch(job, made, timeout_s=TIMEOUT_S, on_entry=ran.entries.append,
              on_progress=lambda *told: ran.progress.append(told), **options)
    )  # fmt: skip
    return ran


def visit(site: VideoSite, task: Task, url: str, **more: Any) -> Ran:
    return run(order(site, task, url, **more))


def download(site: VideoSite, url: str, directory: Path, **more: Any) -> Ran:
    return visit(site, Task.DOWNLOAD, url, directory=str(directory), **more)


def cookie_file(directory: Path, value: str, *, host: str = "127.0.0.1") -> Path:
    file = directory / "cookies.txt"
    file.write_text(
        "# Netscape HTTP Cookie File\n"
        f"{host}\tFALSE\t/\tFALSE\t0\tSESSDATA\t{value}\n"
        f"{host}\tFALSE\t/\tFALSE\t0\tlang\ten\n"
    )
    return file
