"""A new app and a new diary for each test, and worlds on every kind of store."""

import pytest

from headway import App
from tests.engine.kit import Diary


@pytest.fixture(autouse=True)
def on_every_store(worlds: None) -> None:
    """Tests are written for `World(app)`, and need not ask for it."""


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
def diary() -> Diary:
    return Diary()
