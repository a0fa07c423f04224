"""Noticing that a client has hung up while its request waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fastapi import Request

SOON_S = 0.05  # most waits are shorter, and not worth a task that watches


class Watch:
    """From the moment that a wait becomes long. `end` it when it is over."""

    __slots__ = ("_alarm", "_gone", "_request", "_seen", "_task")

    def __init__(self, request: Request, gone: Callable[[], None]) -> None:
        self._request = request
        self._gone = gone
        self._seen = False
        self._task: asyncio.Task[None] | None = None
        self._alarm = asyncio.get_running_loop().call_later(SOON_S, self._begin)

    def _begin(self) -> None:
        self._task = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while (await self._request.receive())["type"] != "http.disconnect":
            pass
        self._seen = True
        self._gone()

    def end(self) -> None:
        self._alarm.cancel()
        if self._task is not None:
            self._task.cancel()

    def hung_up(self) -> bool:
        """Whether nobody is there any more, as far as is known now."""
        if self._seen:
            return True
        if self._task is not None:
            return False  # it would have seen it
        asked = self._request.receive()
        try:
            asked.send(None)  # type: ignore[attr-defined]
        except StopIteration as said:
            message: dict[str, str] = said.value
            return message["type"] == "http.disconnect"
        asked.close()  # type: ignore[attr-defined]
        return False
