"""The parsing processes, and what is asked of them.

Each process belongs to a thread that waits for it: so any event loop may ask, a wait never blocks
one, and the threads' queue is the queue. Processes start when they are first needed, and each is
replaced after some feeds, for what a library may leak.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from headway.apps.feeds.parsing.errors import (
    FeedTooLarge,
    ParserDied,
    ParserOutOfMemory,
    of_kind,
)
from headway.apps.feeds.parsing.limits import MAX_DOCUMENT_BYTES
from headway.apps.feeds.parsing.messages import (
    Answer,
    Discover,
    Discovered,
    Parse,
    Parsed,
    Refused,
    Wish,
)
from headway.apps.feeds.parsing.model import Candidate, ParsedFeed
from headway.apps.feeds.parsing.process import WorkerProcess

_CLOSED = "The parser is closed, since the server is stopping. Try again later."


@dataclass(frozen=True, slots=True)
class Limits:
    """What reading one feed may cost."""

    cpu_s: float = 5.0
    wall_s: float = 20.0
    memory_bytes: int = 512 * 1024 * 1024
    answer_bytes: int = 64 * 1024 * 1024
    feeds_per_worker: int = 1_000


class FeedParser:
    """Reads feeds and pages, a few at a time. Close it at the end."""

    def __init__(self, *, workers: int = 2, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="feed-parser")
        self._lock = threading.Lock()
        self._idle: list[WorkerProcess] = []
        self._all: set[WorkerProcess] = set()
        self._closed = False

    async def parse(self, document: bytes, *, url: str, content_type: str = "") -> ParsedFeed:
        """The feed in a document that came from `url`. Raises one of `FeedUnreadable`."""
        _check_size(document)
        answer = await self._ask(Parse(document, url, content_type))
        if not isinstance(answer, Parsed):
            raise _refusal(answer)
        return answer.feed

    async def discover(
        self, page: bytes, *, url: str, content_type: str = ""
    ) -> tuple[Candidate, ...]:
        """The feeds that a web page names. Raises one of `FeedUnreadable`."""
        _check_size(page)
        answer = await self._ask(Discover(page, url, content_type))
        if not isinstance(answer, Discovered):
            raise _refusal(answer)
        return answer.candidates

    async def close(self) -> None:
        """End all processes, busy or not; whoever waits for one is told so."""
        with self._lock:
            self._closed = True
            everyone = list(self._all)
        # Those that still wait for a thread come to `_take`, and hear it there.
        self._threads.shutdown(wait=False)
        for worker in everyone:
            worker.kill()
        await asyncio.to_thread(self._threads.shutdown)
        for worker in everyone:
            worker.bury()

    def pids(self) -> frozenset[int]:
        """The processes that run now, for those who watch over them."""
        with self._lock:
            return frozenset(worker.pid for worker in self._all)

    async def _ask(self, wish: Wish) -> Answer:
        try:
            waiting = self._threads.submit(self._answer, wish)
        except RuntimeError:
            raise ParserDied(_CLOSED) from None
        return await asyncio.wrap_future(waiting)

    def _answer(self, wish: Wish) -> Answer:
        worker = self._take()
        try:
            answer = worker.ask(wish, self._limits.wall_s, self._limits.answer_bytes)
        except BaseException:
            self._drop(worker)
            raise
        is_spent = worker.answered >= self._limits.feeds_per_worker
        is_leaving = isinstance(answer, Refused) and answer.kind == ParserOutOfMemory.kind
        if is_spent or is_leaving:
            self._drop(worker)
        else:
            with self._lock:
                self._idle.append(worker)
        return answer

    def _take(self) -> WorkerProcess:
        """One that waits for work, or a new one."""
        while True:
            with self._lock:
                if self._closed:
                    raise ParserDied(_CLOSED)
                if not self._idle:
                    worker = WorkerProcess(self._limits.cpu_s, self._limits.memory_bytes)
                    self._all.add(worker)
                    return worker
                worker = self._idle.pop()
            if worker.is_running():
                return worker
            self._drop(worker)

    def _drop(self, worker: WorkerProcess) -> None:
        worker.kill()
        worker.bury()
        with self._lock:
            self._all.discard(worker)


def _check_size(document: bytes) -> None:
    if len(document) > MAX_DOCUMENT_BYTES:
        raise FeedTooLarge(
            f"The document has {len(document):,} bytes; {MAX_DOCUMENT_BYTES:,} are allowed."
        )


def _refusal(answer: Answer) -> Exception:
    if isinstance(answer, Refused):
        return of_kind(answer.kind, answer.message)
    return ParserDied("The process that read the feed has answered something else.")
