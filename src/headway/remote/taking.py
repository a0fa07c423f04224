"""Taking jobs: a long poll for as many as there are free places.

A request that may bring jobs is not given up before its answer, since whatever is in the answer
would be held by nobody until its lease is over. So when a place becomes free for jobs that nobody
asks for at the moment, another request is sent beside the first. Only a worker that leaves hangs
up, before it gives anything back: else that would be dealt to its own request.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

from headway.engine.hands import RemoteWork
from headway.engine.registry import JobType
from headway.errors import BadJob, NotAllowed, StoreError, StoreUnavailable
from headway.lease_clock import lease_clock
from headway.remote.client import Backoff
from headway.remote.connection import Connection
from headway.remote.desk import Desk, lease_end
from headway.remote.protocol import Given

logger = logging.getLogger("headway.worker")

POLL_S = 25.0
ANSWER_S = 15.0  # beyond the time of the poll
SOON_S = 0.2  # the least time before the next poll, when one was answered with nothing too early
MAX_SIZE = 1_000
MAX_WAITING = 2_000  # ends that the server does not know yet; with so many, no more is begun


@dataclass(frozen=True, slots=True)
class Places:
    """How many jobs may run here at once: all together, and of each kind."""

    all: int
    tasks: int
    threads: int

    def of(self, is_async: bool) -> int:
        return self.tasks if is_async else self.threads


@dataclass(frozen=True, slots=True)
class Introduction:
    """What a worker says of itself."""

    types: list[dict[str, Any]]
    settings: list[dict[str, Any]]
    schedules: list[dict[str, Any]]


class Request:
    """A poll on its way. With a size of 0 it only waits for orders to stop."""

    __slots__ = ("kinds", "size", "task")

    def __init__(self, kinds: tuple[bool, ...], size: int) -> None:
        self.kinds = kinds
        self.size = size
        self.task: asyncio.Task[None] | None = None


class Taking:
    def __init__(
        self, connection: Connection, desk: Desk, types: dict[str, JobType], places: Places,
        introduction: Introduction,
    ) -> None:  # fmt: skip
        self._connection = connection
        self._desk = desk
        self._types = types
        self._places = places
        self._introduction = introduction
        self._names = {kind: [name for name, each in types.items() if each.is_async is kind]
                       for kind in (True, False)}  # fmt: skip
        self._requests: set[Request] = set()
        self._wake = asyncio.Event()
        self._backoff = Backoff()
        self.draining = False
        desk.room = connection.changed = self._wake.set

    async def run(self) -> None:
        while True:
            self._wake.clear()
            self._raise_errors()
            if not self._connection.greeted:
                await self._greet()
            request = self._next_request()
            if request is None:
                await self._wake.wait()
                continue
            self._requests.add(request)
            request.task = asyncio.create_task(self._take(request))
            request.task.add_done_callback(lambda _: self._wake.set())

    def drain(self) -> None:
        """Begin nothing more, and hang up. What a poll brings at this very moment goes back."""
        self.draining = True
        for request in self._requests:
            if request.size and request.task is not None:
                request.task.cancel()
        self._wake.set()

    def _raise_errors(self) -> None:
        for request in [each for each in self._requests if each.task and each.task.done()]:
            self._requests.remove(request)
            assert request.task is not None
            if not request.task.cancelled():
                request.task.result()

    # ------------------------------------------------------------------ what to ask for

    def _next_request(self) -> Request | None:
        size, kinds = self._free_places()
        if size:
            return Request(kinds, size)
        if self._requests or not self._desk.held:
            return None
        return Request((), 0)  # everything is full: hear only what must be stopped

    def _free_places(self) -> tuple[int, tuple[bool, ...]]:
        """For how many more jobs there is room, of which kinds that nobody asks for yet."""
        desk = self._desk
        if self.draining or len(desk.ended) >= MAX_WAITING:
            return 0, ()
        asked_for = {kind for request in self._requests for kind in request.kinds}
        free = {
            kind: self._places.of(kind) - len(desk.running[kind])
            for kind in (True, False)
            if self._names[kind] and kind not in asked_for
        }
        kinds = tuple(kind for kind, places in free.items() if places > 0)
        if not kinds:
            return 0, ()
        promised = sum(request.size for request in self._requests)
        rest = self._places.all - desk.count_running() - promised
        return max(min(rest, MAX_SIZE, *(free[kind] for kind in kinds)), 0), kinds

    # ------------------------------------------------------------------ asking

    async def _take(self, request: Request) -> None:
        names = [name for kind in request.kinds for name in self._names[kind]]
        # The lease is counted from before the poll, which must not use up much of it.
        wait_s = min(POLL_S, self._connection.lease_s / 3)
        asked_at = lease_clock()
        try:
            answer = await self._connection.line.take(names, request.size, wait_s, ANSWER_S)
        except (NotAllowed, BadJob):
            raise
        except StoreError as error:
            self._connection.lost(error)
            self._connection.greeted = False  # when it is back, it may know nothing of us
            await asyncio.sleep(self._backoff.next_s())
            return
        self._backoff.reset()
        self._connection.heard(answer.server)
        self._begin(answer.jobs, asked_at)
        for order in answer.stops:
            self._desk.stop(order.fence, order.why)
        if not answer.jobs and not answer.stops and lease_clock() - asked_at < wait_s / 2:
            await asyncio.sleep(SOON_S)  # a server that is about to stop sends everybody home

    def _begin(self, jobs: list[Given], asked_at: float) -> None:
        now = lease_clock()
        begun: list[tuple[RemoteWork, JobType]] = []
        for given in jobs:
            known = self._types.get(given.type)
            work = given.work()
            late = lease_end(given.lease_s, asked_at) <= now
            if known is None or self.draining or late:
                self._desk.turn_away(work, asked_at)
            else:
                begun.append((work, known))
        if begun:
            self._desk.begin(begun, asked_at)

    async def _greet(self) -> None:
        """Until the server knows this worker."""
        said = self._introduction
        while not self._connection.greeted:
            try:
                hello = await self._connection.line.hello(
                    said.types, said.settings, said.schedules, ANSWER_S
                )
            except (NotAllowed, BadJob):
                raise
            except StoreError as error:
                unavailable = isinstance(error, StoreUnavailable)
                if not unavailable and not self._connection.ever_greeted:
                    raise  # whatever is there, it is no Headway server
                self._connection.lost(error)
                await asyncio.sleep(self._backoff.next_s())
            else:
                self._backoff.reset()
                self._connection.welcomed(hello)
