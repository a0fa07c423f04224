"""Many threads ask, and few requests are sent: while one is on its way, the next one collects.

There is no thread for it. Whoever asks while nobody does sends the request himself, so that a
process with one thread loses nothing; of those who came meanwhile, the first sends for all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from headway.errors import HeadwayError, StoreError, StoreUnavailable

Q = TypeVar("Q")
A = TypeVar("A")


class Asking(Generic[Q, A]):
    """One question. `woken`: there is an answer, or it is this one's turn to send."""

    __slots__ = ("answer", "error", "question", "woken")

    def __init__(self, question: Q) -> None:
        self.question = question
        self.answer: A | None = None
        self.error: BaseException | None = None
        self.woken = threading.Event()


class Together(Generic[Q, A]):
    """`send` gets questions and returns as many answers, or raises for all of them."""

    def __init__(self, send: Callable[[list[Q]], list[A]], most: int) -> None:
        self._send = send
        self._most = most
        self._lock = threading.Lock()
        self._waiting: list[Asking[Q, A]] = []
        self._busy = False  # somebody sends

    def ask(self, question: Q) -> A:
        mine: Asking[Q, A] = Asking(question)
        with self._lock:
            self._waiting.append(mine)
            sends = not self._busy
            self._busy = True
        if not sends:
            self._wait(mine)
        if mine.answer is None and mine.error is None:
            self._send_all(mine)
        if mine.error is not None:
            raise mine.error
        assert mine.answer is not None
        return mine.answer

    def _wait(self, mine: Asking[Q, A]) -> None:
        try:
            mine.woken.wait()
        except BaseException:  # a signal, or an order to stop
            with self._lock:
                if mine in self._waiting:
                    self._waiting.remove(mine)
                    if mine.woken.is_set():
                        self._pass_on()
            raise

    def _send_all(self, mine: Asking[Q, A]) -> None:
        with self._lock:
            asking, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
        error: BaseException | None = None
        answers: list[A] = []
        try:
            answers = self._send([each.question for each in asking])
            if len(answers) != len(asking):
                raise StoreError(f"{len(asking)} questions got {len(answers)} answers")
        except BaseException as raised:  # whatever it is, the others must not wait for ever
            error = raised
        for number, each in enumerate(asking):
            if error is None:
                each.answer = answers[number]
            elif each is mine or isinstance(error, HeadwayError):
                each.error = error
            else:
                each.error = StoreUnavailable(f"whoever asked for all was stopped: {error!r}")
        with self._lock:
            self._pass_on()
        for each in asking:
            each.woken.set()

    def _pass_on(self) -> None:
        """The first of those who wait sends next."""
        self._busy = bool(self._waiting)
        if self._busy:
            self._waiting[0].woken.set()
