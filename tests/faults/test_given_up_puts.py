"""A producer gives up: by Ctrl-C, because it is closed, or because nobody can know any more."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from headway.errors import OutcomeUnknown, StoreError, StoreUnavailable
from headway.store import grouping
from headway.store.postgres import writer as writing
from headway.store.postgres.connection import connect
from tests.faults.conftest import Maker
from tests.faults.kit import WAIT_S, Works, eventually
from tests.faults.proxy import PUT, Do, Proxy
from tests.faults.test_lost_puts import (
    BUSY,
    a_group,
    asking,
    calls_of,
    drained,
    held_up,
    let_go,
    numbers_in,
    rows_of,
    writer_of,
)

GROUP = 7


# Ctrl-C


class Interrupting:
    """Instead of `Writer._call`: for the calls of a group, one thing after another happens when
    the server has done what it was asked for.
    """

    def __init__(self, works: Works, *then: Callable[[], None]) -> None:
        self._real = writer_of(works)._call
        self._then = iter(then)
        writer_of(works)._call = self

    def __call__(self, db: Any, values: list[bytes]) -> Any:
        if len(json.loads(values[2])) == 1:
            return self._real(db, values)
        answer = self._real(db, values)
        for each in self._then:
            each()
            break
        return answer


def ctrl_c() -> None:
    raise KeyboardInterrupt


def told(answers: list[list[Any]], kind: type) -> int:
    return sum(isinstance(answer, kind) for [answer] in answers)


def each_is_there_once(direct: str, answers: list[list[Any]]) -> None:
    """What was acknowledged, too, as the history shows in the end."""
    numbers = numbers_in(direct)
    assert len(numbers) == GROUP + 2
    assert {id for [answer] in answers if isinstance(answer, list) for id in answer} <= set(numbers)


def test_the_others_get_their_answers_when_one_presses_ctrl_c(
    proxy: Proxy, direct: str, works: Maker
) -> None:
    producer = works(proxy.url(direct))
    producer.put("first")
    Interrupting(producer, ctrl_c)
    with a_group(proxy, producer, GROUP) as answers:
        pass
    assert told(answers, KeyboardInterrupt) == 1
    assert told(answers, list) == GROUP - 1
    each_is_there_once(direct, answers)
    assert calls_of(direct) == [3]
    drained(direct, producer)


def test_the_others_get_their_answers_although_the_session_is_lost_too(
    proxy: Proxy, direct: str, works: Maker
) -> None:
    producer = works(proxy.url(direct))
    producer.put("first")

    def lost() -> None:
        proxy.cut()
        ctrl_c()

    Interrupting(producer, lost)
    with a_group(proxy, producer, GROUP) as answers:
        pass
    assert told(answers, KeyboardInterrupt) == 1
    assert told(answers, list) == GROUP - 1
    each_is_there_once(direct, answers)
    drained(direct, producer)


def test_the_others_hear_that_nobody_can_know_when_the_store_is_away_after_ctrl_c(
    proxy: Proxy, direct: str, works: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They must not hear that nothing is stored, and nobody may store it again."""
    monkeypatch.setattr(writing, "RESOLVE_S", 0.2)
    producer = works(proxy.url(direct))
    producer.put("first")

    def away() -> None:
        proxy.refusing = True
        proxy.cut()
        ctrl_c()

    Interrupting(producer, away)
    with a_group(proxy, producer, GROUP) as answers:
        pass
    proxy.refusing = False
    assert told(answers, KeyboardInterrupt) == 1
    assert told(answers, OutcomeUnknown) == GROUP - 1
    each_is_there_once(direct, answers)
    drained(direct, producer)


def test_nothing_is_stored_twice_when_somebody_presses_ctrl_c_twice(
    proxy: Proxy, direct: str, works: Maker
) -> None:
    producer = works(proxy.url(direct))
    producer.put("first")
    Interrupting(producer, ctrl_c, ctrl_c)
    with a_group(proxy, producer, GROUP) as answers:
        pass
    assert told(answers, KeyboardInterrupt) == 1
    assert told(answers, OutcomeUnknown) == GROUP - 1
    each_is_there_once(direct, answers)
    drained(direct, producer)


def test_a_group_that_was_refused_after_ctrl_c_is_put_by_the_next(
    proxy: Proxy, direct: str, works: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = works(proxy.url(direct))
    producer.put("first")
    real, calls = writer_of(producer)._call, []

    def refused(db: Any, values: list[bytes]) -> Any:
        if len(json.loads(values[2])) == 1:
            return real(db, values)
        calls.append(values[1])
        raise KeyboardInterrupt if len(calls) == 1 else StoreError("one of them is not good")

    monkeypatch.setattr(writer_of(producer), "_call", refused)
    with a_group(proxy, producer, GROUP) as answers:
        pass
    assert calls[:2] == [b"3", b"3"], "the same number again"
    assert told(answers, KeyboardInterrupt) == 1
    assert told(answers, list) == GROUP - 1
    drained(direct, producer)


# Closing


def is_closed(works: Works) -> None:
    closing = threading.Thread(target=works.app.close, daemon=True)
    closing.start()
    closing.join(WAIT_S)
    assert not closing.is_alive()


@pytest.mark.timeout(60)
def test_an_app_can_be_closed_while_a_producer_hangs(
    proxy: Proxy, direct: str, works: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouping, "CLOSE_S", 0.1)
    producer = works(proxy.url(direct))
    producer.put("first")
    writer_of(producer)._session()  # the answer to its ring is read
    proxy.stall()
    thread, answers = asking(producer, "second")
    eventually(lambda: len(numbers_in(direct)) == 2)  # it is stored, and nobody says so
    assert answers == []
    is_closed(producer)
    thread.join(WAIT_S)
    assert told([answers], OutcomeUnknown) == 1
    proxy.flow()
    drained(direct, works(direct))


@pytest.mark.timeout(60)
def test_an_app_can_be_closed_while_a_producer_waits_for_the_answer_to_its_ring(
    proxy: Proxy, direct: str, works: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouping, "CLOSE_S", 0.1)
    producer = works(f"{proxy.url(direct)}&connect_timeout=2")
    producer.put("first")
    writer = writer_of(producer)
    db = writer._session()
    proxy.stall()
    db.pgconn.send_query_prepared(writing.RING, [])
    writer._ringing_out = True
    thread, answers = asking(producer, "second")
    eventually(writer._lock.locked)
    is_closed(producer)
    thread.join(WAIT_S)
    assert told([answers], StoreUnavailable) == 1
    assert told([answers], OutcomeUnknown) == 0, "it was never sent"
    proxy.flow()
    drained(direct, works(direct))


@pytest.mark.timeout(60)
def test_an_app_can_be_closed_while_a_producer_begins_a_session(
    proxy: Proxy, direct: str, works: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is nothing to interrupt at first, and then it hangs."""
    monkeypatch.setattr(grouping, "CLOSE_S", 0.1)
    producer = works(proxy.url(direct))
    writer = writer_of(producer)
    interrupt, interrupted = writer.interrupt, threading.Event()

    def slow(*args: Any, **options: Any) -> Any:
        made = connect(*args, **options)
        assert interrupted.wait(WAIT_S)
        proxy.stall()
        return made

    def hears() -> None:
        interrupt()
        interrupted.set()

    monkeypatch.setattr(writing, "connect", slow)
    monkeypatch.setattr(writer, "interrupt", hears)
    thread, answers = asking(producer, "first")
    eventually(writer._lock.locked)
    is_closed(producer)
    thread.join(WAIT_S)
    assert told([answers], StoreUnavailable) == 1
    assert told([answers], OutcomeUnknown) == 0, "it was never sent"
    proxy.flow()
    assert numbers_in(direct) == []


# What the server hears late


def given_up(proxy: Proxy, producer: Works, do: Do, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server may hear it still."""
    with monkeypatch.context() as patch:
        patch.setattr(writing, "RESOLVE_S", 0.2)
        struck = proxy.next(PUT, do)
        proxy.refusing = True
        with pytest.raises(OutcomeUnknown):
            producer.put("given up", "this too")
        assert struck.is_set()
    proxy.refusing = False


def test_a_call_that_is_heard_after_a_later_one_stores_nothing(
    proxy: Proxy, direct: str, works: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = works(proxy.url(direct))
    first = producer.put("first")
    given_up(proxy, producer, Do.KEEP_BACK, monkeypatch)
    later = producer.put("later")
    assert proxy.deliver() == 1
    latest = producer.put("latest")
    assert numbers_in(direct) == [*first, *later, *latest]
    assert calls_of(direct) == [4]
    drained(direct, producer)


def test_a_call_that_is_heard_late_but_before_the_next_is_no_hindrance(
    proxy: Proxy, direct: str, works: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row of the producer is elsewhere then."""
    producer = works(proxy.url(direct))
    producer.put("first")
    given_up(proxy, producer, Do.KEEP_BACK, monkeypatch)
    assert proxy.deliver() == 1
    assert calls_of(direct) == [2]
    assert len(numbers_in(direct)) == 3
    [later] = producer.put("later")
    assert numbers_in(direct)[3:] == [later]
    assert calls_of(direct) == [3]
    drained(direct, producer)


def test_a_call_that_is_asked_again_and_then_heard_is_stored_once(
    proxy: Proxy, direct: str, works: Maker
) -> None:
    producer = works(proxy.url(direct))
    first = producer.put("first")
    proxy.next(PUT, Do.KEEP_BACK)
    second = producer.put("second", "third")
    assert proxy.deliver() == 1
    assert numbers_in(direct) == [*first, *second]
    drained(direct, producer)


def test_the_next_call_waits_for_one_that_was_given_up_and_is_under_way(
    proxy: Proxy, direct: str, works: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds the row of the producer where the other has just put it."""
    producer = works(proxy.url(direct))
    producer.put("first")
    with held_up(direct) as holder:
        given_up(proxy, producer, Do.LEAVE_BUSY, monkeypatch)
        thread, answers = asking(producer, "later")
        eventually(lambda: rows_of(direct, BUSY) == [(2,)])
        let_go(holder)
        thread.join(WAIT_S)
    assert [[numbers_in(direct)[-1]]] == answers
    assert len(numbers_in(direct)) == 4
    assert calls_of(direct) == [3], "the later call was not written down"
    drained(direct, producer)
