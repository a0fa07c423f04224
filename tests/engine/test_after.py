"""Jobs that follow other jobs (`after=`), and batches that are counted together."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import App, Job, job
from headway.errors import UnknownJob
from headway.testing import World
from tests.engine.kit import Diary, check_trail, states, takes, trail
from tests.stores import second_store_in_the_soak


def timed_job(app: App, diary: Diary) -> Job[[str, float], None]:
    """`work("name", seconds)`; a negative number of seconds fails."""

    @app.job(retries=0)
    async def work(name: str, seconds: float) -> None:
        diary.note(name)
        await takes(abs(seconds))
        if seconds < 0:
            raise LookupError(name)

    return work


def test_a_follower_starts_the_moment_its_blocker_completes(app: App, diary: Diary) -> None:
    work = timed_job(app, diary)
    with World(app) as world:
        diary.begin(world)
        first = work.enqueue("first", 10)
        second = work.options(after=first).enqueue("second", 10)
        work.options(after=second).enqueue("third", 10)
        world.run_for("5m")
    assert diary.rows == [(0.0, "first"), (10.0, "second"), (20.0, "third")]


def test_a_follower_of_several_waits_for_all_of_them(app: App, diary: Diary) -> None:
    work = timed_job(app, diary)
    with World(app) as world:
        diary.begin(world)
        several = [work.enqueue(str(seconds), seconds) for seconds in (5, 90, 30)]
        last = work.options(after=several).enqueue("last", 1)
        world.run_for(40)
        why = last.explain()
        assert (last.state, why.reason) == ("pending", "after")
        assert why.detail == f"jobs {several[1].id}"
        world.run_for("5m")
        check_trail(last)
    assert diary.rows[-1] == (90.0, "last")


@pytest.mark.parametrize("restarts", [1, 3])
def test_waiting_for_others_survives_restarts(app: App, diary: Diary, restarts: int) -> None:
    """One of the two is completed before the engine goes: it must not be waited for again."""
    work = timed_job(app, diary)
    with World(app) as world:
        diary.begin(world)
        quick = work.enqueue("quick", 1)
        slow = work.options(delay="1h").enqueue("slow", 1)
        last = work.options(after=[quick, slow]).enqueue("last", 1)
        for _ in range(restarts):
            world.run_for("10m")
            world.restart()
            world.run_for(0)
            assert last.explain().detail == f"jobs {slow.id}"
        world.run_for("2h")
        assert last.state == "completed"
        check_trail(last)
    assert diary.rows == [(0.0, "quick"), (3600.0, "slow"), (3601.0, "last")]


@pytest.mark.parametrize("how", ["failed", "cancelled"])
def test_a_blocker_that_does_not_complete_cancels_all_that_follow(
    app: App, diary: Diary, how: str
) -> None:
    work = timed_job(app, diary)
    with World(app) as world:
        diary.begin(world)
        first = work.options(delay=10).enqueue("first", -1)
        second = work.options(after=first).enqueue("second", 1)
        third = work.options(after=second).enqueue("third", 1)
        world.run_for(1)
        if how == "cancelled":
            app.cancel(first.id)
        world.run_for("1m")
        assert states([first, second, third]) == [how, "cancelled", "cancelled"]
        assert second.row().error == f"job {first.id}, which it was to follow, {how}"
        assert third.row().error == f"job {second.id}, which it was to follow, cancelled"
        assert trail(second) == ["submit", "cancel"]


@pytest.mark.parametrize(
    ("seconds", "state"), [(1, "completed"), (-1, "cancelled")], ids=["completed", "failed"]
)
def test_a_blocker_may_have_ended_long_ago(
    app: App, diary: Diary, seconds: int, state: str
) -> None:
    work = timed_job(app, diary)
    with World(app) as world:
        diary.begin(world)
        first = work.enqueue("first", seconds)
        world.run_for("1h")
        second = work.options(after=first).enqueue("second", 1)
        world.run_for(5)
        assert second.state == state
        check_trail(second)


@pytest.mark.parametrize("number", [0, -5, 1, 77, 10**9])
def test_a_blocker_that_never_was_cancels_the_follower(app: App, diary: Diary, number: int) -> None:
    work = timed_job(app, diary)
    with World(app) as world:
        diary.begin(world)
        second = work.options(after=number).enqueue("second", 1)
        world.run_for(1)
        assert second.state == "cancelled"
        assert second.row().error == f"job {number}, which it was to follow, is not there"


@pytest.mark.parametrize("fails", [False, True])
def test_a_job_may_enqueue_its_own_follower_as_its_last_word(app: App, fails: bool) -> None:
    """The end of the one and the arrival of the other meet in one turn of the engine."""
    followers = []

    @app.job()
    def follow() -> str:
        return "followed"

    @app.job(retries=0)
    def lead() -> None:
        followers.append(follow.options(after=job.id).enqueue())
        if fails:
            raise LookupError

    with World(app) as world:
        lead.enqueue()
        world.run_for(5)
        (follower,) = followers
        assert follower.state == ("cancelled" if fails else "completed")
        if fails:
            assert str(follower.row().error).endswith("which it was to follow, failed")


def test_a_follower_has_a_time_of_its_own_too(app: App, diary: Diary) -> None:
    work = timed_job(app, diary)
    with World(app) as world:
        diary.begin(world)
        first = work.enqueue("first", 10)
        work.options(after=first, delay="1h").enqueue("late", 1)
        work.options(after=first, delay="1s").enqueue("soon", 1)
        world.run_for("2h")
    assert diary.rows == [(0.0, "first"), (10.0, "soon"), (3600.0, "late")]


def test_another_time_does_not_free_a_follower(app: App, diary: Diary) -> None:
    work = timed_job(app, diary)
    with World(app) as world:
        diary.begin(world)
        first = work.enqueue("first", 100)
        second = work.options(after=first).enqueue("second", 1)
        world.run_for(1)
        app.reschedule(second.id, world.now)
        world.run_for(1)
        assert second.state == "pending"
        app.reschedule(second.id, world.now + 600)
        world.restart()
        world.run_for("1h")
    assert diary.rows[-1] == (602.0, "second")


def test_a_paused_follower_stays_paused_when_it_is_free(app: App, diary: Diary) -> None:
    work = timed_job(app, diary)
    with World(app) as world:
        diary.begin(world)
        first = work.enqueue("first", 10)
        second = work.options(after=first).enqueue("second", 1)
        world.run_for(1)
        app.pause(second.id)
        world.run_for("1m")
        assert second.state == "paused"
        app.resume(second.id)
        world.run_for(0)
        assert second.state == "running"


def test_a_follower_that_was_cancelled_with_its_blocker_can_be_retried(
    app: App, diary: Diary
) -> None:
    work = timed_job(app, diary)
    with World(app) as world:
        diary.begin(world)
        first = work.enqueue("first", -1)
        second = work.options(after=first).enqueue("second", 1)
        third = work.options(after=10**6).enqueue("third", 1)
        world.run_for("1m")
        app.pause("lane:default")
        app.retry(second.id)
        app.retry(third.id)
        world.restart()
        app.resume("lane:default")
        world.run_for("1m")
        assert states([second, third]) == ["completed", "completed"]


@second_store_in_the_soak
@settings(max_examples=40)
@given(st.data())
def test_any_graph_runs_in_order_whatever_crashes(data: st.DataObject) -> None:
    app, ended = App(), set()

    @app.job(retries=0)
    async def work(n: int, after: list[int], fails: bool, seconds: float) -> None:
        assert set(after) <= ended
        await takes(seconds)
        if fails:
            raise LookupError
        ended.add(n)

    with World(app) as world:
        handles = []
        for n in range(data.draw(st.integers(1, 8))):
            after = data.draw(st.lists(st.integers(0, n - 1), max_size=3)) if n else []
            call = work.options(after=[handles[each] for each in after])
            fails = data.draw(st.integers(0, 5)) == 0
            handles.append(call.enqueue(n, after, fails, data.draw(st.integers(0, 50))))
            world.run_for(data.draw(st.integers(0, 60)))
            if data.draw(st.integers(0, 4)) == 0:
                world.restart()
        world.run_for("1h")
        for handle in handles:
            assert handle.state in ("completed", "failed", "cancelled")
            check_trail(handle)


# --- batches


def test_a_batch_counts_its_jobs_and_a_failure_stays_one_failure(app: App, diary: Diary) -> None:
    work = timed_job(app, diary)
    with World(app) as world:
        diary.begin(world)
        batch = app.batch("nightly")
        assert (batch.total, batch.done) == (0, True)
        handles = [
            work.options(batch=batch).enqueue(str(n), -1 if n % 5 == 0 else 1) for n in range(20)
        ]
        work.enqueue("not in it", 1)
        assert (batch.counts(), batch.done) == ({"queued": 20}, False)
        app.cancel(handles[1].id)
        world.restart()
        world.run_for("1m")
        assert batch.counts() == {"completed": 15, "failed": 4, "cancelled": 1}
        assert (batch.total, batch.done) == (20, True)


def test_a_batch_that_never_was_is_named_so(app: App) -> None:
    from headway import Batch  # noqa: PLC0415

    with World(app), pytest.raises(UnknownJob, match="no batch 9"):
        Batch(app, 9).counts()
