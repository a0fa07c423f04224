"""`headway serve` and `headway worker`: what they are told, and what they refuse."""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headway.cli import serving
from headway.remote import worker
from headway.sdk.app import App
from tests.cli.kit import SHOP, Cli, server


@pytest.fixture(autouse=True)
def own_logging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a command sets up for its process must not be there for the next test."""
    monkeypatch.setattr("headway.api.logs.set_up", lambda *_: None)
    caller = logging.getLogger("httpx2")
    before = caller.level
    yield
    caller.setLevel(before)


@pytest.fixture(autouse=True)
def own_modules(tmp_path: Path) -> Iterator[None]:
    """What a test imports from its directory is forgotten afterwards."""
    before, path = set(sys.modules), list(sys.path)
    yield
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
    sys.path[:] = path


def test_an_app_is_found_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "my_own_shop.py").write_text(
        "from headway import App\napp = App()\nclass Box:\n    inner = App()\n"
    )

    assert isinstance(serving.app_at("my_own_shop:app"), App)
    assert isinstance(serving.app_at("my_own_shop:Box.inner"), App)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("nowhere_at_all:app", "", "there is no module 'nowhere_at_all' here"),
        ("shop_a.nothing:app", "", "there is no module 'shop_a.nothing' here"),
        ("shop_a:missing", "", "has no 'missing'"),
        ("shop_a:app", "app = 7", "is a int, not an App"),
        ("shop_a:app", "import not_there_at_all", "ModuleNotFoundError: No module named"),
        ("shop_a:app", "x = 1\n1 / 0", "ZeroDivisionError: division by zero (shop_a.py:2)"),
        ("shop_a:app", "def", "SyntaxError"),
    ],
)
def test_an_app_that_is_not_there(
    bare: Cli, tmp_path: Path, name: str, text: str, why: str
) -> None:
    (tmp_path / "shop_a.py").write_text(text)

    assert why in bare.refuses("serve", "--app", name)
    assert why in bare.refuses("worker", "--server", "http://127.0.0.1:1", "--app", name)
    assert not (tmp_path / "headway-data").exists()


@pytest.mark.parametrize("name", ["shop", "shop:", ":app"])
def test_a_name_that_is_none(bare: Cli, name: str) -> None:
    assert bare("serve", "--app", name).code == 2


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--auth", "maybe"), "auth is auto or required"),
        (("--log-format", "xml"), "log_format is auto, json or text"),
        (("--log-level", "loud"), "log_level is debug"),
        (("--port", "99999"), "is no port"),
        (("--config", "nowhere.toml"), "nowhere.toml cannot be read"),
        (("--host", "0.0.0.0"), "headway tokens create"),
    ],
)
def test_what_a_server_refuses(bare: Cli, options: tuple[str, ...], why: str) -> None:
    said = bare("serve", "--port", "0", *options)

    assert said.code == 1
    assert why in said.err.splitlines()[-1]
    assert "Traceback" not in said.err


def test_a_port_that_is_taken(bare: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = bare("serve", "--port", str(taken.getsockname()[1]))

    assert said.code == 1
    assert "cannot be used" in said.err


def test_a_server_is_told_by_its_file(bare: Cli, tmp_path: Path) -> None:
    (tmp_path / "headway.toml").write_text(
        f'[server]\ndata = "{tmp_path / "from-file"}"\n[lane.web]\nlimit = 7\n'
    )
    with server("--config", str(tmp_path / "headway.toml")) as url:
        gate = bare.json("lanes", "show", "web", "--server", url)

    assert gate["limit"] == 7
    assert (tmp_path / "from-file" / "headway.db").is_file()


def test_a_wrong_setting_of_a_gate_is_named_with_its_place(
    bare: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, at = tmp_path / "headway.toml", ("--data", str(tmp_path / "data"), "--port", "0")
    file.write_text('[upstream."site.example"]\nevery = "often"\n')
    said = bare.refuses("serve", *at, "--config", str(file))
    assert f"[upstream.\"site.example\"] in {file}: 'often' is not a duration" in said
    monkeypatch.setenv("HEADWAY_LANE__slow__limit", "-1")
    assert "HEADWAY_LANE__slow__limit: cap must be" in bare.refuses("serve", *at)


def test_other_names_are_allowed(bare: Cli, tmp_path: Path) -> None:
    at = ("--data", str(tmp_path / "data"), "--allowed-host", "queue.example")
    with server(*at) as url:
        assert bare.json("jobs", "ls", "--server", url)["total"] == 0


def test_a_worker_is_told_everything(bare: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(worker, "run", lambda *said, **more: told.append((said, more)))
    monkeypatch.setenv("HEADWAY_TOKEN", "hw_1_x")
    said = bare(
        "worker", "--server", "http://queue.example:8000", "--app", SHOP, "--concurrency", "3",
        "--drain", "1m",
    )  # fmt: skip

    assert said.code == 0
    [((app, at, token), more)] = told
    assert isinstance(app, App)
    assert (at, token) == ("http://queue.example:8000", "hw_1_x")
    assert more == {"concurrency": 3, "drain_s": 60.0}


def test_a_worker_needs_to_know_where_and_what(bare: Cli) -> None:
    assert bare("worker", "--app", SHOP).code == 2
    assert bare("worker", "--server", "http://127.0.0.1:1").code == 2
