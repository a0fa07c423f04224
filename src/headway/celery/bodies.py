"""The body of a polite task: it runs when its job was claimed, and what it raises is judged.

The claim is made before the body, by a `__call__` in front of it; the end is reported when Celery
has stored the result, so that a worker which dies between the two runs it again and loses nothing.
"""

from __future__ import annotations

import logging
import threading
from contextvars import Token
from typing import Any, cast

from celery.exceptions import Ignore, Reject, Retry, TaskRevokedError

from headway.celery.claiming import Claim
from headway.celery.limits import Limits
from headway.celery.reporting import Ending
from headway.celery.sending import Sender, put_aside
from headway.celery.starting import wait_for_start
from headway.celery.station import Stations, TaskStation
from headway.core import Kind, Outcome
from headway.engine.hands.context import RunningJob, Stopped, current
from headway.engine.hands.judging import judge_error
from headway.engine.registry import JobType
from headway.errors import ClaimRefused, HeadwayError

logger = logging.getLogger("headway.celery")

HEADER = "headway"
AGAIN_S = 1.0
AGAIN = (Kind.PUSHBACK, Kind.RETURNED)  # it runs again, and the caller does not notice


class GivenUp(HeadwayError):
    """The task did not run, or not to its end: Headway has given its job up, and says why."""


class Body:
    """One run of a body."""

    def __init__(self, station: TaskStation, claim: Claim, sender: Sender) -> None:
        self._station = station
        self._claim = claim
        self._sender = sender
        self._job: RunningJob
        self._ending: Ending
        self._aside: list[dict[str, Any]] = []
        self.outcome = Outcome.ok()
        self._reported = False

    def run(self, task: Any, call: Any, args: Any, kwargs: Any) -> Any:
        self._enter(task, call)
        tokens = current.set(self._job), put_aside.set((task.request.id, self._aside))
        try:
            value = self._guarded(call, args, kwargs)
        except Retry as error:
            return self._retried(error)
        except Reject as error:
            if error.requeue:  # the message that Celery puts back is void, since its fence is
                self.outcome = Outcome.returned(after_s=AGAIN_S)
            raise
        except Ignore:
            self._send_aside()  # `self.replace` has sent another one under the same name
            raise
        except BaseException as error:
            return self._failed(error)
        finally:
            self._put_down(*tokens)
        self._send_aside()
        return value

    def _enter(self, task: Any, call: Any) -> None:
        """Nobody would say for this process that it is alive, so the body does not begin. For
        Celery that is no failure, since it runs elsewhere.
        """
        station = self._station
        try:
            job_type = JobType(task.name, call, False, lambda _: {})
            self._job, self._ending = station.enter(self._claim, job_type)
        except Exception as error:
            self._reported = True
            logger.error("%s does not begin here, and will be sent again: %s", task.name, error)
            station.give_back(self._claim)
            raise Ignore(str(error)) from error

    def _guarded(self, call: Any, args: Any, kwargs: Any) -> Any:
        job = self._job
        wait_for_start(self._station.claims, self._claim)
        with job.lock:
            job.thread_id = threading.get_ident()
        try:
            job.check()
            return call(*args, **kwargs)
        finally:
            with job.lock:
                job.thread_id = None

    def _put_down(self, job: Token[Any], aside: Token[Any]) -> None:
        current.reset(job)
        put_aside.reset(aside)

    # ------------------------------------------------------------------ how it ends

    def _retried(self, error: Retry) -> Any:
        """The retry is a new job, unless it is the upstream that wants to be left alone."""
        cause = _cause(error)
        if cause is not None:
            judged = judge_error(self._job, cause, self._now())
            if judged.kind is Kind.PUSHBACK:
                self.outcome = judged
                self._again(cause)
        self._send_aside()
        raise error

    def _failed(self, error: BaseException) -> Any:
        self.outcome = judge_error(self._job, error, self._now())
        if self.outcome.kind in AGAIN:
            self._again(error)
        if isinstance(error, Stopped):
            if self.outcome.kind is Kind.CANCELLED and not self._is_lost():
                raise TaskRevokedError("cancelled in Headway") from None
            raise Ignore("its lease is over; somebody else runs it") from None
        self._send_aside()
        raise error

    def _again(self, error: BaseException) -> None:
        """Headway runs it again. If it has had enough of it, the caller is told the error."""
        self.report()
        if self._ending.state in ("failed", "cancelled"):
            raise error
        raise Ignore(f"Headway runs it again: {error}")

    def _is_lost(self) -> bool:
        self.report()
        return self._ending.lost

    def _send_aside(self) -> None:
        """Its own retries. If they cannot be put, the whole is run again."""
        if not self._aside:
            return
        try:
            self._sender.put(self._aside)
        except HeadwayError as error:
            self.outcome = Outcome.returned(after_s=AGAIN_S)
            raise Ignore(f"its retry could not be put into the queue: {error}") from error

    def report(self) -> None:
        """Returns when the server knows, or cannot be reached."""
        if not self._reported:
            self._reported = True
            self._station.leave(self._job, self.outcome)
            self._station.see_off(self._claim, self._ending)

    def _now(self) -> float:
        return self._station.now()


class Bodies:
    """What stands in front of all bodies of an application."""

    def __init__(self, stations: Stations, sender: Sender, limits: Limits) -> None:
        self._stations = stations
        self._sender = sender
        self._limits = limits

    def call(self, task: Any, run: Any, direct: Any, args: Any, kwargs: Any) -> Any:
        """`run` is what a worker would call without Headway, `direct` what anybody else would."""
        request = task.request
        if request.called_directly or getattr(request, "headway_began", False):
            return direct(*args, **kwargs)
        request.headway_began = True
        told = request.get(HEADER)
        if not isinstance(told, dict):
            return run(*args, **kwargs)  # it was sent around Headway
        if told.get("ended"):
            raise _ended(**told["ended"])
        station = self._stations.here()
        assert isinstance(station, TaskStation)
        try:
            within_s = self._limits.shortest_s(task)
            claim = station.claims.make(int(told["id"]), int(told["fence"]), within_s)
        except ClaimRefused as error:
            raise Ignore(str(error)) from None
        except HeadwayError as error:
            logger.warning("%s could not be claimed, and will be sent again: %s", task.name, error)
            raise Ignore(str(error)) from None
        request.headway_body = body = Body(station, claim, self._sender)
        return body.run(task, run, args, kwargs)

    def ended(self, task: Any = None, **_: Any) -> None:
        """Celery has stored the result, and sent what follows."""
        body = getattr(task.request, "headway_body", None)
        if body is not None:
            body.report()


def _cause(retry: Retry) -> BaseException | None:
    """What a task was retried for. The one that `Retry` names may be a copy without its answer, so
    the one that was being handled goes first.
    """
    handled: BaseException | None = retry.__context__
    while isinstance(handled, Retry):
        handled = handled.__context__
    return handled or getattr(retry, "exc", None)


def _ended(state: str, why: str) -> Exception:
    if state == "cancelled":
        return cast(Exception, TaskRevokedError(why or "cancelled in Headway"))
    return GivenUp(why or "its job has failed")
