"""An engine that was cut off while another took its seat changes nothing any more, and stops."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from headway.engine import Engine
from headway.errors import EngineRunning, StaleBrain
from tests.faults.conftest import Maker
from tests.faults.history import Began
from tests.faults.kit import WAIT_S, Works, check_all, eventually, is_over
from tests.faults.proxy import TAKE_TURN, Do, Proxy

LEADER_S = 0.6  # how long an engine of these tests leads without a word to the database
LEASE_S = 1.5  # how long a job is its hands' without a word of the engine


def lease_left_s(direct: str) -> float:
    """By the clock of the database."""
    with psycopg.connect(direct, autocommit=True) as db:
        row = db.execute(
            "select coalesce(nullif(extract(epoch from lease_end - clock_timestamp())::float8, "
            "'-infinity'), -1.0) from headway.leader"
        ).fetchone()
    assert row is not None
    return float(row[0])


def in_haste(works: Works) -> Works:
    works.app.leader_lease_s, works.app.lease_s = LEADER_S, LEASE_S
    return works


def starts(works: Works) -> bool:
    """False: somebody leads."""
    try:
        works.app.start()
    except EngineRunning:
        return False
    return True


def engine_of(works: Works) -> Engine:
    assert works.app.engine is not None
    return works.app.engine


@pytest.fixture
def old(proxy: Proxy, direct: str, works: Maker) -> Works:
    """An engine at work, behind a line that can be cut."""
    old = in_haste(works(proxy.url(direct), "old"))
    old.app.start()
    old.put("held", kind="held")
    assert old.held_begun.wait(WAIT_S)
    return old


@contextmanager
def taken_over(proxy: Proxy, direct: str, works: Maker) -> Iterator[Works]:
    """The old engine is cut off, a new one takes its seat, then the old one gets through again."""
    proxy.refusing = True
    proxy.cut()
    new = in_haste(works(direct, "new"))
    eventually(lambda: starts(new))
    try:
        proxy.refusing = False
        yield new
    finally:
        new.app.stop()


def test_the_commit_of_a_stale_engine_changes_nothing_and_it_stops(
    old: Works, proxy: Proxy, direct: str, works: Maker
) -> None:
    engine = engine_of(old)
    with taken_over(proxy, direct, works) as new:
        assert new.held_begun.wait(WAIT_S)  # the new engine runs what the old one has lost
        old.free.set()  # the end of the old run must not count
        assert engine.done.wait(WAIT_S)
        assert isinstance(engine.error, StaleBrain)
        assert "another engine has taken over" in str(engine.error)
        new.put("more")
        new.free.set()
        is_over(direct)
    check_all(direct, old.journal)


def test_the_commit_itself_asks_for_the_term(old: Works, direct: str) -> None:
    """Also in a session that was never lost."""
    engine = engine_of(old)
    with psycopg.connect(direct, autocommit=True) as db:
        db.execute("update headway.brain set term = term + 1, turn = 0")
        before = db.execute("select * from headway.jobs").fetchall()
        old.free.set()
        assert engine.done.wait(WAIT_S)
        assert isinstance(engine.error, StaleBrain)
        assert db.execute("select * from headway.jobs").fetchall() == before
        names = db.execute("select event from headway.events order by id").fetchall()
        assert names == [("submit",), ("grant",)]


def test_a_turn_that_was_sent_before_the_seat_was_lost_counts_once_or_never(
    old: Works, proxy: Proxy, direct: str, works: Maker
) -> None:
    """The old engine's last turn hangs in the server while the new engine sits down."""
    engine = engine_of(old)
    with psycopg.connect(direct) as holder:
        holder.execute("lock table headway.events in access exclusive mode")
        struck = proxy.next(TAKE_TURN, Do.LEAVE_BUSY)
        old.put("grants")
        assert struck.wait(WAIT_S)
        proxy.refusing = True
        proxy.cut()
        new = in_haste(works(direct, "new"))
        sits_down = threading.Thread(target=eventually, args=(lambda: starts(new),))
        sits_down.start()
        eventually(lambda: waiting_for_a_lock(direct) >= 2)  # it waits for that turn
        holder.rollback()
        sits_down.join(WAIT_S)
    proxy.refusing = False
    assert engine.done.wait(WAIT_S)
    assert isinstance(engine.error, StaleBrain)
    old.free.set()
    new.free.set()
    is_over(direct)
    new.app.stop()
    check_all(direct, old.journal)


def test_a_stale_engine_finds_out_although_it_has_nothing_to_say(
    old: Works, proxy: Proxy, direct: str, works: Maker
) -> None:
    """Soon, and not only when its handlers end: they run what is another's now."""
    engine = engine_of(old)
    with taken_over(proxy, direct, works) as new:
        assert new.held_begun.wait(WAIT_S)
        assert engine.done.wait(WAIT_S), "it still believes that it is the engine"
        assert isinstance(engine.error, StaleBrain)
        new.free.set()
        is_over(direct)
    check_all(direct, old.journal)


def test_the_handlers_of_a_stale_engine_are_told_to_stop(
    proxy: Proxy, direct: str, works: Maker
) -> None:
    old = in_haste(works(proxy.url(direct), "old"))
    told: list[str] = []

    @old.app.job(type="endless", tools=("pool",))
    async def endless(name: str) -> None:
        try:
            with old.written_down():
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.append(name)
            raise

    old.app.start()
    engine = engine_of(old)
    endless.enqueue("endless")
    eventually(lambda: any(isinstance(each, Began) for each in old.journal.entries))
    with taken_over(proxy, direct, works) as new:
        new.put("goes to the new one")
        assert engine.done.wait(WAIT_S)
        assert isinstance(engine.error, StaleBrain)
        eventually(lambda: told == ["endless"])


def test_an_engine_that_was_cut_goes_on_leading(proxy: Proxy, direct: str, works: Maker) -> None:
    """Nobody else may take its seat while it works, whatever becomes of its sessions. Its lease is
    the usual one: on a busy machine a shorter one might be over before it is back.
    """
    old = works(proxy.url(direct), "old")
    old.app.start()
    old.put("held", kind="held")
    assert old.held_begun.wait(WAIT_S)
    for _ in range(3):
        proxy.cut()
        with pytest.raises(EngineRunning):
            works(direct, "new").app.start()
        eventually(lambda: lease_left_s(direct) > LEADER_S / 2)
    old.put("wakes it")
    old.free.set()
    is_over(direct)
    assert engine_of(old).error is None
    old.app.stop()
    assert lease_left_s(direct) < 0, "who leaves in order lets others lead at once"
    check_all(direct, old.journal)


def test_an_engine_that_has_died_lets_its_lease_run_out_before_anybody_stops_it(
    old: Works, direct: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its server may have to wait for clients. What it ran may go on, so it is not released."""
    engine = engine_of(old)

    def breaks() -> float:
        raise RuntimeError("a fault of Headway")

    monkeypatch.setattr(engine.brain, "turn", breaks)
    engine._ring()
    assert engine.done.wait(WAIT_S)
    eventually(lambda: lease_left_s(direct) <= 0)
    old.free.set()


def test_what_an_engine_ran_that_may_still_run_comes_back_when_a_lease_is_over(
    old: Works, proxy: Proxy, direct: str, works: Maker
) -> None:
    began = time.monotonic()
    with taken_over(proxy, direct, works) as new:
        assert new.held_begun.wait(WAIT_S)
        assert time.monotonic() - began > LEASE_S, "the old one may not have stopped by then"
        new.free.set()
        is_over(direct)
    with psycopg.connect(direct) as db:
        names = db.execute("select event from headway.events where job = 1 order by id").fetchall()
    assert names[:3] == [("submit",), ("grant",), ("lost",)]
    check_all(direct, old.journal)


def test_an_engine_that_cannot_reach_the_store_stops_its_hands_before_others_have_their_jobs(
    proxy: Proxy, direct: str, works: Maker
) -> None:
    """It is told by nobody: its own clock says that it may not lead any more."""
    old = in_haste(works(proxy.url(direct), "old"))
    stopped = threading.Event()

    @old.app.job(type="endless")
    async def endless(name: str) -> None:  # noqa: ARG001
        with old.written_down():
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

    old.app.start()
    endless.enqueue("endless")
    eventually(lambda: any(isinstance(each, Began) for each in old.journal.entries))
    proxy.refusing = True
    proxy.cut()
    cut_at = time.monotonic()
    assert stopped.wait(WAIT_S)
    assert time.monotonic() - cut_at < LEADER_S + LEASE_S
    proxy.refusing = False
    eventually(lambda: lease_left_s(direct) > 0)  # nobody came, so it goes on
    assert engine_of(old).error is None


def test_the_seat_of_a_process_that_is_gone_is_free_at_once(direct: str, works: Maker) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ENTER_AND_DIE.format(direct)])
    gone.wait(WAIT_S)
    assert lease_left_s(direct) > 1000
    new = works(direct, "new")
    new.app.start()
    new.app.stop()


ENTER_AND_DIE = """
import os
from headway.store import open_store
from headway.store.records import Candidate
open_store("{}").enter(lambda: None, Candidate(lease_s=5000.0))
os._exit(1)
"""


def test_the_seat_of_a_process_elsewhere_is_free_when_its_lease_is_over(
    direct: str, works: Maker
) -> None:
    """Nobody can see whether it is gone."""
    subprocess.run([sys.executable, "-c", ENTER_AND_DIE.format(direct)], check=False)
    new = works(direct, "new")
    with psycopg.connect(direct, autocommit=True) as db:
        here = db.execute("select holder from headway.leader").fetchone()
        assert here is not None
        there = {**json.loads(here[0]), "machine": "another", "host": "far.example"}
        db.execute("update headway.leader set holder = %s", (json.dumps(there),))
        with pytest.raises(EngineRunning, match=r"on far\.example"):
            new.app.start()
        db.execute("update headway.leader set lease_end = clock_timestamp() + interval '0.2 s'")
    eventually(lambda: starts(new))
    new.app.stop()


def waiting_for_a_lock(direct: str) -> int:
    with psycopg.connect(direct, autocommit=True) as db:
        row = db.execute(
            "select count(*) from pg_stat_activity where datname = current_database() "
            "and wait_event_type = 'Lock'"
        ).fetchone()
    assert row is not None
    return int(row[0])
