"""A load of producers and handlers that write down what they were told and saw."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import psycopg

from headway import App, RetryPolicy, job
from headway.errors import OutcomeUnknown, StoreError
from headway.store.records import Event
from tests.faults.history import Asked, Began, Ended, History, Journal, Row, check
from tests.hands.kit import WAIT_S, eventually
from tests.hands.kit import names_of as names_in_trail

POOL = 4
PATIENT = RetryPolicy(retries=3, delay_s=0.0, max_lost=1_000)

__all__ = ["WAIT_S", "Load", "Works", "check_all", "eventually", "is_over", "names_in_trail"]


class Works:
    """An app with handlers that write down their runs. `process` is who it says it is."""

    def __init__(self, url: str, journal: Journal, process: str = "p") -> None:
        self.journal = journal
        self.process = process
        self.app = App(url)
        self.app.tool("pool", limit=POOL)
        self.free = threading.Event()  # what `held` waits for
        self.held_begun = threading.Event()
        between = threading.Event()

        @self.app.job(policy=PATIENT, tools=("pool",))
        async def task(name: str) -> int:  # noqa: ARG001
            with self.written_down():
                await asyncio.sleep(0)
            return job.fence

        @self.app.job(policy=PATIENT, tools=("pool",))
        def thread(name: str, seconds: float = 0.0) -> int:  # noqa: ARG001
            with self.written_down():
                between.wait(seconds)
            return job.fence

        @self.app.job(policy=PATIENT, tools=("pool",))
        def held(name: str) -> int:  # noqa: ARG001
            with self.written_down():
                self.held_begun.set()
                self.free.wait(WAIT_S)
            return job.fence

        self.task, self.thread, self.held = task, thread, held

    @contextmanager
    def written_down(self) -> Iterator[None]:
        run = (job.id, job.fence, self.process)
        self.journal.write(Began(*run))
        try:
            yield
        finally:
            self.journal.write(Ended(*run))

    def put(self, *names: str, kind: str = "task") -> list[int]:
        """Enqueue, and write down what was answered."""
        make = getattr(self, kind)
        try:
            handles = self.app.enqueue_many([make.call(name) for name in names])
        except StoreError as error:
            answer = "unknown" if isinstance(error, OutcomeUnknown) else "refused"
            self.journal.write(Asked(names, answer))
            raise
        except KeyboardInterrupt:
            self.journal.write(Asked(names, "unknown"))
            raise
        ids = tuple(handle.id for handle in handles)
        self.journal.write(Asked(names, "stored", ids))
        return list(ids)

    def look_only_when_called(self) -> None:
        """The brain does not look every now and then for what it may have missed."""
        engine = self.app.engine
        assert engine is not None

        def never(_: float) -> None:
            engine.brain._net_s = engine.brain._net_at = float("inf")

        engine.ask(never).result(WAIT_S)

    def close(self) -> None:
        self.free.set()
        self.app.close()


class Load:
    """Producers in threads: some beside the engine, some as in another process, some in
    transactions of their own. Each goes on until it has been told `each` times that all is stored.
    """

    def __init__(
        self, seed: int, works: Works, other: Works, direct: str, *, producers: int, each: int
    ) -> None:
        self._seed, self._each = seed, each
        self._works, self._other, self._direct = works, other, direct
        self._journal = works.journal
        self._end = threading.Event()
        self.errors: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._run, args=(number,), daemon=True)
            for number in range(producers)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def is_done(self) -> bool:
        return not any(thread.is_alive() for thread in self._threads)

    def join(self, within_s: float = 60.0) -> None:
        eventually(self.is_done, within_s)
        if self.errors:
            raise self.errors[0]

    def stop(self) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join(60)

    def stored(self) -> int:
        return len(self._journal.asked("stored"))

    def _run(self, number: int) -> None:
        random = Random(self._seed * 1000 + number)
        way = (self._beside, self._elsewhere, self._in_transaction)[number % 3]
        told = tried = 0
        try:
            while told < self._each and not self._end.is_set():
                tried += 1
                size = random.choice((1, 1, 1, 3))
                names = tuple(f"{number}-{tried}-{place}" for place in range(size))
                if way(names, random):
                    told += 1
                else:
                    self._end.wait(0.02)
        except BaseException as error:
            self.errors.append(error)

    def _beside(self, names: tuple[str, ...], random: Random) -> bool:
        return _put(self._works, names, random.choice(("task", "thread")))

    def _elsewhere(self, names: tuple[str, ...], random: Random) -> bool:
        return _put(self._other, names, random.choice(("task", "thread")))

    def _in_transaction(self, names: tuple[str, ...], random: Random) -> bool:
        """With a connection of its own, which may be cut like any other."""
        answer, ids = "refused", ()
        try:
            with psycopg.connect(self._direct) as conn:
                calls = [self._works.task.call(name) for name in names]
                ids = tuple(each.id for each in self._works.app.enqueue_many(calls, conn=conn))
                if random.random() < 0.2:
                    conn.rollback()
                    self._journal.write(Asked(names, "refused"))
                    return True
                answer = "unknown"
                conn.commit()
                answer = "stored"
        except (psycopg.Error, StoreError):
            if answer != "stored":
                self._journal.write(Asked(names, answer))
                return False
        self._journal.write(Asked(names, answer, ids))
        return True


def _put(works: Works, names: tuple[str, ...], kind: str) -> bool:
    try:
        works.put(*names, kind=kind)
    except StoreError:
        return False
    return True


def open_jobs(direct: str) -> int:
    """Asked past the proxy and past the store."""
    return int(_rows(direct, "select count(*) from headway.jobs where finished_at is null")[0][0])


def is_over(direct: str, within_s: float = 60.0) -> None:
    """Wait until no job is open."""
    eventually(lambda: open_jobs(direct) == 0, within_s)


def history_of(direct: str, journal: Journal) -> History:
    jobs = _rows(direct, "select id, args, state, fence from headway.jobs order by id")
    rows = [Row(id, _name(args), state, fence) for id, args, state, fence in jobs]
    events = _rows(
        direct,
        "select id, at, job, event, before, after, fence, detail, subject from headway.events "
        "order by id",
    )
    return History(list(journal.entries), rows, [Event(*event) for event in events], POOL)


def check_all(direct: str, journal: Journal) -> History:
    history = history_of(direct, journal)
    check(history)
    return history


def _name(args: str) -> str:
    value = json.loads(args)
    found: str = value["name"] if isinstance(value, dict) else value[0]
    return found


def _rows(direct: str, query: str) -> list[Any]:
    with psycopg.connect(direct, autocommit=True) as db:
        return db.execute(query.encode()).fetchall()
