"""`headway backup` and `headway restore`, as they are typed; and a server on what was restored."""

from __future__ import annotations

import json
import os
import signal
import stat
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import Any

import pytest

from headway.cli import backing
from headway.net import sealing
from headway.net.sealing import Vault
from headway.store import open_store
from headway.store.backup import sqlite
from headway.store.backup.file import reading
from tests.cli.kit import Cli, new_database
from tests.cli.test_upkeep import with_secret
from tests.contract.kit import Api, Worker
from tests.hands.kit import eventually
from tests.servers import NewServer


def place(cli: Cli, tmp_path: Path) -> tuple[str, ...]:
    """An empty one, for the same kind of store."""
    return ("--dsn", new_database()) if "--dsn" in cli.options else ("--data", str(tmp_path / "b"))


def test_there_and_back(direct: Cli, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    direct.add("hello", "n=1")
    direct("schedules", "add", "nightly", "report", "--cron", "0 3 * * *")
    file = tmp_path / "one.headway"
    said = direct.json("backup", str(file))
    assert said["rows"]["schedules"] == 1
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert Cli(capsys)("backup", str(file), "--verify").code == 0

    other = Cli(capsys, place(direct, tmp_path))
    told = other("restore", str(file))
    assert told.code == 0, told.err
    assert "next: make sure that no server" in told.err
    assert [each["type"] for each in other.json("jobs", "ls")["items"]] == ["report", "hello"]
    assert other.json("schedules", "ls")["items"][0]["name"] == "nightly"
    assert "already" in other.refuses("restore", str(file))


def old_backup(directory: Path, name: str, days: int) -> Path:
    """Written so many days ago."""
    file = directory / name
    file.write_text("")
    at = time() - days * 86_400
    os.utime(file, (at, at))
    return file


def test_a_directory_keeps_the_newest(direct: Cli, tmp_path: Path) -> None:
    backups = tmp_path / "backups"
    backups.mkdir()
    oldest = old_backup(backups, "headway-20200102-000000.headway", days=30)
    old_backup(backups, "headway-20200101-000000.headway", days=29)
    old_backup(backups, "diary.txt", days=90)
    made = direct.json("backup", str(backups), "--keep", "2")
    assert made["removed"] == [str(oldest)]
    assert len(list(backups.iterdir())) == 3


def test_what_somebody_has_named_is_kept_and_so_is_the_new_one(
    direct: Cli, tmp_path: Path
) -> None:  # fmt: skip
    """Also if the clock was put back: the name and the time of an older one are of the future."""
    backups = tmp_path / "backups"
    backups.mkdir()
    named = old_backup(backups, "headway-before-upgrade.headway", days=90)
    ahead = old_backup(backups, "headway-99990101-000000.headway", days=-2)
    made = direct.json("backup", str(backups), "--keep", "1")
    assert made["removed"] == [str(ahead)]
    assert sorted(backups.iterdir()) == sorted([named, Path(made["file"])])
    assert made["file"][-23:-8] <= datetime.now(UTC).strftime("%Y%m%d-%H%M%S")


def test_keys_are_in_it_only_if_somebody_says_so(
    direct: Cli, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    if "--dsn" in direct.options:
        pytest.skip("keys are beside the data")
    data = tmp_path / "data"
    direct("keys", "ls")
    with_secret(data)
    [id] = Vault.at(str(data), {}).ids
    said = direct("backup", str(tmp_path / "without.headway"))
    assert f"1 secret sealed with key {id}" in " ".join(said.err.split())
    direct("backup", str(tmp_path / "with.headway"), "--with-keys")

    bare = Cli(capsys, ("--data", str(tmp_path / "b")))
    told = bare("restore", str(tmp_path / "without.headway"))
    assert f"cannot be opened without key {id}" in " ".join(told.err.split())
    whole = Cli(capsys, ("--data", str(tmp_path / "c")))
    assert "missing" not in whole("restore", str(tmp_path / "with.headway")).err
    restored = tmp_path / "c" / sealing.FILE
    assert restored.read_text() == (data / sealing.FILE).read_text()
    assert stat.S_IMODE(restored.stat().st_mode) == 0o600
    assert whole.json("keys", "ls")["items"] == [{"id": id, "role": "seals", "secrets": 1}]
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / sealing.FILE).write_text("")
    other = Cli(capsys, ("--data", str(tmp_path / "d")))
    assert "move that file away" in other.refuses("restore", str(tmp_path / "with.headway"))


def test_keys_that_nothing_needs_yet_need_not_be_there(direct: Cli, tmp_path: Path) -> None:
    """The same command works every night, before the first secret and after it."""
    made = direct.json("backup", str(tmp_path / "one.headway"), "--with-keys")
    assert not made["with_keys"]
    assert direct("backup", str(tmp_path / "one.headway"), "--verify").code == 0


@pytest.fixture
def sealed_data(direct: Cli, tmp_path: Path) -> Path:
    """A data directory with a secret, and its key."""
    if "--dsn" in direct.options:
        pytest.skip("keys are beside the data")
    direct("keys", "list")
    with_secret(tmp_path / "data")
    return tmp_path / "data"


def test_a_backup_with_keys_lacks_none_of_them(
    direct: Cli, sealed_data: Path, tmp_path: Path
) -> None:  # fmt: skip
    [id] = Vault.at(str(sealed_data), {}).ids
    sealing.write_key_file(str(sealed_data), [sealing.new_key()])
    refused = direct.refuses("backup", str(tmp_path / "one.headway"), "--with-keys")
    assert f"1 stored secret cannot be opened without key {id}" in refused
    assert not [each for each in tmp_path.iterdir() if "headway" in each.name]
    (sealed_data / sealing.FILE).unlink()
    assert id in direct.refuses("backup", str(tmp_path / "one.headway"), "--with-keys")


def test_a_key_that_is_added_while_the_backup_is_made_is_in_it(
    direct: Cli, sealed_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_out = sqlite.copy_out

    def after_a_rotation(*about: Any) -> Any:
        _, old = sealing.keys_at(str(sealed_data), {})
        sealing.write_key_file(str(sealed_data), [sealing.new_key(), *old])
        with_secret(sealed_data)
        return copy_out(*about)

    monkeypatch.setattr(sqlite, "copy_out", after_a_rotation)
    file = tmp_path / "one.headway"
    [needed] = direct.json("backup", str(file), "--with-keys")["keys"]
    with reading(file) as reader:
        assert needed in [sealing.id_of(key) for key in (reader.keys() or "").split()]


def test_a_place_where_no_keys_can_be_written_is_told_before_the_store_is_there(
    bare: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, empty = new_database(), new_database()
    open_store(full).close()
    monkeypatch.setenv(sealing.VARIABLE, sealing.new_key())
    bare.json("backup", "one.headway", "--with-keys", "--dsn", full)
    monkeypatch.delenv(sealing.VARIABLE)
    (tmp_path / "file").write_text("")
    refused = bare.refuses("restore", "one.headway", "--dsn", empty, "--data", "file/data")
    assert refused == "file/data cannot be made: Not a directory"
    assert bare("restore", "one.headway", "--dsn", empty, "--data", "data").code == 0
    assert (tmp_path / "data" / sealing.FILE).exists()


def test_a_restore_that_fails_leaves_no_keys(bare: Cli, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    open_store(f"sqlite:///{data / 'headway.db'}").close()
    Vault.at(str(data), {})
    bare.json("backup", "one.headway", "--with-keys", "--data", "data")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "headway.db").write_text("")
    assert "already" in bare.refuses("restore", "one.headway", "--data", "b")
    assert [each.name for each in (tmp_path / "b").iterdir()] == ["headway.db"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("backup", "x", "--data", "nowhere"), "there is no store in nowhere"),
        (("backup", "x", "--server", "http://127.0.0.1:1"), "without --server"),
        (("restore", "nothing", "--data", "d"), "No such file"),
        (("backup", "nothing", "--verify"), "No such file"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(bare: Cli, arguments: tuple[str, ...], why: str) -> None:
    assert why in bare.refuses(*arguments)


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGHUP])
def test_who_ends_it_by_a_signal_finds_nothing_half_done(
    direct: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: signal.Signals
) -> None:
    before = signal.getsignal(by)
    monkeypatch.setattr(backing, "_fill", lambda *_: signal.raise_signal(by))
    assert direct("backup", str(tmp_path / "one.headway")).code == 128 + by
    assert not [each for each in tmp_path.iterdir() if "headway" in each.name]
    assert signal.getsignal(by) is before


def test_a_hangup_that_is_ignored_stays_so(
    direct: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill = backing._fill

    def hung_up(*about: Any) -> Any:
        signal.raise_signal(signal.SIGHUP)
        return fill(*about)

    monkeypatch.setattr(backing, "_fill", hung_up)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert direct("backup", str(tmp_path / "one.headway")).code == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_backup_of_one_kind_of_store_is_not_for_the_other(bare: Cli, tmp_path: Path) -> None:
    open_store(f"sqlite:///{tmp_path / 'headway.db'}").close()
    bare("backup", "one.headway", "--data", str(tmp_path))
    refused = bare.refuses("restore", "one.headway", "--dsn", "postgresql://127.0.0.1:1/x")
    assert "restore it with --data DIR" in refused


def test_a_worker_of_before_holds_nothing_after_a_restore(
    new_sqlite_server: NewServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It ran when the backup was made, and is given to another one, who ends it."""
    before = new_sqlite_server(lease_s=1)
    with Api(before.url) as api:
        job = api.enqueue("fetch")
        held = Worker(api, "fetch").take_one()
        cli = Cli(capsys, ("--data", str(before.data)))
        assert cli("backup", str(tmp_path / "one.headway")).code == 0
        before.stop()

    after = new_sqlite_server(lease_s=1)
    after.stop()
    for each in after.data.glob("headway.db*"):
        each.unlink()
    said = Cli(capsys, ("--data", str(after.data)))("restore", str(tmp_path / "one.headway"))
    assert said.code == 0, said.err
    after.start()
    with Api(after.url) as api:
        late = api.send("POST", f"/api/work/{job}/complete",
                        json={"fence": held["fence"], "status_code": 200})  # fmt: skip
        assert json.loads(late.text).get("accepted") is not True
        assert api.job(job)["status"] != "completed"
        worker = Worker(api, "fetch")
        again = eventually(lambda: worker.take(wait_ms=500))[0]
        assert (again["id"], again["fence"] > held["fence"] + 1_000_000) == (job, True)
        worker.complete(again)
        assert eventually(lambda: api.job(job)["status"] == "completed")
        trail = [each["event"] for each in api.get(f"/api/jobs/{job}/events")["items"]]
        assert trail.count("grant") == 2
