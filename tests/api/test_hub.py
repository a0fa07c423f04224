"""The hub behind the live stream, with a trail that is purged and a store that goes away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

from headway.api import stream
from headway.api.stream import Hub, all_words
from headway.errors import StoreUnavailable
from headway.store.records import TrailRow


class Trail:
    """As much of a store as the hub reads."""

    def __init__(self, many: int) -> None:
        self.first, self.last = 1, many
        self.away = 0  # how often it is not there
        self.reads = 0

    def trail(self, after: int, limit: int) -> list[TrailRow]:
        self.reads += 1
        if self.away:
            self.away -= 1
            raise StoreUnavailable("away")
        start = max(after + 1, self.first)
        ids = range(start, min(start + limit - 1, self.last) + 1)
        return [TrailRow(id, 1.0, None, "said", None, None, 0, "", None, None, *[None] * 4)
                for id in ids]  # fmt: skip

    def last_event(self) -> int:
        return self.last

    def event_range(self) -> tuple[int, int]:
        return self.first, self.last


def hub_on(trail: Trail) -> Hub:
    app: Any = SimpleNamespace(store=trail)
    hub = Hub(app, 10, 1.0)
    hub.clients = 1
    return hub


def listen(hub: Hub, after: int | None) -> AsyncIterator[bytes]:
    return hub.stream(after, all_words, None, lambda: "all of it")


async def next_with(source: AsyncIterator[bytes], word: bytes) -> bytes:
    async with asyncio.timeout(30):
        async for text in source:
            if word in text:
                return text
    raise AssertionError(f"the stream ended without {word!r}")


async def end(hub: Hub, source: AsyncIterator[bytes]) -> None:
    await source.aclose()  # type: ignore[attr-defined]
    await hub.close()


def test_what_is_purged_before_a_listener_had_it_is_a_reset_and_no_gap() -> None:
    async def run() -> None:
        trail = Trail(5_000)
        hub = hub_on(trail)
        source = listen(hub, 0)
        await next_with(source, b"id: 500\n")  # it is far behind, and reads from the store
        trail.first = 4_000
        text = await next_with(source, b"event: reset")
        assert text.startswith(b"id: 5000\n")
        assert b'"oldest":4000' in text
        trail.last = 5_001
        hub.committed()
        assert b"id: 5001\n" in await next_with(source, b"event: said")
        await end(hub, source)

    asyncio.run(run())


def test_a_store_that_was_away_is_read_again(monkeypatch: Any) -> None:
    monkeypatch.setattr(stream, "AGAIN_S", 0.0)

    async def run() -> None:
        trail = Trail(3)
        hub = hub_on(trail)
        source = listen(hub, 3)
        await next_with(source, b"retry")
        trail.away, trail.last = 3, 4
        hub.committed()
        assert b"id: 4\n" in await next_with(source, b"event: said")
        await end(hub, source)

    asyncio.run(run())


def test_nothing_is_read_when_nobody_listens_any_more() -> None:
    async def run() -> None:
        trail = Trail(3)
        hub = hub_on(trail)
        source = listen(hub, 2)
        await next_with(source, b"event: said")
        await source.aclose()  # type: ignore[attr-defined]
        hub.clients = 0
        hub.committed()
        following = hub._task
        assert following is not None
        async with asyncio.timeout(30):
            await following
        reads = trail.reads
        hub.committed()
        await asyncio.sleep(0)
        assert trail.reads == reads
        await hub.close()

    asyncio.run(run())
