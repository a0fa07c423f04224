"""Every command works in two ways and on two stores: four places to ask."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from headway.store import open_store
from tests.cli.kit import Cli, server
from tests.postgres import shared_postgres

# The routes behind the commands are tested on both stores; here the second is for `make soak`.
STORES = ("sqlite", pytest.param("postgres", marks=pytest.mark.soak))
WAYS = ("server", "direct")


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("HEADWAY_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)


def new_database() -> str:
    return shared_postgres().url(schema=f"s{uuid4().hex}")


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """One server on each store, for all tests that do no harm to it: their addresses."""
    data = tmp_path_factory.mktemp("served")
    with (
        server("--data", str(data)) as on_file,
        server("--dsn", new_database()) as on_database,
    ):
        yield {"sqlite": on_file, "postgres": on_database}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def served(store: str, servers: dict[str, str], capsys: pytest.CaptureFixture[str]) -> Cli:
    """The command on a server that has the jobs of `shop`."""
    return Cli(capsys, ("--server", servers[store]), served=True)


@pytest.fixture
def direct(store: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Cli:
    """The command on a new store that nobody serves."""
    if store == "postgres":
        dsn = new_database()
        open_store(dsn).close()
        return Cli(capsys, ("--dsn", dsn), store_url=dsn)
    data = tmp_path / "data"
    data.mkdir()
    url = f"sqlite:///{data / 'headway.db'}"
    open_store(url).close()
    return Cli(capsys, ("--data", str(data)), store_url=url)


@pytest.fixture(params=WAYS)
def cli(request: pytest.FixtureRequest, store: str) -> Cli:  # noqa: ARG001 - on each of them
    """Both ways."""
    way: Cli = request.getfixturevalue("served" if request.param == "server" else "direct")
    return way


@pytest.fixture
def bare(capsys: pytest.CaptureFixture[str]) -> Cli:
    """The command as it is typed, without any option."""
    return Cli(capsys)
