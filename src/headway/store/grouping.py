"""Group commit without a queue that anybody has to tend.

Whoever holds the lock commits everything that was handed in so far, in one transaction. Callers
that come while a commit is under way find their work done when they get the lock; so batches grow
with the load and nobody waits for a timer. Callers that may not block (`post`) leave it to a
thread that does the same. Nobody is answered under the lock, so an answer may ask for more.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from headway.errors import StoreError
from headway.store.protocol import Done
from headway.store.records import NewJob

CLOSE_S = 10.0  # for what is being stored when the store is closed
INTERRUPT_S = 0.5


class Request:
    """Something to be committed: either plain jobs, which are inserted all together, or a function
    that writes with the connection it is given. A function may run twice, so it must not keep
    anything. `atomic`: it is one statement, and needs no transaction around it when it is alone.
    `rings`: the engine should look, as it should for new jobs.
    """

    __slots__ = ("atomic", "done", "error", "finished", "jobs", "rings", "value", "write")

    def __init__(
        self,
        jobs: Sequence[NewJob] | None,
        write: Callable[[Any], Any] | None = None,
        done: Done | None = None,
        *,
        atomic: bool = False,
        rings: bool = False,
    ) -> None:
        self.jobs = jobs
        self.rings = rings or jobs is not None
        self.atomic = atomic
        self.write = write
        self.done = done
        self.finished = False
        self.value: Any = None
        self.error: BaseException | None = None


class GroupCommit(ABC):
    """What a store adds: how requests are committed, and how the connection is let go."""

    SAME_FOR_ALL: tuple[type[Exception], ...] = ()  # errors that no request of a group caused

    def __init__(self, name: str, *, ring: Callable[[], None]) -> None:
        self.name = name  # of the store, for people
        self._ring = ring
        self._ringing = False  # something was committed that the engine should look at
        self._lock = threading.Lock()
        self._requests: deque[Request] = deque()
        self._answers: deque[Request] = deque()  # done, and the one who posted it waits to hear so
        self._work = threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._closed = False

    @abstractmethod
    def _commit(self, requests: list[Request]) -> None:
        """All of them in one transaction, then `committed`. Under the lock."""

    @abstractmethod
    def _drop(self) -> None:
        """Let the connection go. Under the lock."""

    def _run_alone(self, request: Request) -> bool:
        """The short way for an atomic request when nobody else is here, if there is one now."""
        return False

    def run(self, request: Request) -> Any:
        """Commit, and return what the request gave. Blocks; any thread may call it."""
        if request.atomic and not self._requests and self._lock.acquire(blocking=False):
            try:
                alone = not self._closed and self._run_alone(request)
            finally:
                self._lock.release()
            if alone:
                if request.rings:
                    self._ring()
                return request.value
        self._requests.append(request)
        try:
            with self._lock:
                if not request.finished:
                    self._flush()
        except BaseException:  # Ctrl-C: nothing more shall happen behind the caller's back
            with contextlib.suppress(ValueError, IndexError):
                self._requests.remove(request)
            raise
        if self._ringing:
            self._ring_once()
        if request.error is not None:
            raise request.error
        return request.value

    def post(self, request: Request) -> None:
        """Commit soon, and call `request.done` from another thread; at once, if all is over."""
        if self._thread is None:
            with self._lock:
                if self._thread is None and not self._closed:
                    self._thread = threading.Thread(
                        target=self._serve, name="headway-writer", daemon=True
                    )
                    self._thread.start()
        self._requests.append(request)
        self._work.release()
        if self._closed:
            self._serve_all()  # the thread may be gone

    def _serve(self) -> None:
        over = False
        while not over:
            self._work.acquire()
            while self._work.acquire(blocking=False):
                pass  # one turn serves everybody who has asked so far
            over = self._closed  # read before the last turn: who comes later serves himself
            self._serve_all()

    def _serve_all(self) -> None:
        with self._lock:
            self._flush()
        if self._ringing:
            self._ring_once()
        while self._answers:
            with contextlib.suppress(IndexError):  # another thread has taken the last one
                _answer(self._answers.popleft())

    def _ring_once(self) -> None:
        """For everything that was committed so far; two threads may both do it."""
        self._ringing = False
        self._ring()

    def interrupt(self) -> None:  # noqa: B027 - not every store can
        """From another thread: whoever waits for the store shall wait no longer."""

    def close(self) -> None:
        if not self._lock.acquire(timeout=CLOSE_S):
            self._closed = True
            self.interrupt()
            while not self._lock.acquire(timeout=INTERRUPT_S):
                self.interrupt()  # it was just beginning a new session
        try:
            if not self._closed:
                self._flush()
                self._closed = True
            self._drop()
        finally:
            self._lock.release()
        if self._thread is not None:
            self._work.release()
            self._thread.join()

    # ------------------------------------------------------------------ under the lock

    def _flush(self) -> None:
        requests: list[Request] = []
        while self._requests:
            requests.append(self._requests.popleft())
        try:
            self._settle(requests)
        finally:
            # Only Ctrl-C leaves something unfinished: whoever comes next goes on with it.
            self._requests.extendleft(each for each in reversed(requests) if not each.finished)
            answers = [each for each in requests if each.finished and each.done]
            if answers:
                self._answers.extend(answers)
                self._work.release()

    def _settle(self, requests: list[Request]) -> None:
        if not requests:
            return
        if self._closed:
            finish_all(requests, StoreError(f"{self.name} is closed here; open the app again"))
            return
        try:
            self._commit(requests)
        except self.SAME_FOR_ALL as error:  # and nobody should wait for it again
            finish_all(requests, error)
        except Exception as error:
            if len(requests) == 1:
                finish_all(requests, error)
            else:
                for request in requests:  # each alone, so that the error meets its own cause
                    self._try_alone(request)

    def _try_alone(self, request: Request) -> None:
        try:
            self._commit([request])
        except Exception as error:
            finish_all([request], error)

    def _committed(self, requests: list[Request]) -> None:
        finish_all(requests)
        self._ringing = self._ringing or any(request.rings for request in requests)


def finish_all(requests: list[Request], error: BaseException | None = None) -> None:
    for request in requests:
        if error is not None:
            request.value, request.error = None, error
        request.finished = True


def _answer(request: Request) -> None:
    """An answer that fails is the fault of the one who asked, and the others get theirs."""
    assert request.done is not None
    try:
        request.done(request.value, request.error)
    except Exception:
        threading.excepthook(
            threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread()))
        )
