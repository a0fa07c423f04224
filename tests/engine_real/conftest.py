"""An app of its own for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headway import App


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/jobs.db"


@pytest.fixture
def app(url: str) -> Iterator[App]:
    app = App(url)
    yield app
    app.close()
