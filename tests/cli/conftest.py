"""Every command works in two ways and on two stores: four places to ask."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from headway.store import open_store
from tests.cli.kit import Cli, Servers, new_database

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


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with ExitStack() as running:
        yield Servers(tmp_path_factory.mktemp("served"), running)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def served(store: str, servers: Servers, capsys: pytest.CaptureFixture[str]) -> Cli:
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
