"""The small worker of the guide really works, and so does the one in the shell."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway import App
from headway.store.records import NewJob
from tests.hands.kit import eventually
from tests.remote.processes import Process, Server
from tests.stores import sqlite_place

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "workers.md"


def block(language: str, word: str) -> str:
    found: list[str] = re.findall(
        rf"^```{language}\n(.*?)^```", GUIDE.read_text("utf-8"), re.M | re.S
    )
    [text] = [each for each in found if word in each]
    return text


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(sqlite_place(tmp_path), tmp_path, HEADWAY_LEASE_S="2")
    server.start()
    yield server
    server.end()


def adding(n: int) -> NewJob:
    return NewJob("add", f'{{"a":{n},"b":1}}', created_at=0.0)


def test_the_worker_in_plain_python(server: Server, tmp_path: Path) -> None:
    code = block("python", "urllib")
    (tmp_path / "worker.py").write_text(code)
    command = [sys.executable, str(tmp_path / "worker.py")]
    worker = Process(command, tmp_path / "plain.log", HEADWAY_SERVER=server.url)
    app = App(server.url)
    try:
        handles = app.enqueue_many(adding(n) for n in range(5))
        assert [handle.result(20) for handle in handles] == [1, 2, 3, 4, 5]
        bad = app.enqueue(NewJob("add", "{}", created_at=0.0))
        eventually(lambda: bad.row().tries)  # it failed once, and is tried again later
        assert "missing" in (bad.row().error or "")
        server.kill()
        server.start()
        assert app.enqueue(adding(41)).result(20) == 42
        assert not worker.is_over()
    finally:
        app.close()
        worker.end()


@pytest.mark.skipif(not shutil.which("jq") or not shutil.which("curl"), reason="needs curl and jq")
def test_the_worker_in_a_shell(server: Server, tmp_path: Path) -> None:
    command = ["sh", "-c", block("sh", "curl")]
    worker = Process(command, tmp_path / "shell.log", HEADWAY_SERVER=server.url)
    app = App(server.url)
    try:
        assert app.enqueue(adding(1)).result(20) == 2
    finally:
        app.close()
        worker.end()
