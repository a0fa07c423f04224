"""An application may say what holds for a host where nobody else has said anything."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from headway import App
from headway.testing import World
from tests.engine.kit import Diary

pytestmark = pytest.mark.usefixtures("worlds")

HOST = "site.example"


def make() -> tuple[App, Any, Diary]:
    app = App()
    diary = Diary()

    @app.job(upstream=HOST)
    async def visit() -> None:
        diary.note()

    return app, visit, diary


def give(app: App, by: str = "feeds", **profile: Any) -> None:
    assert app.engine is not None
    hosts = app.engine.brain.policies.hosts
    app.engine.ask(lambda now: hosts.give(HOST, profile, now, by=by)).result()


def take_back(app: App, by: str = "feeds") -> None:
    assert app.engine is not None
    hosts = app.engine.brain.policies.hosts
    app.engine.ask(lambda now: hosts.take_back(HOST, now, by=by)).result()


def gaps(diary: Diary) -> list[float]:
    return [round(after - before, 2) for before, after in pairwise(diary.times)]


def test_what_is_given_holds_for_jobs_there() -> None:
    app, visit, diary = make()
    with World(app) as world:
        diary.begin(world)
        give(app, every="10s")
        for _ in range(4):
            visit.enqueue()
        world.run_for("1m")
        assert gaps(diary) == [10.0, 10.0, 10.0]


def test_what_an_operator_sets_goes_before_it() -> None:
    app, visit, diary = make()
    with World(app) as world:
        diary.begin(world)
        give(app, every="10s")
        app.set(f"upstream:{HOST}", every="2s")
        for _ in range(4):
            visit.enqueue()
        world.run_for("1m")
        assert gaps(diary) == [2.0, 2.0, 2.0]


def test_it_goes_before_what_holds_for_all_and_is_filled_up_by_it() -> None:
    app, visit, diary = make()
    app.upstream("*", every="1s")
    with World(app) as world:
        diary.begin(world)
        give(app, every="5s")
        for _ in range(3):
            visit.enqueue()
        world.run_for("1m")
        assert gaps(diary) == [5.0, 5.0]


def test_it_ends_when_it_is_taken_back() -> None:
    app, visit, diary = make()
    with World(app) as world:
        diary.begin(world)
        give(app, every="10s")
        visit.enqueue()
        world.run_for("1m")
        take_back(app)
        for _ in range(3):
            visit.enqueue()
        world.run_for("1m")
        assert gaps(diary)[1:] == [0.0, 0.0]


def test_of_several_the_slower_pace_holds() -> None:
    app, visit, diary = make()
    with World(app) as world:
        diary.begin(world)
        give(app, every="10s")
        give(app, by="media", every="2s", limit=1)
        for _ in range(3):
            visit.enqueue()
        world.run_for("1m")
        assert gaps(diary) == [10.0, 10.0]
        take_back(app)
        for _ in range(3):
            visit.enqueue()
        world.run_for("1m")
        assert gaps(diary)[3:] == [2.0, 2.0]


def test_an_idle_host_keeps_what_it_was_given() -> None:
    app, visit, diary = make()
    with World(app) as world:
        diary.begin(world)
        give(app, every="10s")
        world.run_for("3d")
        for _ in range(3):
            visit.enqueue()
        world.run_for("1m")
        assert gaps(diary) == [10.0, 10.0]
