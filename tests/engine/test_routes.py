"""Names that stand for several upstreams."""

from __future__ import annotations

from headway import App, job
from headway.engine.brain import Brain
from headway.testing import World
from tests.engine.kit import takes

LARGE = "model:large"


def the_brain(app: App) -> Brain:
    assert app.engine is not None
    return app.engine.brain


def lead(app: App, *upstreams: str) -> None:
    assert app.engine is not None
    brain = the_brain(app)
    app.engine.ask(lambda now: brain.routes.lead(LARGE, upstreams, now, why="no channel serves it"))


def test_a_job_goes_to_whatever_its_name_leads_to(app: App) -> None:
    @app.job()
    async def where() -> str | None:
        return job.upstream

    app.upstream("one", limit=0)
    with World(app) as world:
        lead(app, "one", "two")
        handle = where.options(upstream=LARGE).enqueue()
        world.run_for(1)
        assert handle.result() == "two"


def test_where_nothing_serves_it_the_job_waits_and_is_told_why(app: App) -> None:
    @app.job()
    async def where() -> str | None:
        return job.upstream

    with World(app) as world:
        lead(app)
        handle = where.options(upstream=LARGE).enqueue()
        world.run_for(60)
        assert handle.state == "queued"
        assert handle.explain().detail == "no channel serves it"
        lead(app, "one")
        world.run_for(0)
        assert handle.result() == "one"


def test_jobs_move_over_when_it_leads_elsewhere(app: App) -> None:
    @app.job()
    async def where() -> str | None:
        return job.upstream

    app.upstream("shut", limit=0)
    with World(app) as world:
        lead(app, "shut")
        handles = [where.options(upstream=LARGE).enqueue() for _ in range(1_300)]
        world.run_for(1)
        assert {each.state for each in handles} == {"queued"}
        lead(app, "shut", "open")
        world.run_for(1)
        assert {each.result() for each in handles} == {"open"}


def test_what_is_stored_is_the_name_so_a_restart_looks_anew(app: App) -> None:
    @app.job()
    async def where() -> str | None:
        return job.upstream

    leads = {LARGE: ("one",)}
    app.preparing.append(lambda brain: brain.routes.begin(leads))
    app.upstream("one", limit=0)
    with World(app) as world:
        handle = where.options(upstream=LARGE).enqueue()
        world.run_for(1)
        assert handle.state == "queued"
        leads[LARGE] = ("two",)
        world.restart()
        world.run_for(0)
        assert handle.result() == "two"


def test_one_that_runs_stays_where_it_is(app: App) -> None:
    @app.job()
    async def where() -> str | None:
        await takes(10)
        return job.upstream

    with World(app) as world:
        lead(app, "one")
        handle = where.options(upstream=LARGE).enqueue()
        world.run_for(1)
        lead(app, "two")
        world.run_for(20)
        assert handle.result() == "one"


def test_a_name_may_begin_to_lead_somewhere_while_jobs_wait_at_it(app: App) -> None:
    @app.job()
    async def where() -> str | None:
        return job.upstream

    with World(app) as world:
        app.pause(f"upstream:{LARGE}")
        handles = [where.options(upstream=LARGE).enqueue() for _ in range(3)]
        world.run_for(1)
        assert {each.state for each in handles} == {"queued"}
        lead(app, "one")
        world.run_for(1)
        assert {each.result() for each in handles} == {"one"}
        lead(app, "two")
        later = where.options(upstream=LARGE).enqueue()
        world.run_for(1)
        assert later.result() == "two"


def test_a_name_that_leads_elsewhere_again_before_all_have_moved(app: App) -> None:
    @app.job()
    async def where() -> str | None:
        return job.upstream

    app.upstream("shut", limit=0)
    app.upstream("shut as well", limit=0)
    with World(app) as world:
        lead(app, "shut")
        handles = [where.options(upstream=LARGE).enqueue() for _ in range(1_300)]
        world.run_for(1)
        brain = the_brain(app)

        def twice(now: float) -> None:
            brain.routes.lead(LARGE, ("shut", "shut as well"), now)
            brain.routes.lead(LARGE, ("open",), now)

        assert app.engine is not None
        app.engine.ask(twice)
        world.run_for(1)
        assert {each.state for each in handles} == {"completed"}
        assert {each.result() for each in handles} == {"open"}


def test_after_a_restart_those_wait_whose_name_leads_nowhere(app: App) -> None:
    """Nobody says so any more; that is how such names begin."""

    @app.job()
    async def where() -> str | None:
        return job.upstream

    app.preparing.append(lambda brain: brain.routes.begin({}, model="nobody serves "))
    with World(app) as world:
        handle = where.options(upstream=LARGE).enqueue()
        for _ in range(2):
            world.run_for(60)
            assert handle.state == "queued"
            assert handle.explain().detail == "nobody serves large"
            world.restart()
        lead(app, "one")
        world.run_for(0)
        assert handle.result() == "one"
