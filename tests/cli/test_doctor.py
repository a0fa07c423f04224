"""`headway doctor` finds what is wrong, and `headway migrate` sets one thing right."""

from __future__ import annotations

import json
import os
import shutil
from collections import namedtuple
from pathlib import Path
from typing import Any

import apsw
import pytest

from headway.cli import checks
from headway.cli.where import STATE_FILE, Where
from headway.store import open_store
from headway.store.sqlite.connection import migrations
from tests.cli.kit import Cli, server

NEWEST = migrations()[-1][0]


def findings(cli: Cli, *arguments: str, fails: bool = False) -> dict[str, tuple[str, str]]:
    """(level, text) of the worst about each thing."""
    said = cli("doctor", "--json", *arguments)
    assert said.code == int(fails), said.out
    answer: dict[str, Any] = json.loads(said.out)
    assert answer["ok"] is not fails
    order = ("ok", "warn", "fail")
    found: dict[str, tuple[str, str]] = {}
    for each in sorted(answer["findings"], key=lambda each: order.index(each["level"])):
        found[each["about"]] = (each["level"], each["text"])
    return found


def file_of(cli: Cli) -> Path:
    return Path(cli.options[1]) / "headway.db"


@pytest.fixture
def on_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Cli:
    data = tmp_path / "data"
    data.mkdir()
    open_store(f"sqlite:///{data / 'headway.db'}").close()
    return Cli(capsys, ("--data", str(data)))


def test_a_store_that_nobody_serves_is_well(direct: Cli, store: str) -> None:
    found = findings(direct)

    assert found.pop("server")[0] == "warn"
    assert {level for level, _ in found.values()} == {"ok"}
    expected = {
        "python",
        "store",
        "commit",
        "upstreams",
        "failures",
        "clock",
        "tokens",
        "backup",
        "keys",
    }
    if store == "sqlite":
        expected |= {"data", "disk", "integrity"}
    assert set(found) == expected
    lines = direct("doctor").out.splitlines()
    assert any(line.startswith("ok    python") for line in lines)


def archive(**more: Any) -> dict[str, Any]:
    library = {"status": "ok", "reason": None, "free_bytes": 5 << 30}
    return {
        "subscriptions": 1, "items": {"done": 0}, "library": library, "ffmpeg": True,
        "accounts": {"videos.example": {"healthy": 1}}, "yt_dlp": {"version": "2999.01.01"}, **more,
    }  # fmt: skip


class Knows:
    """A server that says this of its archive."""

    def __init__(self, seen: dict[str, Any]) -> None:
        self._seen = seen

    def get(self, path: str) -> dict[str, Any]:
        assert path == "/api/archive"
        return self._seen


@pytest.mark.parametrize(
    ("seen", "level", "about", "words"),
    [
        ({}, "ok", "archive", "5.0 GiB"),
        ({"library": {"status": "gone", "reason": "mount it"}}, "fail", "archive", "mount it"),
        ({"yt_dlp": {"version": "2020.01.01"}}, "warn", "yt-dlp", "pip install -U yt-dlp"),
        ({"yt_dlp": {"version": None}}, "fail", "yt-dlp", "pip install"),
        ({"ffmpeg": False}, "warn", "ffmpeg", "install it"),
        ({"accounts": {"a.example": {"expired": 2}}}, "warn", "accounts", "2 accounts of a.ex"),
    ],
)
def test_the_archive_if_it_is_in_use(seen: Any, level: str, about: str, words: str) -> None:
    found = list(checks.archive(Knows(archive(**seen))))  # type: ignore[arg-type]
    assert [each.about for each in found if each.level == level and words in each.text] == [about]
    unused = Knows(archive(subscriptions=0, ffmpeg=False))
    assert not list(checks.archive(unused))  # type: ignore[arg-type]


def test_a_server_is_well(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = tmp_path / "data"
    with server("--data", str(data)) as url:
        by_directory = findings(Cli(capsys, ("--data", str(data))))
        by_address = findings(Cli(capsys, ("--server", url)))

    assert {level for level, _ in by_directory.values()} == {"ok"}
    assert {"server", "version", "engine", "types"} <= set(by_directory)
    assert {level for level, _ in by_address.values()} == {"ok"}
    assert "data" not in by_address


def test_nothing_is_there(bare: Cli, tmp_path: Path) -> None:
    found = findings(bare, "--data", str(tmp_path / "nowhere"), fails=True)

    assert found["data"][0] == "fail"
    assert "headway serve" in found["data"][1]
    assert not (tmp_path / "nowhere").exists()


def test_a_file_where_the_directory_should_be(bare: Cli, tmp_path: Path) -> None:
    (tmp_path / "data").touch()

    assert findings(bare, "--data", str(tmp_path / "data"), fails=True)["data"][0] == "fail"


def test_an_empty_directory_is_only_new(bare: Cli, tmp_path: Path) -> None:
    assert findings(bare, "--data", str(tmp_path))["store"][0] == "warn"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_as_somebody(on_file: Cli) -> None:
    file_of(on_file).parent.chmod(0o500)

    assert findings(on_file, fails=True)["data"][0] == "fail"


def test_a_directory_that_cannot_be_written(on_file: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)

    level, text = findings(on_file, fails=True)["data"]
    assert level == "fail"
    assert "cannot be written" in text


@pytest.mark.parametrize(("free", "level"), [(50 << 20, "fail"), (500 << 20, "warn")])
def test_little_space(on_file: Cli, monkeypatch: pytest.MonkeyPatch, free: int, level: str) -> None:
    usage = namedtuple("usage", "total used free")(1 << 40, 0, free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)

    assert findings(on_file, fails=level == "fail")["disk"][0] == level


def test_a_damaged_file(on_file: Cli) -> None:
    file = file_of(on_file)
    for _ in range(40):
        on_file.add("t", "x=" + "y" * 400)
    text = bytearray(file.read_bytes())
    middle = len(text) // 2 // 4096 * 4096
    text[middle : middle + 8192] = os.urandom(8192)
    file.write_bytes(text)

    found = findings(on_file, fails=True)
    assert "restore it from a copy" in found.get("integrity", found["store"])[1]


def test_a_file_of_another_program(on_file: Cli) -> None:
    file_of(on_file).write_bytes(b"not a database" * 500)

    assert findings(on_file, fails=True)["store"][0] == "fail"


def test_a_slow_disk(on_file: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "commit_s", lambda _: 0.4)

    assert findings(on_file)["commit"] == (
        "warn", "a commit takes 400.0 ms; a quicker disk would acknowledge jobs sooner",
    )  # fmt: skip


def test_a_server_that_was_killed(on_file: Cli) -> None:
    left = {"url": "http://127.0.0.1:1", "pid": 7, "open": True}
    (file_of(on_file).parent / STATE_FILE).write_text(json.dumps(left))

    found = findings(on_file, fails=True)
    assert found["server"][0] == "fail"
    assert found["failures"][0] == "ok"  # the rest is looked at all the same


def test_a_server_that_is_away(bare: Cli) -> None:
    found = findings(bare, "--server", "http://127.0.0.1:1", fails=True)

    assert "cannot be reached" in found["server"][1]


def test_tokens_are_needed_where_others_can_come(
    on_file: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_HOST", "0.0.0.0")

    assert "tokens create" in findings(on_file, fails=True)["tokens"][1]
    on_file("tokens", "create", "ann", "--scope", "admin")
    assert findings(on_file)["tokens"] == ("ok", "1 can be used")


def test_what_goes_on_is_told(served: Cli) -> None:
    served("upstreams", "close", "angry.example", "--for", "10m", "--why", "429")
    served("lanes", "pause", "sleepy")
    nobody = served.add("nobody-has-this")
    failed = served.add("fail")
    served("jobs", "wait", str(failed))
    try:
        found = findings(served, fails=True)
    finally:
        served("upstreams", "open", "angry.example")
        served("lanes", "resume", "sleepy")
        served("jobs", "cancel", str(nobody))

    assert found["types"][0] == "fail"
    assert "no worker knows" in found["types"][1]
    assert found["upstreams"][0] == "warn"
    assert "angry.example is closed" in found["upstreams"][1]
    assert found["lanes"][0] == "warn"
    assert "sleepy" in found["lanes"][1]
    assert found["failures"][0] == "warn"


def test_a_clock_that_was_set_back(direct: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    direct("jobs", "cancel", str(direct.add("t")))
    real = checks.time
    monkeypatch.setattr(checks, "time", lambda: real() - 3_600)

    level, text = findings(direct, fails=True)["clock"]
    assert level == "fail"
    assert "60 min ahead" in text


# ---------------------------------------------------------------------- migrate


def test_a_new_store_is_made(bare: Cli, tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data"))

    assert f"is new, with schema version {NEWEST}" in bare("migrate", *data).out
    assert f"has schema version {NEWEST} already" in bare("migrate", *data).out
    assert bare.json("migrate", *data) == {"before": NEWEST, "after": NEWEST, "changed": False}


def test_a_database_is_known_by_its_version(direct: Cli) -> None:
    answer = direct.json("migrate")

    assert answer["before"] == answer["after"] > 0


def an_old_store(directory: Path) -> Path:
    directory.mkdir()
    db = apsw.Connection(str(directory / "headway.db"))
    for number, text in migrations()[:-1]:
        db.execute(text)
        db.pragma("user_version", number)
    db.pragma("application_id", 0x48445759)
    db.close()
    return directory


def test_an_old_schema_is_brought_up_to_date(bare: Cli, tmp_path: Path) -> None:
    data = an_old_store(tmp_path / "data")
    found = findings(bare, "--data", str(data), fails=True)

    assert "run `headway migrate`" in found["store"][1]
    assert bare.json("migrate", "--data", str(data)) == {
        "before": NEWEST - 1, "after": NEWEST, "changed": True,
    }  # fmt: skip
    assert findings(bare, "--data", str(data))["store"][0] == "ok"


def test_a_store_that_a_server_uses_is_left_alone(
    bare: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = an_old_store(tmp_path / "data")
    left = {"url": "http://127.0.0.1:1", "pid": 7, "open": True}
    (data / STATE_FILE).write_text(json.dumps(left))
    monkeypatch.setattr("headway.cli.where.answers", lambda _: True)

    assert "(process 7)" in bare.refuses("migrate", "--data", str(data))


def test_a_newer_schema_is_refused(bare: Cli, tmp_path: Path) -> None:
    data = an_old_store(tmp_path / "data")
    db = apsw.Connection(str(data / "headway.db"))
    db.pragma("user_version", NEWEST + 1)
    db.close()

    assert "upgrade Headway" in bare.refuses("migrate", "--data", str(data))
    assert "upgrade it" in findings(bare, "--data", str(data), fails=True)["store"][1]


def test_migrating_is_not_for_servers(bare: Cli) -> None:
    assert "without --server" in bare.refuses("migrate", "--server", "http://127.0.0.1:1")


def test_an_address_that_names_no_store(bare: Cli) -> None:
    for dsn in ("nonsense", "postgresql://127.0.0.1:1/nowhere?connect_timeout=1"):
        refused = bare.refuses("migrate", "--dsn", dsn)
        assert refused
    secret = "postgresql://ann:canary-secret@127.0.0.1:1/x?connect_timeout=1"
    assert "canary-secret" not in bare.refuses("jobs", "ls", "--dsn", secret)
    assert Where(dsn=secret).name == "the database"
