"""SQLite's own: group commit, and a disk that is full, broken, read-only or taken."""

from __future__ import annotations

import contextlib
import resource
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import pytest

from headway.errors import (
    DuplicateJob,
    StoreBusy,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from headway.store.grouping import Request
from headway.store.records import OnConflict
from headway.store.sqlite import SqliteStore, connection
from headway.store.sqlite.inserting import insert
from headway.store.sqlite.writer import Writer
from tests.store.disks import Disk, Fault
from tests.store.kit import T0, WAIT_S, Engine, all_jobs, event, job, moved, put, put_one, unique


@pytest.fixture
def disk(request: pytest.FixtureRequest) -> Disk:
    return Disk(request.node.name)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "jobs.db")


@pytest.fixture
def store(path: str, disk: Disk) -> Iterator[SqliteStore]:
    store = SqliteStore(path, vfs=disk.name)
    yield store
    store.close()


def is_whole(path: str) -> bool:
    db = apsw.Connection(path)
    try:
        return db.pragma("integrity_check") == "ok"
    finally:
        db.close()


# Group commit


class Held:
    """Holds the first sync back until `go`, so that others come while a commit is under way."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._begun, self._may_go = threading.Event(), threading.Event()
        disk.before = self

    def __call__(self, what: str, kind: str) -> None:
        if (what, kind) == ("sync", "wal"):
            self._begun.set()
            assert self._may_go.wait(WAIT_S)

    def begun(self) -> None:
        assert self._begun.wait(WAIT_S)

    def go(self) -> None:
        self._disk.before = lambda _what, _kind: None
        self._may_go.set()


class Answers:
    """What several posts were answered, in the order of the posts."""

    def __init__(self, count: int) -> None:
        self._got: dict[int, tuple[Any, BaseException | None]] = {}
        self._all = threading.Semaphore(0)
        self._count = count

    def of(self, number: int) -> Callable[[Any, BaseException | None], None]:
        def done(receipts: Any, error: BaseException | None) -> None:
            self._got[number] = (receipts, error)
            self._all.release()

        return done

    def wait(self) -> list[tuple[Any, BaseException | None]]:
        for _ in range(self._count):
            assert self._all.acquire(timeout=WAIT_S)
        return [self._got[number] for number in range(self._count)]


def in_one_group(store: SqliteStore, disk: Disk, *requests: Any, then: Any = None) -> Any:
    """Post all of them while an earlier commit is under way; what each was answered."""
    put(store)  # the connection is there
    held = Held(disk)
    first, answers = Answers(1), Answers(len(requests))
    store.post([job()], first.of(0))
    held.begun()
    for number, jobs in enumerate(requests):
        store.post(jobs, answers.of(number))
    held.go()
    if then is not None:
        then()
    first.wait()
    return answers.wait()


def test_what_comes_during_a_commit_is_committed_together(store: SqliteStore, disk: Disk) -> None:
    put(store)
    before = disk.done["sync", "wal"]

    answers = in_one_group(store, disk, *[[job()]] * 50)

    assert [error for _, error in answers] == [None] * 50
    assert disk.done["sync", "wal"] - before == 1 + 1 + 1  # one before, the held one, the group


def test_many_threads_share_their_syncs(store: SqliteStore, disk: Disk) -> None:
    put(store)
    before = disk.done["sync", "wal"]
    take_a_while = threading.Event()  # nobody sets it: the disk is slow
    disk.before = lambda what, _kind: take_a_while.wait(0.002) and None if what == "sync" else None

    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda _: put(store), range(320)):
            pass

    assert len(all_jobs(store)) == 321
    assert disk.done["sync", "wal"] - before < 320  # how many, depends on the machine


def test_a_request_that_fails_harms_only_itself(store: SqliteStore, disk: Disk) -> None:
    taken = job("taken", unique=unique("k", OnConflict.REJECT))
    put(store, taken)

    good, bad, also_good = in_one_group(store, disk, [job("a")], [job("b"), taken], [job("c")] * 5)

    assert (good[1], also_good[1]) == (None, None)
    assert isinstance(bad[1], DuplicateJob)
    assert bad[0] is None
    payloads = [store.payload(number) for number in all_jobs(store)]
    assert sorted(filter(None, payloads)) == ["a", *"ccccc", "taken", "{}", "{}"]


def test_a_request_that_failed_has_no_receipts(store: SqliteStore, disk: Disk) -> None:
    """Not even those of a first try, which was rolled back because of somebody else."""
    taken = job(unique=unique("k", OnConflict.REJECT))
    put(store, taken)

    def then() -> None:
        Fault(disk, apsw.FullError, "write", "wal")

    good, bad = in_one_group(store, disk, [job("a")], [taken], then=then)
    disk.before = lambda _what, _kind: None

    assert good[0] is None
    assert isinstance(good[1], StoreFull)
    assert bad[0] is None


# Ctrl-C


def test_what_ctrl_c_interrupts_is_not_done_later(path: str, store: SqliteStore) -> None:
    writer, calls = Writer(path, vfs=None, ring=lambda: None), []

    def interrupted(db: apsw.Connection) -> None:
        calls.append(insert(db, [job("interrupted")]))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        writer.run(Request(None, interrupted))
    writer.run(Request([job("next")]))
    writer.close()

    assert len(calls) == 1
    assert [store.payload(number) for number in all_jobs(store)] == ["next"]


def test_what_ctrl_c_interrupts_after_its_commit_is_done_once(
    path: str, store: SqliteStore
) -> None:
    writer = Writer(path, vfs=None, ring=lambda: None)

    def interrupt(*_: Any) -> int:
        raise KeyboardInterrupt

    def write(db: apsw.Connection) -> None:
        insert(db, [job("once")])
        db.set_wal_hook(interrupt)

    with pytest.raises(KeyboardInterrupt):
        writer.run(Request(None, write))
    writer.close()

    assert [store.payload(number) for number in all_jobs(store)] == ["once"]


# A full disk


def test_a_full_disk_is_named_and_work_goes_on_when_there_is_space(
    store: SqliteStore, disk: Disk
) -> None:
    first = put_one(store)
    fault = Fault(disk, apsw.FullError, "write", "wal")

    with pytest.raises(StoreFull, match=r"no space is left for .*jobs\.db; free some"):
        store.insert([job()])
    assert all_jobs(store) == [first]

    fault.mend()
    assert put_one(store) == first + 1
    assert is_whole(store.path)


def test_wherever_the_space_ends_nothing_is_lost_or_half_done(
    store: SqliteStore, disk: Disk
) -> None:
    engine = Engine(store)
    there = put(store, *[job("x" * 3_000)] * 5)
    budget, full = 0, True
    while full:
        fault = Fault(disk, apsw.FullError, "write", "wal", budget=budget)
        with contextlib.suppress(StoreFull):
            engine.commit(
                fence=budget,
                moved=[moved(number, fence=budget) for number in there],
                events=[event(detail=str(budget))] * 3,
                jobs=[job("x" * 3_000, occurrence=f"{budget} {each}") for each in range(5)],
            )
        full = fault.hit
        fault.mend()
        expected = 0 if full else 5
        assert len(all_jobs(store)) == len(there) + expected
        assert len(store.events(0, 10)) == (0 if full else 3)
        budget += 1

    assert budget > 10
    assert {each.fence for each in store.load_some(there)} == {budget - 1}
    assert is_whole(store.path)


def test_a_disk_that_is_full_from_the_beginning_can_be_freed(path: str, disk: Disk) -> None:
    budget, full = 0, True
    while full:
        fault = Fault(disk, apsw.FullError, "write", budget=budget)
        with contextlib.suppress(StoreFull):
            SqliteStore(path, vfs=disk.name).close()
        full = fault.hit
        fault.mend()
        budget += 7

    store = SqliteStore(path, vfs=disk.name)
    assert put(store) == all_jobs(store)
    store.close()
    assert is_whole(path)


def test_everybody_who_waits_hears_that_the_disk_is_full(store: SqliteStore, disk: Disk) -> None:
    put(store)

    def then() -> None:
        Fault(disk, apsw.FullError, "write", "wal")

    answers = in_one_group(store, disk, *[[job()]] * 10, then=then)
    disk.before = lambda _what, _kind: None

    assert {type(error) for _, error in answers} == {StoreFull}
    assert len(all_jobs(store)) == 3


def test_one_can_look_while_the_disk_is_full(store: SqliteStore, disk: Disk) -> None:
    number = put_one(store)
    fault = Fault(disk, apsw.FullError, "write")

    assert store.payload(number) == "{}"
    fault.mend()


@contextlib.contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """A real limit of the operating system, as a quota is."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_that_may_not_grow_costs_nothing_that_was_acknowledged(path: str) -> None:
    """First the log cannot be folded in, which nobody notices; then it cannot grow either."""
    store = SqliteStore(path, wal_pages=5)
    acknowledged: list[int] = []

    def insert_for_ever() -> None:
        while True:
            acknowledged.extend(put(store, job("x" * 3_000)))

    with no_file_larger_than(Path(path).stat().st_size), pytest.raises(StoreUnavailable):
        insert_for_ever()

    assert acknowledged
    assert all_jobs(store) == acknowledged
    acknowledged += put(store)
    assert all_jobs(store) == acknowledged
    store.close()
    assert is_whole(path)


# A broken disk


@pytest.mark.parametrize("what", ["write", "sync"])
def test_a_disk_that_fails_for_a_while_costs_nothing(
    store: SqliteStore, disk: Disk, what: str
) -> None:
    first = put_one(store)
    fault = Fault(disk, apsw.IOError, what, "wal")
    for _ in range(3):
        with pytest.raises(StoreUnavailable, match="cannot be used now"):
            store.insert([job()])

    fault.mend()

    assert [first, *put(store)] == all_jobs(store)
    assert is_whole(store.path)


def test_a_disk_that_cannot_be_read_is_an_error_of_ours(store: SqliteStore, disk: Disk) -> None:
    fault = Fault(disk, apsw.IOError, "read")

    with pytest.raises(StoreUnavailable):
        all_jobs(store)

    fault.mend()
    assert all_jobs(store) == []


def test_a_disk_that_cannot_be_read_at_first_does_no_lasting_harm(path: str, disk: Disk) -> None:
    budget, fails = 0, True
    while fails:
        store = SqliteStore(path, vfs=disk.name)
        fault = Fault(disk, apsw.IOError, "read", budget=budget)
        with contextlib.suppress(StoreUnavailable):
            put(store)
        fails = fault.hit
        fault.mend()

        Engine(store).commit(fence=budget, events=[event()])

        budget += 1
        assert store.event_range() == (1, budget)
        store.close()


def test_ctrl_c_before_a_turn_is_written_does_not_pretend_that_it_was(
    path: str, store: SqliteStore
) -> None:
    writer = Writer(path, vfs=None, ring=lambda: None)

    def interrupt(_: apsw.Connection) -> None:
        raise KeyboardInterrupt

    request = Request(None, interrupt, atomic=True)
    with pytest.raises(KeyboardInterrupt):
        writer.run(request)
    writer.close()

    assert not request.finished
    assert all_jobs(store) == []


def test_an_engine_cannot_enter_on_a_full_disk_and_can_later(
    store: SqliteStore, disk: Disk
) -> None:
    put(store)
    fault = Fault(disk, apsw.FullError, "write", "wal")
    with pytest.raises(StoreFull):
        store.enter(lambda: None)

    fault.mend()

    assert store.enter(lambda: None).term == 1


# A file that cannot be written


def test_a_file_that_cannot_be_written_can_be_read(path: str, disk: Disk) -> None:
    store = SqliteStore(path)
    number = put_one(store)
    disk.read_only = True
    reading = SqliteStore(path, vfs=disk.name)

    assert reading.payload(number) == "{}"
    with pytest.raises(StoreReadOnly, match="cannot be written; give this process the right"):
        reading.insert([job()])
    with pytest.raises(StoreReadOnly):
        reading.command("pause", "7", None, T0)

    reading.close()
    store.close()


def test_a_directory_in_which_nothing_can_be_made_is_named(path: str, disk: Disk) -> None:
    disk.read_only = True

    with pytest.raises(StoreUnavailable, match="check that its directory is there and may be"):
        SqliteStore(path, vfs=disk.name)

    assert not Path(path).exists()


def test_a_lock_that_cannot_be_made_is_named(store: SqliteStore) -> None:
    Path(f"{store.path}-engine").mkdir()

    with pytest.raises(StoreReadOnly, match=r"jobs\.db-engine cannot be written"):
        store.enter(lambda: None)


# A file that somebody else keeps


@pytest.fixture
def taken(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> apsw.Connection:
    """Another program is in the middle of writing, and does not come to an end."""
    monkeypatch.setattr(connection, "BUSY_MS", 20)
    db = apsw.Connection(store.path)
    db.execute("begin immediate")
    return db


def test_a_file_that_is_taken_for_too_long_is_named(
    store: SqliteStore, taken: apsw.Connection
) -> None:
    with pytest.raises(StoreBusy, match=r"locked for .*; find it and let it end"):
        store.insert([job()])

    taken.execute("rollback")
    assert put(store) == all_jobs(store)
    taken.close()


def test_a_group_waits_once_for_a_file_that_is_taken(
    path: str, store: SqliteStore, taken: apsw.Connection
) -> None:
    waited: list[Request] = []
    writer = Writer(path, vfs=None, ring=lambda: None)
    commit = writer._commit
    answers = Answers(20)
    writer._commit = lambda requests: (waited.append(requests), commit(requests))[1]  # type: ignore
    with writer._lock:
        for each in range(20):
            writer._requests.append(Request([job()], done=answers.of(each)))

    with pytest.raises(StoreBusy):
        writer.run(Request([job()]))

    assert len(waited) == 1
    taken.execute("rollback")
    taken.close()
    writer.close()
    assert all_jobs(store) == []
