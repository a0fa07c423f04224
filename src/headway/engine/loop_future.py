"""What a task on an event loop waits for while the brain's thread works on it.

A `concurrent.futures.Future` that is wrapped for asyncio costs more than what is waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any


class LoopFuture:
    """To be made and awaited on the loop, and answered from any thread."""

    __slots__ = ("_first", "_future", "_gone", "_loop", "_missed")

    def __init__(self, missed: Callable[[Any], None] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[Any] = self._loop.create_future()
        self._missed = missed  # hears, on the loop, of a result that came when nobody awaited it
        self._gone = False
        self._first = [True]  # who takes it decides: an answer, or nobody waits any more

    def __await__(self) -> Generator[Any, None, Any]:
        return self._future.__await__()

    def cancel(self) -> bool:
        """Wait no longer. False: an answer is on its way."""
        self._gone = self._gone or self._take()
        return self._gone

    def cancelled(self) -> bool:
        return self._gone

    def set_running_or_notify_cancel(self) -> bool:
        return self._take()

    def _take(self) -> bool:
        try:
            return self._first.pop()
        except IndexError:
            return False

    def set_result(self, result: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody is there to miss it
            self._loop.call_soon_threadsafe(self._arrive, result, None)

    def set_exception(self, exception: BaseException | None) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._arrive, None, exception)

    def answer_here(self, result: Any) -> None:
        """On the loop: go on with this, whatever comes from elsewhere."""
        if not self._future.done():
            self._future.set_result(result)

    def _arrive(self, result: Any, exception: BaseException | None) -> None:
        future = self._future
        if future.done():
            if exception is None and self._missed is not None:
                self._missed(result)
        elif exception is None:
            future.set_result(result)
        else:
            future.set_exception(exception)
