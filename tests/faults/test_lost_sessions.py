"""The engine's session is lost at the worst moment; one test for each moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from headway.errors import StoreBusy, StoreUnavailable
from headway.store.postgres import connection
from headway.store.postgres.address import parse
from headway.store.postgres.connection import connect
from headway.store.postgres.seat import Seat
from headway.store.protocol import ANYBODY
from tests.faults.conftest import Maker
from tests.faults.kit import WAIT_S, Works, check_all, eventually, is_over, names_in_trail
from tests.faults.proxy import TAKE_TURN, Do, Proxy


def pause_brain(works: Works) -> Callable[[], None]:
    """The brain stays at the end of a turn until the answer is called, so that what comes
    meanwhile is in the next one.
    """
    assert works.app.engine is not None
    asked, inside, go_on = threading.Event(), threading.Event(), threading.Event()

    def stay(_: object) -> None:
        inside.set()
        go_on.wait(WAIT_S)

    future = works.app.engine.ask(lambda _: asked.wait(WAIT_S))
    future.add_done_callback(stay)
    asked.set()
    assert inside.wait(WAIT_S)
    return go_on.set


def seen_without_a_mark(engine: Works, proxy: Proxy, *names: str, kind: str) -> list[int]:
    """The engine sees jobs in a session that is lost before it could store that it has."""
    struck = proxy.next(TAKE_TURN, Do.LOSE_REQUEST)
    ids = engine.put(*names, kind=kind)
    assert struck.wait(WAIT_S)
    eventually(lambda: all(names_in_trail(engine.app, id) for id in ids))
    return ids


def test_a_job_that_ends_while_it_comes_in_again_is_not_run_again(
    proxy: Proxy, direct: str, works: Maker
) -> None:
    engine = works(proxy.url(direct))
    with engine.app.running():
        engine.look_only_when_called()
        seen_without_a_mark(engine, proxy, "held", kind="held")
        assert engine.held_begun.wait(WAIT_S)
        go_on = pause_brain(engine)
        engine.free.set()  # its end and the news come in the same turn
        eventually(lambda: engine.app.engine.brain._finished)  # type: ignore[union-attr]
        engine.put("news")
        go_on()
        is_over(direct)
    check_all(direct, engine.journal)


def test_a_job_that_is_cancelled_while_it_comes_in_again_does_not_run(
    proxy: Proxy, direct: str, works: Maker
) -> None:
    engine = works(proxy.url(direct))
    with engine.app.running():
        engine.look_only_when_called()
        engine.app.pause("type:held")
        [id] = seen_without_a_mark(engine, proxy, "unwanted", kind="held")
        go_on = pause_brain(engine)
        cancelled = threading.Thread(target=engine.app.cancel, args=(id,))
        cancelled.start()
        eventually(lambda: engine.app.engine.brain._calls)  # type: ignore[union-attr]
        engine.put("news")
        go_on()
        cancelled.join(WAIT_S)
        engine.app.resume("type:held")
        engine.free.set()
        is_over(direct)
    assert names_in_trail(engine.app, id) == ["submit", "cancel"]


def test_a_job_that_was_seen_but_not_marked_has_one_submit_after_a_restart(
    proxy: Proxy, direct: str, works: Maker
) -> None:
    old = works(proxy.url(direct), "old")
    old.app.leader_lease_s = 0.5
    old.app.start()
    old.look_only_when_called()
    old.app.pause("type:held")
    [id] = seen_without_a_mark(old, proxy, "held", kind="held")
    proxy.refusing = True  # the old engine is gone, and could not say goodbye
    proxy.cut()
    new = works(direct, "new")
    eventually(lambda: starts(new))
    proxy.refusing = False
    new.app.resume("type:held")
    new.free.set()
    is_over(direct)
    new.app.stop()
    assert names_in_trail(new.app, id) == ["submit", "grant", "ok"]
    check_all(direct, old.journal)


def starts(works: Works) -> bool:
    try:
        works.app.start()
    except Exception:
        return False
    return True


@pytest.mark.parametrize("kind", ["retry", "cancel"])
def test_an_order_from_elsewhere_waits_for_the_store(
    direct: str, works: Maker, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """It is looked up in the store, which may be away just then."""
    engine, other = works(direct), works(direct, "elsewhere")
    with engine.app.running():
        [id] = engine.put("done")
        is_over(direct)
        store: Any = engine.app.store
        real = store.load_some if kind == "retry" else store.states
        failures = iter([True, True])

        def flaky(ids: Any) -> Any:
            if next(failures, False):
                raise StoreUnavailable("it is away")
            return real(ids)

        monkeypatch.setattr(store, "load_some" if kind == "retry" else "states", flaky)
        other.app.store.command(kind, str(id), None, other.app.now())
        eventually(lambda: next(failures, None) is None)
        engine.put("more")
        is_over(direct)
        assert engine.app.engine is not None
        assert engine.app.engine.error is None


@pytest.mark.timeout(60)
def test_an_engine_can_be_stopped_although_its_line_hangs(
    proxy: Proxy, direct: str, works: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.engine.engine.GRACE_S", 0.2)
    engine = works(proxy.url(direct))
    engine.app.start()
    brain = engine.app.engine
    assert brain is not None
    engine.look_only_when_called()
    engine.put("held", kind="held")
    assert engine.held_begun.wait(WAIT_S)
    proxy.stall()
    engine.free.set()  # its end is sent, and never answered
    engine.app.stop(0.1)
    assert brain.done.wait(WAIT_S)
    proxy.flow()
    again = works(direct, "again")
    with again.app.running():
        again.free.set()
        is_over(direct)
    check_all(direct, engine.journal)


def test_an_engine_that_left_while_it_connected_holds_nothing(
    direct: str, works: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert works(direct).app.store  # the schema is there
    seat = Seat(parse(direct))
    seat.take(ANYBODY, nothing)
    assert seat._db is not None
    seat._db.close()

    def leaves(*args: Any, **options: Any) -> Any:
        made = connect(*args, **options)
        seat.leave()
        return made

    monkeypatch.setattr("headway.store.postgres.seat.connect", leaves)
    with pytest.raises(StoreUnavailable, match="has left"):
        seat.load_new("", 10)
    assert seat._db is None
    with works(direct).app.running():  # nobody sits there
        pass


def test_a_look_that_hangs_ends_when_the_engine_leaves(
    proxy: Proxy, direct: str, works: Maker
) -> None:
    """And its session is not closed under the one who waits in it."""
    assert works(direct).app.store  # the schema is there
    for _ in range(3):
        seat = Seat(parse(proxy.url(direct)))
        seat.take(ANYBODY, nothing)
        ended: list[Exception] = []
        looking = threading.Thread(target=look_for_ever, args=(seat, ended), daemon=True)
        looking.start()
        eventually(lambda seat=seat: seat._looked_in)
        proxy.stall()
        leaving = threading.Thread(target=seat.leave, daemon=True)
        leaving.start()
        looking.join(WAIT_S)
        assert [type(error) for error in ended] == [StoreUnavailable]
        proxy.flow()
        leaving.join(WAIT_S)


def nothing() -> None:
    pass


def look_for_ever(seat: Seat, ended: list[Exception]) -> None:
    try:
        while True:
            seat.load_new("", 10)
    except Exception as error:
        ended.append(error)


def test_a_look_that_could_not_begin_begins_again(
    direct: str, works: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody has locked the table while the session is being made ready."""
    [id] = works(direct).put("first")
    seat = Seat(parse(direct))
    seat.take(ANYBODY, nothing)
    monkeypatch.setattr(connection, "SESSION", connection.SESSION.replace("'10s'", "'20ms'"))
    with psycopg.connect(direct) as holder:
        holder.execute("lock table headway.jobs in access exclusive mode")
        with pytest.raises(StoreBusy):
            seat.load_new("", 10)
    assert [job.id for job in seat.load_new("", 10).jobs] == [id]
    seat.leave()
