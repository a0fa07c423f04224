"""A new app and a new diary for each test."""

import pytest

from headway import App
from tests.engine.kit import Diary


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
def diary() -> Diary:
    return Diary()
