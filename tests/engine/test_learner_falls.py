"""That a learner has come down far is noticed, as the engine's gates show it."""

from __future__ import annotations

from typing import Any

from headway import App, Pushback
from headway.apps.alerts.falling import Falls
from headway.engine import learned
from headway.testing import World
from tests.engine.test_learned import HOST, calls, do


def look(app: App, falls: Falls, world: World) -> list[Any]:
    assert app.engine is not None
    falls.look(app.engine.brain, lambda call: call(world.now))
    return list(falls.attention(world.now))


def test_an_upstream_that_refuses_again_and_again_is_noticed(app: App) -> None:
    app.upstream(HOST, learn={"rpm": 600})
    call = calls(app, [Pushback(status=429) for _ in range(12)])
    falls = Falls()
    with World(app) as world:
        call.enqueue()
        assert look(app, falls, world) == []
        found: list[Any] = []
        for _ in range(30):
            world.run_for("1m")
            call.enqueue()
            found = found or look(app, falls, world)
        assert [each.kind for each in found] == ["learner_fell"]
        assert found[0].subject == ("upstream", HOST)
        assert found[0].values["now"] <= 0.5 * found[0].values["was"]


def test_what_an_operator_pins_has_not_fallen(app: App) -> None:
    app.upstream(HOST, learn={"rpm": 600})
    falls = Falls()
    with World(app) as world:
        calls(app).enqueue()
        world.run_for(1)
        look(app, falls, world)
        do(app, learned.pin, HOST, {"rpm": 10})
        world.run_for(1)
        assert look(app, falls, world) == []


def test_what_was_learned_before_a_restart_has_not_fallen_now(app: App) -> None:
    app.upstream(HOST, learn={"rpm": 600})
    call = calls(app, [Pushback(status=429)])
    with World(app) as world:
        call.enqueue()
        world.run_for("1m")
        assert look(app, Falls(), world) == []
