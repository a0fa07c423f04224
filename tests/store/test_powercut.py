"""The power goes out at every single step, and what was acknowledged is there afterwards."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import apsw
import pytest

from headway.errors import StoreError, StoreUnavailable
from headway.store.records import OnConflict
from headway.store.sqlite import SqliteStore, writer
from headway.store.tables import Table
from tests.store.kit import T0, Engine, ended, event, granted, job, moved, put, unique
from tests.store.powercut import SECTOR, Disk, File, Recorder, Step, disks_after, torn

ROUNDS = 2
WAL_PAGES = 12  # so that the log is folded in several times
SUMS = Table("app_sums", {"job": "bigint", "turn": "bigint"}, key=("job",))

Content = dict[str, list[tuple[Any, ...]]]


# What is done, and what is there after each thing that was acknowledged


class Lost(AssertionError):
    """The disk holds neither what was acknowledged last, nor what was under way."""


class Run:
    """A workload on a recorded disk. After each of its acts: how many steps, what is there."""

    def __init__(self, path: Path, recorder: Recorder) -> None:
        self.recorder = recorder
        self._path = str(path)
        self._watch: apsw.Connection | None = None
        self._store: SqliteStore | None = None
        self.acknowledged: list[tuple[int, Content]] = []

    def open(self) -> SqliteStore:
        store = SqliteStore(self._path, vfs=self.recorder.name, wal_pages=WAL_PAGES)
        self._store, self._watch = store, apsw.Connection(self._path)
        self._acknowledge()
        return store

    def close(self) -> None:
        """The store last, so that it is the one that tidies up."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        if self._store is not None:
            self._store.close()

    def close_in_the_dark(self) -> None:
        with contextlib.suppress(StoreError, apsw.Error):
            self.close()

    def do(self, act: Callable[..., Any], *args: Any, **fields: Any) -> Any:
        answer = act(*args, **fields)
        self._acknowledge()
        return answer

    def _acknowledge(self) -> None:
        assert self._watch is not None
        self.acknowledged.append((len(self.recorder.steps), content_of(self._watch)))


def content_of(db: apsw.Connection) -> Content:
    tables = db.execute("select name from sqlite_master where type = 'table' order by name").get
    return {name: db.execute(f"select * from {name} order by 1").fetchall() for name in tables}


def workload(run: Run, rounds: int, rng: Random) -> None:
    """All that changes a store: inserts of all kinds, turns of the engine, purges, reopening."""
    store = run.open()
    run.do(store.install, "app", ["create table app_sums (job bigint primary key, turn bigint)"])
    for turn in range(rounds):
        engine = run.do(Engine, store)
        run.do(store.command, "pause", "7", None, T0)
        one = run.do(put, store, job(f"one in {turn}"))
        few = run.do(put, store, *(job("few " * rng.randint(1, 900)) for _ in range(2)))
        many = run.do(put, store, *(job(f"many {each}") for each in range(rng.randint(4, 40))))
        key = unique("the one", OnConflict.REPLACE)
        only = run.do(put, store, job("new", unique=key, occurrence=str(turn), after=tuple(one)))
        run.do(put, store, job("newer", priority=1, unique=key))
        for fence, numbers in enumerate((one + few, many)):
            run.do(
                engine.commit,
                fence=2 * turn + fence + 1,
                mark=str(max(numbers)),
                obeyed=[turn + 1],
                moved=[moved(number, fence=fence + 1) for number in numbers],
                events=[event(number, after="running") for number in numbers],
                gates=[("upstream", "x", "", f"[{turn}]")],
                jobs=[job("follow-up", batch=run.do(store.open_batch, "b", T0))],
            )
        run.do(
            engine.commit,
            granted=[granted(number) for number in few],
            completed=[(number, T0) for number in one],
            ended=[ended(number) for number in many],
            events=[event(number, "ok") for number in one + many],
            results=[(number, "{}" * rng.randint(1, 300), T0) for number in many],
            freed=only,
            writes=[(SUMS.add(), [(number, turn) for number in one])],
        )
        run.do(store.write, [(SUMS.put(), [(0, turn)]), (SUMS.put(), [(-1, turn)])])
        run.do(store.purge, T0 + 1, T0 + 1, T0 + 1)
        store.leave()
        if turn % 2:
            run.close()
            store = run.open()


def recorded(directory: Path, name: str, rounds: int, seed: int = 0) -> Run:
    directory.mkdir()
    run = Run(directory / "jobs.db", Recorder(name))
    try:
        workload(run, rounds, Random(seed))
    finally:
        run.close()
    return run


# What must be there afterwards


def check_survivors(run: Run, step: int, directory: Path) -> None:
    """Open what has survived as anybody would, and compare."""
    path = directory / "jobs.db"
    store = SqliteStore(str(path))
    db = apsw.Connection(str(path))
    try:
        if (found := db.pragma("integrity_check")) != "ok":
            raise Lost(f"cut at step {step}: the file is damaged: {found}")
        last = max((n for n, (at, _) in enumerate(run.acknowledged) if at <= step), default=-1)
        under_way = [content for _, content in run.acknowledged[max(last, 0) : last + 2]]
        if content_of(db) not in under_way:
            raise Lost(f"cut at step {step}: act {last} was acknowledged and is not there")
        check_usable(store)
    finally:
        db.close()
        store.close()


def check_usable(store: SqliteStore) -> None:
    engine = Engine(store)
    [number] = put(store)
    engine.commit(moved=[moved(number)], events=[event(number), event(number)])
    first, last = store.event_range()
    numbers = [each.id for each in store.events(0, 100_000)]
    if numbers != list(range(first, last + 1)):
        raise Lost("the events have gaps")


def cut_everywhere(
    run: Run, scratch: Path, seed: int, *, lies: bool = False, every: int = 1
) -> int:
    """Cut at every step, or at some of them; how many there were."""
    number = 0
    for number, disk in disks_after(run.recorder.steps, lies=lies):
        if number % every:
            continue
        cut(run, number, disk, scratch, Random(f"{seed} {number}"), lies=lies)
    return number


def cut(run: Run, number: int, disk: Disk, scratch: Path, rng: Random, *, lies: bool) -> None:
    scratch.mkdir()
    try:
        disk.write_survivors(scratch, rng)
        check_survivors(run, number, scratch)
    except StoreError as error:
        raise Lost(f"cut at step {number}: {error}") from error
    finally:
        shutil.rmtree(scratch)
    assert lies or not run.recorder.is_out


# The tests


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return recorded(tmp_path_factory.mktemp("cut") / "live", "power cuts", rounds=ROUNDS)


def test_the_workload_does_all_that_a_store_does_to_a_disk(run: Run) -> None:
    done = {(step.act, step.file.removeprefix("jobs.db")) for step in run.recorder.steps}

    assert {("write", ""), ("sync", ""), ("write", "-wal"), ("sync", "-wal")} <= done
    assert {("create", "-wal"), ("delete", "-wal"), ("delete", "-journal")} <= done
    folded_in = [
        step for step in run.recorder.steps if (step.act, step.file) == ("sync", "jobs.db")
    ]
    assert len(folded_in) > 5


def test_nothing_acknowledged_is_lost_at_every_fourth_step(run: Run, tmp_path: Path) -> None:
    assert cut_everywhere(run, tmp_path / "after", 1, every=4) > 500


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_acknowledged_is_lost_at_any_step(run: Run, tmp_path: Path, seed: int) -> None:
    assert cut_everywhere(run, tmp_path / "after", seed) > 500


@pytest.mark.parametrize("twelfth", range(12))
def test_a_store_whose_power_is_out_acknowledges_nothing_more(
    run: Run, tmp_path: Path, twelfth: int
) -> None:
    cut_at = len(run.recorder.steps) * twelfth // 12 + 7
    recorder = Recorder(f"cut at {cut_at}", cut_at=cut_at)
    live = Run(tmp_path / "jobs.db", recorder)

    with pytest.raises(StoreUnavailable):
        workload(live, ROUNDS, Random(0))
    live.close_in_the_dark()

    assert shape_of(recorder) == shape_of(run.recorder)[:cut_at]
    assert len(live.acknowledged) == sum(at <= cut_at for at, _ in run.acknowledged)


def shape_of(recorder: Recorder) -> list[tuple[str, str, int]]:
    """The steps without their content, in which SQLite puts random numbers."""
    return [step[:3] for step in recorder.steps]


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_lost_in_longer_runs(tmp_path: Path, seed: int) -> None:
    run = recorded(tmp_path / "live", f"soak {seed}", rounds=6, seed=seed)

    for each in range(2):
        cut_everywhere(run, tmp_path / "after", 100 * seed + each)


# The harness can notice


def test_a_disk_that_lies_about_syncs_is_noticed(run: Run, tmp_path: Path) -> None:
    with pytest.raises(Lost):
        cut_everywhere(run, tmp_path / "after", 1, lies=True)


@pytest.mark.parametrize("synchronous", ["off", "normal"])
def test_a_store_that_does_not_sync_enough_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, synchronous: str
) -> None:
    connect = writer.connect

    def careless(*args: Any, **fields: Any) -> apsw.Connection:
        db = connect(*args, **fields)
        db.pragma("synchronous", synchronous)
        return db

    monkeypatch.setattr(writer, "connect", careless)
    run = recorded(tmp_path / "live", f"careless {synchronous}", rounds=1)

    with pytest.raises(Lost, match=r"acknowledged and is not there|damaged"):
        cut_everywhere(run, tmp_path / "after", 1)


def survivors(steps: list[Step], count: int = 200) -> Iterator[bytes | None]:
    file = File()
    for step in steps:
        file.take(step)
    return (file.survivor(Random(seed)) for seed in range(count))


OLD, NEW = b"o" * 4 * SECTOR, b"n" * 4 * SECTOR
SYNCED = [Step("create", "f"), Step("write", "f", 0, OLD), Step("sync", "f")]


def test_what_was_synced_always_survives() -> None:
    assert set(survivors(SYNCED)) == {OLD}


def test_what_was_not_synced_survives_whole_torn_or_not_at_all() -> None:
    found = set(survivors([*SYNCED, Step("write", "f", 0, NEW)]))

    assert {OLD, NEW} < found
    assert NEW[:SECTOR] + OLD[SECTOR:] in found
    assert OLD[:SECTOR] + NEW[SECTOR:] in found


def test_a_later_write_may_survive_without_an_earlier_one() -> None:
    steps = [
        *SYNCED,
        Step("write", "f", 0, b"1" * SECTOR),
        Step("write", "f", SECTOR, b"2" * SECTOR),
    ]

    assert OLD[:SECTOR] + b"2" * SECTOR + OLD[2 * SECTOR :] in set(survivors(steps))


def test_a_file_that_was_never_synced_may_be_gone() -> None:
    assert {None, NEW} < set(survivors([Step("create", "f"), Step("write", "f", 0, NEW)]))


def test_a_file_that_was_deleted_may_be_back_unless_its_directory_was_synced() -> None:
    assert set(survivors([*SYNCED, Step("delete", "f")])) == {None, OLD}
    assert set(survivors([*SYNCED, Step("delete for good", "f")])) == {None}


def test_the_first_sync_of_a_new_log_makes_a_deletion_durable() -> None:
    disk = Disk()
    for step in [*SYNCED, Step("delete", "f"), Step("create", "f-wal"), Step("sync", "f-wal")]:
        disk.take(step)

    assert {disk.files["f"].survivor(Random(seed)) for seed in range(50)} == {None}


def test_a_write_tears_at_the_borders_of_sectors() -> None:
    pieces = list(torn(Step("write", "f", SECTOR - 2, b"abcd" + b"e" * SECTOR)))

    assert [(piece.place, len(piece.data)) for piece in pieces] == [
        (SECTOR - 2, 2),
        (SECTOR, SECTOR),
        (2 * SECTOR, 2),
    ]
