"""An online call's way through the gates: at once, or, if its caller has chosen so, after a wait in
line. Whoever waits here stands before all queued work, which only has what others leave over.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from headway.api.problems import Problem
from headway.api.site import ANSWER_S
from headway.core import Outcome
from headway.core.change import Refusal, Refused
from headway.core.recurrence import duration_s
from headway.core.ticket import Traffic
from headway.engine import Engine
from headway.engine.loop_future import LoopFuture
from headway.engine.online import LANE, OnlineCall
from headway.engine.slots import OWN, Answer, Phase, Session, Wish
from headway.errors import EngineStopped

HEADER = "x-headway-wait"
LONGEST_S = 600.0
USUAL_S = 30.0  # where a channel waits by itself
LATE = Answer("late")
HOME = Answer("stopping")
NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def wait_said(header: str | None) -> float | None:
    """For how long a caller would wait. None: it does not say."""
    if header is None:
        return None
    text = header.strip()
    try:
        seconds = float(text) if NUMBER.fullmatch(text) else duration_s(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= LONGEST_S:
        raise Problem(
            400, "X-Headway-Wait is a time such as 30s, at most 10m, or 0 for not at all",
            kind="wrong-wait",
        )  # fmt: skip
    return seconds


def stopping() -> Problem:
    return Problem(503, "the server is stopping; ask again when it is back", kind="unavailable",
                   headers={"Retry-After": "1"})  # fmt: skip


class Line:
    """All calls of this server that wait in line."""

    def __init__(self) -> None:
        self._waiters: set[LoopFuture] = set()
        self._dissolved = False

    @contextmanager
    def join(self, waiter: LoopFuture) -> Iterator[None]:
        self._waiters.add(waiter)
        try:
            if self._dissolved:  # looked at last, so that nobody is forgotten
                raise stopping()
            yield
        finally:
            self._waiters.discard(waiter)

    def dissolve(self) -> None:
        """Nobody waits any more, and nobody will. From any thread."""
        self._dissolved = True
        for waiter in self._waiters.copy():
            waiter.set_result(HOME)


class Passage:
    """What lets one call through, and must be given back: `end` it in the turn that writes down
    what became of the call, or `leave`. Both may be done twice.
    """

    def __init__(self, engine: Engine, tenant: str, cost: float) -> None:
        self._engine = engine
        self._online = engine.brain.online
        self._desk = engine.brain.slots
        self._tenant = tenant
        self._cost = cost
        self._call: OnlineCall | None = None  # set in the brain's turn, as the next one is
        self._session: Session | None = None
        self._may_hold = False  # or will, when the brain has heard what was asked
        self.upstream = ""  # where it leads

    async def go(self, upstreams: tuple[str, ...]) -> Refusal | None:
        """At once, to the best of these. None: the way is free."""

        waiter = LoopFuture()

        def ask(now: float) -> None:
            found = self._online.go(upstreams, now, tenant=self._tenant, cost=self._cost)
            if isinstance(found, OnlineCall):
                self._call, self._may_hold = found, True  # whatever was ended meanwhile
            else:
                self._may_hold = False
            waiter.set_result(found)  # nothing of it is stored, so no commit is waited for

        found = await self._hear(waiter, ask, ANSWER_S)
        if found is LATE:
            why = self._engine.brain.trouble or "it is busy"
            raise EngineStopped(f"the engine does not answer: {why}; try again")
        if isinstance(found, Refusal):
            return found
        self.upstream = found.upstream
        return None

    async def line_up(self, upstreams: tuple[str, ...], wait_s: float, line: Line) -> bool:
        """Wait for one of these. False: the time is over."""
        wish = Wish(
            kind=OWN, upstreams=upstreams, tenant=self._tenant, lane=LANE, cost=self._cost,
            traffic=Traffic.NORMAL, holder="an online call",
        )  # fmt: skip
        waiter = LoopFuture()

        def ask(now: float) -> None:
            self._may_hold = True  # whatever was ended meanwhile
            self._session = self._desk.open(wish, waiter, now + wait_s, now)

        try:
            # The desk looks at the time itself, unless the store is away.
            with line.join(waiter):
                answer: Answer = await self._hear(waiter, ask, wait_s + ANSWER_S)
        except Refused:
            return False  # as many wait there as may
        if answer is HOME:
            raise stopping()
        if answer.permit is None:
            self.leave(Outcome.returned())
            return False
        self.upstream = "" if answer.permit.upstream is None else answer.permit.upstream.name
        return True

    async def _hear(self, waiter: LoopFuture, ask: Callable[[float], None], within_s: float) -> Any:
        self._may_hold = True
        loop = asyncio.get_running_loop()
        alarm = loop.call_later(within_s, waiter.answer_here, LATE)
        try:
            self._engine.ask_for(waiter, ask, later=True)
            return await waiter
        finally:
            alarm.cancel()

    def end(self, outcome: Outcome, now: float) -> None:
        """In the brain's turn."""
        self._may_hold = False
        call, self._call = self._call, None
        session, self._session = self._session, None
        if call is not None:
            self._online.end(call, outcome, now)
        if session is None:
            return
        if session.phase is Phase.WAITING:
            self._desk.leave(session, now)
        else:
            self._desk.release(session, session.fence, outcome, now)

    def leave(self, outcome: Outcome | None = None) -> None:
        """Give back whatever it holds by then, and wait for nothing. The brain hears this after all
        that was asked before, so nothing that is granted meanwhile is left behind.
        """
        if not self._may_hold:
            return
        with suppress(EngineStopped):  # then nothing is held any more
            self._engine.ask(lambda now: self.end(outcome or Outcome.cancelled(), now))
