"""Servers as people start them: a process of its own, asked over HTTP."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.forked import Forked
from tests.postgres import in_memory, shared_postgres
from tests.stores import postgres_place

START_S = 60.0
STOP_S = 60.0
ADDRESS = re.compile(r"Headway is at (http://[\w.:\[\]-]+:\d+)")
STORES = ("sqlite", "postgres", "followed")


class Server:
    """One server and its data, which outlive each start. `settings` are those of its file, such as
    `max_body=1000`; they go through its `environment`. `file` is the text of a settings file. What
    it prints is in `log`.
    """

    def __init__(
        self, directory: Path, dsn: str = "", file: str = "", **settings: object
    ) -> None:  # fmt: skip
        self.data = directory / "data"
        self.file = directory / "headway.toml" if file else None
        if self.file is not None:
            self.file.write_text(file)
        self.log = directory / "server.log"
        self.dsn = dsn
        self.port = 0  # any that is free; after the first start always the same
        self.url = ""
        self.environment = {  # without the archive, which would do jobs that tests only look at
            "HEADWAY_MEDIA_ON": "no",
            **{f"HEADWAY_{name.upper()}": str(value) for name, value in settings.items()},
        }
        self._process: subprocess.Popen[bytes] | Forked | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def start(self, *, cold: bool = False) -> None:
        """`cold`: with a new interpreter, which takes a second and more."""
        assert self._process is None
        begin = self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "ab") as log, open(os.devnull) as nothing:
            if cold:
                self._process = subprocess.Popen(
                    self._command(), stdin=nothing, stdout=log, stderr=log,
                    env=self._environment(), cwd=self.log.parent, start_new_session=True,
                )  # fmt: skip
            else:
                self._process = Forked(
                    self._command()[1:], stdin=nothing.fileno(), stdout=log.fileno(),
                    stderr=log.fileno(), environment=self._environment(), cwd=self.log.parent,
                    new_session=True,
                )  # fmt: skip
        self.url = self._address(begin)
        self.port = int(self.url.rpartition(":")[2])

    def stop(self) -> int:
        """As an operator stops it. What it answered to that."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        self.stop()
        self.start()

    def printed(self) -> str:
        return self.log.read_text("utf-8", "replace")

    def _end(self, by: signal.Signals) -> int:
        assert self._process is not None
        self._process.send_signal(by)
        try:
            return self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
        finally:
            self._process = None

    def close(self) -> None:
        if self._process is not None:
            self.kill()

    def _command(self) -> list[str]:
        command = [sys.executable, "-m", "headway", "serve", "--port", str(self.port),
                   "--data", str(self.data)]  # fmt: skip
        if self.file is not None:
            command += ["--config", str(self.file)]
        return [*command, "--dsn", self.dsn] if self.dsn else command

    def _environment(self) -> dict[str, str]:
        """Nothing of whoever runs the tests reaches the server."""
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("HEADWAY_", "QUEUE_"))}  # fmt: skip
        return {**kept, "PYTHONUNBUFFERED": "1", **self.environment}

    def _address(self, begin: int) -> str:
        """What the server says when it listens."""
        assert self._process is not None
        end = time.monotonic() + START_S
        while True:
            with open(self.log, "rb") as log:
                log.seek(begin)
                said = log.read().decode("utf-8", "replace")
            found = ADDRESS.search(said)
            # A whole line: the address is not cut off in the middle.
            if found is not None and "\n" in said[found.end() :]:
                return found.group(1)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(0.02)
                self._process = None
                raise RuntimeError(f"the server did not start:\n{said}")
            if time.monotonic() > end:
                self.close()
                raise RuntimeError(f"the server does not listen:\n{said}")

    def state_file(self) -> dict[str, object]:
        """Where the command line looks for a running server."""
        found: dict[str, object] = json.loads((self.data / "server.json").read_text())
        return found


@contextmanager
def server_on(store: str, *, cold: bool = False, **settings: object) -> Iterator[Server]:
    """A new server with nothing in it."""
    directory = Path(tempfile.mkdtemp(prefix="headway-server-", dir=in_memory()))
    dsn = "" if store == "sqlite" else postgres_place(directory)
    server = Server(directory, dsn, **settings)  # type: ignore[arg-type]
    try:
        server.start(cold=cold)
        if store == "followed":
            with followed(server, **settings) as follower:
                yield follower
        else:
            yield server
    finally:
        server.close()
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def followed(leader: Server, **settings: object) -> Iterator[Server]:
    """A second server on the same store, which passes on what only the first can answer."""
    directory = leader.log.parent / "follower"
    directory.mkdir()
    follower = Server(directory, leader.dsn, **settings)  # type: ignore[arg-type]
    try:
        follower.start()
        yield follower
    finally:
        follower.close()


NewServer = Callable[..., Server]


@pytest.fixture(params=("sqlite", pytest.param("postgres", marks=pytest.mark.soak)))
def new_server(request: pytest.FixtureRequest) -> Iterator[NewServer]:
    """Starts servers of this test alone: `new_server(max_body=100)`. What starts, crowds and kills
    whole servers is slow, so the second kind of store is for `make soak`.
    """
    with ExitStack() as running:
        yield lambda **told: running.enter_context(server_on(request.param, **told))


@pytest.fixture
def new_sqlite_server() -> Iterator[NewServer]:
    """The same, where the store makes no difference."""
    with ExitStack() as running:
        yield lambda **told: running.enter_context(server_on("sqlite", **told))


@pytest.fixture(scope="session", params=STORES)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """One for all tests of this process that do no harm to it: each uses names of its own, and ends
    what it has begun.
    """
    if request.param != "sqlite":
        shared_postgres()
    with server_on(request.param, cold=True) as started:
        yield started
