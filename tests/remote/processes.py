"""A real server and real workers, each a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2

from tests.forked import Forked
from tests.hands.kit import eventually

SERVICE = Path(__file__).with_name("service.py")
START_S = 40.0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


class Process:
    """Any program, or with `forked` one of Headway, which is quick to start."""

    def __init__(
        self, command: list[str], log: Path, *, forked: bool = False, **environment: str
    ) -> None:
        self._log = log
        self._process: subprocess.Popen[bytes] | Forked
        told = {**os.environ, **environment}
        with open(log, "ab") as out, open(os.devnull) as nothing:
            if forked:
                self._process = Forked(
                    command[1:], stdin=nothing.fileno(), stdout=out.fileno(), stderr=out.fileno(),
                    environment=told, cwd=os.getcwd(),
                )  # fmt: skip
            else:
                self._process = subprocess.Popen(
                    command, stdin=nothing, stdout=out, stderr=out, env=told
                )

    @property
    def pid(self) -> int:
        return self._process.pid

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def ended(self, within_s: float = 30.0) -> int:
        return self._process.wait(within_s)

    def is_over(self) -> bool:
        return self._process.poll() is not None

    def log(self) -> str:
        return self._log.read_text("utf-8", "replace")

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(30)


class Server:
    """On a store of its own and a port of its own, which it keeps when it is started again."""

    def __init__(self, url: str, directory: Path, **environment: str) -> None:
        self._directory = directory
        self._environment = environment
        self._port = free_port()
        self._store = ["--dsn", url] if url.startswith("postgres") else ["--data", str(directory)]
        self.url = f"http://127.0.0.1:{self._port}"
        self._process: Process | None = None
        self._workers: list[Process] = []

    def start(self) -> None:
        command = [sys.executable, "-m", "headway", "serve", "--port", str(self._port)]
        log = self._directory / "server.log"
        process = self._process = Process(
            [*command, *self._store], log, forked=True, **self._environment
        )

        def ready() -> bool:
            assert not process.is_over(), process.log()
            try:
                return httpx2.get(f"{self.url}/readyz", trust_env=False, verify=False).is_success
            except httpx2.TransportError:
                return False

        eventually(ready, START_S)

    def stop(self) -> None:
        """In an orderly way."""
        assert self._process is not None
        self._process.signal(signal.SIGTERM)
        self._process.ended()

    def kill(self) -> None:
        assert self._process is not None
        self._process.signal(signal.SIGKILL)
        self._process.ended()

    def worker(self, *more: str, cold: bool = False) -> Process:
        """`cold`: with a new interpreter, as people start it."""
        number = len(self._workers)
        command = [sys.executable, "-W", "error", str(SERVICE), self.url, str(self._directory)]
        log = self._directory / f"worker-{number}.log"
        worker = Process([*command, *more], log, forked=not cold)
        self._workers.append(worker)
        return worker

    def end(self) -> None:
        for worker in self._workers:
            worker.end()
        if self._process is not None:
            self._process.end()

    def lines(self, name: str) -> list[list[int]]:
        """(job, fence, pid) of each line that jobs have written into a file."""
        path = self._directory / name
        text = path.read_text() if path.exists() else ""
        return [[int(word) for word in line.split()] for line in text.splitlines()]
