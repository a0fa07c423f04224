"""SQLite's own: the file and what is beside it, other processes, readers and the writer."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from headway.errors import (
    EngineRunning,
    HeadwayError,
    SchemaTooNew,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
)
from headway.store import open_store
from headway.store.sqlite import SqliteStore, connection, purging
from headway.store.sqlite.bell import LONGEST_PATH, bell_path
from tests.store.disks import Disk
from tests.store.kit import T0, WAIT_S, Engine, all_jobs, ended, job, put, put_one

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "jobs.db")


@pytest.fixture
def store(path: str) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    yield store
    store.close()


def elsewhere(verb: str, path: str) -> subprocess.Popen[str]:
    """Another process that does something with the store."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.store.producers", verb, f"sqlite:///{path}"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


# Opening


@pytest.mark.parametrize("url", ["jobs.db", "sqlite:", "sqlite://", "sqlite:///", "mysql:///x"])
def test_an_address_of_no_store_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(StoreError, match=r"sqlite:///file\.db"):
        open_store(url)


def test_a_relative_address_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "another").mkdir()
    monkeypatch.chdir(tmp_path)
    store = open_store("sqlite:///jobs.db")
    monkeypatch.chdir(tmp_path / "another")

    number = put_one(store)

    assert store.payload(number) == "{}"
    assert not list((tmp_path / "another").iterdir())
    store.close()


def test_an_empty_file_becomes_a_store(path: str) -> None:
    Path(path).touch()
    store = SqliteStore(path)

    assert put(store) == all_jobs(store)
    store.close()


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"directory of .*nowhere.* is not there; make it"):
        SqliteStore(str(tmp_path / "nowhere" / "jobs.db"))


def test_a_directory_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        SqliteStore(str(tmp_path))


def test_a_newer_schema_is_refused_and_left_alone(path: str) -> None:
    SqliteStore(path).close()
    db = apsw.Connection(path)
    db.pragma("user_version", 999)
    db.close()
    before = Path(path).read_bytes()

    with pytest.raises(SchemaTooNew, match=r"schema version 999.*up to \d+; upgrade Headway"):
        SqliteStore(path)

    assert Path(path).read_bytes() == before


def test_the_file_of_another_program_is_refused_and_left_alone(path: str) -> None:
    db = apsw.Connection(path)
    db.execute("create table bookmarks (address)")
    db.close()
    before = Path(path).read_bytes()

    with pytest.raises(StoreCorrupt, match="another program; name another file"):
        SqliteStore(path)

    assert Path(path).read_bytes() == before


@pytest.mark.parametrize("content", [b"Dear diary, " * 1_000, b"SQLite format 3\0" + b"?" * 9_000])
def test_what_is_no_database_is_refused_and_left_alone(path: str, content: bytes) -> None:
    Path(path).write_bytes(content)

    with pytest.raises(StoreCorrupt, match="restore it from a copy, or name another file"):
        SqliteStore(path)

    assert Path(path).read_bytes() == content


def test_damage_is_an_error_of_ours(path: str) -> None:
    store = SqliteStore(path)
    put(store, *[job("x" * 5_000)] * 50)
    store.close()
    with Path(path).open("r+b") as file:
        file.seek(4096 * 3)
        file.write(b"\xff" * 4096 * 60)

    with pytest.raises(StoreCorrupt), closing(SqliteStore(path)) as damaged:
        all_jobs(damaged)


def test_a_file_that_has_gone_is_not_made_anew(store: SqliteStore, path: str) -> None:
    os.rename(path, f"{path}.moved")
    for suffix in ("-wal", "-shm"):
        Path(path + suffix).unlink(missing_ok=True)

    with pytest.raises(HeadwayError):
        put(store)

    assert not Path(path).exists()


# Settings


def test_what_is_committed_is_on_the_disk(path: str) -> None:
    SqliteStore(path).close()
    db = connection.connect(path)

    assert db.pragma("journal_mode") == "wal"
    assert db.pragma("synchronous") == 2  # FULL
    db.close()


def test_every_commit_is_synced(path: str) -> None:
    disk = Disk("counts syncs")
    store = SqliteStore(path, vfs=disk.name)
    put(store)
    before = disk.done["sync", "wal"]

    for _ in range(10):
        put(store)

    assert disk.done["sync", "wal"] - before == 10
    store.close()


def test_the_log_of_changes_is_folded_in_as_often_as_is_asked(path: str) -> None:
    store = SqliteStore(path, wal_pages=10)
    for _ in range(50):
        put(store, job("x" * 4_000))

    assert Path(f"{path}-wal").stat().st_size < 100 * 4096
    store.close()


def test_a_purge_takes_no_more_than_a_chunk(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purging, "CHUNK", 10)
    engine = Engine(store)
    engine.commit(ended=[ended(number) for number in put(store, *[job()] * 25)])

    assert [store.purge(T0 + 1, T0 + 1, T0 + 1).jobs for _ in range(4)] == [10, 10, 5, 0]


# Readers and the writer


def test_a_reader_does_not_block_the_writer(path: str) -> None:
    store = SqliteStore(path, wal_pages=5)
    put(store, *[job()] * 100)
    reading = store.load_open("100")
    next(reading)

    for _ in range(50):
        put(store, job("x" * 4_000))

    assert len(list(reading)) == 99
    store.close()


def test_a_writer_does_not_block_readers(store: SqliteStore, path: str) -> None:
    number = put_one(store)
    db = apsw.Connection(path)
    db.execute("begin immediate; delete from jobs")

    assert store.job(number) is not None
    db.execute("rollback")
    db.close()


def test_threads_that_are_gone_leave_no_connection(path: str) -> None:
    disk = Disk("counts connections")
    store = SqliteStore(path, vfs=disk.name)
    put(store)

    for _ in range(20):
        thread = threading.Thread(target=all_jobs, args=(store,))
        thread.start()
        thread.join()

    assert disk.done["open", "db"] - disk.done["close", "db"] <= 2
    store.close()
    assert disk.done["open", "db"] == disk.done["close", "db"]


@pytest.mark.parametrize("has_read_before", [True, False])
def test_closing_while_somebody_reads_is_harmless(path: str, has_read_before: bool) -> None:
    disk = Disk("reads slowly")
    store = SqliteStore(path, vfs=disk.name)
    reading, closed = threading.Event(), threading.Event()

    def wait(what: str, _kind: str) -> None:
        if what == "read" and threading.current_thread() is not threading.main_thread():
            reading.set()
            assert closed.wait(WAIT_S)

    def slow_read() -> None:
        disk.before = wait
        with pytest.raises(StoreError):
            all_jobs(store)

    with ThreadPoolExecutor(1) as reader:
        if has_read_before:
            reader.submit(all_jobs, store).result()
        put(store, *[job()] * 100)
        outcome = reader.submit(slow_read)
        assert reading.wait(WAIT_S)

        store.close()

        closed.set()
        outcome.result()


# The lock and the bell


def test_a_link_to_the_file_is_the_same_store(store: SqliteStore, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(store.path)
    linked = SqliteStore(str(tmp_path / "link.db"))
    heard = threading.Event()
    store.enter(heard.set)
    heard.clear()

    with pytest.raises(EngineRunning):
        linked.enter(lambda: None)
    put(linked)

    assert heard.wait(WAIT_S)
    linked.close()


def test_the_lock_goes_with_a_process_that_is_killed(store: SqliteStore) -> None:
    holder = elsewhere("engine", store.path)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "in\n"
    with pytest.raises(EngineRunning, match=f"process {holder.pid}"):
        store.enter(lambda: None)

    holder.kill()
    holder.communicate()

    assert store.enter(lambda: None).term == 2
    assert put(store) == all_jobs(store)


def test_the_bell_rings_from_one_process_to_another(store: SqliteStore) -> None:
    heard = threading.Event()
    store.enter(heard.set)
    heard.clear()

    producer = elsewhere("insert", store.path)
    producer.communicate(timeout=WAIT_S)

    assert heard.wait(WAIT_S)
    assert [store.payload(number) for number in all_jobs(store)] == ["from afar"]


def test_a_path_that_is_too_long_for_a_bell_has_one_elsewhere(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 90) / ("e" * 90)
    deep.mkdir(parents=True)
    store, other = (SqliteStore(str(deep / "jobs.db")) for _ in range(2))
    heard = threading.Event()
    store.enter(heard.set)
    heard.clear()

    put(other)

    assert heard.wait(WAIT_S)
    assert len(bell_path(store.path).encode()) <= LONGEST_PATH
    store.close()
    other.close()
    assert not Path(bell_path(store.path)).exists()


def test_files_in_one_directory_have_different_bells(tmp_path: Path) -> None:
    long = tmp_path / ("d" * 120)

    assert bell_path(str(tmp_path / "a")) != bell_path(str(tmp_path / "b"))
    assert bell_path(str(long / "a")) != bell_path(str(long / "b"))


def test_a_bell_that_somebody_has_removed_does_not_keep_an_engine_from_leaving(
    store: SqliteStore,
) -> None:
    store.enter(lambda: None)
    os.unlink(bell_path(store.path))

    store.leave()

    assert not [each for each in threading.enumerate() if each.name == "headway-bell"]


def test_leaving_takes_the_bell_away(store: SqliteStore) -> None:
    store.enter(lambda: None)
    assert Path(bell_path(store.path)).exists()

    store.leave()

    assert not Path(bell_path(store.path)).exists()


def test_a_bell_that_cannot_be_hung_is_an_error_of_ours(store: SqliteStore) -> None:
    Path(bell_path(store.path)).mkdir()

    with pytest.raises(StoreUnavailable, match="bell"):
        store.enter(lambda: None)

    Path(bell_path(store.path)).rmdir()
    assert store.enter(lambda: None).term == 1
