"""One life of a process with producers and an engine in it, which may end at a crash point.

What it promised and what it did is written down in `journal`, with one write for each line, so
that a kill can lose nothing of it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headway import App, Every, Fail, RetryPolicy, job
from headway.store.records import Query
from tests.crash.points import kill_at

WAIT_S = 20.0


class Journal:
    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, *words: object) -> None:
        os.write(self._file, (" ".join(map(str, words)) + "\n").encode())


def build(url: str, journal: Journal, life: int) -> tuple[App, dict[str, Any]]:
    """The app, and its types of jobs by name."""
    app = App(url)
    app.lane("narrow", limit=1)
    patient = RetryPolicy(retries=3, delay_s=0.0, max_lost=100)

    @contextmanager
    def written_down() -> Iterator[None]:
        journal.write("start", life, job.id, job.fence)
        yield
        journal.write("end", life, job.id, job.fence)

    @app.job(policy=patient)
    async def task(number: int) -> int:
        with written_down():
            job.checkpoint(number)
            await asyncio.sleep(0)
        return job.fence

    @app.job(policy=patient, lane="narrow")
    def thread(number: int) -> int:
        with written_down():
            job.progress(number)
        return job.fence

    @app.job(policy=patient)
    async def flaky() -> int:
        with written_down():
            pass
        if job.attempt == 1:
            raise ConnectionError
        return job.fence

    @app.job(policy=patient)
    def doomed() -> None:
        raise Fail("by design")

    @app.job(policy=patient, every=Every(0.02))
    async def tick() -> int:
        with written_down():
            return job.fence

    return app, {"task": task, "thread": thread, "flaky": flaky, "doomed": doomed}


def produce(app: App, jobs: dict[str, Any], journal: Journal) -> None:
    """Ask for all kinds of things; what was answered is a promise."""
    task, thread = jobs["task"], jobs["thread"]

    def beside() -> None:
        for number in range(3):
            journal.write("enqueued", task.enqueue(number).id)

    other = threading.Thread(target=beside, daemon=True)
    other.start()
    first = task.enqueue(0)
    journal.write("enqueued", first.id)
    several = [thread.call(1), thread.call(2), jobs["flaky"].call(), jobs["doomed"].call()]
    for handle in app.enqueue_many(several):
        journal.write("enqueued", handle.id)
    journal.write("enqueued", task.options(after=(first.id,)).enqueue(9).id)
    journal.write("enqueued", task.options(unique="one").enqueue(1).id)
    journal.write("enqueued", task.options(unique="one").enqueue(1).id)
    unwanted = task.options(delay="1h").enqueue(5)
    app.cancel(unwanted.id)
    journal.write("cancelled", unwanted.id)
    journal.write("result", first.id, first.result(WAIT_S))
    for each in (task, thread) * 4:  # one after the other, so that there are many turns
        handle = each.enqueue(6)
        journal.write("result", handle.id, handle.result(WAIT_S))
    other.join()


def live(
    url: str, directory: Path, life: int, crash: tuple[str, int] | None, *, producing: bool
) -> None:
    """Start, ask for work, see it through, stop; or be killed on the way."""
    if crash is not None:
        kill_at(*crash)
    journal = Journal(directory / "journal")
    app, jobs = build(url, journal, life)
    app.start()
    if producing:
        produce(app, jobs, journal)
    for row in app.store.jobs(Query(limit=10_000)):
        if row.schedule is None and row.not_before <= app.now():
            app.handle(row.id).wait(WAIT_S)
    app.stop(WAIT_S)
    app.close()
