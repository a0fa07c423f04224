"""Slots: permits for work that a program does itself, in the same order as all jobs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headway import App, Pushback
from headway.core import Refused
from headway.testing import World
from tests.engine.kit import Diary, gaps, takes

HOST = "files.example.com"


async def holding(app: App, diary: Diary, name: str, seconds: float = 10, **options: Any) -> None:
    async with app.slot(HOST, **options):
        diary.note(name)
        await takes(seconds)


def test_slots_and_jobs_share_the_places_of_an_upstream_in_order(app: App, diary: Diary) -> None:
    app.upstream(HOST, limit=1)

    @app.job(upstream=HOST)
    async def download(name: str) -> None:
        diary.note(name)
        await takes(10)

    async def play() -> None:
        download.enqueue("job 1")
        await takes(1)
        first = asyncio.ensure_future(holding(app, diary, "slot 1"))
        await takes(1)
        download.enqueue("job 2")
        await takes(1)
        second = asyncio.ensure_future(holding(app, diary, "slot 2"))
        await takes(1)
        urgent = asyncio.ensure_future(holding(app, diary, "urgent slot", priority=1))
        await asyncio.gather(first, second, urgent)

    with World(app) as world:
        diary.begin(world)
        world.run(play())
    assert diary.rows == [
        (0.0, "job 1"),
        (10.0, "urgent slot"),
        (20.0, "slot 1"),
        (30.0, "job 2"),
        (40.0, "slot 2"),
    ]


def test_a_pace_holds_for_slots_and_jobs_together(app: App, diary: Diary) -> None:
    app.upstream(HOST, every="5s")

    @app.job(upstream=HOST)
    def fetch() -> None:
        diary.note("job")

    async def play() -> None:
        for _ in range(5):
            fetch.enqueue()
        await asyncio.gather(*(holding(app, diary, "slot", 0) for _ in range(5)))

    with World(app) as world:
        diary.begin(world)
        world.run(play())
        world.run_for("2m")
    assert len(diary.rows) == 10
    assert set(gaps(diary.times)) == {5.0}


@pytest.mark.parametrize("error", [LookupError, asyncio.CancelledError, TimeoutError])
def test_an_exception_gives_the_slot_back(
    app: App, diary: Diary, error: type[BaseException]
) -> None:
    app.upstream(HOST, limit=1)

    async def play() -> None:
        for _ in range(5):
            with pytest.raises(error):
                async with app.slot(HOST):
                    raise error
        await holding(app, diary, "next")

    with World(app) as world:
        diary.begin(world)
        world.run(play())
        assert app.store.slots() == []
    assert diary.rows == [(0.0, "next")]


def test_who_waits_too_long_leaves_the_line(app: App, diary: Diary) -> None:
    app.upstream(HOST, limit=1)

    async def play() -> None:
        holder = asyncio.ensure_future(holding(app, diary, "holder", 60))
        await takes(1)
        with pytest.raises(TimeoutError, match=r"no slot at files\.example\.com within 5 s"):
            async with app.slot(HOST, timeout="5s"):
                raise AssertionError
        diary.note("gave up")
        await holder
        await holding(app, diary, "next")

    with World(app) as world:
        diary.begin(world)
        world.run(play())
        world.run_for(1)
        assert app.store.slots() == []
    assert diary.rows == [(0.0, "holder"), (6.0, "gave up"), (60.0, "next")]


def test_a_waiter_that_is_cancelled_leaves_the_line(app: App, diary: Diary) -> None:
    app.upstream(HOST, limit=1)

    async def play() -> None:
        holder = asyncio.ensure_future(holding(app, diary, "holder", 60))
        await takes(1)
        waiters = [asyncio.ensure_future(holding(app, diary, "waiter")) for _ in range(5)]
        await takes(1)
        for waiter in waiters:
            waiter.cancel()
        await asyncio.gather(holder, *waiters, return_exceptions=True)
        await holding(app, diary, "next")

    with World(app) as world:
        diary.begin(world)
        world.run(play())
    assert diary.rows == [(0.0, "holder"), (60.0, "next")]


@pytest.mark.parametrize("how", ["report", "raise"])
def test_a_429_seen_in_a_slot_closes_the_upstream_for_everybody(
    app: App, diary: Diary, how: str
) -> None:
    @app.job(upstream=HOST)
    def fetch() -> None:
        diary.note("job")

    async def play() -> None:
        try:
            async with app.slot(HOST) as slot:
                if how == "report":
                    slot.report(429, retry_after="10m")
                else:
                    raise Pushback(retry_after="10m")
        except Pushback:
            pass
        handle = fetch.enqueue()
        await takes(1)
        assert "429" in handle.explain().detail
        await holding(app, diary, "slot")

    with World(app) as world:
        diary.begin(world)
        world.run(play())
    assert {at for at, _ in diary.rows} == {600.0}


def test_a_slot_is_kept_alive_however_long_it_is_held(app: App, diary: Diary) -> None:
    app.upstream(HOST, limit=1)

    async def play() -> None:
        holder = asyncio.ensure_future(holding(app, diary, "holder", 3600))
        await takes(1)
        await holding(app, diary, "next")
        await holder

    with World(app) as world:
        diary.begin(world)
        world.run(play())
    assert diary.rows == [(0.0, "holder"), (3600.0, "next")]


def test_tenants_share_an_upstream_fairly(app: App, diary: Diary) -> None:
    app.upstream(HOST, limit=1)

    async def play() -> None:
        many = [holding(app, diary, "loud", 1, tenant="loud") for _ in range(20)]
        few = [holding(app, diary, "quiet", 1, tenant="quiet") for _ in range(3)]
        await asyncio.gather(*many, *few)

    with World(app) as world:
        diary.begin(world)
        world.run(play())
    assert diary.names[:6].count("quiet") == 3


def test_a_slot_says_which_upstream_it_has_and_with_which_fence(app: App) -> None:
    app.upstream("a.example.com", limit=1)

    async def play() -> None:
        async with (
            app.slot(["a.example.com", "b.example.com"]) as one,
            app.slot(["a.example.com", "b.example.com"]) as two,
        ):
            assert {one.upstream, two.upstream} == {"a.example.com", "b.example.com"}
            assert one.fence < two.fence
        with pytest.raises(RuntimeError, match="not held"):
            _ = one.fence

    with World(app) as world:
        world.run(play())


def test_too_many_who_wait_are_refused_but_jobs_that_are_stored_wait(app: App) -> None:
    app.upstream(HOST, limit=1, max_waiters=1)

    @app.job(upstream=HOST)
    async def fetch() -> None:
        await takes(1)

    async def play() -> None:
        async with app.slot(HOST):
            waiting = asyncio.ensure_future(holding(app, Diary(), "", 0))
            waiting.add_done_callback(lambda done: done.exception())
            await takes(1)
            with pytest.raises(Refused, match="too many wait"):
                async with app.slot(HOST):
                    raise AssertionError
            handles = [fetch.enqueue() for _ in range(5)]
            await takes(1)
        for handle in handles:
            await handle.aresult()

    with World(app) as world:
        world.run(play())


def test_slots_end_with_their_engine(app: App, diary: Diary) -> None:
    app.upstream(HOST, limit=1)

    @app.job(upstream=HOST)
    def fetch() -> None:
        diary.note("job")

    async def play() -> None:
        async with app.slot(HOST):
            fetch.enqueue()
            await takes(3600)

    with World(app) as world:
        diary.begin(world)
        with pytest.raises(TimeoutError):
            world.run(play(), within="10s")
        assert diary.rows == []
        world.restart()
        world.run_for(1)
        assert app.store.slots() == []
    assert diary.names == ["job"]
