"""The hands of this process: async handlers as tasks of one loop, others in threads.

The loop has a thread of its own, apart from the brain's: a handler that blocks it delays other
handlers, but no decision, no commit and no lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import signal
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from heapq import heappop, heappush
from queue import SimpleQueue
from typing import Protocol

from headway.core import Outcome
from headway.core.ticket import Stop
from headway.engine.hands import Work
from headway.engine.hands.context import Reporter, RunningJob, Stopped, current
from headway.engine.hands.judging import Judged, judge_error, judge_value

ASK_AGAIN_S = 5.0  # after so long a handler that ignored an order to stop gets it once more


# Of several orders to stop the strongest counts: a pause must not hide that a job was cancelled,
# nor the end of its time that the engine had asked for it back.
RANKS: dict[str | None, int] = {"pause": 1, "timeout": 2, "shutdown": 3, "cancel": 4, "ended": 5}


class Brain(Reporter, Protocol):
    def finished(self, job: int, fence: int, outcome: Outcome, result: str | None) -> None: ...


class Watching(Protocol):
    """What `around` gives for an attempt."""

    def ended(self, outcome: Outcome) -> None: ...


Around = Callable[[Work], AbstractContextManager[Watching]]


class LocalHands:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        now: Callable[[], float],
        *,
        threads: int,
        payload_limit: int,
    ) -> None:
        self.brain: Brain
        self.around: Around | None = None  # whoever watches each attempt
        self._loop = loop
        self._now = now
        self.payload_limit = payload_limit
        self._running: dict[int, RunningJob] = {}
        self._forgotten = False
        self._ends: list[tuple[float, int]] = []  # when a work times out
        self._alarm: asyncio.TimerHandle | None = None
        self._max_threads = threads  # 0: run plain functions in the loop, one after the other
        self._threads: list[threading.Thread] = []
        self._queue: SimpleQueue[RunningJob | None] = SimpleQueue()

    # ------------------------------------------------------------------ from the brain

    def start(self, works: list[Work]) -> None:
        self._loop.call_soon_threadsafe(self._start, works)

    def stop(self, fence: int, why: Stop) -> None:
        self._loop.call_soon_threadsafe(self._stop, fence, why.value)

    def stop_all(self, why: str) -> None:
        self._loop.call_soon_threadsafe(self._stop_all, why)

    def kill_all(self) -> None:
        self._loop.call_soon_threadsafe(self._kill_all)

    def forget(self) -> None:
        """Nothing that was handed over starts any more, and nobody is told of its end."""
        self._forgotten = True
        self._running.clear()

    def close(self) -> None:
        for _ in self._threads:
            self._queue.put(None)

    # ------------------------------------------------------------------ in the loop

    def _start(self, works: list[Work]) -> None:
        if self._forgotten:
            return
        for work in works:
            job = RunningJob(work, self.brain, self._loop, self._now, self.payload_limit)
            self._running[work.fence] = job
            heappush(self._ends, (self._loop.time() + work.timeout_s, work.fence))
            if work.type.is_async:
                job.task = self._loop.create_task(self._run(job))
                job.task.add_done_callback(partial(self._never_began, job))
            elif self._max_threads == 0:
                self._loop.call_soon(self._run_here, job)
            else:
                self._to_thread(job)
        self._set_alarm()

    async def _run(self, job: RunningJob) -> None:
        current.set(job)
        if self.around is None:
            outcome, result = await self._attempt(job)
        else:
            with self.around(job.work) as seen:
                outcome, result = await self._attempt(job)
                seen.ended(outcome)
        self._ended(job, outcome, result)

    async def _attempt(self, job: RunningJob) -> Judged:
        work = job.work
        try:
            arguments = work.type.decode(work.args)
            value = await work.type.handler(**arguments)
        except BaseException as error:
            return judge_error(job, error, self._now()), None
        return judge_value(job, value, self.payload_limit, self._now())

    def _never_began(self, job: RunningJob, task: asyncio.Task[None]) -> None:
        """A task that is cancelled before its first step runs nothing at all, so `_run` could not
        say that it has ended.
        """
        if task.cancelled():
            self._ended(job, judge_error(job, asyncio.CancelledError(), self._now()), None)

    def _ended(self, job: RunningJob, outcome: Outcome, result: str | None) -> None:
        if job.programs:  # left behind by a handler that did not wait for them
            job.ending = self._loop.create_task(self._end_programs(job, outcome, result))
            return
        self._running.pop(job.work.fence, None)
        job.flush()
        self.brain.finished(job.work.id, job.work.fence, outcome, result)

    async def _end_programs(self, job: RunningJob, outcome: Outcome, result: str | None) -> None:
        """What a job has started is gone before its permit is."""
        job.stop = job.stop or "ended"
        while job.programs:
            for group in list(job.groups):
                group.end()
            await asyncio.wait(job.programs)
        self._ended(job, outcome, result)

    # ------------------------------------------------------------------ stopping

    def _set_alarm(self) -> None:
        if len(self._ends) > 2 * len(self._running) + 64:
            self._ends = sorted(end for end in self._ends if end[1] in self._running)
        ends = self._ends
        while ends and ends[0][1] not in self._running:
            heappop(ends)
        if ends and (self._alarm is None or self._alarm.when() > ends[0][0]):
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm = self._loop.call_at(ends[0][0], self._time_out)

    def _time_out(self) -> None:
        self._alarm = None
        ends = self._ends
        while ends and ends[0][0] <= self._loop.time():
            self._stop(heappop(ends)[1], "timeout")
        self._set_alarm()

    def _stop(self, fence: int, why: str) -> None:
        job = self._running.get(fence)
        if job is None or RANKS[why] <= RANKS.get(job.stop, 0):
            return
        asked_before = job.stop not in (None, "pause")
        job.stop = why
        if why != "pause" and not asked_before:
            self._interrupt(job)
        for group in list(job.groups):
            group.end()

    def _stop_all(self, why: str) -> None:
        for fence in list(self._running):
            self._stop(fence, why)

    def _kill_all(self) -> None:
        for job in self._running.values():
            for group in job.groups:
                group.signal(signal.SIGKILL)

    def _interrupt(self, job: RunningJob) -> None:
        """Stop it where it stands, and again if it goes on as if it had not heard."""
        if self._running.get(job.work.fence) is not job or job.ending is not None:
            return
        if job.task is not None:
            job.task.cancel()
        else:
            with job.lock:
                if job.thread_id is not None:
                    interrupt_thread(job.thread_id)
        self._loop.call_later(ASK_AGAIN_S, self._interrupt, job)

    # ------------------------------------------------------------------ plain functions

    def _to_thread(self, job: RunningJob) -> None:
        self._queue.put(job)
        if len(self._threads) < min(self._max_threads, len(self._running)):
            thread = threading.Thread(
                target=self._serve, name=f"headway-hand-{len(self._threads)}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def _serve(self) -> None:
        while True:
            try:
                job = self._queue.get()
                if job is None:
                    return
                self._run_plain(job)
            except Stopped:
                continue  # meant for a job that ended at this very moment

    def _run_here(self, job: RunningJob) -> None:
        if self._running.get(job.work.fence) is job:
            self._run_plain(job)

    def _run_plain(self, job: RunningJob) -> None:
        token = current.set(job)
        if self.around is None:
            outcome, result = self._attempt_plain(job)
        else:
            with self.around(job.work) as seen:
                outcome, result = self._attempt_plain(job)
                seen.ended(outcome)
        current.reset(token)
        with contextlib.suppress(RuntimeError):  # the engine has gone without waiting for it
            self._loop.call_soon_threadsafe(self._ended, job, outcome, result)

    def _attempt_plain(self, job: RunningJob) -> Judged:
        work = job.work
        try:
            try:
                with job.lock:
                    job.thread_id = threading.get_ident()
                job.check()
                value = work.type.handler(**work.type.decode(work.args))
            finally:
                with job.lock:
                    job.thread_id = None
        except BaseException as error:
            return judge_error(job, error, self._now()), None
        return judge_value(job, value, self.payload_limit, self._now())


def interrupt_thread(thread_id: int) -> None:
    """Python's way to end a thread: an exception at its next instruction. It does not reach a
    thread that waits inside a call to C; such work belongs into a process (`job.run`).
    """
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), ctypes.py_object(Stopped))
