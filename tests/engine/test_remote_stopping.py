"""Workers elsewhere are told to stop what they hold."""

from __future__ import annotations

import pytest

from headway import App
from headway.core import Outcome, RetryPolicy
from headway.engine.hands import RemoteStop, RemoteWork
from headway.engine.hands.remote import Beat
from headway.testing import World
from tests.engine.kit import check_trail
from tests.engine.workers import Worker, asking, brain_of, put


def left(worker: Worker, work: RemoteWork) -> tuple[float | None, str | None]:
    """The answer to a heartbeat, without what is lost in adding up seconds."""
    beat = worker.beat(work)
    return None if beat.lease_s is None else round(beat.lease_s, 3), beat.stop


@pytest.mark.parametrize("size", [0, 3])
@pytest.mark.parametrize("why", ["cancel", "pause"])
def test_a_waiting_request_of_the_worker_hears_at_once_what_to_stop(
    app: App, why: str, size: int
) -> None:
    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        worker, other = Worker(app), Worker(app, "w2")
        (work,) = worker.taken()
        other.take(size=0)
        worker.take(size=size)
        getattr(app, why)(handle.id)
        assert worker.stops == [RemoteStop(work.id, work.fence, why)]
        assert other.answers == 0
        for _ in range(3):
            assert worker.beat(work).stop == why, "until the job has ended"
        ended = worker.complete(work, Outcome.cancelled())
        assert ended == {"cancel": "cancelled", "pause": "paused"}[why]
        assert worker.beat(work) == Beat(None, "lost")
        check_trail(handle)


def test_a_request_that_comes_after_the_order_hears_of_it_too(app: App) -> None:
    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        worker = Worker(app)
        (work,) = worker.taken()
        app.cancel(handle.id)
        world.run_for(1)
        worker.take(size=5)
        assert worker.stops == [RemoteStop(work.id, work.fence, "cancel")]
        worker.take(size=5)
        assert len(worker.stops) == 1, "once in this way, then with every heartbeat"


def test_jobs_and_orders_to_stop_come_in_one_answer(app: App) -> None:
    with World(app) as world:
        first = put(app)
        world.run_for(1)
        worker = Worker(app)
        (work,) = worker.taken()
        app.cancel(first.id)
        second = put(app)
        world.run_for(1)
        answers = worker.answers
        worker.take()
        assert worker.answers == answers + 1
        assert [stop.id for stop in worker.stops] == [first.id]
        assert worker.works[-1].id == second.id
        assert work.id == first.id


def test_an_order_that_was_taken_back_is_not_delivered(app: App) -> None:
    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        worker = Worker(app)
        (work,) = worker.taken()
        app.pause(handle.id)
        app.resume(handle.id)
        worker.take(size=0)
        world.run_for(1)
        assert worker.stops == []
        assert worker.beat(work).stop is None


def test_an_order_that_a_heartbeat_has_answered_needs_no_request(app: App) -> None:
    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        worker = Worker(app)
        (work,) = worker.taken()
        app.cancel(handle.id)
        assert worker.beat(work).stop == "cancel"
        worker.take(size=0)
        world.run_for(1)
        assert worker.stops == []


def test_a_worker_without_a_name_hears_only_through_heartbeats(app: App) -> None:
    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        nameless, other = Worker(app, ""), Worker(app, "")
        (work,) = nameless.taken()
        other.take(size=0)
        app.cancel(handle.id)
        world.run_for(1)
        assert other.stops == []
        assert nameless.beat(work).stop == "cancel"


@pytest.mark.parametrize("why", ["cancel", "pause"])
def test_a_stop_that_nobody_answers_is_done_when_the_lease_ends(app: App, why: str) -> None:
    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        Worker(app).taken()
        getattr(app, why)(handle.id)
        world.run_for(80)
        assert handle.state == "running"
        world.run_for(11)
        assert handle.state == {"cancel": "cancelled", "pause": "paused"}[why]
        assert brain_of(app).remote.held == {}
        assert brain_of(app).remote.unheard == {}


def test_work_that_completes_although_it_was_to_stop_is_completed(app: App) -> None:
    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        worker = Worker(app)
        (work,) = worker.taken()
        app.cancel(handle.id)
        assert worker.complete(work, result="1") == "completed"
        assert handle.result() == 1


def test_what_takes_too_long_is_told_to_stop_and_then_loses_its_lease(app: App) -> None:
    with World(app) as world:
        asking(
            app, lambda remote, now: remote.hello("w1", {"resize": RetryPolicy(timeout_s=60)}, now)
        )
        handle = put(app)
        world.run_for(1)
        worker = Worker(app)
        (work,) = worker.taken()
        world.run_for(59)
        assert worker.beat(work) == Beat(90.0, None)
        world.run_for(1)
        assert worker.beat(work) == Beat(90.0, "timeout")
        world.run_for(29)
        assert worker.beat(work) == Beat(90.0, "timeout")
        world.run_for(1)
        assert left(worker, work) == (89.0, "timeout"), "not prolonged"
        world.run_for(60)
        assert left(worker, work) == (29.0, "timeout")
        world.run_for(30)
        assert worker.beat(work) == Beat(None, "lost")
        assert handle.state == "queued"


def test_cancel_is_stronger_than_timeout_and_timeout_than_pause(app: App) -> None:
    with World(app) as world:
        asking(
            app, lambda remote, now: remote.hello("w1", {"resize": RetryPolicy(timeout_s=10)}, now)
        )
        handle = put(app)
        world.run_for(1)
        worker = Worker(app)
        (work,) = worker.taken()
        world.run_for(11)
        app.pause(handle.id)
        assert worker.beat(work).stop == "timeout"
        app.cancel(handle.id)
        assert worker.beat(work).stop == "cancel"


def test_a_pushback_closes_the_upstream_for_everybody(app: App) -> None:
    with World(app) as world:
        first = put(app, upstreams='["api"]')
        second = put(app, upstreams='["api"]')
        world.run_for(1)
        worker = Worker(app)
        (work,) = worker.taken()
        assert worker.complete(work, Outcome.pushback(retry_after_s=30)) == "queued"
        assert worker.taken(size=2) == []
        world.run_for(31)
        assert {each.id for each in worker.taken(size=2)} == {first.id, second.id}
        assert [each.attempt for each in worker.works[1:]] == [1, 1]


def test_no_lease_outlives_the_hold_of_its_key(app: App) -> None:
    with World(app) as world:
        rules = {"resize": RetryPolicy(timeout_s=1e6)}
        asking(app, lambda remote, now: remote.hello("w1", rules, now))
        put(app, key="k")
        world.run_for(1)
        worker = Worker(app)
        (work,) = worker.taken()
        for _ in range(119):
            world.run_for(60)
            assert worker.beat(work).lease_s is not None
        world.run_for(50)
        assert left(worker, work) == (10.0, None)
        world.run_for(11)
        assert worker.beat(work).lease_s is None
