"""Four sites that jobs call, each of which pushes back in its own way."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from random import Random

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from headway.demo.town import Town

VIDEOS, DOWNLOADS, API, MAPS = (
    "videos.example", "downloads.example", "api.example", "maps.example",
)  # fmt: skip


def open_sites(town: Town, chance: Callable[[str], Random], speed: float) -> dict[str, str]:
    """Where each of them is, by the name that Headway knows it by."""
    return {
        VIDEOS: town.open(Suspicious(speed)),
        DOWNLOADS: town.open(Busy(speed)),
        API: town.open(Flaky(chance(API))),
        MAPS: town.open(Slow(chance(MAPS), speed)),
    }


class Suspicious:
    """Takes its visitors for robots now and then: 412, until it has calmed down."""

    FIRST_S, CALM_S, ALARMED_S = 14.0, 75.0, 8.0

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._alarm_at = time.monotonic() + self.FIRST_S / speed

    async def __call__(self, request: Request) -> Response:
        now = time.monotonic()
        if now >= self._alarm_at + self.ALARMED_S / self._speed:
            self._alarm_at = now + self.CALM_S / self._speed
        if now >= self._alarm_at:
            return JSONResponse({"message": "risk control"}, 412)
        return JSONResponse({"path": request.url.path})


class Busy:
    """Wants so many visitors in a while and no more, and far fewer at its busiest: 429, and it
    says when to come back.
    """

    MOST, AT_ITS_BUSIEST, WITHIN_S, BACK_S = 35, 10, 5.0, 6
    ROUND_S, BUSIEST_S = 40.0, 6.0  # of each round these seconds, at its end

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._back_s = max(1, round(self.BACK_S / speed))
        self._came: deque[float] = deque()
        self._opened_at = time.monotonic() - self.ROUND_S / 2 / speed

    async def __call__(self, request: Request) -> Response:
        now = time.monotonic()
        while self._came and self._came[0] < now - self.WITHIN_S / self._speed:
            self._came.popleft()
        in_round_s = (now - self._opened_at) * self._speed % self.ROUND_S
        is_busiest = in_round_s > self.ROUND_S - self.BUSIEST_S
        if len(self._came) >= (self.AT_ITS_BUSIEST if is_busiest else self.MOST):
            headers = {"Retry-After": str(self._back_s)}
            return JSONResponse({"message": "too many requests"}, 429, headers)
        self._came.append(now)
        return JSONResponse({"path": request.url.path})


class Flaky:
    """Stumbles over one request in four, and does not know some things at all."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    async def __call__(self, request: Request) -> Response:
        if request.url.path.endswith("0"):  # every tenth order was deleted
            return JSONResponse({"message": "no such order"}, 404)
        if self._chance.random() < 0.25:
            return JSONResponse({"message": "internal error"}, 500)
        return JSONResponse({"path": request.url.path, "total": self._chance.randint(10, 900)})


class Slow:
    """Never fails, and takes its time."""

    def __init__(self, chance: Random, speed: float) -> None:
        self._chance = chance
        self._speed = speed

    async def __call__(self, request: Request) -> Response:
        await asyncio.sleep(self._chance.uniform(1.0, 2.5) / self._speed)
        return JSONResponse({"path": request.url.path})
