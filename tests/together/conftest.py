"""Groups of servers, each test with one of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from uuid import uuid4

import pytest

from tests.postgres import shared_postgres
from tests.together.group import Group, group_on

NewGroup = Callable[..., Group]


@pytest.fixture
def new_group() -> Iterator[NewGroup]:
    """`new_group(3, lease_s=4)`: so many servers, on a new store."""
    with ExitStack() as running:

        def make(many: int, **settings: object) -> Group:
            schema = f"s{uuid4().hex}"
            dsn = shared_postgres().url(schema=schema)
            direct = shared_postgres().url()
            return running.enter_context(group_on(dsn, direct, schema, many, **settings))

        yield make
