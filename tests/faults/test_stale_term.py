"""An engine that was cut off while another took its seat changes nothing any more, and stops."""

from __future__ import annotations

import asyncio
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

SEAT = """
select l.pid from pg_locks as l join pg_database as d on d.oid = l.database
where l.locktype = 'advisory' and l.granted and l.objsubid = 2 and d.datname = current_database()
"""


def seats(direct: str) -> list[int]:
    """The sessions that have the lock of the engine."""
    with psycopg.connect(direct, autocommit=True) as db:
        return [row[0] for row in db.execute(SEAT.encode())]


def engine_of(works: Works) -> Engine:
    assert works.app.engine is not None
    return works.app.engine


@pytest.fixture
def old(proxy: Proxy, direct: str, works: Maker) -> Works:
    """An engine at work, behind a line that can be cut."""
    old = works(proxy.url(direct), "old")
    old.app.start()
    old.put("held", kind="held")
    assert old.held_begun.wait(WAIT_S)
    return old


@contextmanager
def taken_over(proxy: Proxy, direct: str, works: Maker) -> Iterator[Works]:
    """The old engine is cut off, a new one takes its seat, then the old one gets through again."""
    proxy.refusing = True
    proxy.cut()
    eventually(lambda: seats(direct) == [])
    new = works(direct, "new")
    with new.app.running():
        proxy.refusing = False
        yield new


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
        eventually(lambda: seats(direct) == [] or len(seats(direct)) == 1)
        holder.rollback()
    eventually(lambda: seats(direct) == [])
    new = works(direct, "new")
    with new.app.running():
        proxy.refusing = False
        assert engine.done.wait(WAIT_S)
        assert isinstance(engine.error, StaleBrain)
        old.free.set()
        new.free.set()
        is_over(direct)
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
    old = works(proxy.url(direct), "old")
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


def test_an_engine_that_was_cut_sits_down_again(
    old: Works, proxy: Proxy, direct: str, works: Maker
) -> None:
    """Nobody else may take its seat while it works."""
    proxy.cut()
    old.put("wakes it")
    old.free.set()
    is_over(direct)
    assert len(seats(direct)) == 1
    with pytest.raises(EngineRunning):
        works(direct, "new").app.start()
    assert engine_of(old).error is None
    old.app.stop()
    check_all(direct, old.journal)


def test_an_engine_sits_down_again_when_its_old_session_is_really_gone(
    old: Works, proxy: Proxy, direct: str, works: Maker
) -> None:
    """The server has not noticed yet that the old session is cut, and it still has the lock."""
    before = seats(direct)
    with psycopg.connect(direct) as holder:
        holder.execute("lock table headway.events in access exclusive mode")
        struck = proxy.next(TAKE_TURN, Do.LEAVE_BUSY)
        old.put("grants")
        assert struck.wait(WAIT_S)
        eventually(lambda: waiting_for_a_lock(direct) >= 2)  # the new session asks already
        assert seats(direct) == before
        holder.rollback()
    old.free.set()
    is_over(direct)
    old.put("one more turn")
    is_over(direct)
    eventually(lambda: len(seats(direct)) == 1 and seats(direct) != before)
    with pytest.raises(EngineRunning):
        works(direct, "new").app.start()
    old.app.stop()
    check_all(direct, old.journal)


def waiting_for_a_lock(direct: str) -> int:
    with psycopg.connect(direct, autocommit=True) as db:
        row = db.execute(
            "select count(*) from pg_stat_activity where datname = current_database() "
            "and wait_event_type = 'Lock'"
        ).fetchone()
    assert row is not None
    return int(row[0])
