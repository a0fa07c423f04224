"""The live stream: the audit trail as server-sent events.

A client is a place in the trail and nothing else. What it has not had yet is read from a short
memory that all clients share, or from the store when it is further back. So nothing is buffered
for anybody, and a client that comes back with the number of its last event goes on there, also
after a restart.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from time import monotonic
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from headway.api.problems import Problem
from headway.api.views import REQUEST_WORDS, event_view, subscription_of
from headway.errors import StoreUnavailable
from headway.sdk.app import App
from headway.store.records import TrailRow

MEMORY = 20_000  # events
AT_ONCE = 1_000  # events in one message, or read from the store
OLDER = 100  # the same for what one client alone wants: it keeps them while it does not read
MAX_PARCEL = 262_144  # bytes that are sent at once
ALIVE_S = 15.0
AGAIN_S = 1.0  # while the store cannot be read
HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}

Words = Callable[[TrailRow], dict[str, Any] | None]  # None: not for this stream


class Entry:
    """An event, and how it looks in each stream once somebody asked for it."""

    __slots__ = ("id", "row", "tenant", "texts")

    def __init__(self, row: TrailRow) -> None:
        self.id = row.id
        self.tenant = row.tenant
        self.row = row
        self.texts: dict[Words, bytes] = {}

    def text(self, words: Words) -> bytes:
        text = self.texts.get(words)
        if text is None:
            said = words(self.row)
            text = b"" if said is None else message(said, self.row.id, self.row.event)
            self.texts[words] = text
        return text


def message(data: Any, id: int, event: str = "") -> bytes:
    name = f"event: {event}\n" if event else ""
    return f"id: {id}\n{name}data: ".encode() + msgspec.json.encode(data) + b"\n\n"


def all_words(row: TrailRow) -> dict[str, Any]:
    return event_view(row)


def request_words(row: TrailRow) -> dict[str, Any] | None:
    """State changes, in the words of the request queue."""
    if row.job is None or row.after is None:
        return None
    view = event_view(row)
    return {
        "id": row.job,
        "type": row.type,
        "lane": row.lane,
        "subscription_id": subscription_of(row.key),
        "status": REQUEST_WORDS.get(row.after, row.after),
        "previous": None if row.before is None else REQUEST_WORDS.get(row.before, row.before),
        "event": row.event,
        "detail": row.detail,
        "at": view["at"],
    }


class Hub:
    """Reads the trail once for everybody."""

    def __init__(self, app: App, max_clients: int, slow_s: float) -> None:
        self._app = app
        self.slow_s = slow_s
        self._max_clients = max_clients
        self.clients = 0
        self._entries: list[Entry] = []
        self._last = 0
        self._news = asyncio.Event()  # set and replaced whenever there is more
        self._call = asyncio.Event()  # the engine has committed something
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._called = True  # nobody waits to be called
        self.closing = False

    def committed(self) -> None:
        """From the brain's thread, after each commit."""
        if not self._called:
            self._called = True
            loop = self._loop
            if loop is not None and not loop.is_closed():
                loop.call_soon_threadsafe(self._call.set)

    def end(self) -> None:
        """End all streams, so that the server can stop. From any thread, and from a signal."""
        self.closing = True
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._tell)

    async def close(self) -> None:
        self.closing = True
        self._tell()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # ------------------------------------------------------------------ following

    async def _follow(self) -> None:
        """As long as anybody listens."""
        while self.clients:
            self._call.clear()
            self._called = False  # before reading: what comes from now on calls again
            try:
                rows = await asyncio.to_thread(self._app.store.trail, self._last, AT_ONCE)
            except StoreUnavailable:
                await asyncio.sleep(AGAIN_S)
                continue
            if rows:
                self._entries += [Entry(row) for row in rows]
                if len(self._entries) > MEMORY + AT_ONCE:
                    del self._entries[: len(self._entries) - MEMORY]
                self._last = rows[-1].id
                self._tell()
                if len(rows) == AT_ONCE:
                    continue
            await self._call.wait()

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def _listen(self) -> None:
        """One client more. The first one makes the hub follow."""
        if self._task is not None and not self._task.done():
            return
        last = await asyncio.to_thread(self._app.store.last_event)
        if self._task is None or self._task.done():  # nobody was faster
            self._loop = asyncio.get_running_loop()
            self._last, self._entries = last, []
            self._task = asyncio.create_task(self._follow())

    def _known_since(self, cursor: int) -> list[Entry] | None:
        """What comes after this event. None: it is further back than the memory."""
        entries = self._entries
        if cursor >= self._last:
            return []
        if not entries or cursor < entries[0].id - 1:
            return None
        start = bisect_right(entries, cursor, key=lambda entry: entry.id)
        return entries[start : start + AT_ONCE]

    # ------------------------------------------------------------------ one client

    def check_room(self) -> None:
        if self.clients >= self._max_clients:
            raise Problem(503, f"{self._max_clients} clients listen already; try again later",
                          kind="busy", headers={"Retry-After": "5"})  # fmt: skip

    async def stream(
        self, after: int | None, words: Words, tenant: str | None, snapshot: Callable[[], Any]
    ) -> AsyncIterator[bytes]:
        """What happened after this event (None: from now on), for ever."""
        await self._listen()
        first, last = await asyncio.to_thread(self._app.store.event_range)
        cursor = last if after is None else after
        yield b"retry: 1000\n\n"
        if not first - 1 <= cursor <= max(last, self._last):
            cursor = max(last, self._last)
            yield await _reset(first, cursor, snapshot)
        elif after is None:
            yield f"id: {cursor}\n\n".encode()  # where it is, should it be cut off at once
        alive_at = monotonic()
        while not self.closing:
            news = self._news
            entries = self._known_since(cursor)
            if entries is None:
                rows = await asyncio.to_thread(self._app.store.trail, cursor, OLDER)
                entries = [Entry(row) for row in rows]
            if entries and entries[0].id > cursor + 1:  # purged before this client had it
                first, cursor = entries[0].id, self._last
                yield await _reset(first, cursor, snapshot)
            elif entries:
                cursor = entries[-1].id
                texts = (entry.text(words) for entry in entries if tenant in (None, entry.tenant))
                for text in parcels(texts):
                    yield text
                    alive_at = monotonic()
                if monotonic() - alive_at < ALIVE_S:  # else all of it was for others
                    continue
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(0.0, alive_at + ALIVE_S - monotonic())):
                        await news.wait()
                        continue
            yield f"id: {cursor}\n\n".encode()
            alive_at = monotonic()


async def _reset(oldest: int, newest: int, snapshot: Callable[[], Any]) -> bytes:
    """What came in between is gone: the client starts afresh from here."""
    fresh = {
        "oldest": oldest, "newest": newest, "snapshot": await asyncio.to_thread(snapshot)
    }  # fmt: skip
    return message(fresh, newest, "reset")


def parcels(texts: Iterable[bytes]) -> Iterator[bytes]:
    """Together, but never so much at once that many slow clients would fill the memory."""
    some: list[bytes] = []
    size = 0
    for text in texts:
        if size + len(text) > MAX_PARCEL and some:
            yield b"".join(some)
            some, size = [], 0
        some.append(text)
        size += len(text)
    if size:
        yield b"".join(some)


class EventStream(Response):
    """An answer that goes on while the client reads it, and is still allowed to."""

    def __init__(
        self, hub: Hub, source: AsyncIterator[bytes], allowed: Callable[[], Awaitable[bool]]
    ) -> None:
        super().__init__(media_type="text/event-stream", headers=dict(HEADERS))
        self._hub = hub
        self._source = source
        self._allowed = allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._hub.clients += 1
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            headers = [each for each in self.raw_headers if each[0] != b"content-length"]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            sending = asyncio.ensure_future(self._send_all(send))
            await asyncio.wait({gone, sending}, return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                sending.cancel()
            (ended,) = await asyncio.gather(sending, return_exceptions=True)
            if isinstance(ended, TimeoutError):
                scope["headway.abort"]()  # it would wait for the client for ever
        finally:
            gone.cancel()
            self._hub.clients -= 1

    async def _send_all(self, send: Send) -> None:
        async for text in self._source:
            if not await self._allowed():
                break  # its token was revoked, or has expired
            async with asyncio.timeout(self._hub.slow_s):
                await send({"type": "http.response.body", "body": text, "more_body": True})
        end: Message = {"type": "http.response.body", "body": b"", "more_body": False}
        await send(end)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
