"""What a job lets the brain do when it ends is committed with its end, or not at all."""

from __future__ import annotations

import pytest

from headway import App, Fail, Pushback, job
from headway.core import Outcome, State
from headway.core.change import Change
from headway.store.records import NewJob
from headway.testing import World
from tests.engine.kit import takes


def follow_up(app: App, note: str) -> None:
    """Have a job of this name stored with the end of the one that runs."""
    assert app.engine is not None
    brain = app.engine.brain
    args = f'{{"note":"{note}"}}'
    job.with_end(lambda now: brain.batch.jobs.append(NewJob("follow", args, created_at=now)))


@pytest.mark.parametrize("verdict", [None, Fail("no"), Pushback(retry_after=1)])
def test_it_happens_once_however_the_attempt_ends(app: App, verdict: Exception | None) -> None:
    ran: list[str] = []

    @app.job()
    async def work() -> None:
        if not ran:
            follow_up(app, "hello")
        ran.append("work")
        if verdict is not None and len(ran) == 1:
            raise verdict

    @app.job()
    async def follow(note: str) -> None:
        ran.append(note)

    with World(app) as world:
        work.enqueue()
        world.run_for(10)
        assert ran.count("hello") == 1


def test_a_crash_before_the_end_leaves_nothing_of_it(app: App) -> None:
    ran: list[str] = []

    @app.job(retries=5)
    async def work() -> None:
        follow_up(app, "hello")
        await takes(10)

    @app.job()
    async def follow(note: str) -> None:
        ran.append(note)

    with World(app) as world:
        handle = work.enqueue()
        world.run_for(5)
        world.restart()
        world.run_for(5)
        assert ran == []
        world.run_for(600)
        assert handle.state == "completed"
        assert ran == ["hello"]


def test_one_whose_lease_is_over_changes_nothing(app: App) -> None:
    ran: list[str] = []

    @app.job()
    async def work() -> None:
        follow_up(app, "hello")
        try:
            await takes(1000)
        finally:
            ran.append("stopped")

    @app.job()
    async def follow(note: str) -> None:
        ran.append(note)

    with World(app) as world:
        handle = work.enqueue()
        world.run_for(5)
        assert app.engine is not None
        core = app.engine.brain.core
        permit = core.tickets[handle.id].permit
        assert permit is not None
        core.finish(handle.id, permit.fence, Outcome.cancelled(), world.now)
        world.run_for(5)
        assert ran == ["stopped"]


def test_when_it_fails_the_job_fails(app: App) -> None:
    @app.job()
    async def work() -> None:
        def break_down(_now: float) -> None:
            raise KeyError("nothing there")

        job.with_end(break_down)

    with World(app) as world:
        handle = work.enqueue()
        world.run_for(1)
        assert handle.state == "failed"
        assert "nothing there" in str(handle.row().error)


def test_a_type_hears_of_every_end_of_its_jobs(app: App) -> None:
    heard: list[tuple[int | None, State]] = []

    @app.job()
    async def work(how: str) -> None:
        if how == "fail":
            raise Fail("no")
        await takes(5)

    def ended(batch: int | None, change: Change, _now: float) -> None:
        heard.append((batch, change.after))

    app.registry.types["work"].ended = ended
    with World(app) as world:
        batch = app.batch("some")
        well = work.options(batch=batch).enqueue("well")
        work.enqueue("fail")
        late = work.options(batch=batch, deadline=world.now + 3, delay=2).enqueue("well")
        gone = work.options(batch=batch, delay=100).enqueue("well")
        world.run_for(1)
        gone.cancel()
        world.restart()
        world.run_for(60)
        assert late.state == "completed" or late.state == "failed"
        assert well.state == "completed"
        assert sorted(heard, key=str) == sorted(
            [(None, State.FAILED), (batch.id, State.CANCELLED), (batch.id, State.COMPLETED),
             (batch.id, State(late.state))], key=str,
        )  # fmt: skip
