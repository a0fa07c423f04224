"""Online calls through the engine: at once, counted, and never stored."""

from __future__ import annotations

from typing import Any

from headway import App
from headway.core import Outcome
from headway.core.change import Refusal
from headway.engine.online import OnlineCall
from headway.testing import World
from tests.engine.kit import takes

PUSH = Outcome.pushback(status=429, upstream_fault=False)


def go(app: App, *upstreams: str) -> OnlineCall | Refusal:
    engine: Any = app.engine
    found: OnlineCall | Refusal = engine.ask(
        lambda now: engine.brain.online.go(upstreams, now, tenant="t")
    ).result()
    return found


def went(app: App, *upstreams: str) -> OnlineCall:
    call = go(app, *upstreams)
    assert isinstance(call, OnlineCall)
    return call


def end(app: App, call: OnlineCall, outcome: Outcome | None = None) -> bool:
    engine: Any = app.engine
    ended: bool = engine.ask(
        lambda now: engine.brain.online.end(call, outcome or Outcome.ok(status=200), now)
    ).result()
    return ended


def test_it_passes_a_full_gate_and_is_counted_there(app: App) -> None:
    @app.job(upstream="x.com")
    async def work() -> None:
        await takes(10)

    app.upstream("x.com", limit=1)
    with World(app) as world:
        call = went(app, "x.com")
        handle = work.enqueue()
        world.run_for(1)
        assert handle.state == "queued"
        assert went(app, "x.com").upstream == "x.com"
        end(app, call)
        world.run_for(1)
        assert handle.state == "queued", "the second call is still there"


def test_nothing_of_it_is_stored(app: App) -> None:
    with World(app):
        before = app.store.event_range()
        end(app, went(app, "x.com"))
        assert app.store.event_range() == before
        assert app.store.slots() == []  # type: ignore[union-attr]


def test_it_lives_as_long_as_it_takes(app: App) -> None:
    with World(app) as world:
        call = went(app, "x.com")
        world.run_for("2h")
        assert end(app, call)
        assert not end(app, call), "it ends once"


def test_a_closed_upstream_refuses_it_until_then(app: App) -> None:
    with World(app) as world:
        app.close_until("upstream:x.com", world.now + 600, "maintenance")
        refusal = go(app, "x.com")
        assert isinstance(refusal, Refusal)
        assert refusal.until == world.now + 600
        assert "maintenance" in refusal.why


def test_it_goes_to_the_first_that_is_open(app: App) -> None:
    with World(app) as world:
        app.close_until("upstream:one", world.now + 600)
        assert went(app, "one", "two").upstream == "two"


def test_it_goes_to_the_first_that_has_room_and_else_to_the_least_busy(app: App) -> None:
    app.upstream("one", limit=2)
    app.upstream("two", limit=2)
    with World(app):
        calls = [went(app, "one", "two") for _ in range(5)]
        assert [call.upstream for call in calls] == ["one", "one", "two", "two", "one"]


def test_it_avoids_one_that_has_just_refused(app: App) -> None:
    app.upstream("one", learn=True)
    app.upstream("two", learn=True)
    with World(app) as world:
        end(app, went(app, "one", "two"), PUSH)
        world.run_for(0)
        assert went(app, "one", "two").upstream == "two"


def test_its_answers_teach_and_each_change_is_in_the_trail(app: App) -> None:
    app.upstream("x.com", learn=True)
    with World(app) as world:
        for _ in range(30):
            end(app, went(app, "x.com"))
            world.run_for(1)
        end(app, went(app, "x.com"), PUSH)
        said = [event for event in app.store.events(0, 1000) if event.event == "learned"]
        assert said
        assert all(event.subject == "upstream:x.com" for event in said)
        assert any(event.detail.startswith("rpm unknown -> ") for event in said)


def test_where_nothing_is_known_yet_there_is_room(app: App) -> None:
    app.upstream("one", learn=True)
    app.upstream("two", learn=True)
    with World(app):
        assert [went(app, "one", "two").upstream for _ in range(3)] == ["one"] * 3
