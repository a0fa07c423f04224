"""What the workers of the fleet run: each attempt is two lines in a journal that outlives it."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from contextlib import suppress

from headway import App, RetryPolicy, job

PATIENT = RetryPolicy(timeout_s=120, max_lost=1_000)  # they are killed all the time

app = App()
never = threading.Event()


def say(journal: str, what: str) -> None:
    """One write, so that lines of several processes do not mix."""
    line = f"{what} {job.id} {job.fence} {os.getpid()} {time.monotonic()}\n"
    handle = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(handle, line.encode())
    finally:
        os.close(handle)


@app.job(policy=PATIENT)
async def wait(journal: str, seconds: float) -> int:
    say(journal, "start")
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.Event().wait()
        return job.fence
    finally:
        say(journal, "end")


@app.job(policy=PATIENT)
def block(journal: str, seconds: float) -> int:
    say(journal, "start")
    try:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            job.check()
            never.wait(0.01)
        return job.fence
    finally:
        say(journal, "end")
