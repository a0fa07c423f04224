"""A store, opened as often as a test wants. Which ones there are is in `tests/stores.py`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

import headway.store
from headway.store import Store
from tests.store.kit import Engine, Opener


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
