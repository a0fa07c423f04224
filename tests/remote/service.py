"""A worker as people write it: `python service.py URL DIRECTORY [DRAIN_S]`."""

import asyncio
import os
import sys
import threading
from pathlib import Path

from headway import App, job

app = App(sys.argv[1], threads=4)
directory = Path(sys.argv[2])


def write(name: str) -> None:
    """One line, which cannot be torn."""
    with open(directory / name, "a") as file:
        file.write(f"{job.id} {job.fence} {os.getpid()}\n")


@app.job(timeout=600, retries=0)
def wait(name: str) -> str:
    """Until there is a file of this name; says when it began."""
    write("started")
    between = threading.Event()
    while not (directory / name).exists():
        job.check()
        between.wait(0.01)
    write("ended")
    return name


@app.job(timeout=600, retries=0)
async def endless() -> None:
    write("started")
    try:
        await asyncio.Event().wait()
    finally:
        write("stopped")


@app.job(timeout=600, retries=0)
def program() -> None:
    write("started")
    job.run(["sh", "-c", f"echo $$ > {directory}/program; exec sleep 1000"])


@app.job(timeout=600, retries=0)
async def step(number: int) -> int:
    write("started")
    job.progress(number)
    await asyncio.to_thread(threading.Event().wait, 0.02)
    return number


if __name__ == "__main__":
    app.run(drain=float(sys.argv[3]) if len(sys.argv) > 3 else 30.0)
