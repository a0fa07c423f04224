"""An app of its own for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headway import App


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    app = App(f"sqlite:///{tmp_path}/jobs.db")
    yield app
    app.close()
