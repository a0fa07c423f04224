"""Why a job that this process cannot run itself waits."""

from __future__ import annotations

import msgspec
import pytest

from headway import App
from headway.core import RetryPolicy
from headway.testing import World
from tests.engine.workers import Worker, asking, brain_of, put

UNKNOWN = ("closed", "type:resize", "no worker knows this type")
BUSY = ("busy", "type:resize", "its workers are busy")


def why(app: App, job: int) -> tuple[str, str, str]:
    said = app.explain(job)
    return said.reason, said.gate, said.detail


def greet(app: App) -> None:
    asking(app, lambda remote, now: remote.hello("w1", {"resize": RetryPolicy()}, now))


@pytest.mark.parametrize("how", ["hello", "take", "size 0"])
def test_a_type_is_known_for_a_while_after_a_worker_has_named_it(app: App, how: str) -> None:
    with World(app) as world:
        first = put(app)
        world.run_for(1)
        assert why(app, first.id) == UNKNOWN
        since = app.explain(first.id).since
        assert since == first.row().since
        worker = Worker(app)
        if how == "hello":
            greet(app)
            asked = 1
        elif how == "take":
            worker.taken()
            asked = 0
        else:
            worker.leave(worker.take(size=0))
            asked = 1
        waiting = first if asked else put(app)
        world.run_for(89)
        if how == "take":
            assert worker.beat(worker.works[0]).lease_s is not None
            world.run_for(89)
        assert why(app, waiting.id) == BUSY
        world.run_for(2)
        assert why(app, waiting.id) == UNKNOWN
        greet(app)
        assert why(app, waiting.id) == BUSY


def test_a_type_is_known_as_long_as_a_request_for_it_waits(app: App) -> None:
    with World(app) as world:
        worker = Worker(app)
        waiting = worker.take(("resize",), size=0)
        handle = put(app)
        for _ in range(20):
            world.run_for(60)
            assert why(app, handle.id) == BUSY
        worker.leave(waiting)
        world.run_for(91)
        assert why(app, handle.id) == UNKNOWN


def test_what_else_is_closed_is_said_first(app: App) -> None:
    with World(app) as world:
        handle = put(app, upstreams='["api"]')
        greet(app)
        world.run_for(1)
        app.close_until("upstream:api", world.now + 600, "nobody home")
        assert why(app, handle.id) == ("closed", "upstream:api", "nobody home")


def test_an_operators_word_on_a_type_outlives_the_coming_and_going_of_workers(app: App) -> None:
    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        app.pause("type:resize")
        worker = Worker(app)
        assert worker.taken() == []
        assert why(app, handle.id)[0] == "paused"
        world.restart()
        assert worker.taken() == []
        assert why(app, handle.id)[0] == "paused"
        world.run_for("5m")
        app.resume("type:resize")
        assert why(app, handle.id) == UNKNOWN
        app.close_until("type:resize", world.now + 600, "for lunch")
        assert worker.taken() == []
        assert why(app, handle.id) == ("closed", "type:resize", "for lunch")
        world.run_for("11m")
        assert [work.id for work in worker.taken()] == [handle.id]


@pytest.mark.parametrize("paused", [False, True])
def test_what_an_older_version_has_stored_of_an_unknown_type_does_not_count(
    app: App, paused: bool
) -> None:
    door = {"until": 9e10, "since": 1.0, "why": "no worker knows this type"}
    if paused:
        door["paused"] = True
    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        state = msgspec.json.encode({"door": door}).decode()
        brain_of(app).batch.gates.append(("type", "resize", "", state))
        world.run_for(61)
        world.restart()
        worker = Worker(app)
        assert [work.id for work in worker.taken()] == ([] if paused else [handle.id])
        if paused:
            assert why(app, handle.id)[0] == "paused"
            app.resume("type:resize")
            assert [work.id for work in worker.taken()] == [handle.id]


def test_the_gates_of_types_that_nobody_speaks_of_are_forgotten(app: App) -> None:
    with World(app) as world:
        handles = [put(app, f"t{n}") for n in range(50)]
        world.run_for(1)
        worker = Worker(app)
        for work in worker.taken([f"t{n}" for n in range(50)], size=50):
            worker.complete(work)
        assert {handle.state for handle in handles} == {"completed"}
        app.cancel(put(app, "t99").id)  # which no worker has ever known
        world.run_for("10m")
        brain = brain_of(app)
        gates = brain.core.admission.atlas.gates
        assert [name for _, name in gates if name.startswith(("work:", "t"))] == []
        assert brain.remote.gates._seen == {}
        assert brain.remote.gates.demand._heaps == {}
