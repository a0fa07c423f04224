"""The jobs that one process of a Celery fleet holds: heartbeats, orders to stop and reports are
those of any other worker, but it never asks for jobs. They come with messages, and are claimed.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from headway.celery.claiming import Claim, Claims
from headway.celery.starting import at_its_start
from headway.core import Outcome
from headway.core.ticket import Stop
from headway.engine.hands import Work
from headway.engine.hands.context import RunningJob
from headway.engine.hands.local import interrupt_thread
from headway.engine.registry import JobType
from headway.errors import BadJob
from headway.remote.client import Client
from headway.remote.desk import Held
from headway.remote.worker import Declaring, Worker

BEGUN_S = 10.0
AGAIN_S = 5.0  # before another worker is tried with a job that this one does not know

logger = logging.getLogger("headway.celery")


class Ending:
    """What the server made of a report. `lost`: the job was not ours any more."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self.state: str | None = None
        self.lost = False

    def set(self, held: Held | None) -> None:
        self.lost = held is None or held.lost
        self.state = None if held is None else held.state
        self._over.set()

    def wait(self) -> None:
        self._over.wait()


class Station(Worker):
    def __init__(self, app: Declaring, server: str, token: str | None) -> None:
        client = Client(server, token)
        super().__init__(app, server, client=client, takes=False)
        self.claims = Claims(client, self.name)
        self._endings: dict[int, Ending] = {}

    def start(self) -> None:
        super().start()
        self.when_done = self._all_gone
        if self._desk is not None:
            self._desk.gone = self._gone
        self.claims.warm_up()

    def now(self) -> float:
        return self._app.clock.now()

    # ------------------------------------------------------------------ holding

    def run(self, claim: Claim) -> None:
        """Run the handler that the app has for it; returns when the server knows how it ended."""
        known = self._app.registry.types.get(claim.job.type)
        if known is None:
            logger.error("this Celery worker knows no job %r; is its module imported there?",
                         claim.job.type)  # fmt: skip
            self._tell(partial(self._turn_away, claim))
            return
        job_type = at_its_start(known, self.claims, claim)
        self.hold(claim, job_type).wait()

    def hold(self, claim: Claim, job_type: JobType) -> Ending:
        """From now on there are heartbeats, and the hands are told to begin."""
        ending = self._endings[claim.fence] = Ending()
        work = claim.job.work()
        begun = threading.Event()

        def begin() -> None:
            assert self._desk is not None
            self._desk.begin([(work, job_type)], claim.asked_at)
            begun.set()

        self._tell(begin)
        # What it says before that would be said of an unknown job.
        if not begun.wait(BEGUN_S):
            raise BadJob(f"this process does not talk to the server any more: {self.error}")
        return ending

    def _turn_away(self, claim: Claim) -> None:
        assert self._desk is not None
        self._desk.turn_away(claim.job.work(), claim.asked_at)
        self._desk.ended[claim.fence].outcome = Outcome.returned(after_s=AGAIN_S)

    def _gone(self, held: Held) -> None:
        ending = self._endings.pop(held.fence, None)
        if ending is not None:
            ending.set(held)

    def _all_gone(self) -> None:
        while self._endings:
            _, ending = self._endings.popitem()
            ending.set(None)


class TaskStation(Station):
    """The same for tasks of Celery: their bodies run where Celery calls them, and are only told
    when they must stop.
    """

    def __init__(self, app: Declaring, server: str, token: str | None) -> None:
        super().__init__(app, server, token)
        self._hands = TaskHands(self._app.payload_limit)  # type: ignore[assignment]

    def enter(self, claim: Claim, job_type: JobType) -> tuple[RunningJob, Ending]:
        """The body is about to run in this thread."""
        assert self._desk is not None
        work = Work.sent(claim.job.work(), job_type)
        job = RunningJob(
            work, self._desk, self._hands_loop, self._app.clock.now, self._app.payload_limit
        )
        hands: Any = self._hands
        hands.running[claim.fence] = job
        return job, self.hold(claim, job_type)

    def leave(self, job: RunningJob, outcome: Outcome) -> None:
        """It has ended; the ending says what the server thinks of it."""
        assert self._desk is not None
        hands: Any = self._hands
        hands.running.pop(job.fence, None)
        job.flush()
        self._desk.finished(job.id, job.fence, outcome, None)


class TaskHands:
    """Does no work: Celery does. It passes on what is asked of a work."""

    def __init__(self, payload_limit: int) -> None:
        self.payload_limit = payload_limit
        self.running: dict[int, RunningJob] = {}
        self.brain: Any = None

    def start(self, works: list[Work]) -> None:
        """Celery has."""

    def stop(self, fence: int, why: Stop) -> None:
        self._stop(fence, why.value)

    def stop_all(self, why: str) -> None:
        for fence in list(self.running):
            self._stop(fence, why)

    def _stop(self, fence: int, why: str) -> None:
        job = self.running.get(fence)
        if job is None or job.stop is not None:
            return
        job.stop = why
        with job.lock:
            if why != "pause" and job.thread_id is not None:
                interrupt_thread(job.thread_id)

    def kill_all(self) -> None:
        """Programs of tasks are their own affair."""

    def close(self) -> None:
        self.running.clear()


class Stations:
    """One for each process, made when it is first needed: a pool forks its processes after the
    module was imported.
    """

    def __init__(self, make: Callable[[], Station]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._station: Station | None = None
        os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        self._station = None

    def here(self) -> Station:
        with self._lock:
            if self._station is None or self._station.done.is_set():
                self._station = self._make()
                self._station.start()
            return self._station

    def close(self, **_: Any) -> None:
        with self._lock:
            station, self._station = self._station, None
        if station is not None:
            station.stop(0.0)
