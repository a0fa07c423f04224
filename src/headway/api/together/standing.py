"""Where this server stands among those that share its store: who leads them, and whether it could.

It looks twice a second. Whoever waits for a leader is woken when there is another one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic, time
from uuid import uuid4

import msgspec

from headway import __version__
from headway.errors import EngineRunning, StoreError
from headway.store import Store
from headway.store.records import Leader

logger = logging.getLogger("headway.server")

LOOK_S = 0.5
SAY_S = 5.0  # between two words to the other servers that this one is there


class About(msgspec.Struct, frozen=True):
    """A server, as the others see it."""

    url: str
    host: str
    pid: int
    version: str
    started_at: float

    @classmethod
    def here(cls, url: str, started_at: float) -> About:
        return cls(url, socket.gethostname(), os.getpid(), __version__, started_at)


class Standing:
    def __init__(self, store: Store, url: str, *, leads: bool) -> None:
        self._store = store
        self.id = uuid4().hex
        self.about = About.here(url, time())
        self.leads = leads
        self.leader: Leader | None = None
        self._changed = asyncio.Event()  # set and replaced when somebody else leads
        self._said_at = float("-inf")
        self._loop: asyncio.AbstractEventLoop | None = None
        self.stopping = False

    # ------------------------------------------------------------------ looking

    async def watch(self, take_over: Callable[[], Awaitable[None]]) -> None:
        """Until it is cancelled. `take_over` may be refused with EngineRunning."""
        self._loop = asyncio.get_running_loop()
        while True:
            try:
                await self._say_so()
                if not self.leads:
                    await self._look(take_over)
            except StoreError as error:
                logger.debug("who leads cannot be seen: %s", error)
            except Exception:
                logger.exception("who leads cannot be seen")
            await asyncio.sleep(LOOK_S)

    async def _look(self, take_over: Callable[[], Awaitable[None]]) -> None:
        leader = await asyncio.to_thread(self._store.leader)
        if leader is None and not self.stopping:
            if await self._took(take_over):
                self.leads = True
                self._tell()
                return
            leader = await asyncio.to_thread(self._store.leader)
        if leader != self.leader:
            self.leader = leader
            if leader is not None:
                logger.info("%s leads", leader.name)
            self._tell()

    async def _took(self, take_over: Callable[[], Awaitable[None]]) -> bool:
        try:
            await take_over()
        except EngineRunning:
            return False  # another one was faster
        except StoreError as error:
            logger.warning("this server could not lead: %s", error)
            return False
        except Exception:
            logger.exception("this server could not lead")
            return False
        return True

    async def _say_so(self) -> None:
        if monotonic() >= self._said_at + SAY_S:
            self._said_at = monotonic()
            text = msgspec.json.encode(self.about).decode()
            await asyncio.to_thread(self._store.announce, self.id, text)

    async def leave(self) -> None:
        with suppress(StoreError):
            await asyncio.to_thread(self._store.announce, self.id, "")

    def stop(self) -> None:
        """This server is to stop: it leads nobody any more, since nobody could reach it, and who
        waits here for a leader is sent to another server. From any thread, and from a signal.
        """
        self.stopping = True
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._tell)

    # ------------------------------------------------------------------ waiting

    def _tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    @property
    def changed(self) -> asyncio.Event:
        """Set when there is another leader than now, or this server is to stop."""
        return self._changed

    def follows(self, leader: Leader) -> bool:
        """Whether it still leads."""
        return not self.leads and self.leader == leader

    async def found(self, until: float) -> Leader | None:
        """Who leads elsewhere. None: this server does, or stops, or nobody did by then."""
        while not self._knows:
            changed = self._changed
            try:
                async with asyncio.timeout(max(0.0, until - monotonic())):
                    await changed.wait()
            except TimeoutError:
                return None
        return None if self.leads or self.stopping else self.leader

    @property
    def _knows(self) -> bool:
        """There is nothing to wait for."""
        leader = self.leader
        return self.leads or self.stopping or (leader is not None and bool(leader.url))
