"""A backup has one moment of a store, all of it; and whoever held something before holds nothing in
what is restored from it.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from headway.errors import EngineRunning, SchemaTooNew, StaleBrain
from headway.net.sealing import Vault, new_key
from headway.store import Store, open_store
from headway.store.backup import file as backups
from headway.store.backup import noted, numbers, sqlite
from headway.store.backup.file import BackupFailed
from headway.store.records import SlotRow, Token
from headway.store.sqlite.lock import EngineLock
from headway.store.tables import Table
from tests.store.backup_kit import back_up, bring_back, file_of, is_file, verify
from tests.store.kit import T0, Engine, event, granted, job, mark_of, put, put_one
from tests.store.test_upgrades import OLD, check_what_was_there
from tests.stores import Place

OWN = ["create table own_marks (name text primary key, at bigint not null default 7)",
       "create index own_marks_at on own_marks (at)"]  # fmt: skip
MARKS = Table("own_marks", {"name": "text", "at": "bigint"}, ("name",))


@pytest.fixture
def elsewhere(new_url: Place, tmp_path: Path) -> str:
    """An empty place for the same kind of store."""
    directory = tmp_path / "elsewhere"
    directory.mkdir()
    return new_url(directory)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "one.headway"


def fill(store: Store) -> Engine:
    """Two jobs that wait, one that runs, a slot that is held, a token, a table of somebody's."""
    put(store, job('{"text": "tab\\t, line\\n, \\u00fc"}'), job(lane="slow"), job())
    engine = Engine(store)
    engine.commit(
        granted=[granted(3, fence=5)], fence=6, mark=mark_of(store), events=[event(3), event(1)],
        slots=[SlotRow(4, "granted", 6, "x.com", "{}", T0, T0, T0 + 60, 1)],
        processes=[(3, os.getpid(), T0)],
    )  # fmt: skip
    store.add_token(Token("t", "ops", "hash", "[]", None, T0))
    store.install("own", OWN)
    store.write([(MARKS.add(), [("a", 1), ("b", 2)])])
    return engine


def test_everything_is_in_it_and_comes_back(
    store: Store, url: str, elsewhere: str, file: Path, tmp_path: Path
) -> None:
    fill(store)
    manifest = back_up(url, file)

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (manifest.rows["jobs"], manifest.rows["own_marks"]) == (3, 2)
    assert manifest.apps == {"own": 1 + 1}
    verify(file, tmp_path)
    bring_back(file, elsewhere)

    back = open_store(elsewhere)
    assert [back.payload(id) for id in (1, 2, 3)] == [store.payload(id) for id in (1, 2, 3)]
    assert back.tokens() == store.tokens()
    assert back.rows("select name, at from own_marks order by name") == [("a", 1), ("b", 2)]
    assert [each.event for each in back.events(0, 10)] == ["grant", "grant", "restored"]
    back.install("own", OWN)
    back.write([(MARKS.put(), [("a", 3)])])
    back.close()


def test_fences_and_terms_of_before_are_stale(
    store: Store, url: str, elsewhere: str, file: Path
) -> None:
    before = fill(store)
    back_up(url, file)
    bring_back(file, elsewhere)

    back = open_store(elsewhere)
    engine = Engine(back)
    assert engine.brain.fence == 6 + numbers.FENCES
    assert engine.brain.term > before.brain.term + 1_000
    assert engine.brain.is_gone
    running = next(each for each in back.load_open(engine.brain.mark) if each.id == 3)
    assert (running.state, running.fence) == ("running", 5 + numbers.FENCES)
    assert [row.fence for row in back.slots()] == [6 + numbers.FENCES]
    assert back.processes() == []  # nothing is killed that others run
    if not is_file(url):
        engine.brain = before.brain  # an engine that finds this store under the old address
        with pytest.raises(StaleBrain):
            engine.commit(completed=[(1, T0)])
    back.close()


def test_numbers_of_what_came_after_it_are_not_given_again(
    store: Store, url: str, elsewhere: str, file: Path
) -> None:
    fill(store)
    back_up(url, file)
    lost = put_one(store)
    bring_back(file, elsewhere)

    back = open_store(elsewhere)
    assert back.job(lost) is None
    new = put_one(back)
    assert new > lost + numbers.JOBS - 10
    first, last = back.event_range()
    assert first == last == back.last_event() > numbers.EVENTS  # with a gap that is told
    engine = Engine(back)
    engine.commit(events=[event(new)])
    assert back.last_event() == last + 1
    assert new in {each.id for each in back.load_new(engine.brain.mark, 100)[0]}
    back.close()


def test_it_has_one_moment_however_much_is_written(
    store: Store, url: str, elsewhere: str, file: Path
) -> None:
    """Each transaction puts three rows, so the copy has a multiple of three."""
    put(store, *(job("x" * 500) for _ in range(3_000)))
    over, wrote = threading.Event(), threading.Event()

    def write() -> None:
        other = open_store(url)
        while not over.is_set():
            put(other, job(), job(), job())
            wrote.set()
        other.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert wrote.wait(20)
        manifest = back_up(url, file)
    finally:
        over.set()
        writer.join()
    bring_back(file, elsewhere)
    back = open_store(elsewhere)
    [(many,)] = back.rows("select count(*) from jobs")
    assert many == manifest.rows["jobs"] > 3_000
    assert many % 3 == 0
    back.close()


# ---------------------------------------------------------------------- where it may not go


def test_only_an_empty_place_will_do(store: Store, url: str, elsewhere: str, file: Path) -> None:
    fill(store)
    back_up(url, file)
    bring_back(file, elsewhere)
    for taken in (url, elsewhere):
        with pytest.raises(BackupFailed, match="already"):
            bring_back(file, taken)
    assert store.job(3) is not None


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
def test_what_was_left_beside_a_file_is_part_of_a_store_too(
    tmp_path: Path, file: Path, end: str
) -> None:
    """SQLite would write it over what was restored."""
    url = f"sqlite:///{tmp_path / 'a.db'}"
    open_store(url).close()
    back_up(url, file)
    place = tmp_path / "b"
    place.mkdir()
    (place / f"b.db{end}").symlink_to("nowhere")
    with pytest.raises(BackupFailed, match="together with its -wal and -shm"):
        bring_back(file, f"sqlite:///{place / 'b.db'}")
    assert [each.name for each in place.iterdir()] == [f"b.db{end}"]


def test_what_appears_during_a_restore_is_seen(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    open_store(url).close()
    back_up(url, file)
    place = tmp_path / "b"
    place.mkdir()
    monkeypatch.setattr(sqlite, "_renumber", lambda *_: (place / "b.db-wal").touch())
    with pytest.raises(BackupFailed, match=r"b\.db-wal"):
        bring_back(file, f"sqlite:///{place / 'b.db'}")
    assert [each.name for each in place.iterdir()] == ["b.db-wal"]


def test_a_store_that_was_closed_is_one_file(tmp_path: Path) -> None:
    """Whoever moves it away needs nothing beside it, whichever connection was closed last."""
    store = open_store(f"sqlite:///{tmp_path / 'a.db'}")
    put_one(store)
    assert store.job(1) is not None  # with a connection for reading
    store.close()
    assert [each.name for each in tmp_path.iterdir()] == ["a.db"]


def test_no_engine_may_run_there(tmp_path: Path, file: Path) -> None:
    """On a file that was removed while it ran."""
    url = f"sqlite:///{tmp_path / 'a.db'}"
    open_store(url).close()
    back_up(url, file)
    lock = EngineLock(str(tmp_path / "b.db"))
    with pytest.raises(EngineRunning):
        bring_back(file, f"sqlite:///{tmp_path / 'b.db'}")
    lock.release()
    assert not (tmp_path / "b.db").exists()
    bring_back(file, f"sqlite:///{tmp_path / 'b.db'}")


def test_a_name_that_is_taken_is_left_alone(store: Store, url: str, file: Path) -> None:
    file.write_text("somebody's")
    with pytest.raises(BackupFailed, match="there already"):
        back_up(url, file)
    assert file.read_text() == "somebody's"
    assert store.event_range() == (1, 0)


def full_disk(_path: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_nothing_is_left_of_one_that_cannot_be_written(
    store: Store, url: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_one(store)
    monkeypatch.setattr(backups, "sync", full_disk)
    with pytest.raises(BackupFailed, match="No space left on device; nothing is left"):
        back_up(url, file)
    assert not [each for each in file.parent.iterdir() if "headway" in each.name]


def test_a_disk_that_is_full_while_pages_are_copied(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    open_store(url).close()

    def no_room(*_: object) -> None:
        raise apsw.FullError("database or disk is full")

    monkeypatch.setattr(sqlite, "_step_by_step", no_room)
    with pytest.raises(BackupFailed, match="no room beside"):
        back_up(url, file)
    assert [each.name for each in tmp_path.iterdir()] == ["a.db"]


def test_nothing_is_left_of_a_restore_that_fails(
    store: Store, url: str, elsewhere: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_one(store)
    back_up(url, file)
    monkeypatch.setattr(numbers, "STALE", "update nothing set a = 1;")
    with pytest.raises(Exception, match="nothing"):
        bring_back(file, elsewhere)
    if is_file(elsewhere):
        assert list(file_of(elsewhere).parent.iterdir()) == []
    monkeypatch.undo()
    bring_back(file, elsewhere)


# ---------------------------------------------------------------------- damage


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-200])


def flip(path: Path) -> None:
    """In the middle of the largest member."""
    with zipfile.ZipFile(path) as zip:
        largest = max(zip.infolist(), key=lambda each: each.compress_size)
    content = bytearray(path.read_bytes())
    content[largest.header_offset + 30 + largest.compress_size // 2] ^= 0xFF
    path.write_bytes(content)


def other_member(path: Path) -> None:
    """A whole zip, in which one member is not the one that was written."""
    with zipfile.ZipFile(path) as zip:
        members = {name: zip.read(name) for name in zip.namelist()}
    first = next(name for name in members if members[name])
    members[first] += b"\n"
    path.unlink()
    with zipfile.ZipFile(path, "w") as zip:
        for name, content in members.items():
            zip.writestr(name, content)


def no_manifest(path: Path) -> None:
    path.unlink()
    with zipfile.ZipFile(path, "w") as zip:
        zip.writestr("holiday.jpg", b"")


@pytest.mark.parametrize("harm", [cut, flip, other_member, no_manifest])
def test_a_damaged_one_is_refused_and_nothing_restored(
    harm: Callable[[Path], None], store: Store, url: str, elsewhere: str, file: Path, tmp_path: Path
) -> None:
    fill(store)
    back_up(url, file)
    harm(file)
    for use in (lambda: verify(file, tmp_path), lambda: bring_back(file, elsewhere)):
        with pytest.raises(BackupFailed):
            use()
    if is_file(elsewhere):
        assert not file_of(elsewhere).exists()
    back = open_store(elsewhere)
    assert back.last_event() == 0
    back.close()


# ---------------------------------------------------------------------- versions and keys


@pytest.mark.parametrize("version", OLD)
def test_one_of_an_older_headway_is_brought_up_to_date(
    version: str, tmp_path: Path, file: Path
) -> None:
    place, make, number = OLD[version]
    old, new = place(tmp_path), place(tmp_path / "new")
    (tmp_path / "new").mkdir()
    make(old, number)
    assert back_up(old, file).schema == number
    bring_back(file, new)

    store = open_store(new)
    job = store.job(7)
    assert job is not None
    assert (job.type, job.tenant, store.payload(7)) == ("fetch", "acme", "[1]")
    assert [each.event for each in store.trail(0, 10)] == ["submit", "restored"]
    assert len(store.commands(10)) == len(store.batches(None, 10, 0)) == 1
    store.close()
    check_old_is_as_it_was(old)


def check_old_is_as_it_was(url: str) -> None:
    """A backup brings nothing up to date; whoever opens the store does."""
    store = open_store(url)
    check_what_was_there(store)
    store.close()


def test_one_of_a_newer_headway_is_refused(
    store: Store, url: str, elsewhere: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_one(store)
    back_up(url, file)
    where = "sqlite" if is_file(url) else "postgres"
    monkeypatch.setattr(f"headway.store.backup.{where}.migrations", lambda: [(1, "")])
    with pytest.raises(SchemaTooNew, match="upgrade Headway"):
        bring_back(file, elsewhere)


def test_it_names_the_keys_that_its_secrets_need_and_has_none_of_them(
    store: Store, url: str, file: Path
) -> None:
    first, second = new_key(), new_key()
    store.install("media", ["create table media_accounts (id bigint primary key, sealed text)"])
    accounts = Table("media_accounts", {"id": "bigint", "sealed": "text"}, ("id",))
    sealed = [Vault([key], "here").seal("s", "x") for key in (first, first, second)]
    store.write([(accounts.add(), list(enumerate(sealed)))])

    manifest = back_up(url, file)

    assert manifest.keys == dict(sorted([(sealed[0][4:16], 2), (sealed[2][4:16], 1)]))
    with zipfile.ZipFile(file) as zip:
        everything = b"".join(zip.read(name) for name in zip.namelist())
    assert first.encode() not in everything
    with_keys = file.with_name("with.headway")
    back_up(url, with_keys, keys=f"{first}\n")
    with backups.reading(with_keys) as reader:
        assert reader.keys() == f"{first}\n"


def test_the_store_knows_when_the_last_one_was_made(store: Store, url: str, file: Path) -> None:
    assert noted.last(url) is None
    manifest = back_up(url, file)
    assert noted.note(url, file, manifest.made_at)
    assert noted.note(url, file, manifest.made_at + 5)
    assert noted.last(url) == noted.Noted(manifest.made_at + 5, str(file), file.stat().st_size)
    assert store.event_range() == (1, 0)
