"""The jobs that one process of a Celery fleet holds: heartbeats, orders to stop and reports are
those of any other worker, but it never asks for jobs. They come with messages, and are claimed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from headway.celery.claiming import Claim, Claims
from headway.celery.reporting import Ending, Reports, StationDesk
from headway.celery.starting import at_its_start
from headway.core import Outcome
from headway.core.ticket import Stop
from headway.engine.hands import Work
from headway.engine.hands.context import RunningJob
from headway.engine.hands.local import interrupt_thread
from headway.engine.registry import JobType
from headway.errors import BadJob, HeadwayError
from headway.remote.desk import Desk, Held
from headway.remote.quick import QuickClient
from headway.remote.worker import Declaring, Worker

HEARD_S = 10.0  # for the server to hear of an end, before whoever waits goes on
AGAIN_S = 5.0  # before another worker is tried with a job that this one cannot begin

logger = logging.getLogger("headway.celery")


class Station(Worker):
    """`member`: the Celery worker that this process belongs to."""

    def __init__(self, app: Declaring, server: str, token: str | None, member: str = "") -> None:
        client = QuickClient(server, token)
        super().__init__(app, server, client=client, takes=False)
        self.claims = Claims(client, self.name, member)
        self._reports = Reports(client, self.name)
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
        self.see_off(claim, self.hold(claim, at_its_start(known, self.claims, claim)))

    def hold(self, claim: Claim, job_type: JobType) -> Ending:
        """From now on there are heartbeats, and the hands are told to begin."""
        assert self._desk is not None
        ending = self._endings[claim.fence] = Ending()
        self._desk.admit(claim.job.work(), job_type, claim.asked_at)
        if self.done.is_set():  # else whoever is here when it is over is told
            raise BadJob(f"this process does not talk to the server any more: {self.error}")
        return ending

    def give_back(self, claim: Claim) -> None:
        """Nothing of it has begun. Said from here, since the loop may be what is missing."""
        with suppress(HeadwayError):  # then it goes back when its lease is over
            returned = Outcome.returned(after_s=AGAIN_S)
            self._reports.make(claim.id, claim.fence, returned, None)

    def see_off(self, claim: Claim, ending: Ending) -> None:
        """Returns when the server knows how it ended, or cannot be reached. Then the loop goes on
        trying: if the thread did, no worker could be shut down while the server is away.
        """
        ending.wait()
        if ending.is_known():
            return
        if ending.said is not None:
            self._report(claim, ending, *ending.said)
        if not ending.is_known(HEARD_S):
            logger.warning("how job %s ended could not be reported yet; trying again", claim.id)

    def _report(self, claim: Claim, ending: Ending, outcome: Outcome, result: str | None) -> None:
        desk = self._desk
        assert isinstance(desk, StationDesk)
        try:
            told = self._reports.make(claim.id, claim.fence, outcome, result)
        except HeadwayError:
            desk.report_here(claim.id, claim.fence, outcome, result)
            return
        if not told.accepted:
            logger.warning("job %s was not held here any more when it ended", claim.id)
        ending.settle(told.state, lost=not told.accepted)
        desk.known(claim.fence, told.state)

    def _new_desk(self, loop: asyncio.AbstractEventLoop) -> Desk:
        return StationDesk(loop, self._hands, self._endings)

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

    def __init__(self, app: Declaring, server: str, token: str | None, member: str = "") -> None:
        super().__init__(app, server, token, member)
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
