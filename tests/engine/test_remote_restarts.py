"""Jobs that workers elsewhere hold, over restarts and at the end of an engine."""

from __future__ import annotations

import pytest

from headway import App
from headway.core import Outcome
from headway.engine.engine import Engine
from headway.engine.hands.remote import Beat, Taker
from headway.errors import EngineStopped
from headway.testing import World
from tests.engine.kit import check_no_gaps, check_trail, takes, trail
from tests.engine.workers import Worker, brain_of, put


def test_a_worker_keeps_its_job_over_a_restart(app: App) -> None:
    app.upstream("api", limit=1)
    with World(app) as world:
        handle = put(app, upstreams='["api"]')
        other = put(app, upstreams='["api"]')
        world.run_for(1)
        worker = Worker(app)
        (work,) = worker.taken()
        world.run_for(80)
        world.restart()
        assert handle.state == "running"
        assert worker.taken(size=5) == [], "its place is taken, and nobody else gets its job"
        world.run_for(80)
        assert worker.beat(work, progress=(1, 2, "")) == Beat(90.0, None)
        world.run_for(80)
        assert worker.complete(work, result="5") == "completed"
        assert handle.result() == 5
        assert trail(handle) == ["submit", "grant", "ok"]
        assert [each.id for each in worker.taken(size=5)] == [other.id]
        check_trail(handle)
        check_no_gaps(app)


def test_a_worker_that_does_not_come_back_loses_its_job(app: App) -> None:
    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        worker = Worker(app)
        (work,) = worker.taken()
        world.run_for(50)
        world.restart()
        world.run_for(89)
        assert handle.state == "running"
        world.run_for(2)
        assert handle.state == "queued"
        (again,) = Worker(app, "w2").taken()
        assert again.fence > work.fence
        assert again.attempt == 2
        assert worker.beat(work) == Beat(None, "lost")
        assert worker.complete(work) is None
        assert handle.state == "running"


@pytest.mark.parametrize("why", ["cancel", "pause"])
def test_what_was_asked_before_a_restart_is_remembered(app: App, why: str) -> None:
    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        worker = Worker(app)
        (work,) = worker.taken()
        getattr(app, why)(handle.id)
        world.restart()
        assert worker.beat(work).stop == why
        assert worker.beat(work).stop == why
        ended = worker.complete(work, Outcome.cancelled())
        assert ended == {"cancel": "cancelled", "pause": "paused"}[why]


def test_after_a_restart_orders_find_the_worker_once_it_has_spoken(app: App) -> None:
    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        worker = Worker(app)
        (work,) = worker.taken()
        world.restart()
        worker.beat(work)
        worker.take(size=0)
        app.cancel(handle.id)
        assert [stop.why for stop in worker.stops] == ["cancel"]


def test_what_was_cancelled_ends_with_its_lease_after_a_restart(app: App) -> None:
    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        Worker(app).taken()
        app.cancel(handle.id)
        world.restart()
        world.run_for(91)
        assert handle.state == "cancelled"


def test_a_worker_may_hold_what_the_server_knows_nothing_of(app: App) -> None:
    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        worker = Worker(app)
        (work,) = worker.taken()
        worker.complete(work)
        world.restart()
        assert worker.beat(work) == Beat(None, "lost")
        assert worker.complete(work, Outcome.failed("late")) is None
        assert handle.state == "completed"


def test_what_ran_here_is_lost_with_the_engine_and_what_runs_elsewhere_is_not(app: App) -> None:
    @app.job()
    async def local() -> None:
        await takes(1_000)

    with World(app) as world:
        here, there = local.enqueue(), put(app)
        world.run_for(1)
        Worker(app).taken()
        world.restart()
        world.run_for(1)
        assert "lost" in trail(here)
        assert trail(there) == ["submit", "grant"]


def test_a_type_that_this_process_can_run_now_is_taken_back(url: str) -> None:
    older, newer = App(url), App(url)

    @newer.job(type="resize")
    async def resize() -> str:
        return "here"

    with World(older, keep_store=True) as world:
        handle = put(older)
        world.run_for(1)
        (work,) = Worker(older).taken()
        later = world.now
    with World(newer, keep_store=True, at=later) as world:
        world.run_for("2m")
        assert newer.handle(handle.id).result() == "here"
        assert Worker(newer).beat(work).lease_s is None


def test_many_restarts_in_mid_flight_lose_nothing_and_run_nothing_twice(app: App) -> None:
    with World(app) as world:
        handles = [put(app, key=f"k{n % 3}") for n in range(12)]
        worker = Worker(app)
        done: list[int] = []
        for round in range(40):
            world.run_for(1)
            worker.taken(size=2)
            if round % 3 == 0:
                world.restart()
            live = [work for work in worker.works if worker.beat(work).lease_s is not None]
            assert len({work.key for work in live}) == len(live), "a key is held once"
            if live:
                assert worker.complete(live[0]) == "completed"
                done.append(live[0].id)
        assert sorted(done) == [handle.id for handle in handles]
        for handle in handles:
            check_trail(handle)
        check_no_gaps(app)


# --- the end of an engine


def test_an_engine_that_stops_keeps_nobody_waiting_and_takes_nothing_back(
    url: str,
) -> None:
    app = App(url)
    with app.running():
        assert isinstance(app.engine, Engine)
        engine = app.engine
        worker = Worker(app)
        handle = put(app)
        asked = Taker("w1", ["resize"], 1, worker.hear)
        engine.ask(lambda now: engine.brain.remote.take(asked, now)).result(10)
        # It may have been taken in after that; then the job follows with the next turn.
        while not worker.works:
            engine.ask(lambda _now: None).result(10)
        idle = Taker("w1", ["resize"], 1, worker.hear)
        engine.ask(lambda now: engine.brain.remote.take(idle, now)).result(10)
    assert worker.answers == 2, "the second heard that there is no more"
    assert handle.row().state == "running"
    with app.running():
        assert app.engine is not None
        assert worker.complete(worker.works[0], result="3") == "completed"
    assert handle.result() == 3
    app.close()


def test_a_request_that_comes_while_the_engine_stops_is_answered_at_once(app: App) -> None:
    with World(app) as world:
        put(app)
        world.run_for(1)
        worker, brain = Worker(app), brain_of(app)
        worker.take("z")
        brain.granting = False
        worker.take()
        assert (worker.answers, worker.works) == (2, [])


def test_an_engine_that_breaks_keeps_nobody_waiting(app: App) -> None:
    with World(app):
        worker = Worker(app)
        worker.take()
        brain_of(app).abandon(EngineStopped("it has broken"))
        assert worker.answers == 1
        brain_of(app).abandon(EngineStopped("it has broken"))
        assert worker.answers == 1


# --- how many jobs each tenant has


def test_open_jobs_are_counted_by_tenant(app: App) -> None:
    @app.job(type="local", retries=0)
    async def local() -> None: ...

    with World(app) as world:
        ann = [put(app, tenant="ann") for _ in range(3)]
        put(app, tenant="bob")
        local.options(tenant="cid").enqueue()
        world.run_for(1)
        assert brain_of(app).open_by_tenant == {"ann": 3, "bob": 1}
        app.cancel(ann[0].id)
        assert brain_of(app).open_by_tenant == {"ann": 2, "bob": 1}
        (work,) = Worker(app).taken()
        world.restart()
        assert brain_of(app).open_by_tenant == {"ann": 2, "bob": 1}
        Worker(app).complete(work)
        assert sum(brain_of(app).open_by_tenant.values()) == 2
        app.retry(ann[0].id)
        assert sum(brain_of(app).open_by_tenant.values()) == 3
        with app.slot("api", tenant="dan"):
            assert "dan" not in brain_of(app).open_by_tenant
