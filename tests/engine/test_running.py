"""From enqueue to result: what runs, when, and what comes back."""

from __future__ import annotations

import pytest

from headway import App, Cancel, Fail, job
from headway.errors import BadJob, JobFailed, ResultExpired, UnknownJob
from headway.testing import World
from tests.engine.kit import Diary, states, takes, trail


def test_a_job_runs_and_its_result_comes_back(app: App) -> None:
    @app.job()
    async def add(a: int, b: int = 1) -> int:
        return a + b

    with World(app) as world:
        handle = add.enqueue(2, b=3)
        assert handle.state == "queued"
        world.run_for(0)
        assert handle.state == "completed"
        assert handle.result() == 5
        assert trail(handle) == ["submit", "grant", "ok"]


def test_a_plain_function_is_a_job_too(app: App) -> None:
    @app.job()
    def shout(text: str) -> str:
        return text.upper()

    with World(app) as world:
        handle = shout.enqueue("hello")
        world.run_for(0)
        assert handle.result() == "HELLO"


def test_calling_a_job_runs_it_here_and_now_and_stores_nothing(app: App) -> None:
    @app.job()
    def shout(text: str) -> str:
        return text.upper()

    assert shout("hi") == "HI"
    assert app._store is None


def test_a_job_may_be_enqueued_from_a_coroutine_without_time_passing(app: App) -> None:
    @app.job()
    async def double(n: int) -> int:
        await takes(240)
        return 2 * n

    async def ask(world: World) -> tuple[float, int]:
        before = world.now
        handle = await double.aenqueue(21)
        assert world.now == before
        value = await handle.aresult()
        return world.now - before, value

    with World(app) as world:
        assert world.run(ask(world)) == (240.0, 42)


def test_a_job_enqueues_another(app: App) -> None:
    done: list[int] = []

    @app.job()
    async def count_down(n: int) -> None:
        done.append(n)
        if n:
            await count_down.aenqueue(n - 1)

    with World(app) as world:
        count_down.enqueue(3)
        world.run_for(0)
    assert done == [3, 2, 1, 0]


def test_many_are_enqueued_all_or_none(app: App) -> None:
    @app.job(unique=lambda n: f"number {n}", on_conflict="reject")
    def work(n: int) -> int:
        return n

    with World(app) as world:
        handles = app.enqueue_many(work.call(n) for n in range(100))
        with pytest.raises(Exception, match="unique key"):
            app.enqueue_many(work.call(n) for n in (200, 201, 5))
        world.run_for(0)
        assert [handle.result() for handle in handles] == list(range(100))
        assert sum(row.completed for row in app.stats()) == 100


# --- when


def test_a_delayed_job_runs_at_its_time_and_not_before(app: App, diary: Diary) -> None:
    @app.job()
    def work(name: str) -> None:
        diary.note(name)

    with World(app) as world:
        diary.begin(world)
        work.options(delay="90s").enqueue("delay")
        work.options(at=world.now + 30).enqueue("at")
        handle = work.options(delay="1h").enqueue("late")
        world.run_for(90)
        assert diary.rows == [(30.0, "at"), (90.0, "delay")]
        assert handle.state == "pending"
        assert handle.explain().reason == "not_due"
        assert handle.explain().opens_at == pytest.approx(world.now + 3510)


def test_a_delay_survives_a_restart(app: App, diary: Diary) -> None:
    @app.job()
    def work() -> None:
        diary.note()

    with World(app) as world:
        diary.begin(world)
        work.options(delay="1h").enqueue()
        for _ in range(3):
            world.run_for("10m")
            world.restart()
        world.run_for("1h")
    assert diary.times == [3600.0]


def test_a_job_that_waits_past_its_deadline_fails(app: App, diary: Diary) -> None:
    app.lane("narrow", limit=1)

    @app.job(lane="narrow")
    async def work() -> None:
        diary.note()
        await takes(60)

    with World(app) as world:
        diary.begin(world)
        first, second = work.enqueue(), work.options(within="30s").enqueue()
        world.run_for("5m")
        assert states([first, second]) == ["completed", "failed"]
        assert trail(second) == ["submit", "deadline"]
        with pytest.raises(JobFailed, match="deadline"):
            second.result()
    assert diary.times == [0.0]


def test_a_job_that_started_in_time_may_end_after_its_deadline(app: App) -> None:
    @app.job()
    async def work() -> str:
        await takes(60)
        return "done"

    with World(app) as world:
        handle = work.options(within="30s").enqueue()
        world.run_for("5m")
        assert handle.result() == "done"


def test_a_deadline_that_passed_while_no_engine_ran_is_kept(app: App, diary: Diary) -> None:
    @app.job()
    def work() -> None:
        diary.note()

    with World(app) as world:
        diary.begin(world)
        old = work.options(delay="5s", within="5s").enqueue()
        world.run_for(1)
        world.crash()
        new = work.options(within="10s").enqueue()
        world.run_for("1m")
        world.restart()
        world.run_for("1m")
        assert states([old, new]) == ["failed", "failed"]
        assert [row.error for row in (old.row(), new.row())] == ["its deadline is over"] * 2
    assert diary.times == []


def test_a_deadline_before_the_start_is_refused(app: App) -> None:
    @app.job()
    def work() -> None: ...

    with World(app), pytest.raises(BadJob, match="deadline"):
        work.options(delay="1h", deadline=app.now() + 60).enqueue()


# --- how it ends


def test_what_a_handler_raises_or_returns_decides_how_the_job_ends(app: App) -> None:
    @app.job()
    def work(what: str) -> object:
        match what:
            case "raise fail":
                raise Fail("never works")
            case "return fail":
                return Fail("never works")
            case "raise cancel":
                raise Cancel("not wanted")
            case "return cancel":
                return Cancel("not wanted")
        return what

    with World(app) as world:
        handles = [
            work.enqueue(what)
            for what in ("raise fail", "return fail", "raise cancel", "return cancel", "ok")
        ]
        world.run_for(0)
        assert states(handles) == ["failed", "failed", "cancelled", "cancelled", "completed"]
        errors = [handle.row().error for handle in handles]
        assert errors == ["never works", "never works", "not wanted", "not wanted", None]


def test_a_job_that_takes_too_long_is_stopped_and_tried_again(app: App, diary: Diary) -> None:
    @app.job(timeout="1m", retries=1, retry_delay="10s")
    async def work() -> None:
        diary.note("start")
        try:
            await takes(3600)
        finally:
            diary.note("end")

    with World(app) as world:
        diary.begin(world)
        handle = work.enqueue()
        world.run_for("1h")
        assert handle.state == "failed"
        assert "longer than 60 s" in str(handle.row().error)
    assert diary.rows == [(0.0, "start"), (60.0, "end"), (70.0, "start"), (130.0, "end")]


def test_a_result_that_is_no_json_fails_the_job_with_a_clear_error(app: App) -> None:
    @app.job()
    def work(what: str) -> object:
        return {"nan": float("nan"), "object": object(), "long": "x" * 2_000_000}[what]

    with World(app) as world:
        handles = [work.enqueue(what) for what in ("nan", "object", "long")]
        world.run_for(0)
        assert states(handles) == ["failed"] * 3
        errors = [str(handle.row().error) for handle in handles]
        assert "no number nan" in errors[0]
        assert "no JSON" in errors[1]
        assert "store it elsewhere" in errors[2]


# --- results


@pytest.mark.parametrize("value", [None, 0, "", [], {"a": [1, 2.5, None, "ü"]}])
def test_a_result_is_what_was_returned(app: App, value: object) -> None:
    @app.job()
    def work() -> object:
        return value

    with World(app) as world:
        handle = work.enqueue()
        world.run_for(0)
        assert handle.result() == value


def test_a_result_is_kept_for_the_time_asked_for_and_then_gone(app: App) -> None:
    @app.job(keep_result="1h")
    def work() -> int:
        return 7

    with World(app) as world:
        one, two = work.enqueue(), work.options(keep_result="10h").enqueue()
        world.run_for("59m")
        assert one.result() == 7
        world.run_for("2m")
        with pytest.raises(ResultExpired):
            one.result()
        app.purge()
        with pytest.raises(ResultExpired):
            one.result()
        assert two.result() == 7


def test_the_result_of_a_failed_job_is_its_error(app: App) -> None:
    @app.job(retries=0)
    def work() -> None:
        raise LookupError("nothing there")

    with World(app) as world:
        handle = work.enqueue()
        world.run_for(0)
        with pytest.raises(JobFailed, match="LookupError: nothing there") as caught:
            handle.result()
        assert (caught.value.job_id, caught.value.state) == (handle.id, "failed")


def test_a_job_that_never_was_is_named_so(app: App) -> None:
    with World(app), pytest.raises(UnknownJob, match="no job 99"):
        app.handle(99).row()


def test_outside_a_handler_there_is_no_job() -> None:
    with pytest.raises(RuntimeError, match="no job runs here"):
        _ = job.id
