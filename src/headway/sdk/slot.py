"""A slot: a permit for work that this program does itself, in the same order as all jobs."""

from __future__ import annotations

import asyncio
import itertools
import os
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from types import TracebackType
from typing import TYPE_CHECKING

from headway.core import Outcome, Permit, Ticket
from headway.core.classify import classify_exception, classify_status, outcome_of
from headway.outcomes import Duration, Verdict, seconds

if TYPE_CHECKING:
    from headway.engine import Engine

_numbers = itertools.count(1)


class Slot:
    """`with app.slot("files.example.com", tenant=ip):` or `async with`. One use each."""

    def __init__(self, engine: Engine, ticket: Ticket, timeout: Duration | None) -> None:
        self._engine = engine
        self._ticket = ticket
        self._timeout_s = None if timeout is None else seconds(timeout)
        self._waiting: Future[Permit] = Future()
        self._permit: Permit | None = None
        self._outcome: Outcome | None = None

    @property
    def fence(self) -> int:
        return self._held().fence

    @property
    def upstream(self) -> str | None:
        permit = self._held()
        return None if permit.upstream is None else permit.upstream.name

    def report(self, status: int, retry_after: Duration | None = None) -> None:
        """What the upstream answered: 429 and its like close it for everybody."""
        after_s = None if retry_after is None else seconds(retry_after)
        self._outcome = outcome_of(classify_status(status, retry_after_s=after_s))

    def _held(self) -> Permit:
        if self._permit is None:
            raise RuntimeError("the slot is not held; enter it with `with` or `async with`")
        return self._permit

    # ------------------------------------------------------------------ taking

    def __enter__(self) -> Slot:
        self._ask()
        try:
            self._permit = self._waiting.result(self._timeout_s)
        except BaseException as error:
            self._leave()
            if isinstance(error, FutureTimeout):
                raise self._too_late() from None
            raise
        return self

    async def __aenter__(self) -> Slot:
        self._ask()
        try:
            async with asyncio.timeout(self._timeout_s):
                self._permit = await asyncio.wrap_future(self._waiting)
        except BaseException as error:
            self._leave()
            if isinstance(error, TimeoutError):
                raise self._too_late() from None
            raise
        return self

    def _ask(self) -> None:
        controls, ticket, waiting = self._engine.brain.controls, self._ticket, self._waiting

        def acquire(now: float) -> None:
            try:
                controls.acquire(ticket, waiting, now)
            except Exception as error:
                if waiting.set_running_or_notify_cancel():
                    waiting.set_exception(error)

        self._engine.ask(acquire)

    def _leave(self) -> None:
        """Nobody waits here any more; a permit that came at the last moment goes back."""
        controls, ticket = self._engine.brain.controls, self._ticket
        if self._waiting.cancel() or self._waiting.cancelled():
            self._engine.ask(lambda now: controls.leave_line(ticket, now))
        elif self._waiting.exception() is None:
            permit = self._waiting.result()
            self._engine.ask(lambda now: controls.give_back(permit, Outcome.cancelled(), now))

    def _too_late(self) -> TimeoutError:
        names = " or ".join(self._ticket.upstreams) or f"lane {self._ticket.lane}"
        return TimeoutError(f"no slot at {names} within {self._timeout_s:g} s")

    # ------------------------------------------------------------------ giving back

    def _give_back(self, error: BaseException | None) -> Future[bool]:
        permit = self._held()
        outcome = self._outcome or _outcome_of(error)
        self._permit = None
        controls = self._engine.brain.controls
        return self._engine.ask(lambda now: controls.give_back(permit, outcome, now))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._give_back(error).result()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        await asyncio.shield(asyncio.wrap_future(self._give_back(error)))


def _outcome_of(error: BaseException | None) -> Outcome:
    if error is None:
        return Outcome.ok()
    if isinstance(error, Verdict):
        return error.outcome()
    if isinstance(error, Exception):
        return outcome_of(classify_exception(error), error=type(error).__name__)
    return Outcome.cancelled()


def slot_id() -> str:
    return f"slot-{os.getpid()}-{next(_numbers)}"
