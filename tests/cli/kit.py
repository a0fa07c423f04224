"""Calling the command in this process, on a server that runs or on the store itself."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import pytest

from headway.cli import main
from tests.forked import Forked
from tests.postgres import shared_postgres

SHOP = "tests.cli.shop:app"
ROOT = Path(__file__).parent.parent.parent
STARTS_S = 30.0


@dataclass(frozen=True)
class Said:
    """What a command has printed, and how it ended."""

    out: str
    err: str
    code: int


@dataclass
class Cli:
    """The command with the options that say where to ask."""

    capture: pytest.CaptureFixture[str]
    options: tuple[str, ...] = ()
    served: bool = False
    store_url: str = ""
    seen: list[Said] = field(default_factory=list)

    def __call__(self, *arguments: str) -> Said:
        self.capture.readouterr()
        code = 0
        try:
            main([*arguments, *self.options])
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        out, err = self.capture.readouterr()
        self.seen.append(Said(out, err, code))
        return self.seen[-1]

    def json(self, *arguments: str) -> Any:
        """What it prints for programs; it must have gone well."""
        said = self(*arguments, "--json")
        assert said.code == 0, said.err
        return json.loads(said.out)

    def add(self, type: str, *arguments: str) -> int:
        id: int = self.json("jobs", "add", type, *arguments)["id"]
        return id

    def refuses(self, *arguments: str) -> str:
        """The one line that says why."""
        said = self(*arguments)
        assert said.code == 1
        assert said.out == ""
        assert said.err.startswith("error: ")
        assert said.err.count("\n") == 1
        return said.err.removeprefix("error: ").strip()


@contextmanager
def server(*options: str) -> Iterator[str]:
    """`headway serve` in a process of its own; its address."""
    arguments = ("-m", "headway", "serve", "--port", "0", "--app", SHOP, *options)
    with tempfile.TemporaryFile("w+") as log:
        process, out = forked(*arguments, aside=log)
        with out, stopped_at_last(process):
            yield _address_said_by(process, out, log)


def forked(*arguments: str, aside: IO[str]) -> tuple[Forked, IO[str]]:
    """A program of its own, and what it prints."""
    mine, its = os.pipe()
    with open(os.devnull) as nothing:
        process = Forked(
            arguments, stdin=nothing.fileno(), stdout=its, stderr=aside.fileno(),
            environment=without_headway(), cwd=ROOT,
        )  # fmt: skip
    os.close(its)
    return process, open(mine)


def _address_said_by(process: Forked, out: IO[str], log: IO[str]) -> str:
    said = out.readline()
    if not said.startswith("Headway is at "):
        process.wait(STARTS_S)
        log.seek(0)
        raise AssertionError(f"the server did not start: {log.read()}")
    return said.removeprefix("Headway is at ").strip()


@contextmanager
def stopped_at_last(process: Forked) -> Iterator[None]:
    try:
        yield
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(STARTS_S)
        process.kill()
        process.wait()


def without_headway() -> dict[str, str]:
    """The environment without what would say something to the command."""
    return {name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")}


def new_database() -> str:
    return shared_postgres().url(schema=f"s{uuid4().hex}")


class Servers:
    """One server on each store, for all tests that do no harm to it: their addresses."""

    def __init__(self, data: Path, running: ExitStack) -> None:
        self._data = data
        self._running = running
        self._known: dict[str, str] = {}

    def __getitem__(self, store: str) -> str:
        """It is started when somebody first asks for it."""
        if store not in self._known:
            at = ("--data", str(self._data)) if store == "sqlite" else ("--dsn", new_database())
            self._known[store] = self._running.enter_context(server(*at))
        return self._known[store]
