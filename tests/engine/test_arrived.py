"""Whoever makes a type of job hears of each one that is here: new ones, and those that a restart
brings back.
"""

from __future__ import annotations

from typing import Any

import pytest

from headway import App
from headway.core import Ticket
from headway.engine.brain import Brain
from headway.testing import World
from tests.engine.kit import takes

pytestmark = pytest.mark.usefixtures("worlds")


class Doorman:
    """Notes who comes, and when all are there."""

    def __init__(self, app: App) -> None:
        self.came: list[tuple[int, str]] = []
        self.loaded: list[int] = []  # how many had come by then
        app.registry.types["visit"].arrived = self.arrived
        app.preparing.append(self.meet)

    def meet(self, brain: Brain) -> None:
        self.brain = brain
        brain.loaded.append(lambda now: self.loaded.append(len(self.came)))  # noqa: ARG005

    def arrived(self, ticket: Ticket, now: float) -> None:
        number: Any = ticket.id
        self.came.append((number, ticket.state.value))


def make() -> tuple[App, Any, Doorman]:
    app = App()

    @app.job(type="visit")
    async def visit(seconds: float) -> None:
        await takes(seconds)

    @app.job(type="other")
    async def other() -> None:
        return

    return app, (visit, other), Doorman(app)


def test_new_jobs_of_the_type_are_announced_once() -> None:
    app, (visit, other), doorman = make()
    with World(app) as world:
        assert doorman.loaded == [0]
        first = visit.enqueue(5.0)
        later = visit.options(delay=60).enqueue(5.0)
        other.enqueue()
        world.run_for("1s")
        assert doorman.came == [(first.id, "queued"), (later.id, "pending")]
        world.run_for("2m")
        assert len(doorman.came) == 2


def test_after_a_restart_all_that_is_open_is_announced_before_the_first_turn() -> None:
    app, (visit, _), doorman = make()
    with World(app) as world:
        done = visit.enqueue(0.0)
        running = visit.enqueue(500.0)
        later = visit.options(delay=600).enqueue(5.0)
        world.run_for("10s")
        assert (done.state, running.state) == ("completed", "running")
        doorman.came.clear()
        world.restart()
        assert doorman.loaded == [0, 2]
        assert sorted(number for number, _ in doorman.came) == [running.id, later.id]


def test_what_is_told_may_be_turned_away() -> None:
    app, (visit, _), doorman = make()

    def refuse(ticket: Ticket, now: float) -> None:
        doorman.brain.core.cancel(ticket.id, now, "not here")

    with World(app) as world:
        waits = visit.options(delay=600).enqueue(0.0)
        world.run_for("1s")
        app.registry.types["visit"].arrived = refuse
        job = visit.enqueue(0.0)
        world.run_for("1s")
        assert (job.state, waits.state) == ("cancelled", "pending")
        world.restart()
        world.run_for("1s")
        assert waits.state == "cancelled"


def test_whoever_makes_no_sense_of_a_job_stops_that_one_alone() -> None:
    app, (visit, other), _ = make()

    def stumble(*_: object) -> None:
        raise ValueError("what is this?")

    with World(app) as world:
        app.registry.types["visit"].arrived = stumble
        job, later = visit.enqueue(0.0), other.enqueue()
        world.run_for("1s")
        assert (job.state, later.state) == ("cancelled", "completed")


def test_what_an_operator_retries_is_announced_again() -> None:
    app, (visit, _), doorman = make()
    with World(app) as world:
        job = visit.options(delay=600).enqueue(0.0)
        world.run_for("1s")
        job.cancel()
        doorman.came.clear()
        world.run_for("1s")
        engine = app.engine
        assert engine is not None
        engine.ask(lambda now: engine.brain.controls.retry(job.id, now)).result()
        world.run_for("1s")
        assert doorman.came == [(job.id, "queued")]
        assert job.state == "completed"


def test_the_store_is_ours_before_anything_is_loaded() -> None:
    app, (visit, _), doorman = make()
    seen: list[tuple[int, int]] = []

    def meet(brain: Brain) -> None:
        brain.entered.append(lambda now: seen.append((brain.term, len(brain.core.tickets))))  # noqa: ARG005

    app.preparing.append(meet)
    with World(app) as world:
        visit.options(delay=600).enqueue(0.0)
        world.run_for("1s")
        world.restart()
        assert seen == [(1, 0), (2, 0)]
        assert len(doorman.came) == 2
