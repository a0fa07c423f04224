"""What all scripts of the demo stand on: the server's API, chance that repeats itself, and time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import httpx2

logger = logging.getLogger("headway.demo")

ANSWER_S = 60.0  # longer than any request waits for its slot
MOURN_S = 3.0  # before a script that was refused something begins anew

Script = Callable[[], Awaitable[None]]


def chance_of(seed: int, name: str) -> Random:
    """One for each script, so that none of them changes what another one does."""
    return Random(f"{seed}:{name}")


class Refused(Exception):
    """The server did not do what was asked."""

    def __init__(self, status: int, what: str) -> None:
        super().__init__(what)
        self.status = status


class Stage:
    """`speed`: 2 makes everything happen twice as fast."""

    def __init__(self, address: str, seed: int, speed: float) -> None:
        self.address = address
        self.seed = seed
        self.speed = speed
        self.tokens: dict[str, str] = {}  # by the name of who has it
        self._client = httpx2.AsyncClient(
            base_url=address, timeout=ANSWER_S, trust_env=False,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
        )  # fmt: skip

    def chance(self, of: str) -> Random:
        return chance_of(self.seed, of)

    async def rest(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self.speed)

    async def ask(
        self, method: str, path: str, body: Any = None, *, who: str = "", **more: Any
    ) -> Any:
        """What the server answers; `who` has a token."""
        headers = dict(more.pop("headers", {}))
        if who in self.tokens:
            headers["Authorization"] = f"Bearer {self.tokens[who]}"
        if body is not None:
            more["json"] = body
        answer = await self._client.request(method, path, headers=headers, **more)
        if answer.status_code >= 400:
            raise Refused(answer.status_code, f"{method} {path}: {answer.text[:300]}")
        is_json = answer.headers.get("content-type", "").startswith("application/")
        return answer.json() if is_json and answer.content else answer.text

    async def close(self) -> None:
        await self._client.aclose()


async def play(stage: Stage, name: str, script: Script) -> None:
    """A world goes on when something in it goes wrong: it is noted, and the script begins anew."""
    while True:
        try:
            await script()
            return
        except (Refused, httpx2.HTTPError) as error:
            logger.warning("%s: %s: %s", name, type(error).__name__, error)
        await stage.rest(MOURN_S)
