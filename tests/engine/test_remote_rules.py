"""The rules of a type are those that the workers have told who can run it."""

from __future__ import annotations

import pytest

from headway import App
from headway.core import Outcome, RetryPolicy
from headway.testing import World
from tests.engine.workers import Worker, asking, put


def test_the_rules_of_a_type_are_those_that_a_worker_has_told(app: App) -> None:
    rules = {"resize": RetryPolicy(timeout_s=7, retries=1, delay_s=5)}
    with World(app) as world:
        worker = Worker(app)
        asking(app, lambda remote, now: remote.hello("w1", rules, now))
        handle = put(app)
        world.run_for(1)
        (work,) = worker.taken()
        assert work.timeout_s == 7
        assert worker.complete(work, Outcome.failed("no")) == "pending"
        world.run_for(6)
        (work,) = worker.taken()
        assert work.attempt == 2
        assert worker.complete(work, Outcome.failed("no")) == "failed"
        assert handle.row().error == "no"


def test_types_that_run_here_go_by_their_own_rules(app: App) -> None:
    @app.job(type="local", retries=0)
    async def local() -> None:
        raise ValueError("no")

    with World(app) as world:
        rules = {"local": RetryPolicy(retries=9), "download": None}
        asking(app, lambda remote, now: remote.hello("w1", rules, now))
        worker = Worker(app)
        worker.take(("local",), size=3)
        handle = local.enqueue()
        world.run_for("1m")
        assert (handle.state, worker.works) == ("failed", [])
        put(app, "download")
        world.run_for(1)
        assert Worker(app).taken(("download",))[0].timeout_s == 1800


@pytest.mark.parametrize("keep_s", [0, -1, float("nan"), True])
def test_rules_that_make_no_sense_change_nothing(app: App, keep_s: float) -> None:
    with World(app), pytest.raises(ValueError, match="seconds"):
        asking(
            app,
            lambda remote, now: remote.hello(
                "w1", {"resize": None}, now, keep_result_s={"resize": keep_s}
            ),
        )


def test_results_are_kept_as_long_as_the_worker_has_said(app: App) -> None:
    with World(app) as world:
        asking(
            app,
            lambda remote, now: remote.hello(
                "w1", {"resize": None}, now, keep_result_s={"resize": 60.0}
            ),
        )
        handle, other = put(app), put(app, "other")
        world.run_for(1)
        worker = Worker(app)
        for work in worker.taken(("resize", "other"), size=2):
            worker.complete(work, result="1")
        kept = {job.id: app.store.result(job.id) for job in (handle, other)}
        assert kept[handle.id].expires_at == pytest.approx(world.now + 60)  # type: ignore[union-attr]
        assert kept[other.id].expires_at == pytest.approx(world.now + 86_400)  # type: ignore[union-attr]


def test_only_so_many_types_have_rules(app: App) -> None:
    with World(app) as world:

        def greet(batch: int) -> None:
            types = dict.fromkeys(f"{batch}-{n}" for n in range(1_000))
            asking(app, lambda remote, now: remote.hello("w1", types, now))

        for batch in range(10):
            greet(batch)
        with pytest.raises(ValueError, match="too many"):
            greet(10)
        world.run_for("5m")
        greet(10)  # nobody has spoken of the others for long
