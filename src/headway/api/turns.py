"""Asking the brain on behalf of a request, or of a job."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from headway.engine import Engine
from headway.engine.brain import Brain
from headway.engine.loop_future import LoopFuture

if TYPE_CHECKING:
    from headway.api.auth import Principal
    from headway.api.site import Site

T = TypeVar("T")

LATE: Any = object()


async def in_turn(
    engine: Engine | Brain, call: Callable[[float], T], within_s: float | None = None
) -> T:
    """Let the brain do something, and wait until it is committed. TimeoutError: that takes longer,
    since the store is away; it is done as soon as the store is back.
    """
    waiter, alarm = LoopFuture(), None
    if within_s is not None:
        alarm = asyncio.get_running_loop().call_later(within_s, waiter.answer_here, LATE)
    try:
        engine.ask_for(waiter, call)
        found: T = await waiter
    finally:
        if alarm is not None:
            alarm.cancel()
    if found is LATE:
        raise TimeoutError
    return found


def in_own_name(site: Site, principal: Principal, do: Callable[[float], T]) -> T:
    """In the brain's turn, and in the trail with who did it. Blocking."""
    brain = site.engine.brain

    def turn(now: float) -> T:
        with brain.controls.acting(principal.who):
            return do(now)

    return site.wait(site.engine.ask(turn))
