"""One message between the engine and the server is lost, and every turn counts once."""

from __future__ import annotations

import threading

import psycopg
import pytest

from tests.faults.conftest import Maker
from tests.faults.kit import WAIT_S, check_all, eventually, is_over, open_jobs
from tests.faults.proxy import TAKE_TURN, Do, Proxy


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
