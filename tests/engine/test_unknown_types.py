"""Jobs of a type that no worker knows wait, say so, and run once somebody does."""

from __future__ import annotations

from headway import App
from headway.testing import World
from tests.engine.kit import Diary, trail


def test_an_unknown_type_waits_with_its_reason_and_runs_when_an_app_knows_it(
    url: str, diary: Diary
) -> None:
    older, newer = App(url), App(url)

    @newer.job(type="resize")
    def resize(name: str) -> str:
        diary.note(name)
        return name

    @older.job(type="check")
    def check() -> str:
        return "checked"

    with World(older, keep_store=True) as world:
        call = resize.call("a.png")
        call.created_at = world.now
        waiting = older.enqueue(call)
        known = check.enqueue()
        world.run_for("1h")
        assert known.result() == "checked"
        why = waiting.explain()
        assert (waiting.state, why.reason, why.gate) == ("queued", "closed", "type:resize")
        assert why.detail == "no worker knows this type"
        later = world.now

    with World(newer, keep_store=True, at=later) as world:
        diary.begin(world)
        world.run_for(0)
        handle = newer.handle(waiting.id)
        assert handle.result() == "a.png"
        assert trail(handle) == ["submit", "grant", "ok"]
    assert diary.rows == [(0.0, "a.png")]


def test_an_operator_who_opens_the_gate_of_an_unknown_type_does_no_harm(app: App, url: str) -> None:
    other = App(url)

    @other.job(type="resize")
    def resize() -> None: ...

    @app.job()
    def work() -> str:
        return "fine"

    with World(app) as world:
        call = resize.call()
        call.created_at = world.now
        waiting = app.enqueue(call)
        world.run_for(1)
        app.open("type:resize")
        world.run_for(1)
        assert waiting.state == "queued"
        assert waiting.explain().detail == "no worker knows this type"
        assert work.enqueue().id == waiting.id + 1
        world.run_for(1)
        assert app.handle(waiting.id + 1).result() == "fine"


def test_an_unknown_type_can_be_cancelled_and_paused(app: App, url: str) -> None:
    other = App(url)

    @other.job(type="resize")
    def resize() -> None: ...

    with World(app) as world:
        calls = [resize.call(), resize.call()]
        for call in calls:
            call.created_at = world.now
        first, second = app.enqueue_many(calls)
        world.run_for(1)
        assert app.cancel(first.id) == "cancelled"
        assert app.pause(second.id) == "paused"
