"""Transactions commit in any order and after any time: every job is seen once, soon, or never."""

from __future__ import annotations

import statistics
import threading
import time
from random import Random
from typing import Any

import psycopg
import pytest

from tests.faults.conftest import Maker
from tests.faults.history import Asked, History
from tests.faults.kit import Works, check_all, eventually, is_over

SEEN_WITHIN_S = 5.0  # of a machine that does other things, too; `bench.outoforder` is precise


class Crowd:
    """Producers with a connection of their own, in transactions of all lengths."""

    def __init__(self, seed: int, works: Works, direct: str, *, producers: int, each: int) -> None:
        self._works, self._direct, self._each = works, direct, each
        self._journal = works.journal
        self.committed: dict[str, float] = {}  # when the commit of a job had returned
        self.errors: list[BaseException] = []
        self._begin = threading.Barrier(producers)
        self._between = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(number, Random(seed * 1000 + number)))
            for number in range(producers)
        ]

    def run(self) -> None:
        for thread in self._threads:
            thread.start()
        for thread in self._threads:
            thread.join(100)
        assert not self.errors, self.errors

    def _run(self, number: int, random: Random) -> None:
        try:
            with psycopg.connect(self._direct) as conn:
                self._begin.wait(60)
                # One in eight holds its first transaction open while all others go on.
                holds_s = 1.0 if number % 8 == 0 else 0.0
                for round in range(self._each):
                    self._transact(conn, f"{number}-{round}", random, holds_s)
                    holds_s = 0.0
        except BaseException as error:
            self.errors.append(error)
            self._begin.abort()

    def _transact(
        self, conn: psycopg.Connection, name: str, random: Random, holds_s: float
    ) -> None:
        kept, gone, ids = [name], [], [self._put(conn, name)]
        self._between.wait(holds_s or random.choice((0, 0, 0.01, 0.1)) * random.random())
        for place in range(random.choice((0, 0, 1, 2))):
            part = f"{name}-part{place}"
            conn.execute("savepoint part")
            id = self._put(conn, part)
            if random.random() < 0.5:
                conn.execute("rollback to savepoint part")
                gone.append(part)
            else:
                conn.execute("release savepoint part")
                kept.append(part)
                ids.append(id)
        if random.random() < 0.25:
            conn.rollback()
            self._journal.write(Asked((*kept, *gone), "refused"))
            return
        conn.commit()
        at = time.time()
        self.committed.update(dict.fromkeys(kept, at))
        self._journal.write(Asked(tuple(kept), "stored", tuple(ids)))
        if gone:
            self._journal.write(Asked(tuple(gone), "refused"))

    def _put(self, conn: psycopg.Connection, name: str) -> int:
        return self._works.app.enqueue(self._works.task.call(name), conn=conn).id


def seen_after(history: History, committed: dict[str, float]) -> list[float]:
    """How long after its commit each job was seen by the engine."""
    names = {row.id: row.name for row in history.rows}
    return sorted(
        event.at - committed[names[event.job]]
        for event in history.events
        if event.event == "submit" and event.job is not None
    )


def run_crowd(seed: int, direct: str, works: Maker, *, producers: int, each: int) -> None:
    engine = works(direct)
    crowd = Crowd(seed, engine, direct, producers=producers, each=each)
    with engine.app.running():
        crowd.run()
        is_over(direct, 60)
    history = check_all(direct, engine.journal)
    assert {row.name for row in history.rows} == set(crowd.committed)
    waits = seen_after(history, crowd.committed)
    p50, p99 = statistics.median(waits), waits[int(len(waits) * 0.99)]
    print(f"seed {seed}: {len(waits)} jobs of {producers} producers, seen after their commit:")
    print(f"p50 {p50 * 1e3:.1f} ms, p99 {p99 * 1e3:.1f} ms, max {waits[-1] * 1e3:.1f} ms")
    assert p99 < SEEN_WITHIN_S


def test_64_producers_commit_in_any_order(direct: str, works: Maker) -> None:
    run_crowd(1, direct, works, producers=64, each=8)


def test_a_transaction_that_is_open_for_long_hides_nobody_and_is_seen_at_last(
    direct: str, works: Maker
) -> None:
    """Also when the engine was started anew while it was open."""
    engine = works(direct)
    assert engine.app.store
    with psycopg.connect(direct) as slow:
        first = engine.app.enqueue(engine.task.call("slow"), conn=slow).id
        with engine.app.running():
            for round in range(5):
                engine.put(f"quick {round}")
                eventually(lambda: done(engine) == round + 1)  # noqa: B023
        with engine.app.running():
            engine.put("after a restart")
            eventually(lambda: done(engine) == 6)
            slow.commit()
            engine.journal.write(Asked(("slow",), "stored", (first,)))
            assert engine.app.handle(first).wait(20) == "completed"
    check_all(direct, engine.journal)


def done(works: Works) -> int:
    rows = works.app.store.rows("select count(*) from jobs where state = 'completed'")
    return int(rows[0][0])


def test_many_jobs_at_once_come_in_pages_while_others_commit(direct: str, works: Maker) -> None:
    """More than one page is new when the engine starts, and some transactions are still open."""
    engine = works(direct)
    conns = [psycopg.connect(direct) for _ in range(6)]
    try:
        late = [
            (f"late {number}", engine.app.enqueue(engine.task.call(f"late {number}"), conn=conn).id)
            for number, conn in enumerate(conns)
        ]
        for number in range(2):
            engine.put(*[f"{number} {place}" for place in range(1_100)])
        with engine.app.running():
            for conn, (name, id) in zip(conns, late, strict=True):
                conn.commit()
                engine.journal.write(Asked((name,), "stored", (id,)))
            is_over(direct, 60)
    finally:
        for conn in conns:
            conn.close()
    check_all(direct, engine.journal)


def test_what_commits_while_pages_are_read_is_looked_for_after_the_last_of_them(
    direct: str, works: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bell has rung before the last page was read, so nobody else would look."""
    monkeypatch.setattr("headway.engine.intake.CHUNK", 2)
    engine = works(direct)
    store: Any = engine.app.store
    real, late = store.load_new, iter(["late"])

    def load_new(mark: str, limit: int) -> Any:
        news = real(mark, limit)
        if len(news.jobs) == limit:
            for name in late:
                engine.put(name)
        return news

    with engine.app.running():
        engine.look_only_when_called()
        store.load_new = load_new
        engine.put("one", "two", "three")
        is_over(direct, 20)
    check_all(direct, engine.journal)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(400, 404))
def test_64_producers_go_on_for_long(direct: str, works: Maker, seed: int) -> None:
    run_crowd(seed, direct, works, producers=64, each=150)
