"""A message between producers and the server is lost: all is stored once, and everybody is told."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
import pytest

from headway.errors import OutcomeUnknown, StoreBusy, StoreUnavailable
from headway.store.postgres import writer as writing
from tests.faults.conftest import Maker
from tests.faults.kit import WAIT_S, Works, check_all, eventually, is_over
from tests.faults.proxy import PUT, RING, Do, Proxy

LOCK = 77
FD_SETSIZE = 1024
BUSY = """
select count(*) from pg_stat_activity where datname = current_database()
and query like '%put_once%' and wait_event_type = 'Lock'
"""


FORKS = """
import os, sys
from headway import App

app = App(sys.argv[1])

@app.job(type="task")
def task(name: str) -> None: ...

assert app.store
if sys.argv[2] == "connected":
    task.enqueue("first")
for number in range(3):
    if os.fork() == 0:
        task.enqueue(f"child {number}")
        task.enqueue(f"child {number} again")
        os._exit(0)
for _ in range(3):
    assert os.wait()[1] == 0
task.enqueue("last")
app.close()
"""


def rows_of(direct: str, query: str) -> list[Any]:
    with psycopg.connect(direct, autocommit=True) as db:
        return db.execute(query.encode()).fetchall()


def numbers_in(direct: str) -> list[int]:
    return [row[0] for row in rows_of(direct, "select id from headway.jobs order by id")]


def calls_of(direct: str) -> list[int]:
    """The last number of each producer."""
    return [row[0] for row in rows_of(direct, "select number from headway.producers")]


def writer_of(works: Works) -> Any:
    return works.app.store._writer  # type: ignore[attr-defined]


def drained(direct: str, works: Works) -> None:
    works.app.start()
    is_over(direct)
    works.app.stop()
    check_all(direct, works.journal)


@contextmanager
def held_up(direct: str) -> Iterator[psycopg.Connection[Any]]:
    """Whoever stores a job waits just before its commit, until the lock is given back."""
    with psycopg.connect(direct, autocommit=True) as holder:
        holder.execute(
            "create function headway.wait() returns trigger language plpgsql as "
            f"'begin perform pg_advisory_xact_lock({LOCK}); return null; end'".encode()
        )
        holder.execute(
            "create constraint trigger wait after insert on headway.jobs "
            "deferrable initially deferred for each row execute function headway.wait()"
        )
        holder.execute(f"select pg_advisory_lock({LOCK})".encode())
        yield holder


def let_go(holder: psycopg.Connection[Any]) -> None:
    holder.execute(f"select pg_advisory_unlock({LOCK})".encode())


def asking(works: Works, *names: str) -> tuple[threading.Thread, list[Any]]:
    """Put in a thread; what was answered, an error too."""
    answers: list[Any] = []

    def ask() -> None:
        try:
            answers.append(works.put(*names))
        except BaseException as error:
            answers.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    return thread, answers


@contextmanager
def a_group(proxy: Proxy, works: Works, size: int = 7) -> Iterator[list[list[Any]]]:
    """Inside, producers wait for one who waits for the server; then they are one call together."""
    proxy.stall()
    first, _ = asking(works, "n0")
    eventually(writer_of(works)._lock.locked)
    others = [asking(works, f"n{number}") for number in range(1, size + 1)]
    eventually(lambda: len(writer_of(works)._requests) == size)
    yield [answers for _, answers in others]
    proxy.flow()
    for thread, _ in [(first, []), *others]:
        thread.join(WAIT_S)
        assert not thread.is_alive()


@pytest.mark.usefixtures("always_busy")
@pytest.mark.parametrize("words", [PUT, RING], ids=["put", "ring"])
@pytest.mark.parametrize("do", list(Do))
@pytest.mark.parametrize("first", [True, False], ids=["in its first call", "later"])
def test_a_producer_is_told_the_numbers_of_its_jobs(
    proxy: Proxy, direct: str, works: Maker, words: re.Pattern[bytes], do: Do, first: bool
) -> None:
    producer = works(proxy.url(direct))
    before = [] if first else producer.put("first")
    struck = proxy.next(words, do)

    then = producer.put("second", "third")
    after = producer.put("fourth")

    assert struck.wait(WAIT_S)
    assert numbers_in(direct) == [*before, *then, *after]
    assert calls_of(direct) == [2 if first else 3]
    drained(direct, producer)


@pytest.mark.parametrize("do", list(Do))
def test_a_producer_beside_the_engine_is_told_too(
    proxy: Proxy, direct: str, works: Maker, do: Do
) -> None:
    producer = works(proxy.url(direct))
    with producer.app.running():
        before = producer.put("first")
        struck = proxy.next(PUT, do)
        then = producer.put("second", "third")
        assert struck.wait(WAIT_S)
        is_over(direct)
    assert numbers_in(direct) == [*before, *then]
    check_all(direct, producer.journal)


@pytest.mark.parametrize("do", list(Do))
def test_a_group_of_producers_is_told_about_its_jobs(
    proxy: Proxy, direct: str, works: Maker, do: Do
) -> None:
    producer = works(proxy.url(direct))
    producer.put("first")
    with a_group(proxy, producer) as answers:
        struck = proxy.next(PUT, do)
    assert struck.is_set()
    assert calls_of(direct) == [3], "the group was more than one call"
    numbers = numbers_in(direct)
    assert sorted(id for [[id]] in answers for id in [id]) == numbers[2:]
    drained(direct, producer)


def test_the_old_backend_is_waited_for_while_it_is_busy_with_the_call(
    proxy: Proxy, direct: str, works: Maker
) -> None:
    producer = works(proxy.url(direct))
    producer.put("first")
    with held_up(direct) as holder:
        struck = proxy.next(PUT, Do.LEAVE_BUSY)
        thread, answers = asking(producer, "second")
        assert struck.wait(WAIT_S)
        # The old backend waits for us, the new one for the old one.
        eventually(lambda: rows_of(direct, BUSY) == [(2,)])
        assert answers == []
        let_go(holder)
        thread.join(WAIT_S)

    assert answers == [[numbers_in(direct)[-1]]]
    assert len(numbers_in(direct)) == 2
    drained(direct, producer)


def test_a_producer_is_told_when_nobody_can_know(
    proxy: Proxy, direct: str, works: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "RESOLVE_S", 0.3)
    producer = works(proxy.url(direct))
    producer.put("first")
    with held_up(direct):
        struck = proxy.next(PUT, Do.LEAVE_BUSY)
        thread, answers = asking(producer, "second", "third")
        assert struck.wait(WAIT_S)
        proxy.refusing = True
        proxy.cut()
        thread.join(WAIT_S)
        assert isinstance(answers[0], OutcomeUnknown)
        assert "look for the jobs before you enqueue them again" in str(answers[0])
        assert len(numbers_in(direct)) == 1
    eventually(lambda: len(numbers_in(direct)) == 3)
    proxy.refusing = False
    producer.put("fourth")
    drained(direct, producer)


def test_nothing_is_unknown_when_nothing_was_sent(proxy: Proxy, direct: str, works: Maker) -> None:
    """A producer whose session died while it was idle hears at once that the store is away."""
    producer = works(proxy.url(direct))
    producer.put("first")
    proxy.refusing = True
    proxy.cut()
    with pytest.raises(StoreUnavailable) as told:
        producer.put("second")
    assert not isinstance(told.value, OutcomeUnknown)
    proxy.refusing = False
    producer.put("third")
    drained(direct, producer)


def test_a_producer_that_only_waits_for_others_is_not_in_doubt(
    direct: str, works: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "RESOLVE_S", 0.0)
    producer = works(direct)
    producer.put("first")
    writer_of(producer)._session().execute("set lock_timeout to '10ms'")
    with psycopg.connect(direct) as holder:
        holder.execute("lock table headway.jobs in exclusive mode")
        with pytest.raises(StoreBusy):
            producer.put("second")
    drained(direct, producer)


@pytest.mark.usefixtures("always_busy")
@pytest.mark.parametrize("rings", [True, False], ids=["elsewhere", "beside the engine"])
def test_a_session_that_died_while_it_was_idle_is_not_asked(
    direct: str, works: Maker, monkeypatch: pytest.MonkeyPatch, rings: bool
) -> None:
    producer = works(direct)
    writer = writer_of(producer)
    monkeypatch.setattr(writer, "_rings_here", lambda: not rings)
    producer.put("first")
    real, asked = writer._call, []

    def call(db: Any, values: Any) -> Any:
        asked.append(db)
        return real(db, values)

    monkeypatch.setattr(writer, "_call", call)
    for round in range(3):
        old = writer._db
        pid = old.info.backend_pid
        [(gone,)] = rows_of(direct, f"select pg_terminate_backend({pid}, 5000)")
        assert gone
        producer.put(f"{round}")
        assert len(asked) == round + 1, "it was sent twice"
        assert asked[-1] is not old
    drained(direct, producer)


def test_a_producer_may_have_many_files_open(direct: str, works: Maker) -> None:
    """Its session has a number then that `select` would not take."""
    with ExitStack() as opened:
        for _ in range(FD_SETSIZE):
            opened.callback(os.close, os.dup(0))
        producer = works(direct)
        producer.put("first")
        producer.put("second")
        assert writer_of(producer)._db.fileno() > FD_SETSIZE
    drained(direct, producer)


@pytest.mark.parametrize("parent", ["connected", "opened"])
def test_a_process_and_its_forks_are_different_producers(direct: str, parent: str) -> None:
    """Else one would get the answer that another got for the same number, and store nothing."""
    subprocess.run([sys.executable, "-c", FORKS, direct, parent], check=True, timeout=WAIT_S)
    producers = 4
    assert len(calls_of(direct)) == producers
    assert len(numbers_in(direct)) == 6 + 1 + (parent == "connected")
