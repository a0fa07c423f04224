"""Many threads ask, few requests are sent, and nobody waits for ever."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from headway.celery.together import Together
from headway.errors import StoreUnavailable

WITHIN_S = 30


class Server:
    """Answers each question with twice of it, when it may."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.begun = threading.Semaphore(0)
        self.may_answer = threading.Semaphore(0)
        self.error: BaseException | None = None

    def send(self, questions: list[int]) -> list[int]:
        self.asked.append(questions)
        self.begun.release()
        assert self.may_answer.acquire(timeout=WITHIN_S)
        if self.error is not None:
            raise self.error
        return [2 * each for each in questions]


class Crowd:
    """Threads that ask, one after the other."""

    def __init__(self, server: Server, most: int = 100) -> None:
        self.together = Together(server.send, most)
        self._pool = ThreadPoolExecutor(20)

    def ask(self, *questions: int) -> list[Future[Any]]:
        return [self._pool.submit(self.together.ask, each) for each in questions]

    def wait_for(self, count: int) -> None:
        end = threading.Event()
        for _ in range(WITHIN_S * 100):
            if len(self.together._waiting) == count:
                return
            end.wait(0.01)
        raise AssertionError(f"{len(self.together._waiting)} wait, and not {count}")


@pytest.fixture
def server() -> Server:
    return Server()


def test_those_who_come_while_one_asks_are_asked_for_together(server: Server) -> None:
    crowd = Crowd(server)
    [first] = crowd.ask(1)
    assert server.begun.acquire(timeout=WITHIN_S)
    others = crowd.ask(2, 3, 4)
    crowd.wait_for(3)
    server.may_answer.release(2)
    assert first.result(WITHIN_S) == 2
    assert [each.result(WITHIN_S) for each in others] == [4, 6, 8]
    assert [sorted(each) for each in server.asked] == [[1], [2, 3, 4]]


def test_no_request_has_more_in_it_than_it_may(server: Server) -> None:
    crowd = Crowd(server, most=2)
    [first] = crowd.ask(1)
    assert server.begun.acquire(timeout=WITHIN_S)
    others = crowd.ask(2, 3, 4)
    crowd.wait_for(3)
    server.may_answer.release(3)
    assert sorted(each.result(WITHIN_S) for each in (first, *others)) == [2, 4, 6, 8]
    assert [len(each) for each in server.asked] == [1, 2, 1]


def test_an_error_is_everybodys_and_the_next_one_asks_again(server: Server) -> None:
    crowd = Crowd(server)
    server.error = StoreUnavailable("away")
    server.may_answer.release()
    with pytest.raises(StoreUnavailable, match="away"):
        crowd.together.ask(1)
    server.error = None
    server.may_answer.release()
    assert crowd.together.ask(2) == 4


def test_whoever_is_interrupted_while_it_asks_for_others_leaves_nobody_behind(
    server: Server,
) -> None:
    """As by Celery's soft time limit, which raises in the middle of anything."""
    crowd = Crowd(server, most=2)
    [first] = crowd.ask(1)
    assert server.begun.acquire(timeout=WITHIN_S)
    others = crowd.ask(2, 3)
    crowd.wait_for(2)
    server.may_answer.release()
    assert first.result(WITHIN_S) == 2
    assert server.begun.acquire(timeout=WITHIN_S)
    server.error = KeyboardInterrupt("now")
    server.may_answer.release()
    errors = sorted(type(each.exception(WITHIN_S)).__name__ for each in others)
    assert errors == ["KeyboardInterrupt", "StoreUnavailable"]
    server.error = None
    server.may_answer.release()
    assert crowd.together.ask(4) == 8
