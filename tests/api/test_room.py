"""Room for the jobs of a tenant, at a server that runs no engine."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headway.api import room as rooms
from headway.api.room import Room

LIMIT = 3


class Store:
    def __init__(self) -> None:
        self.open: dict[str, int] = {}
        self.counts = 0

    def open_by_tenant(self) -> dict[str, int]:
        self.counts += 1
        return dict(self.open)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [0.0]
    monkeypatch.setattr(rooms, "monotonic", lambda: clock[0])
    return clock


def room_on(store: Any) -> Room:
    return Room(store)


def test_a_tenant_has_no_more_jobs_than_it_may(store: Store, clock: list[float]) -> None:
    """Those that were counted and those that came since; others have room of their own."""

    async def go() -> None:
        room = room_on(store)
        store.open = {"a": 1}
        assert [await room.takes("a", 1, LIMIT) for _ in range(4)] == [True, True, False, False]
        assert await room.takes("b", LIMIT, LIMIT)
        assert not await room.takes("b", 1, LIMIT)
        assert store.counts == 1, "counting looks at all open jobs"
        store.open = {"b": 3}
        clock[0] += 1.5
        assert await room.takes("a", LIMIT, LIMIT), "its jobs have ended"
        assert not await room.takes("b", 1, LIMIT)
        assert store.counts == 2

    asyncio.run(go())


def test_many_at_once_count_once(store: Store, clock: list[float]) -> None:  # noqa: ARG001
    async def go() -> None:
        room = room_on(store)
        taken = await asyncio.gather(*(room.takes("a", 1, LIMIT) for _ in range(10)))
        assert sum(taken) == LIMIT
        assert store.counts == 1

    asyncio.run(go())
