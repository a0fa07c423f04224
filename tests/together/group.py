"""Servers that share a PostgreSQL store, and what happens to them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from tests.hands.kit import eventually
from tests.postgres import in_memory
from tests.servers import Server

ELSEWHERE = "another machine"


class Group:
    """`servers` in the order in which they were started; the first one leads at first. `direct` is
    the address of the database for whoever looks past Headway.
    """

    def __init__(self, directory: Path, dsn: str, direct: str, schema: str, many: int,
                 **settings: object) -> None:  # fmt: skip
        self.direct = direct
        self.schema = schema
        self.servers: list[Server] = []
        for number in range(many):
            place = directory / f"server-{number}"
            place.mkdir()
            server = Server(place, dsn, **settings)  # type: ignore[arg-type]
            server.start()
            self.servers.append(server)

    @property
    def urls(self) -> list[str]:
        return [each.url for each in self.servers]

    def leader(self) -> Server | None:
        """Whoever says so of itself."""
        for each in self.servers:
            if each.is_running and role_of(each.url) == "running":
                return each
        return None

    def the_leader(self, within_s: float = 20.0) -> Server:
        found: list[Server] = []

        def look() -> bool:
            leader = self.leader()
            found.extend([] if leader is None else [leader])
            return leader is not None

        eventually(look, within_s)
        return found[0]

    def followers(self) -> list[Server]:
        leader = self.the_leader()
        return [each for each in self.servers if each is not leader]

    def as_if_elsewhere(self) -> None:
        """The others cannot see whether the process that leads is gone."""
        with psycopg.connect(self.direct, autocommit=True) as db:
            row = db.execute(f"select holder from {self.schema}.leader".encode()).fetchone()
            assert row is not None
            holder = {**json.loads(row[0]), "machine": ELSEWHERE}
            db.execute(
                f"update {self.schema}.leader set holder = %s".encode(), (json.dumps(holder),)
            )

    def close(self) -> None:
        for each in self.servers:
            if each.is_running:
                os.kill(each.pid, signal.SIGCONT)
                each.close()


@contextmanager
def group_on(dsn: str, direct: str, schema: str, many: int, **settings: object) -> Iterator[Group]:
    with ExitStack() as stack:
        directory = Path(tempfile.mkdtemp(prefix="headway-group-", dir=in_memory()))
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        group = Group(directory, dsn, direct, schema, many, **settings)
        stack.callback(group.close)
        yield group


def role_of(url: str) -> str:
    """What it says when asked whether it is ready: running, elsewhere, or nothing."""
    try:
        status, answer = ask(url, "GET", "/readyz", within_s=2.0)
    except OSError:
        return ""
    return str(answer["engine"]) if status == 200 else ""


def ask(
    url: str, method: str, path: str, body: Any = None, *, within_s: float = 30.0
) -> tuple[int, Any]:
    """The status and what came with it."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, method=method)
    try:
        with urllib.request.urlopen(request, timeout=within_s) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read() or b"null")
