"""What a task on an event loop waits for while the brain's thread works on it.

A `concurrent.futures.Future` that is wrapped for asyncio costs more than what is waited for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary, ref


class Mailbox:
    """Answers for one loop. Waking a loop is a system call that lets other threads run; a brain
    that answers many at once does it once.
    """

    __slots__ = ("_letters", "_on_its_way", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = ref(loop)
        self._letters: deque[tuple[LoopFuture, Any, BaseException | None]] = deque()
        self._on_its_way = False

    def post(self, future: LoopFuture, result: Any, error: BaseException | None) -> None:
        """From any thread."""
        self._letters.append((future, result, error))
        loop = self.loop()
        if not self._on_its_way and loop is not None:
            self._on_its_way = True
            with suppress(RuntimeError):  # it is closed: nobody is there to miss anything
                loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._on_its_way = False  # first, so that whatever comes from now on is seen
        letters = self._letters
        try:
            while letters:
                future, result, error = letters.popleft()
                future.arrive(result, error)
        finally:
            loop = self.loop()
            if letters and loop is not None:  # somebody could not take its letter; others can
                loop.call_soon(self._deliver)


_mailboxes: WeakKeyDictionary[asyncio.AbstractEventLoop, Mailbox] = WeakKeyDictionary()


_last: list[Mailbox | None] = [None]  # there is hardly ever more than one loop


def _mailbox(loop: asyncio.AbstractEventLoop) -> Mailbox:
    mailbox = _last[0]
    if mailbox is None or mailbox.loop() is not loop:
        mailbox = _mailboxes.get(loop)
        if mailbox is None:
            _mailboxes[loop] = mailbox = Mailbox(loop)
        _last[0] = mailbox
    return mailbox


class LoopFuture:
    """To be made and awaited on the loop, and answered from any thread."""

    __slots__ = ("_first", "_future", "_gone", "_mailbox", "_missed")

    def __init__(self, missed: Callable[[Any], None] | None = None) -> None:
        loop = asyncio.get_running_loop()
        self._mailbox = _mailbox(loop)
        self._future: asyncio.Future[Any] = loop.create_future()
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
        self._mailbox.post(self, result, None)

    def set_exception(self, exception: BaseException | None) -> None:
        self._mailbox.post(self, None, exception)

    def answer_here(self, result: Any) -> None:
        """On the loop: go on with this, whatever comes from elsewhere."""
        if not self._future.done():
            self._future.set_result(result)

    def arrive(self, result: Any, exception: BaseException | None) -> None:
        future = self._future
        if future.done():
            if exception is None and self._missed is not None:
                self._missed(result)
        elif exception is None:
            future.set_result(result)
        else:
            future.set_exception(exception)
