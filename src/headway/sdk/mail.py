"""Answers from another thread to the futures of a loop: one knock for all that are there."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import Any


class Mail:
    """One for each loop that enqueues."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._answers: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._knocked = False

    def put(self, future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
        """From any thread."""
        self._answers.append((future, value, error))
        if not self._knocked:
            self._knocked = True
            with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                self.loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._knocked = False  # first: whoever comes from here on knocks again
        while self._answers:
            future, value, error = self._answers.popleft()
            if future.done():
                continue
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)
