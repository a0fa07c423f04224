"""Telling the controller how things go: once a minute, or when somebody asks for it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from headway.api.fairqueue.config import FairQueueConfig
from headway.api.fairqueue.controller import Controller
from headway.errors import HeadwayError

logger = logging.getLogger("headway.fairqueue")

EVERY_S = 60.0
COUNTS = ("session_created", "granted", "throttled", "timeout", "released")
STATES = ("pending", "granted", "throttled", "timeout")

# How often each of COUNTS has happened so far, and how many sessions are in each of STATES.
Seen = tuple[Mapping[str, int], Mapping[str, int]]


def snapshot(
    config: FairQueueConfig, counts: Mapping[str, int], sessions: Mapping[str, int], now: float
) -> dict[str, Any]:
    """The event of one report: `counts` since the last one, `sessions` as they are."""
    controller = config.controller
    states = {state: sessions.get(state, 0) for state in STATES}
    return {
        "type": "slot_handler.snapshot",
        "ts": int(now * 1000),
        "configVersion": config.config_version,
        "counts": {name: counts.get(name, 0) for name in COUNTS},
        "sessions": {"total": sessions.get("total", sum(states.values())), **states},
        "appName": controller.app_name,
        "appVersion": controller.app_version,
        "role": controller.role,
        "instanceId": controller.instance_id,
    }


class Reporter:
    """It remembers what the controller has heard, and says what is new. So what could not be said
    is part of the next report. If only the answer was lost, it is said twice.
    """

    def __init__(
        self,
        controller: Controller,
        config: Callable[[], FairQueueConfig],
        look: Callable[[], Awaitable[Seen]],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._controller = controller
        self._config = config
        self._look = look
        self._now = now
        self._heard: Mapping[str, int] = {}
        self._one_at_a_time = asyncio.Lock()

    async def report(self) -> None:
        async with self._one_at_a_time:
            totals, sessions = await self._look()
            totals = {**self._heard, **totals}  # what cannot be seen now is as it was
            counts = {name: totals.get(name, 0) - self._heard.get(name, 0) for name in COUNTS}
            await self._controller.push(snapshot(self._config(), counts, sessions, self._now()))
            self._heard = totals


async def report_forever(
    reporter: Reporter,
    *,
    every_s: float = EVERY_S,
    wait: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> None:
    """Until it is cancelled. Nothing that goes wrong ends it."""
    trouble = False
    while True:
        await wait(every_s)
        try:
            await reporter.report()
        except HeadwayError as error:
            if not trouble:
                logger.warning("%s; what is counted meanwhile is reported later", error)
            trouble = True
        except Exception:
            logger.exception("a report to the controller could not be made; it is tried again")
            trouble = True
        else:
            if trouble:
                logger.warning("the controller hears reports again")
            trouble = False
