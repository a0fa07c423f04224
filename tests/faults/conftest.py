"""A database of its own for each test, and what runs in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from headway.store.postgres import writer as writing
from tests.faults.history import Journal
from tests.faults.kit import Works
from tests.faults.proxy import Proxy
from tests.postgres import Postgres, in_memory, postgres, shared_postgres

Maker = Callable[..., Works]


@pytest.fixture
def server() -> Postgres:
    """The one that other tests use, too: only sessions in one's own database may be hurt."""
    return shared_postgres()


@pytest.fixture
def direct(server: Postgres) -> str:
    """The address of a new and empty database."""
    return server.new_database()


@pytest.fixture(scope="module")
def own_server() -> Iterator[Postgres]:
    """One that may be stopped and started."""
    with postgres(in_memory(1 << 30), max_wal_size="256MB") as server:
        yield server


@pytest.fixture
def proxy(server: Postgres) -> Iterator[Proxy]:
    with Proxy(server.port) as proxy:
        yield proxy


@pytest.fixture
def journal() -> Journal:
    return Journal()


@pytest.fixture
def works(journal: Journal) -> Iterator[Maker]:
    """Makes apps, and closes them in the end."""
    with ExitStack() as opened:

        def make(url: str, process: str = "p") -> Works:
            made = Works(url, journal, process)
            opened.callback(made.close)
            return made

        yield make


@pytest.fixture
def always_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every ring is a message of its own, after the commit."""
    monkeypatch.setattr(writing, "QUIET_S", float("inf"))


@pytest.fixture(params=["busy", "quiet"])
def pace(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether it rings after the commit or with it."""
    quiet_s = float("inf") if request.param == "busy" else float("-inf")
    monkeypatch.setattr(writing, "QUIET_S", quiet_s)
    return str(request.param)
