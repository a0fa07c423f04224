"""Worlds on every kind of store."""

import pytest


@pytest.fixture(autouse=True)
def on_every_store(worlds: None) -> None:
    """Tests are written for `World(app)`, and need not ask for it."""
