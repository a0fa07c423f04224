"""What `headway doctor` says of backups, keys, alerts and servers; and `headway keys` and
`headway alerts` themselves.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from time import time
from typing import Any

import pytest

from headway.cli import upkeep_checks
from headway.cli.client import Refused
from headway.cli.where import Where
from headway.net import sealing
from headway.net.sealing import Vault
from headway.store import open_store
from headway.store.backup import noted
from headway.store.sqlite.lock import EngineLock
from headway.store.tables import Table
from tests.cli.kit import Cli, server
from tests.contract.calls_kit import OWN, receiver
from tests.store.kit import Engine, event

DAY_S = 86_400.0


def said_by(check: Any, *about: Any) -> list[tuple[str, str]]:
    return [(each.level, each.text) for each in check(*about)]


class Says:
    """A server that answers this."""

    direct = False

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def get(self, _path: str) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@pytest.fixture
def where(tmp_path: Path) -> Where:
    found = Where(data=tmp_path / "data")
    found.make()
    return found


def test_a_store_in_use_without_a_backup_is_told(where: Where) -> None:
    [(level, _)] = said_by(upkeep_checks.backups, where)
    assert level == "ok"  # it is new
    store = open_store(where.store_url)
    Engine(store).commit(events=[event(at=time() - 30 * DAY_S)])
    store.close()
    [(level, text)] = said_by(upkeep_checks.backups, where)
    assert level == "warn"
    assert "headway backup" in text


@pytest.mark.parametrize(("days", "level"), [(1, "ok"), (20, "warn")])
def test_the_age_of_the_last_backup(where: Where, tmp_path: Path, days: int, level: str) -> None:
    file = tmp_path / "one.headway"
    file.write_text("x")
    noted.note(where.store_url, file, time() - days * DAY_S)
    [(found, text)] = said_by(upkeep_checks.backups, where)
    assert found == level
    assert str(file) in text
    file.unlink()
    assert said_by(upkeep_checks.backups, where)[0][0] == "warn"


def test_a_key_file_that_others_can_read(where: Where) -> None:
    Vault.at(str(where.data), {})
    assert not said_by(upkeep_checks.key_file, where)
    (where.data / sealing.FILE).chmod(0o644)
    [(level, text)] = said_by(upkeep_checks.key_file, where)
    assert level == "fail"
    assert "chmod 600" in text


def key(role: str, secrets: int) -> dict[str, Any]:
    return {"id": "abc", "role": role, "secrets": secrets}


@pytest.mark.parametrize(
    ("items", "level", "words"),
    [
        ([key("seals", 2)], "ok", "open all 2 stored secrets"),
        ([key("seals", 1), key("opens", 2)], "warn", "headway keys reseal"),
        ([key("seals", 1), key("missing", 1)], "fail", "put it back"),
    ],
)
def test_keys_that_are_missing_or_old(items: Any, level: str, words: str) -> None:
    [(found, text)] = said_by(upkeep_checks.keys, Says({"items": items, "place": "secret.key"}))
    assert found == level
    assert words in text


def test_keys_that_may_not_be_seen() -> None:
    assert said_by(upkeep_checks.keys, Says(Refused(403, "no")))[0][0] == "warn"
    assert said_by(upkeep_checks.keys, Says(Refused(503, "chmod")))[0][0] == "fail"


def to(host: str, error: str | None, at: str | None) -> dict[str, Any]:
    return {"host": host, "error": error, "last_told_at": at}


def test_receivers_that_are_not_reached() -> None:
    told = [to("a", None, "2026-01-01T00:00:00Z"), to("b", "refused", None), to("c", None, None)]
    found = said_by(upkeep_checks.alerts, Says({"receivers": told}))
    assert [level for level, _ in found] == ["ok", "fail", "ok"]
    assert "headway alerts test" in found[1][1]
    assert said_by(upkeep_checks.alerts, Says({"receivers": []}))[0][0] == "ok"


def one(role: str, version: str = "1") -> dict[str, Any]:
    return {"role": role, "version": version, "url": "http://x"}


@pytest.mark.parametrize(
    ("items", "level", "words"),
    [
        ([one("leads"), one("follows")], "ok", "2 servers, and one leads"),
        ([one("leads"), one("follows", "2")], "warn", "1, 2"),
        ([one("follows"), one("follows")], "fail", "none of 2 servers leads"),
    ],
)
def test_servers_that_share_a_store(items: Any, level: str, words: str) -> None:
    [(found, text)] = said_by(upkeep_checks.servers, Says({"items": items}))
    assert found == level
    assert words in text


# ---------------------------------------------------------------------- the commands


def with_secret(data: Path) -> None:
    """A store with one sealed secret, as callbacks have them."""
    store = open_store(f"sqlite:///{data / 'headway.db'}")
    secrets = Table("llm_callback_secrets", {"tenant": "text", "sealed": "text",
                    "made_at": "double"}, ("tenant",))  # fmt: skip
    sealed = Vault.at(str(data), {}).seal("whsec_x", "callbacks of acme")
    store.write([(secrets.put(), [("acme", sealed, 0.0)])])
    store.close()


def test_keys_are_rotated_and_pruned_without_a_server(direct: Cli, tmp_path: Path) -> None:
    if "--dsn" in direct.options:
        pytest.skip("keys are beside the data")
    direct("keys", "ls")  # which makes the tables
    with_secret(tmp_path / "data")
    [before] = direct.json("keys", "ls")["items"]
    rotated = direct.json("keys", "rotate")
    assert (rotated["resealed"], rotated["left"]) == (1, 0)
    assert direct.json("keys", "prune") == {"removed": [before["id"]]}
    said = direct("keys", "ls").out
    assert rotated["id"] in said
    assert before["id"] not in said
    assert "every key is needed" in direct("keys", "prune").out


def test_keys_of_the_environment_say_what_to_set(
    direct: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_SECRET_KEYS", sealing.new_key())
    said = direct("keys", "rotate")
    assert said.code == 1
    assert "HEADWAY_SECRET_KEYS=" in said.out
    assert "restart them" in said.err
    assert not (tmp_path / "data" / sealing.FILE).exists()


@pytest.mark.parametrize(
    "command",
    [
        ("channels", "add", "main", "--model", "m", "--base-url", "https://api.example.com/v1"),
        ("keys", "rotate"),
        ("feeds", "ls"),
    ],
)
def test_a_server_that_was_not_found_is_to_be_named(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As with --dsn, which says nothing of servers. Nothing is stopping."""
    with ExitStack() as running:
        where = Where(data=tmp_path / "data")
        where.make()
        running.callback(EngineLock(str(where.file.resolve())).release)
        refused = Cli(capsys, ("--data", str(where.data))).refuses(*command)
    assert "a server works on this store" in refused
    assert "name it with --server" in refused


def test_alerts_are_listed_and_tried(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = tmp_path / "headway.toml"
    with receiver() as ear:
        config.write_text(f'[server]\noutbound_allow = ["{OWN}"]\n[alerts]\nurl = "{ear.url}"\n')
        with server("--data", str(tmp_path / "data"), "--config", str(config)) as url:
            cli = Cli(capsys, ("--server", url))
            assert f"{OWN}:{ear.port}" in cli("alerts").out
            said = cli("alerts", "test")
            assert said.code == 0
            assert "yes" in said.out
            ear.answers.append((500, {}))
            assert cli("alerts", "test").code == 1
        assert [each.said["type"] for each in ear.heard] == ["alert.test", "alert.test"]


def test_without_a_receiver_a_test_says_what_to_set(served: Cli) -> None:
    assert "Nobody is told" in served("alerts").out
    assert "HEADWAY_ALERTS_URL" in served.refuses("alerts", "test")
    assert json.loads(served("alerts", "ls", "--json").out)["receivers"] == []
