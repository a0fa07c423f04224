"""The server stops as in a crash and comes back: the engine says so, and work goes on."""

from __future__ import annotations

import logging
import threading
from random import Random

import psycopg
import pytest

from headway.errors import OutcomeUnknown, StoreUnavailable
from headway.store.postgres.marks import Mark
from tests.faults.conftest import Maker
from tests.faults.history import Began, Journal
from tests.faults.kit import Load, check_all, eventually, is_over
from tests.faults.proxy import TAKE_TURN, Do, Proxy
from tests.postgres import Postgres, in_memory, postgres


def crash_and_return(server: Postgres) -> None:
    server.stop("immediate")
    server.start()


def survive_restarts(
    seed: int, server: Postgres, works: Maker, *, producers: int, each: int, restarts: int
) -> None:
    direct = server.new_database()
    engine, other = works(direct), works(direct, "elsewhere")
    assert other.app.store
    random, between = Random(seed), threading.Event()
    load = Load(seed, engine, other, direct, producers=producers, each=each)
    with engine.app.running():
        load.start()
        try:
            for _ in range(restarts):
                told = load.stored()
                eventually(lambda told=told: load.stored() > told + 5 or load.is_done())
                between.wait(random.uniform(0.0, 0.3))
                crash_and_return(server)
            load.join(120)
        finally:
            load.stop()
        is_over(direct, 60)
        assert engine.app.trouble == ""
    history = check_all(direct, engine.journal)
    unknown = len(engine.journal.asked("unknown"))
    print(f"seed {seed}: {len(history.rows)} jobs, {restarts} restarts, {unknown} unknown")


def test_the_server_crashes_under_load(own_server: Postgres, works: Maker) -> None:
    survive_restarts(1, own_server, works, producers=6, each=60, restarts=3)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(300, 304))
def test_the_server_crashes_again_and_again(own_server: Postgres, works: Maker, seed: int) -> None:
    survive_restarts(seed, own_server, works, producers=12, each=400, restarts=25)


def begun(journal: Journal) -> list[Began]:
    return [each for each in journal.entries if isinstance(each, Began)]


def test_the_engine_says_that_the_server_is_away_and_that_it_is_back(
    own_server: Postgres, works: Maker, caplog: pytest.LogCaptureFixture
) -> None:
    direct = own_server.new_database()
    engine = works(direct)
    app = engine.app
    with app.running():
        engine.put("held 1", "held 2", "held 3", "held 4", kind="held")
        eventually(lambda: len(begun(engine.journal)) == 4)
        engine.put("waits 1", "waits 2")  # the pool is full
        assert app.trouble == ""
        with caplog.at_level(logging.WARNING, "headway"):
            own_server.stop("immediate")
            engine.free.set()  # their ends cannot be stored, so nobody gets their places
            eventually(lambda: app.trouble)
            with pytest.raises(StoreUnavailable, match="cannot be reached") as told_so:
                engine.put("refused")
            assert not isinstance(told_so.value, OutcomeUnknown)  # it was never sent
            assert app.trouble
            assert len(begun(engine.journal)) == 4
            own_server.start()
            is_over(direct)
            eventually(lambda: app.trouble == "")
            engine.put("after")
            is_over(direct)
    away = [each for each in caplog.messages if "nothing is granted while" in each]
    back = [each for each in caplog.messages if "the store is back" in each]
    assert len(away) == len(back) == 1, caplog.messages
    history = check_all(direct, engine.journal)
    told = [event.detail for event in history.events if event.event == "store_back"]
    assert len(told) == 1
    assert "it was away for" in told[0]


def test_numbers_that_are_given_anew_after_a_crash_hide_no_job(works: Maker) -> None:
    """A commit that need not be durable is seen by the engine, and then lost by the server."""
    settings = {"wal_writer_delay": "10s", "wal_level": "minimal", "max_wal_senders": "0"}
    with (
        postgres(in_memory(1 << 30), autovacuum="off", **settings) as server,
        Proxy(server.port) as proxy,
    ):
        direct = server.new_database()
        engine = works(proxy.url(direct))
        with engine.app.running():
            engine.put("first")
            is_over(direct)
            proxy.refusing = True
            struck = proxy.next(TAKE_TURN, Do.LOSE_REQUEST)
            with psycopg.connect(direct, options="-c synchronous_commit=off") as conn:
                for _ in range(50):
                    conn.execute("select pg_current_xact_id()")
                    conn.commit()
                engine.app.enqueue(engine.task.call("lost"), conn=conn)
                conn.commit()
            assert struck.wait(20)
            assert engine.app.engine is not None
            seen = Mark.parse(engine.app.engine.brain.mark)
            crash_and_return(server)
            proxy.refusing = False
            [id] = engine.put("after")
            with psycopg.connect(direct) as conn:
                row = conn.execute(f"select xid::text from headway.jobs where id = {id}").fetchone()
            assert row is not None
            assert int(row[0]) < int(seen.next_xid), "no number was given anew"
            assert engine.app.handle(id).wait(20) == "completed"
