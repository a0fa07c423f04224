"""A request that waits for a slot, and what becomes of it when its client hangs up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from fastapi import Request

from headway.api.hanging_up import Watch
from headway.api.site import Site
from headway.engine.loop_future import LoopFuture
from headway.engine.slots import Answer, Session
from headway.errors import HeadwayError

logger = logging.getLogger("headway.api")

GONE = Answer("gone")
LATE = Answer("late")


class SlotRequest:
    """Who hangs up may come back by the name of its session; if nobody has heard of that name yet,
    nobody will.
    """

    def __init__(self, site: Site, request: Request, *, known: bool) -> None:
        self.site = site
        self.desk = site.engine.brain.slots
        self.session: Session | None = None  # once the brain has heard of it
        self.waiter = LoopFuture(missed=self._missed)
        self._engine = site.engine
        self._request = request
        self._known = known  # the client knows the name already

    async def answer(self, ask: Callable[[float], None], within_s: float | None = None) -> Answer:
        """What the desk says. GONE: nobody is there to hear it. LATE: it has not said anything
        within the time, which happens when the store is away.
        """
        waiter, alarm = self.waiter, None
        watch = Watch(self._request, self._hung_up)
        if within_s is not None:
            alarm = asyncio.get_running_loop().call_later(within_s, waiter.answer_here, LATE)
        try:
            self._engine.ask_for(waiter, ask, later=True)
            answer: Answer = await waiter
        except asyncio.CancelledError:
            self._hung_up()
            raise
        finally:
            watch.end()
            if alarm is not None:
                alarm.cancel()
        if answer is LATE or (answer is not GONE and watch.hung_up()):
            self._leave()
        return answer

    def until(self, wait_s: float, now: float) -> float:
        """Nobody waits long for a server that is to stop."""
        return now if self.site.stopping else now + wait_s

    def _hung_up(self) -> None:
        if self.waiter.cancel():
            self._leave()
        self.waiter.answer_here(GONE)

    def _missed(self, _answer: Answer) -> None:
        """It was on its way when the client hung up."""
        self._leave()

    def _leave(self) -> None:
        desk, waiter = self.desk, self.waiter

        def leave(now: float) -> None:
            session = self.session
            if session is not None and self._known:
                desk.hang_up(session, waiter, now)
            elif session is not None:
                desk.leave(session, now)

        try:
            self._engine.ask(leave)
        except HeadwayError as error:
            logger.warning("a client has hung up while it waited for a slot, and %s", error)
