"""Asking the brain from the server's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from headway.engine import Engine
from headway.engine.loop_future import LoopFuture

T = TypeVar("T")

LATE: Any = object()


async def in_turn(engine: Engine, call: Callable[[float], T], within_s: float | None = None) -> T:
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
