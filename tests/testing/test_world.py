"""The world for tests of programs that use Headway: a clock of its own, crashes, and nothing of
the real store.
"""

from __future__ import annotations

import asyncio
from time import monotonic

import pytest

from headway import App, job
from headway.errors import EngineStopped
from headway.store.records import Query
from headway.testing import World
from headway.testing.world import START_AT
from tests.engine.kit import Diary, takes, trail
from tests.stores import second_store_in_the_soak

# The clock is the same on every store; the second kind is for `make soak`.
pytestmark = [pytest.mark.usefixtures("worlds"), second_store_in_the_soak]


# --- time


def test_time_stands_still_unless_it_is_told_to_pass(app: App) -> None:
    with World(app) as world:
        assert world.now == START_AT == app.now()
        world.run_for(0)
        assert world.now == START_AT
        world.run_for("1d")
        assert world.now == START_AT + 86_400
        world.run_until(START_AT + 100_000)
        assert world.now == START_AT + 100_000


def test_a_year_takes_no_time(app: App, diary: Diary) -> None:
    @app.job()
    def work() -> None:
        diary.note()

    with World(app) as world:
        diary.begin(world)
        work.options(delay="52w").enqueue()
        began = monotonic()
        world.run_for("40d")
        assert monotonic() - began < 60
        assert diary.times == []


def test_a_world_may_begin_at_any_time(app: App) -> None:
    with World(app, at=5e8) as world:
        assert app.now() == 5e8
        world.run_for(1)
        assert app.now() == 5e8 + 1


def test_what_is_due_at_the_very_end_of_a_run_has_happened(app: App, diary: Diary) -> None:
    @app.job()
    async def work(name: str) -> None:
        diary.note(name)

    with World(app) as world:
        diary.begin(world)
        first = work.options(delay=30).enqueue("first")
        work.options(after=first).enqueue("second")
        world.run_for(30)
    assert diary.rows == [(30.0, "first"), (30.0, "second")]


def test_timers_of_handlers_follow_the_clock_exactly(app: App, diary: Diary) -> None:
    @app.job()
    async def work() -> None:
        for _ in range(100):
            await takes(0.1)
        diary.note()

    with World(app) as world:
        diary.begin(world)
        work.enqueue()
        world.run_for("1m")
    assert diary.times == [10.0]


def test_the_same_seed_gives_the_same_run() -> None:
    def play(seed: int) -> list[float]:
        app, diary = App(), Diary()
        app.upstream("example.com", every="10s", jitter=0.5)

        @app.job(upstream="example.com")
        def work() -> None:
            diary.note()

        with World(app, seed=seed) as world:
            diary.begin(world)
            for _ in range(10):
                work.enqueue()
            world.run_for("10m")
        return diary.times

    assert play(1) == play(1)
    assert play(1) != play(2)


# --- running a coroutine


def test_a_coroutine_of_the_test_runs_on_the_same_clock(app: App) -> None:
    async def play(world: World) -> float:
        await takes(3600)
        return world.now

    with World(app) as world:
        assert world.run(play(world)) == START_AT + 3600 == world.now


def test_what_a_coroutine_raises_comes_out(app: App) -> None:
    async def play() -> None:
        raise LookupError("here")

    with World(app) as world, pytest.raises(LookupError, match="here"):
        world.run(play())


def test_a_coroutine_that_does_not_end_is_given_up(app: App) -> None:
    async def play() -> None:
        await asyncio.Event().wait()

    with World(app) as world:
        with pytest.raises(TimeoutError, match="within 1h"):
            world.run(play(), within="1h")
        assert world.now == START_AT + 3600


def test_two_runs_follow_each_other(app: App) -> None:
    @app.job()
    async def double(n: int) -> int:
        await takes(10)
        return 2 * n

    async def play(n: int) -> int:
        handle = await double.aenqueue(n)
        return await handle.aresult()

    with World(app) as world:
        assert [world.run(play(n)) for n in (1, 2, 3)] == [2, 4, 6]


# --- crash and restart


def test_a_crash_keeps_what_is_committed_and_loses_what_runs(app: App, diary: Diary) -> None:
    @app.job()
    async def work() -> int:
        diary.note(job.attempt)
        await takes(60)
        return job.attempt

    with World(app) as world:
        diary.begin(world)
        handle = work.enqueue()
        world.run_for(10)
        world.crash()
        assert (handle.state, app.engine) == ("running", None)
        world.run_for(100)
        assert handle.state == "running", "nobody is there to see it"
        world.restart()
        world.run_for("5m")
        assert handle.result() == 2
        assert trail(handle) == ["submit", "grant", "lost", "grant", "ok"]
    assert diary.rows == [(0.0, 1), (110.0, 2)]


def test_time_passes_while_there_is_no_engine(app: App, diary: Diary) -> None:
    @app.job()
    def work(name: str) -> None:
        diary.note(name)

    with World(app) as world:
        diary.begin(world)
        work.options(delay=60).enqueue("before")
        world.run_for(10)
        world.crash()
        work.enqueue("meanwhile")
        world.run_for("1h")
        assert diary.rows == []
        world.restart()
        world.run_for(0)
    assert sorted(diary.rows) == [(3610.0, "before"), (3610.0, "meanwhile")]


@pytest.mark.parametrize("kind", ["async", "plain"])
def test_what_was_handed_out_at_the_moment_of_a_crash_runs_once_afterwards(
    app: App, diary: Diary, kind: str
) -> None:
    if kind == "async":

        @app.job(type="work")
        async def work() -> None:
            diary.note()

    else:

        @app.job(type="work")
        def work() -> None:
            diary.note()

    with World(app) as world:
        diary.begin(world)
        work.options(delay=30).enqueue()
        world.run_for(29)
        work.enqueue()
        world._engine.turn()  # handed out, but not begun
        world.restart()
        world.run_for("1m")
    assert len(diary.rows) == 2


def test_a_handler_that_cleans_up_slowly_does_not_hold_up_a_crash(app: App, diary: Diary) -> None:
    @app.job()
    async def work() -> None:
        try:
            await takes(60)
        finally:
            await takes(5)
            diary.note("cleaned up")

    with World(app) as world:
        diary.begin(world)
        handle = work.enqueue()
        world.run_for(10)
        world.crash()
        assert diary.now == 10.0
        assert trail(handle) == ["submit", "grant"], "nobody heard of its end"
    assert diary.rows == []


def test_restart_without_a_crash_is_one(app: App) -> None:
    with World(app) as world:
        first = app.engine
        world.restart()
        assert app.engine is not first
        world.crash()
        world.restart()
        assert app.engine is not None


def test_orders_to_a_crashed_world_wait_for_the_next_engine(app: App) -> None:
    with World(app) as world:
        world.crash()
        with pytest.raises(EngineStopped):
            app.slot("x")
        app.pause("all")
        world.restart()
        world.run_for(0)
        assert [each.event for each in app.store.events(0, 9)] == ["gate_pause"]


# --- the store


def test_a_world_leaves_the_real_store_alone(url: str) -> None:
    app = App(url)

    @app.job()
    def work() -> None: ...

    real = work.options(delay="1d").enqueue()
    with World(app) as world:
        handle = work.enqueue()
        world.run_for(1)
        assert handle.state == "completed"
    assert app.url == url
    assert real.state == "pending"
    assert app.store.count(Query()) == 1
    app.close()


def test_a_world_may_keep_the_store(url: str) -> None:
    app = App(url)

    @app.job()
    def work() -> str:
        return "kept"

    with World(app, keep_store=True) as world:
        handle = work.enqueue()
        world.run_for(1)
        later = world.now
    with World(app, keep_store=True, at=later):
        assert handle.result() == "kept"


def test_each_world_begins_empty(app: App) -> None:
    @app.job()
    def work() -> None: ...

    for _ in range(3):
        with World(app):
            assert work.enqueue().id == 1


def test_an_app_that_runs_cannot_enter_a_world(url: str) -> None:
    app = App(url)
    with app.running(drain=0), pytest.raises(EngineStopped, match="stopped"), World(app):
        raise AssertionError
    app.close()


def test_after_the_world_the_app_is_as_before(url: str) -> None:
    app = App(url)
    clock = app.clock
    with pytest.raises(LookupError), World(app):
        raise LookupError
    assert (app.engine, app.clock is clock) == (None, True)
