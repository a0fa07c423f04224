"""Retries: how often, after how long, and what burns an attempt."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import App, Meaning, Retry, RetryPolicy, Snooze, job
from headway.testing import World
from tests.engine.kit import Diary, failing, gaps, takes, trail
from tests.stores import second_store_in_the_soak


@pytest.mark.parametrize(
    ("type", "waits"),
    [
        ("download", [60.0, 120.0, 240.0]),
        ("scan", [30.0, 30.0]),
        ("associate", [10.0, 10.0]),
        ("check", [5.0]),
        ("anything else", [30.0, 30.0, 30.0]),
    ],
)
def test_each_type_backs_off_by_its_own_defaults(
    app: App, diary: Diary, type: str, waits: list[float]
) -> None:
    @app.job(type=type)
    def work() -> None:
        diary.note(job.attempt)
        raise LookupError("no luck")

    with World(app) as world:
        diary.begin(world)
        handle = work.enqueue()
        world.run_for("1d")
        assert handle.state == "failed"
        assert trail(handle)[-1] == "exhausted"
        assert handle.row().error == "LookupError: no luck"
    assert gaps(diary.times) == waits
    assert diary.names == list(range(1, len(waits) + 2))


@pytest.mark.parametrize(
    ("type", "seconds"), [("download", 1800), ("scan", 300), ("associate", 120), ("check", 60)]
)
def test_each_type_has_its_own_time_limit(
    app: App, diary: Diary, type: str, seconds: float
) -> None:
    @app.job(type=type, retries=0)
    async def work() -> None:
        try:
            await takes(10_000)
        finally:
            diary.note()

    with World(app) as world:
        diary.begin(world)
        work.enqueue()
        world.run_for("3h")
    assert diary.times == [seconds]


def test_back_off_grows_up_to_five_minutes(app: App, diary: Diary) -> None:
    @app.job(retries=5, retry_delay="60s", retry_growth=2)
    def work() -> None:
        diary.note()
        raise LookupError

    with World(app) as world:
        diary.begin(world)
        work.enqueue()
        world.run_for("1d")
    assert gaps(diary.times) == [60.0, 120.0, 240.0, 300.0, 300.0]


def test_a_job_that_works_at_last_is_completed(app: App) -> None:
    fail = failing(2, LookupError)

    @app.job()
    def work() -> int:
        fail()
        return job.attempt

    with World(app) as world:
        handle = work.enqueue()
        world.run_for("1h")
        assert handle.result() == 3
        assert trail(handle) == ["submit", *("grant", "retry", "due") * 2, "grant", "ok"]


@pytest.mark.parametrize("raised", [True, False])
def test_retry_names_its_own_wait_and_burns_an_attempt(
    app: App, diary: Diary, raised: bool
) -> None:
    @app.job(retries=2)
    def work() -> object:
        diary.note(job.attempt)
        verdict = Retry("not yet", after="7m")
        if raised:
            raise verdict
        return verdict

    with World(app) as world:
        diary.begin(world)
        handle = work.enqueue()
        world.run_for("1h")
        assert (handle.state, handle.row().error) == ("failed", "not yet")
    assert diary.rows == [(0.0, 1), (420.0, 2), (840.0, 3)]


@pytest.mark.parametrize("raised", [True, False])
def test_snooze_burns_nothing_and_blames_nobody(app: App, diary: Diary, raised: bool) -> None:
    @app.job(retries=0, upstream="example.com")
    def work() -> object:
        diary.note(job.attempt)
        if len(diary.rows) > 9:
            return "done"
        if raised:
            raise Snooze("1h")
        return Snooze("1h")

    with World(app) as world:
        diary.begin(world)
        handle = work.enqueue()
        world.run_for("1d")
        assert handle.result() == "done"
    assert diary.rows == [(3600.0 * n, 1) for n in range(10)]


def test_the_wait_for_a_retry_survives_a_restart_and_so_do_burnt_attempts(
    app: App, diary: Diary
) -> None:
    @app.job(retries=2, retry_delay="5m")
    def work() -> None:
        diary.note(job.attempt)
        raise LookupError

    with World(app) as world:
        diary.begin(world)
        handle = work.enqueue()
        for _ in range(10):
            world.run_for("100s")
            world.restart()
        world.run_for("1h")
        assert handle.state == "failed"
    assert diary.rows == [(0.0, 1), (300.0, 2), (600.0, 3)]


def test_a_job_that_is_lost_with_its_engine_three_times_fails(app: App, diary: Diary) -> None:
    @app.job()
    async def work() -> None:
        diary.note(job.attempt)
        await takes(60)

    with World(app) as world:
        diary.begin(world)
        handle = work.enqueue()
        for _ in range(3):
            world.run_for(10)
            assert handle.state == "running"
            world.restart()
        world.run_for("1h")
        assert handle.state == "failed"
        assert trail(handle) == ["submit", "grant", *("lost", "grant") * 2, "lost_too_often"]
        assert "engine that ran it is gone" in str(handle.row().error)
    assert diary.names == [1, 2, 3]


def test_an_app_may_say_what_its_own_exceptions_mean(app: App, diary: Diary) -> None:
    class Gone(Exception): ...

    @app.job(meanings={Gone: Meaning.FATAL})
    def work() -> None:
        diary.note()
        raise Gone("for good")

    with World(app) as world:
        diary.begin(world)
        handle = work.enqueue()
        world.run_for("1h")
        assert trail(handle)[-1] == "fatal"
    assert len(diary.times) == 1


def test_a_handler_that_cancels_itself_from_within_has_failed(app: App) -> None:
    import asyncio  # noqa: PLC0415 - only this test speaks of it

    @app.job(retries=0)
    async def work() -> None:
        raise asyncio.CancelledError

    with World(app) as world:
        handle = work.enqueue()
        world.run_for(0)
        assert (handle.state, handle.row().error) == (
            "failed",
            "the handler was cancelled from within",
        )


@second_store_in_the_soak
@settings(max_examples=40)
@given(
    retries=st.integers(0, 4),
    delay_s=st.integers(0, 400),
    growth=st.sampled_from([1.0, 1.5, 3.0]),
    crashes=st.integers(0, 2),
)
def test_a_failing_job_is_tried_exactly_so_often(
    retries: int, delay_s: int, growth: float, crashes: int
) -> None:
    app, diary = App(), Diary()
    policy = RetryPolicy(retries=retries, delay_s=delay_s, growth=growth)

    @app.job(policy=policy)
    def work() -> None:
        diary.note()
        raise LookupError

    with World(app) as world:
        diary.begin(world)
        handle = work.enqueue()
        for _ in range(crashes):
            world.run_for(7)
            world.restart()
        world.run_for("3h")
        assert handle.state == "failed"
    assert len(diary.times) == retries + 1
    expected = [round(policy.delay_after(n), 3) for n in range(1, retries + 1)]
    assert gaps(diary.times) == pytest.approx(sorted(expected), abs=0.002)
