"""One message between the app and the server is lost, and everything happens once."""

from __future__ import annotations

import re
import threading

import psycopg
import pytest

from headway.store.postgres import writer
from tests.faults.conftest import Maker
from tests.faults.kit import WAIT_S, check_all, eventually, is_over, open_jobs
from tests.faults.proxy import COMMIT, PUT, TAKE_TURN, Do, Proxy


def numbers_in(direct: str) -> list[int]:
    with psycopg.connect(direct) as db:
        return [row[0] for row in db.execute("select id from headway.jobs order by id")]


@pytest.mark.parametrize("words", [PUT, COMMIT], ids=["put", "commit"])
@pytest.mark.parametrize("do", [Do.LOSE_REQUEST, Do.LOSE_ANSWER])
@pytest.mark.parametrize("engine", ["here", "elsewhere"])
def test_a_producer_is_told_the_number_of_its_one_job(
    proxy: Proxy, direct: str, works: Maker, words: re.Pattern[bytes], do: Do, engine: str
) -> None:
    producer = works(proxy.url(direct))
    first = producer.put("first")  # from now on there is a session
    if engine == "here":
        producer.app.start()
    struck = proxy.next(words, do)

    second = producer.put("second", "third")

    assert struck.is_set()
    assert numbers_in(direct) == [*first, *second]
    if engine == "elsewhere":
        producer.app.start()
    is_over(direct)
    producer.app.stop()
    check_all(direct, producer.journal)


@pytest.mark.parametrize("do", [Do.LOSE_REQUEST, Do.LOSE_ANSWER])
def test_a_group_of_producers_is_told_about_its_jobs(
    proxy: Proxy, direct: str, works: Maker, do: Do
) -> None:
    producer = works(proxy.url(direct))
    producer.put("first")
    proxy.stall()  # so that the others come together
    threads = [
        threading.Thread(target=producer.put, args=(f"n{number}",), daemon=True)
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    waiting = producer.app.store._writer._requests  # type: ignore[attr-defined]
    eventually(lambda: len(waiting) == 7)  # one of them has the session, and waits there
    struck = proxy.next(COMMIT, do)
    proxy.flow()
    for thread in threads:
        thread.join(WAIT_S)
    struck_again = proxy.next(COMMIT, do)
    producer.put("last")

    assert struck.is_set()
    assert struck_again.is_set()
    assert len(producer.journal.asked("stored")) == 10
    producer.app.start()
    is_over(direct)
    producer.app.stop()
    check_all(direct, producer.journal)


def test_a_commit_that_is_still_under_way_is_waited_for(
    proxy: Proxy, direct: str, works: Maker
) -> None:
    """The session is cut, and the old backend still holds the transaction open."""
    producer = works(proxy.url(direct))
    producer.put("first")
    with psycopg.connect(direct) as holder:
        # A trigger at the end of the transaction waits for us: the commit is sent, and hangs.
        holder.execute(
            "create function headway.wait() returns trigger language plpgsql as "
            "'begin perform pg_advisory_xact_lock(77); return null; end'"
        )
        holder.execute(
            "create constraint trigger wait after insert on headway.jobs "
            "deferrable initially deferred for each row execute function headway.wait()"
        )
        holder.commit()
        holder.execute("select pg_advisory_lock(77)")
        holder.commit()
        struck = proxy.next(COMMIT, Do.LEAVE_BUSY)
        answers: list[list[int]] = []
        asking = threading.Thread(target=lambda: answers.append(producer.put("second")))
        asking.start()
        assert struck.wait(WAIT_S)
        asked = proxy.connected
        eventually(lambda: proxy.connected >= asked + 2)  # it asks, and asks again
        assert answers == []
        holder.execute("select pg_advisory_unlock(77)")
        holder.commit()
        asking.join(WAIT_S)

    assert answers == [[numbers_in(direct)[-1]]]
    assert len(numbers_in(direct)) == 2


def test_a_producer_is_told_when_nobody_can_know(
    proxy: Proxy, direct: str, works: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "RESOLVE_S", 0.3)
    producer = works(proxy.url(direct))
    producer.put("first")
    with psycopg.connect(direct, autocommit=True) as holder:
        holder.execute(
            "create function headway.wait() returns trigger language plpgsql as "
            "'begin perform pg_advisory_xact_lock(78); return null; end'"
        )
        holder.execute(
            "create constraint trigger wait after insert on headway.jobs "
            "deferrable initially deferred for each row execute function headway.wait()"
        )
        holder.execute("select pg_advisory_lock(78)")
        proxy.next(COMMIT, Do.LEAVE_BUSY)
        with pytest.raises(Exception, match="look for the jobs before you enqueue them again"):
            producer.put("second", "third")
        assert len(numbers_in(direct)) == 1
    eventually(lambda: len(numbers_in(direct)) == 3)
    producer.app.start()
    is_over(direct)
    producer.app.stop()
    check_all(direct, producer.journal)


@pytest.mark.parametrize("do", list(Do))
def test_a_turn_counts_once(proxy: Proxy, direct: str, works: Maker, do: Do) -> None:
    engine = works(proxy.url(direct))
    with engine.app.running():
        engine.put("first")
        is_over(direct)
        for round in range(3):  # the turn that grants, and the one that hears of the end
            struck = proxy.next(TAKE_TURN, do)
            engine.put(f"grant {round}", f"more {round}")
            assert struck.wait(WAIT_S)
            is_over(direct)
            engine.put(f"held {round}", kind="held")
            assert engine.held_begun.wait(WAIT_S)
            struck = proxy.next(TAKE_TURN, do)
            engine.free.set()
            assert struck.wait(WAIT_S)
            is_over(direct)
            engine.held_begun.clear()
            engine.free.clear()
    check_all(direct, engine.journal)


def test_a_turn_waits_for_the_old_session_that_is_still_busy_with_it(
    proxy: Proxy, direct: str, works: Maker
) -> None:
    engine = works(proxy.url(direct))
    with engine.app.running(), psycopg.connect(direct) as holder:
        engine.put("first")
        is_over(direct)
        holder.execute("lock table headway.events in access exclusive mode")
        struck = proxy.next(TAKE_TURN, Do.LEAVE_BUSY)
        engine.put("second")
        assert struck.wait(WAIT_S)
        busy = "select count(*) from pg_stat_activity where query like '%take_turn%' "
        busy += "and datname = current_database() and wait_event_type = 'Lock'"
        with psycopg.connect(direct, autocommit=True) as looking:
            # The old backend waits for the table, the new one for the old one.
            eventually(lambda: looking.execute(busy.encode()).fetchone()[0] >= 2)  # type: ignore[index]
        assert open_jobs(direct) == 1
        holder.rollback()
        is_over(direct)
    check_all(direct, engine.journal)


def test_a_stalled_line_only_takes_time(proxy: Proxy, direct: str, works: Maker) -> None:
    engine = works(proxy.url(direct))
    with engine.app.running():
        engine.put("first")
        is_over(direct)
        proxy.stall()
        asking = threading.Thread(target=engine.put, args=("second",), daemon=True)
        asking.start()
        asking.join(0.3)
        assert asking.is_alive()
        proxy.flow()
        asking.join(WAIT_S)
        is_over(direct)
    check_all(direct, engine.journal)
