"""Where a command asks: what is named, what runs on the data directory, or the store itself."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.api.config import Config
from headway.cli.where import ANYWHERE, DEFAULT_DATA, STATE_FILE, Where, left_by_server
from headway.store import open_store
from tests.cli.kit import Cli, server


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory on which a server runs."""
    data = tmp_path_factory.mktemp("running")
    with server("--data", str(data)):
        yield data


def new_data(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    open_store(f"sqlite:///{data / 'headway.db'}").close()
    return data


def test_the_default_is_the_servers() -> None:
    assert Config().data == DEFAULT_DATA
    assert Config().url == Where().store_url


def test_a_server_that_runs_on_the_directory_is_asked(bare: Cli, data: Path) -> None:
    id = bare.json("jobs", "add", "greet", "name=Ann", "--data", str(data))["id"]

    assert bare("jobs", "wait", str(id), "--data", str(data)).code == 0


def test_the_directory_may_come_from_the_environment(
    bare: Cli, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_DATA", str(data))

    assert bare.json("top")["served"] is True


def test_the_default_directory_is_below_the_present_one(bare: Cli, tmp_path: Path) -> None:
    new_data(tmp_path).rename(tmp_path / DEFAULT_DATA)

    assert bare.json("top")["served"] is False


def test_a_directory_that_is_not_there(bare: Cli) -> None:
    refused = bare.refuses("jobs", "ls")

    assert refused.startswith(f"there is no data directory {DEFAULT_DATA}; make one with")
    assert not Path(DEFAULT_DATA).exists()


def test_a_directory_without_a_store(bare: Cli, tmp_path: Path) -> None:
    assert "there is no data in" in bare.refuses("jobs", "ls", "--data", str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"url": "http://127.0.0.1:1", "pid": 1, "open": true}', '{"url": 7}'],
)
def test_what_a_killed_server_left_does_no_harm(bare: Cli, tmp_path: Path, text: str) -> None:
    data = new_data(tmp_path)
    (data / STATE_FILE).write_text(text)

    assert bare.json("jobs", "ls", "--data", str(data))["total"] == 0


@pytest.mark.parametrize(("host", "called"), ANYWHERE.items())
def test_an_address_for_listening_is_not_one_for_calling(
    tmp_path: Path, host: str, called: str
) -> None:
    text = json.dumps({"url": f"http://{host}:8000", "pid": 7, "open": False})
    (tmp_path / STATE_FILE).write_text(text)
    left = left_by_server(tmp_path)

    assert left is not None
    assert left.url == f"http://{called}:8000"


def test_what_is_typed_wins_over_a_server_in_the_environment(
    bare: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_SERVER", "http://127.0.0.1:1")

    assert "http://127.0.0.1:1 cannot be reached" in bare.refuses("jobs", "ls")
    assert bare.json("jobs", "ls", "--data", str(new_data(tmp_path)))["total"] == 0


def test_two_places_are_a_usage_error(bare: Cli) -> None:
    said = bare("jobs", "ls", "--server", "http://127.0.0.1:1", "--data", "x")

    assert said.code == 2
    assert "not two of them" in said.err


def test_a_server_that_wants_a_token(bare: Cli, tmp_path: Path) -> None:
    data = tmp_path / "data"
    at = ("--data", str(data))
    token = bare("tokens", "create", "ann", "--scope", "admin", "--quiet", *at).out.strip()
    with server("--auth", "required", *at):
        assert "wants a valid token" in bare.refuses("jobs", "ls", *at)
        assert "wants a valid token" in bare.refuses("jobs", "ls", *at, "--token", "hw_1_x")
        assert bare.json("jobs", "ls", *at, "--token", token)["total"] == 0
        # Whoever may write the store is its owner, also while a server runs.
        assert bare("tokens", "create", "bob", "--scope", "read", *at).code == 0
        assert len(bare.json("tokens", "ls", *at)["items"]) == 2


def test_an_engine_elsewhere_gets_the_orders(bare: Cli, data: Path) -> None:
    """As when an app runs on the store without a server: nobody is at an address."""
    at = ("--data", str(data))
    left = data / STATE_FILE
    hidden = data / "hidden.json"
    id = str(bare.json("jobs", "add", "nobody", *at)["id"])
    os.rename(left, hidden)
    try:
        assert bare.json("jobs", "ls", f"id:{id}", *at)["items"][0]["status"] == "queued"
        assert bare("jobs", "cancel", id, *at).code == 0
        assert bare("jobs", "wait", id, *at, "--timeout", "30s").code == 1
        assert bare.json("jobs", "show", id, *at)["status"] == "cancelled"
    finally:
        os.rename(hidden, left)
