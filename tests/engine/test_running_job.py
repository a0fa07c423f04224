"""What a handler can say and ask while it runs: logs, progress, checkpoints, who it is; and the
lock on its key.
"""

from __future__ import annotations

import pytest

from headway import App, Retry, Stopped, job
from headway.engine.hands.context import MAX_LINES
from headway.testing import World
from tests.engine.kit import Diary, check_trail, takes, trail


def test_log_lines_are_kept_in_order_with_their_levels(app: App) -> None:
    @app.job(retries=0)
    async def work() -> None:
        job.log("one")
        await takes(5)
        job.log("two", level="warning")
        raise LookupError("three")

    with World(app) as world:
        start = world.now
        handle = work.enqueue()
        world.run_for("1m")
        one, two, three = handle.logs()
        assert one == (start, "info", "one")
        assert two == (start + 5, "warning", "two")
        assert (three[1], "LookupError: three" in three[2]) == ("error", True)


def test_a_flood_of_log_lines_is_cut_off_and_says_so(app: App) -> None:
    @app.job()
    def work() -> None:
        for n in range(MAX_LINES + 500):
            job.log(f"line {n}\x00\ud800" + "x" * 10_000)

    with World(app) as world:
        handle = work.enqueue()
        world.run_for(0)
        lines = handle.logs()
        assert handle.state == "completed"
        assert len(lines) == MAX_LINES
        assert "the rest of this attempt is not kept" in lines[-1][2]
        assert all(len(line) <= 2_010 for _, _, line in lines)


def test_progress_shows_the_last_word(app: App) -> None:
    @app.job()
    async def work() -> None:
        for n in range(1, 101):
            job.progress(n, 100, f"step {n}")
            await takes(0.1)

    with World(app) as world:
        handle = work.enqueue()
        world.run_for(5)
        half = handle.progress()
        assert half is not None
        assert 40 <= half.done <= 51
        world.run_for("1m")
        last = handle.progress()
        assert last is not None
        assert (last.done, last.total, last.note) == (100, 100, "step 100")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_progress_in_no_numbers_is_an_error_of_the_handler(app: App, value: float) -> None:
    @app.job(retries=0)
    def work() -> None:
        job.progress(value)

    with World(app) as world:
        handle = work.enqueue()
        world.run_for(0)
        assert "plain numbers" in str(handle.row().error)


@pytest.mark.parametrize("how", ["retry", "crash"])
def test_the_next_attempt_goes_on_from_the_last_checkpoint(
    app: App, diary: Diary, how: str
) -> None:
    @app.job(retries=5)
    async def work() -> list[int]:
        done: list[int] = job.saved or []
        for n in range(len(done), 6):
            diary.note(n)
            await takes(10)
            done = [*done, n]
            job.checkpoint(done)
            if how == "retry" and n in (1, 3):
                raise Retry(after=1)
        return done

    with World(app) as world:
        diary.begin(world)
        handle = work.enqueue()
        if how == "crash":
            for _ in range(2):
                world.run_for(25)
                world.restart()
        world.run_for("5m")
        assert handle.result() == [0, 1, 2, 3, 4, 5]
    if how == "retry":
        assert diary.names == [0, 1, 2, 3, 4, 5], "no step was done twice"


def test_a_checkpoint_that_is_no_json_is_an_error_of_the_handler(app: App) -> None:
    @app.job(retries=0)
    def work(value: str) -> None:
        job.checkpoint({"nan": float("nan"), "object": object(), "long": "x" * 2_000_000}[value])

    with World(app) as world:
        handles = [work.enqueue(value) for value in ("nan", "object", "long")]
        world.run_for(0)
        assert [handle.state for handle in handles] == ["failed"] * 3


def test_a_handler_knows_who_it_is(app: App) -> None:
    seen: list[object] = []

    @app.job(type="me", upstream=("a.com", "b.com"), key="k", tenant="ann")
    def work() -> None:
        seen.extend([job.id, job.type, job.attempt, job.upstream, job.key, job.tenant])
        seen.append(job.stopping)
        assert job.fence > 0

    with World(app) as world:
        handle = work.enqueue()
        world.run_for(0)
        assert handle.state == "completed"
    assert seen == [handle.id, "me", 1, "a.com", "k", "ann", False]


# --- keys


def test_jobs_of_one_key_run_one_at_a_time_and_in_turn(app: App, diary: Diary) -> None:
    @app.job(key=lambda feed: feed)
    async def refresh(feed: str) -> None:
        diary.note(feed)
        await takes(10)

    with World(app) as world:
        diary.begin(world)
        for feed in ("a", "a", "b", "a"):
            refresh.enqueue(feed)
        world.run_for("1m")
    assert diary.rows == [(0.0, "a"), (0.0, "b"), (10.0, "a"), (20.0, "a")]


def test_no_key_is_locked_for_more_than_two_hours(app: App, diary: Diary) -> None:
    @app.job(key="k", timeout="1d")
    async def work(name: str) -> None:
        diary.note(name)
        try:
            await takes(86_000 if name == "endless" else 1)
        except BaseException:
            diary.note(f"{name} told to stop ({job.stopping})")
            raise

    with World(app) as world:
        diary.begin(world)
        endless = work.enqueue("endless")
        world.run_for(1)
        patient = work.enqueue("patient")
        world.run_for("2h")
        assert patient.state == "completed"
        world.run_for("1d")
        assert (endless.state, trail(endless)[-1]) == ("failed", "lost_too_often")
        check_trail(endless)
    assert diary.rows[:3] == [
        (0.0, "endless"),
        (7200.0, "endless told to stop (True)"),
        (7200.0, "patient"),
    ] or diary.rows[:3] == [
        (0.0, "endless"),
        (7200.0, "patient"),
        (7200.0, "endless told to stop (True)"),
    ]
    stops = [name for name in diary.names if "told" in name]
    assert len(stops) == 3, "the third one, too, was told"


def test_stopped_is_no_exception_that_a_handler_catches_by_accident() -> None:
    assert not issubclass(Stopped, Exception)
