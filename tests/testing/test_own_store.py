"""The store that a world brings along."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway import App
from headway.testing import World


def test_the_store_of_a_world_is_a_file_that_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the store of the app itself would be here
    app = App()
    with World(app):
        file = Path(app.url.removeprefix("sqlite:///"))
        assert file.exists()
    assert not file.parent.exists()
    assert not list(tmp_path.iterdir())
