"""What operators do to single jobs, with an engine and without one."""

from __future__ import annotations

from typing import Any

import pytest

from headway import App, Fail, Job, job
from headway.core import IllegalTransition, Outcome, State
from headway.errors import EngineStopped, UnknownJob
from headway.testing import World
from tests.engine.kit import Diary, check_trail, states, takes, trail


def narrow_job(app: App, diary: Diary) -> Job[[str], None]:
    """One at a time, a minute each."""
    app.lane("narrow", limit=1)

    @app.job(lane="narrow")
    async def work(name: str) -> None:
        diary.note(name)
        await takes(60)

    return work


# --- cancel


def test_what_waits_is_cancelled_at_once_and_never_runs(app: App, diary: Diary) -> None:
    work = narrow_job(app, diary)
    with World(app) as world:
        diary.begin(world)
        work.enqueue("first")
        world.run_for(1)
        queued = work.enqueue("queued")
        pending = work.options(delay="1h").enqueue("pending")
        just_stored = work.enqueue("just stored")
        assert [app.cancel(each.id) for each in (queued, pending, just_stored)] == ["cancelled"] * 3
        world.run_for("2h")
        assert trail(queued) == ["submit", "cancel"]
    assert diary.names == ["first"]


def test_what_runs_is_stopped_first_and_then_cancelled(app: App, diary: Diary) -> None:
    @app.job()
    async def work() -> None:
        diary.note("start")
        try:
            await takes(600)
        finally:
            await takes(3)
            diary.note("cleaned up")

    with World(app) as world:
        diary.begin(world)
        handle = work.enqueue()
        world.run_for(10)
        assert handle.cancel() == "running"
        world.run_for(2)
        assert handle.state == "running"
        world.run_for("1m")
        assert handle.state == "cancelled"
        assert trail(handle) == ["submit", "grant", "cancel_requested", "cancel"]
    assert diary.rows == [(0.0, "start"), (13.0, "cleaned up")]


def test_work_that_completes_although_it_was_to_be_cancelled_is_completed(app: App) -> None:
    @app.job()
    async def work() -> str:
        try:
            await takes(60)
        except BaseException:
            return "done all the same"
        return "done"

    with World(app) as world:
        handle = work.enqueue()
        world.run_for(10)
        handle.cancel()
        world.run_for(1)
        assert handle.result() == "done all the same"


def test_a_cancelled_job_stays_cancelled_when_the_engine_is_lost(app: App, diary: Diary) -> None:
    @app.job()
    async def work() -> None:
        diary.note()
        try:
            await takes(60)
        finally:
            await takes(60)

    with World(app) as world:
        diary.begin(world)
        handle = work.enqueue()
        world.run_for(10)
        handle.cancel()
        world.restart()
        world.run_for("1h")
        assert handle.state == "cancelled"
    assert diary.times == [0.0]


@pytest.mark.parametrize("kind", ["async", "plain"])
def test_a_job_that_is_cancelled_before_its_first_step_ends_too(app: App, kind: str) -> None:
    """A task that is cancelled so early runs nothing at all; somebody must say that it is over."""
    app.lane("narrow", limit=1)

    async def in_a_task() -> None:
        await takes(60)

    def in_a_thread() -> None: ...

    work = app.job(type="work", lane="narrow")(in_a_task if kind == "async" else in_a_thread)
    with World(app) as world:
        handle, following = work.enqueue(), work.enqueue()
        assert app.pin(handle.id)  # a turn of the engine: the job is granted, but has not begun
        app.cancel(handle.id)
        world.run_for("2m")
        assert states([handle, following]) == ["cancelled", "completed"]


# --- pause


def test_a_paused_job_waits_for_its_resume_over_a_restart(app: App, diary: Diary) -> None:
    work = narrow_job(app, diary)
    with World(app) as world:
        diary.begin(world)
        handle = work.options(delay="1m").enqueue("a")
        assert app.pause(handle.id) == "paused"
        world.run_for("1h")
        world.restart()
        world.run_for("1h")
        assert handle.state == "paused"
        assert app.resume(handle.id) in ("pending", "queued")
        world.run_for("1m")
        assert trail(handle) == ["submit", "pause", "resume", "grant", "ok"]
    assert diary.times == [7200.0]


def test_a_running_job_pauses_at_its_next_checkpoint_and_goes_on_from_there(
    app: App, diary: Diary
) -> None:
    @app.job()
    async def work() -> str:
        for n in range(job.saved or 0, 5):
            diary.note(n)
            await takes(10)
            job.checkpoint(n + 1)
        return f"attempt {job.attempt}"

    with World(app) as world:
        diary.begin(world)
        handle = work.enqueue()
        world.run_for(15)
        assert app.pause(handle.id) == "running"
        world.run_for("1h")
        assert handle.state == "paused"
        app.resume(handle.id)
        world.run_for("1h")
        assert handle.result() == "attempt 1", "no attempt was burnt"
        check_trail(handle)
    assert diary.names == [0, 1, 2, 3, 4]


def test_a_pause_that_is_taken_back_in_time_does_no_harm(app: App) -> None:
    @app.job()
    async def work() -> int:
        for n in range(5):
            await takes(10)
            job.progress(n)
        return job.attempt

    with World(app) as world:
        handle = work.enqueue()
        world.run_for(15)
        app.pause(handle.id)
        app.resume(handle.id)
        world.run_for("10m")
        assert handle.result() == 1
        check_trail(handle)


# --- order


def test_a_pin_goes_before_everybody_and_survives_a_restart(app: App, diary: Diary) -> None:
    work = narrow_job(app, diary)
    with World(app) as world:
        diary.begin(world)
        handles = {name: work.options(priority=5).enqueue(name) for name in "abcd"}
        urgent = work.options(priority=1).enqueue("urgent")
        world.run_for(1)
        assert urgent.state == "running" or handles["a"].state == "running"
        app.pin(handles["c"].id)
        app.pin(handles["d"].id)
        world.restart()
        world.run_for("10m")
    rest = [name for name in dict.fromkeys(diary.names) if name not in ("a", "urgent")]
    assert rest == ["d", "c", "b"]


def test_a_pin_that_was_taken_off_stays_off_after_a_restart(app: App, diary: Diary) -> None:
    work = narrow_job(app, diary)
    with World(app) as world:
        diary.begin(world)
        handles = {name: work.enqueue(name) for name in "abcd"}
        world.run_for(1)
        for name in "cd":
            app.pin(handles[name].id)
        app.unpin(handles["d"].id)
        app.unpin(handles["b"].id)  # which never had one
        assert [handles[name].row().pin is not None for name in "bcd"] == [False, True, False]
        assert trail(handles["d"])[-2:] == ["pin", "unpin"]
        assert "unpin" not in trail(handles["b"])
        world.restart()
        world.run_for("10m")
    assert list(dict.fromkeys(diary.names))[1:] == ["c", "b", "d"]


def test_another_priority_is_another_place_in_line(app: App, diary: Diary) -> None:
    work = narrow_job(app, diary)
    with World(app) as world:
        diary.begin(world)
        handles = {name: work.enqueue(name) for name in "abcd"}
        world.run_for(1)
        app.prioritise(handles["d"].id, 1)
        app.prioritise(handles["b"].id, 9)
        world.run_for("10m")
        assert handles["d"].row().priority == 1
    assert diary.names == ["a", "d", "c", "b"]


def test_a_job_that_is_not_running_can_be_given_another_time(app: App, diary: Diary) -> None:
    work = narrow_job(app, diary)
    with World(app) as world:
        diary.begin(world)
        start = world.now
        running = work.enqueue("running")
        world.run_for(1)
        later, sooner = work.enqueue("later"), work.options(delay="1d").enqueue("sooner")
        app.reschedule(later.id, start + 7200)
        app.reschedule(sooner.id, start + 3600)
        with pytest.raises(IllegalTransition):
            app.reschedule(running.id, start + 60)
        world.restart()
        world.run_for("3h")
        check_trail(later)
    assert diary.rows[-2:] == [(3600.0, "sooner"), (7200.0, "later")]


@pytest.mark.parametrize(
    ("verb", "value"),
    [
        ("prioritise", 2.5),
        ("prioritise", "high"),
        ("prioritise", 10**12),
        ("reschedule", float("inf")),
        ("reschedule", float("-inf")),
        ("reschedule", float("nan")),
    ],
)
@pytest.mark.parametrize("running", [True, False])
def test_nonsense_is_refused_and_stops_no_engine(
    app: App, diary: Diary, verb: str, value: Any, running: bool
) -> None:
    work = narrow_job(app, diary)
    with World(app) as world:
        diary.begin(world)
        handle = work.options(delay="1m").enqueue("a")
        world.run_for(1)
        if running:
            with pytest.raises((ValueError, TypeError)):
                getattr(app, verb)(handle.id, value)
        else:
            world.crash()
            getattr(app, verb)(handle.id, value)
            world.restart()
            world.run_for(0)
            (refused,) = [
                each for each in app.store.events(0, 99) if each.event == "command_refused"
            ]
            assert refused.subject == f"{verb} {handle.id}"
        world.run_for("5m")
        assert handle.state == "completed"


# --- retry


def test_a_failed_job_gets_a_new_round_of_attempts(app: App, diary: Diary) -> None:
    @app.job(retries=1, retry_delay="10s")
    def work() -> str:
        diary.note(job.attempt)
        if len(diary.rows) < 4:
            raise LookupError
        return "at last"

    with World(app) as world:
        diary.begin(world)
        handle = work.enqueue()
        world.run_for("1m")
        assert (handle.state, handle.row().finished_at is None) == ("failed", False)
        app.pause("all")
        assert app.retry(handle.id) in ("pending", "queued")
        assert (handle.row().error, handle.row().finished_at) == (None, None)
        world.restart()
        app.resume("all")
        world.run_for("1m")
        assert handle.result() == "at last"
        check_trail(handle)
    assert diary.names == [1, 2, 1, 2]


def test_a_cancelled_job_can_be_retried_and_a_completed_one_cannot(app: App, diary: Diary) -> None:
    work = narrow_job(app, diary)
    with World(app) as world:
        diary.begin(world)
        done, cancelled = work.enqueue("done"), work.enqueue("cancelled")
        cancelled.cancel()
        world.run_for("5m")
        with pytest.raises(IllegalTransition, match="completed job cannot"):
            app.retry(done.id)
        app.retry(cancelled.id)
        with pytest.raises(IllegalTransition):
            app.retry(cancelled.id)
        world.run_for("5m")
        assert cancelled.state == "completed"


@pytest.mark.parametrize("verb", ["cancel", "pause", "resume", "pin", "unpin", "retry"])
def test_a_job_that_never_was_is_named_so(app: App, verb: str) -> None:
    with World(app) as world:
        for running in (True, False):
            if not running:
                world.crash()
            with pytest.raises(UnknownJob, match="no job 77"):
                getattr(app, verb)(77)


@pytest.mark.parametrize("verb", ["cancel", "pause", "resume", "pin", "unpin"])
def test_what_has_ended_is_final(app: App, verb: str) -> None:
    @app.job()
    def work() -> None:
        raise Fail("for good")

    with World(app) as world:
        handle = work.enqueue()
        world.run_for(0)
        before = handle.row()
        for running in (True, False):
            if not running:
                world.crash()
            with pytest.raises(IllegalTransition, match="failed job"):
                getattr(app, verb)(handle.id)
        assert handle.row() == before


# --- without an engine


def test_orders_without_an_engine_are_kept_and_obeyed_when_one_starts(
    app: App, diary: Diary
) -> None:
    work = narrow_job(app, diary)
    with World(app) as world:
        diary.begin(world)
        a, b, c, d = (work.options(delay="1m").enqueue(name) for name in "abcd")
        failed = work.options(within="1s", delay="10h").enqueue("failed")
        app.cancel(failed.id)
        world.run_for(1)
        world.crash()
        app.cancel(a.id)
        app.pause(b.id)
        app.prioritise(d.id, 1)
        app.retry(failed.id)
        app.reschedule(c.id, world.now + 3600)
        app.set("lane:narrow", limit=2)
        app.pause("lane:default")
        app.schedule("s", work.call("tick"), "30m")
        assert states([a, b, c, d]) == ["pending"] * 4, "nothing happens before there is an engine"
        world.restart()
        world.run_for("20m")
        assert states([a, b, c, d]) == ["cancelled", "paused", "pending", "completed"]
        assert (d.row().priority, failed.state) == (1, "completed")
        assert [row["value"] for row in app.settings.shown() if row["name"] == "narrow"] == [
            {"limit": 2}
        ]
        assert [each.name for each in app.schedules()] == ["s"]
        assert app.store.commands(99) == [], "an order is obeyed once"


def test_an_order_that_came_too_late_is_refused_and_says_so(app: App, diary: Diary) -> None:
    work = narrow_job(app, diary)
    with World(app) as world:
        handle = work.options(delay=1).enqueue("a")
        diary.begin(world)
        world.crash()
        for _ in range(2):
            app.cancel(handle.id)  # the second finds it cancelled
        app.store.command("dance", "all night", None, world.now)
        app.store.command("gate", "lane:x", {"do": "explode"}, world.now)
        app.store.command("set", "lane:x", {"limit": "four"}, world.now)
        app.store.command("schedule", "s", {"name": 5}, world.now)
        app.store.command("cancel", "not a number", None, world.now)
        world.restart()
        world.run_for("5m")
        refused = [each for each in app.store.events(0, 99) if each.event == "command_refused"]
        assert [each.subject for each in refused] == [
            f"cancel {handle.id}",
            "dance all night",
            "gate lane:x",
            "set lane:x",
            "schedule s",
            "cancel not a number",
        ]
        assert all(each.detail for each in refused)
        assert handle.state == "cancelled"


def test_what_needs_an_engine_says_so(app: App, diary: Diary) -> None:
    work = narrow_job(app, diary)
    with World(app) as world:
        handle = work.enqueue("a")
        world.crash()
        with pytest.raises(EngineStopped, match="no engine"):
            handle.explain()
        with pytest.raises(EngineStopped, match="slot needs an engine"):
            app.slot("x")


def test_a_cancel_in_the_turn_that_ends_the_job_is_too_late_and_hears_so(app: App) -> None:
    @app.job()
    async def work() -> None:
        await takes(10)

    with World(app) as world:
        handle = work.enqueue()
        world.run_for(1)
        assert app.engine is not None
        brain = app.engine.brain
        permit = brain.core.tickets[handle.id].permit
        assert permit is not None
        brain.finished(handle.id, permit.fence, Outcome.ok(), None)
        with pytest.raises(IllegalTransition) as refusal:
            app.cancel(handle.id)  # in one turn with that end
        assert refusal.value.state is State.COMPLETED
