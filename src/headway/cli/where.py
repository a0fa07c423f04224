"""Where a command asks: a server by its address, the one that runs on a data directory, or none."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from headway.cli.client import Client, CommandFailed, over_http
from headway.cli.in_process import directly
from headway.store import open_store

STATE_FILE = "server.json"
DEFAULT_DATA = "headway-data"
ANSWER_S = 3.0  # for a server on this machine to say that it lives
ANYWHERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # addresses to listen at, not to call


@dataclass(frozen=True, slots=True)
class Running:
    """What a server has left in its data directory."""

    url: str
    pid: int
    open: bool  # whoever reaches it may use it


@dataclass(frozen=True, slots=True)
class Where:
    server: str | None = None
    token: str | None = None
    data: Path = Path(DEFAULT_DATA)
    dsn: str | None = None

    @property
    def store_url(self) -> str:
        return self.dsn or f"sqlite:///{self.file}"

    @property
    def file(self) -> Path:
        """Of the store, unless it is in PostgreSQL."""
        return self.data / "headway.db"

    @property
    def name(self) -> str:
        """For people; the address of a database may have a password in it."""
        return "the database" if self.dsn else str(self.data)

    def make(self) -> None:
        """The data directory and its store, for commands that may be the first."""
        if self.dsn is None:
            self.make_directory()
        open_store(self.store_url).close()

    def make_directory(self) -> None:
        """As the server makes it: others could read in it what lets them in."""
        try:
            self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise CommandFailed(f"{self.data} cannot be made: {error.strerror}") from error

    def running(self) -> Running | None:
        """The server that runs on this data directory, if it answers."""
        found = None if self.dsn else left_by_server(self.data)
        return found if found is not None and answers(found.url) else None

    def connect(self, *, as_owner: bool = False) -> Client:
        """`as_owner`: whoever may write the store needs no token to make one, so a server that
        asks for one is passed by.
        """
        if self.server is not None:
            return over_http(self.server, self.token)
        running = self.running()
        if running is not None and (running.open or self.token or not as_owner):
            return over_http(running.url, self.token)
        self._check_there()
        return directly(str(self.data), self.dsn, self.name)

    def _check_there(self) -> None:
        if self.dsn is None and not self.data.is_dir():
            raise CommandFailed(
                f"there is no data directory {self.data}; make one with `headway serve --data "
                f"{self.data}`, or name another with --data, or a server with --server"
            )


def left_by_server(data: Path) -> Running | None:
    try:
        said = json.loads((data / STATE_FILE).read_text("utf-8"))
        url = urlsplit(str(said["url"]))
        host = url.netloc.rpartition(":")[0]
        callable_url = f"{url.scheme}://{ANYWHERE.get(host, host)}:{url.port}"
        return Running(callable_url, int(said["pid"]), bool(said["open"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None  # it is not there, or half written by somebody else


def answers(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/healthz", timeout=ANSWER_S, trust_env=False).status_code == 200
    except httpx2.HTTPError:
        return False
