"""What becomes of a turn that was sent, when the engine cannot see it through."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from typing import Any

import pytest

from headway.api.problems import problem_of
from headway.engine.departures import Departures, Outbox
from headway.errors import EngineStopped, StaleBrain, StoreUnavailable
from headway.store.batch import Batch

OVER = EngineStopped("the engine has stopped: another engine has taken over")


class Store:
    """It commits what it is sent. Each of its answers may be an error."""

    def __init__(self, **errors: Exception) -> None:
        self._errors = errors

    def _answer(self, name: str) -> None:
        if name in self._errors:
            raise self._errors[name]

    def settle(self) -> None:
        self._answer("settle")

    def commit(self, _: object) -> None:
        self._answer("commit")

    def assure(self) -> None:
        self._answer("assure")


class Nobody:
    """Waits for a slot, or works elsewhere."""

    unheard = False

    def waiters(self) -> list[Any]:
        return []

    def send_home(self) -> None:
        pass


def departures(store: Store) -> Departures:
    made = Departures()
    made.store = store  # type: ignore[assignment]
    made.slots = made.remote = Nobody()  # type: ignore[assignment]
    made._calls = deque()
    return made


def asked() -> Future[int]:
    """Somebody waits for the end of a turn that was begun."""
    waiter: Future[int] = Future()
    waiter.set_running_or_notify_cancel()
    return waiter


def leaving(waiter: Future[int], *, permits: int = 0) -> Outbox:
    outbox = Outbox()
    outbox.acks = [(waiter, 1)]
    outbox.permits = [object()] * permits  # type: ignore[list-item]
    return outbox


@pytest.mark.parametrize("permits", [0, 1])
def test_whoever_waits_for_a_turn_hears_that_another_engine_has_taken_over(permits: int) -> None:
    """Also if there is nothing to start: a heartbeat must not hear that all is well."""
    brain = departures(Store(assure=StaleBrain("another engine")))
    waiter = asked()
    brain._leaving = leaving(waiter, permits=permits)
    with pytest.raises(StaleBrain):
        brain.arrive()
    assert not waiter.done()
    brain.abandon(OVER)
    assert isinstance(waiter.exception(0), EngineStopped)


def test_nobody_is_told_that_something_is_not_done_which_may_be() -> None:
    """The turn was committed, the answer of the store was lost, and then another one led."""
    brain = departures(Store(settle=StoreUnavailable("lost"), commit=StaleBrain("another engine")))
    sent, next_turn = asked(), asked()
    brain.under_way, brain._leaving = Batch(term=1), leaving(sent)
    brain.outbox = leaving(next_turn)
    with pytest.raises(StaleBrain):
        brain.arrive()
    brain.abandon(OVER)
    assert kind_of(sent) == "outcome-unknown"
    assert kind_of(next_turn) == "unavailable", "that was never sent"


def kind_of(waiter: Future[int]) -> str:
    error = waiter.exception(0)
    assert isinstance(error, EngineStopped)
    problem = problem_of(error)
    assert problem is not None
    return problem.kind


def test_whoever_has_heard_is_not_told_again() -> None:
    brain = departures(Store())
    waiter = asked()
    brain._leaving = leaving(waiter)

    def breaks() -> None:
        raise RuntimeError("a fault of Headway")

    brain.ended[7] = [breaks]
    brain._leaving.ended = [7]
    with pytest.raises(RuntimeError):
        brain.arrive()
    brain.abandon(OVER)
    assert waiter.result(0) == 1
