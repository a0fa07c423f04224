"""The servers that these tests share: they do no harm to them, and use names of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.security.kit import Guarded, guarded_on
from tests.servers import STORES, Server, server_on

Opening = Callable[[str], Guarded]


@pytest.fixture(scope="session")
def opening() -> Iterator[Opening]:
    known: dict[str, Guarded] = {}
    with ExitStack() as stack:

        def opened(store: str) -> Guarded:
            if store not in known:
                known[store] = stack.enter_context(guarded_on(store, media_on="yes"))
            return known[store]

        yield opened


@pytest.fixture
def guarded(opening: Opening) -> Guarded:
    """Where the store makes no difference."""
    return opening("sqlite")


@pytest.fixture(params=STORES)
def guarded_everywhere(opening: Opening, request: pytest.FixtureRequest) -> Guarded:
    return opening(request.param)


@pytest.fixture(scope="session")
def open_server() -> Iterator[Server]:
    """As it is on somebody's own machine: whoever reaches it may use it."""
    with server_on("sqlite") as started:
        yield started
