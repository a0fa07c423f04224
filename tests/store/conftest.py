"""The stores that the conformance suite runs on. A new store is one line in PLACES."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest

import headway.store
from headway.store import Store
from tests.postgres import shared_postgres
from tests.store.kit import Engine, Opener


def sqlite_place(directory: Path) -> str:
    return f"sqlite:///{directory / 'jobs.db'}"


def postgres_place(_directory: Path) -> str:
    return shared_postgres().url(schema=f"s{uuid4().hex}")


# From an empty directory to the address of a new and empty store.
PLACES: dict[str, Callable[[Path], str]] = {"sqlite": sqlite_place, "postgres": postgres_place}


@pytest.fixture(params=PLACES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store that nobody has opened yet."""
    return PLACES[request.param](tmp_path)


@pytest.fixture
def open_store(url: str) -> Iterator[Opener]:
    """Each call opens the same store once more, as another process would."""
    with ExitStack() as opened:

        def open_once_more() -> Store:
            store = headway.store.open_store(url)
            opened.callback(store.close)
            return store

        yield open_once_more


@pytest.fixture
def store(open_store: Opener) -> Store:
    return open_store()


@pytest.fixture
def other(open_store: Opener) -> Store:
    """The same store in another process, so to speak."""
    return open_store()


@pytest.fixture
def engine(store: Store) -> Engine:
    return Engine(store)
