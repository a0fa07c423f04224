"""An app of its own for each test, on every kind of store."""

from collections.abc import Iterator

import pytest

from headway import App


@pytest.fixture
def app(url: str) -> Iterator[App]:
    app = App(url)
    yield app
    app.close()
