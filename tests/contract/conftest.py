"""A client for the server that all tests of a process share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.kit import Api, new_name
from tests.servers import Server


@pytest.fixture(scope="session")
def api(server: Server) -> Iterator[Api]:
    with Api(server.url) as client:
        yield client


@pytest.fixture
def kind() -> str:
    """A type of job that is this test's own."""
    return new_name("kind")
