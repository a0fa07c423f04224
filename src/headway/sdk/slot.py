"""A slot: a permit for work that this program does itself, in the same order as all jobs.

Here it is held at an engine in this process. `headway.remote.slots` holds one at a server.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from headway.core import Outcome, Permit
from headway.engine.loop_future import LoopFuture
from headway.engine.slots import Answer, Session, Waiter, Wish
from headway.errors import EngineStopped, SlotLost
from headway.outcomes import Duration, Headers, outcome_of_block, outcome_of_status, seconds

if TYPE_CHECKING:
    from headway.engine import Engine

INF = float("inf")


class Slot(Protocol):
    """`with app.slot("files.example.com", tenant=ip) as slot:` or `async with`. One use each.

    `lost` is set when the slot is not held any more although the block goes on; leaving the block
    raises `SlotLost` then.
    """

    @property
    def lost(self) -> threading.Event:
        """Set when the slot is not held any more; look at it before each call."""
        ...

    @property
    def fence(self) -> int:
        """Grows with every permit: let other systems refuse writes that carry an older one."""
        ...

    @property
    def upstream(self) -> str | None:
        """Which of the candidates was chosen."""
        ...

    def report(
        self, status: int, retry_after: Duration | None = None, *, headers: Headers | None = None
    ) -> None:
        """What the upstream answered: 429 and its like close it for everybody. `headers`: of the
        answer, to learn from.
        """

    def __enter__(self) -> Slot: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...  # fmt: skip

    async def __aenter__(self) -> Slot: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...  # fmt: skip


class OwnSlot:
    """At an engine of this process, which keeps it for as long as the block runs."""

    def __init__(
        self, engine: Engine, wish: Wish, timeout: Duration | None,
        on_lost: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        self._lost: threading.Event | None = None
        self._on_lost = on_lost
        self._engine = engine
        self._desk = engine.brain.slots
        self._wish = wish
        self._timeout_s = None if timeout is None else seconds(timeout)
        self._session: Session | None = None
        self._permit: Permit | None = None
        self._outcome: Outcome | None = None

    @property
    def lost(self) -> threading.Event:
        if self._lost is None:  # hardly anybody asks, and slots are taken often
            self._lost = threading.Event()
        return self._lost

    @property
    def fence(self) -> int:
        return self._held().fence

    @property
    def upstream(self) -> str | None:
        permit = self._held()
        return None if permit.upstream is None else permit.upstream.name

    def report(
        self, status: int, retry_after: Duration | None = None, *, headers: Headers | None = None
    ) -> None:
        """What the upstream answered: 429 and its like close it for everybody."""
        after_s = None if retry_after is None else seconds(retry_after)
        self._outcome = outcome_of_status(status, after_s, headers, now=self._now())

    def _now(self) -> float:
        return self._engine.brain.clock.now()

    def _held(self) -> Permit:
        if self._permit is None:
            raise RuntimeError("the slot is not held; enter it with `with` or `async with`")
        return self._permit

    # ------------------------------------------------------------------ taking

    def __enter__(self) -> OwnSlot:
        waiter: Future[Answer] = Future()
        self._ask(waiter)
        try:
            self._take(waiter.result(self._timeout_s))
        except BaseException as error:
            if waiter.cancel() or waiter.cancelled():
                self._leave()
            elif waiter.exception() is None:  # it came at the last moment
                self._give_up(waiter.result())
            if isinstance(error, FutureTimeout):
                raise self._too_late() from None
            raise
        return self

    async def __aenter__(self) -> OwnSlot:
        waiter = LoopFuture(missed=self._give_up)
        self._ask(waiter)
        try:
            if self._timeout_s is None:
                self._take(await waiter)
            else:
                async with asyncio.timeout(self._timeout_s):
                    self._take(await waiter)
        except BaseException as error:
            if waiter.cancel():
                self._leave()
            if isinstance(error, TimeoutError):
                raise self._too_late() from None
            raise
        return self

    def _ask(self, waiter: Waiter) -> None:
        def acquire(now: float) -> None:
            self._session = self._desk.open(self._wish, waiter, INF, now)

        self._engine.ask_for(waiter, acquire, later=True)

    def _take(self, answer: Answer) -> None:
        if answer.permit is None:
            raise TimeoutError(f"no slot was granted: {answer.what}")
        self._permit = answer.permit

    def _leave(self) -> None:
        """Nobody waits here any more."""

        def leave(now: float) -> None:
            if self._session is not None:
                self._desk.leave(self._session, now)

        self._engine.ask(leave)

    def _give_up(self, answer: Answer) -> None:
        """What was granted when nobody waited any more goes back."""
        if answer.permit is not None:
            self._permit = answer.permit
            with suppress(EngineStopped):  # then it is free anyway
                self._release(Future(), Outcome.cancelled())

    def _too_late(self) -> TimeoutError:
        names = " or ".join(self._wish.upstreams) or f"lane {self._wish.lane}"
        return TimeoutError(f"no slot at {names} within {self._timeout_s:g} s")

    # ------------------------------------------------------------------ giving back

    def _release(self, waiter: Waiter, outcome: Outcome) -> None:
        session, fence, desk = self._session, self._held().fence, self._desk
        self._permit = None
        assert session is not None
        self._engine.ask_for(waiter, lambda now: desk.release(session, fence, outcome, now))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        done: Future[bool] = Future()
        self._release(done, self._outcome or outcome_of_block(error, self._now()))
        self._given_back(done.result(), error)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        done = LoopFuture()
        self._release(done, self._outcome or outcome_of_block(error, self._now()))
        self._given_back(await done, error)

    def _given_back(self, accepted: bool, error: BaseException | None) -> None:
        if accepted:
            return
        self.lost.set()
        if self._on_lost is not None:
            self._on_lost()
        if error is None:
            raise SlotLost(f"{self._session!r} was not held any more when it was given back")
