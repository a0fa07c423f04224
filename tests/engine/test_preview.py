"""What would follow from other settings: said before, and without changing anything."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway import App
from headway.engine.inspection import picture
from headway.engine.preview import differences, preview
from headway.engine.settings import Settings
from headway.testing import World
from tests.engine.kit import takes
from tests.engine.slot_kit import HOST as SLOT_HOST
from tests.engine.slot_kit import SlotWorld

HOST = "api.example.com"
PATTERN = "*.example.com"


def do(app: App, what: Any) -> Any:
    engine: Any = app.engine
    return engine.ask(lambda now: what(engine.brain, now)).result()


def told(
    app: App, value: dict[str, Any] | None, *, kind: str = "upstream", name: str = HOST, **more: Any
) -> dict[str, Any]:
    """What is said about it. All that can be seen is the same afterwards."""

    def all_of_it() -> Any:
        gate = do(app, lambda brain, now: picture(brain, kind, name, now, whole=True))
        return deepcopy((gate, app.settings.shown(), app.store.settings(), app.store.last_event()))

    before = all_of_it()
    try:
        found: dict[str, Any] = do(
            app, lambda brain, now: preview(brain, kind, name, value, now, **more)
        )
    finally:
        assert all_of_it() == before
    return found


def crowded(app: App, world: World, jobs: int = 10, seconds: float = 10.0) -> None:
    @app.job(type="work", upstream=HOST)
    async def work(tenant: str) -> None:  # noqa: ARG001
        await takes(seconds)

    for number in range(jobs):
        work.options(tenant=f"t{number % 2}").enqueue("t")
    world.run_for(seconds + 1)  # the first have ended, so it is known how long they take


def test_a_wider_limit_says_how_many_start_and_how_soon_all_have(app: App) -> None:
    app.upstream(HOST, limit=2)
    with World(app) as world:
        crowded(app, world)
        said = told(app, {"limit": 5})
        assert (said["before"], said["after"]) == ({"limit": 2}, {"limit": 5})
        assert said["changes"] == [{"name": "limit", "before": 2, "after": 5}]
        assert (said["running"], said["waiting"], said["starts_now"], said["over"]) == (2, 6, 3, 0)
        assert said["drains_in_s"] == {
            "before": pytest.approx(30.0, rel=0.01), "after": pytest.approx(6.0, rel=0.01),
        }  # fmt: skip
        assert "3 of 6 that wait may start at once." in said["notes"]
        app.set(f"upstream:{HOST}", limit=5)
        world.run_for(0)
        gate = do(app, lambda brain, now: picture(brain, "upstream", HOST, now, whole=False))
        assert gate["running"] == 5


def test_a_narrower_limit_stops_nobody(app: App) -> None:
    app.upstream(HOST, limit=4)
    with World(app) as world:
        crowded(app, world)
        said = told(app, {"limit": 1})
        assert (said["running"], said["over"], said["starts_now"]) == (4, 3, 0)
        assert said["notes"][0].startswith("3 run above the new limit: nothing is stopped")
        nothing = told(app, {"limit": 0})
        assert nothing["drains_in_s"]["after"] is None
        assert "A limit of 0 lets nothing through." in nothing["notes"]


def test_tenants_own_limits_count(app: App) -> None:
    app.upstream(HOST, limit=2)
    with World(app) as world:
        crowded(app, world)
        assert told(app, {"limit": 10, "tenant": {"limit": 2}})["starts_now"] == 2


def test_a_pace_spaces_those_who_wait(app: App) -> None:
    with World(app) as world:
        app.pause(f"upstream:{HOST}")
        crowded(app, world)
        paused = told(app, {"every": "6s"})
        assert paused["starts_now"] == 0
        assert paused["drains_in_s"] == {"before": None, "after": None}
        assert "It is paused: nothing starts until it is resumed." in paused["notes"]
        app.close_until(f"upstream:{HOST}", world.now + 100)
        app.resume(f"upstream:{HOST}")
        closed = told(app, {"every": "6s"})
        assert closed["starts_now"] == 0
        assert closed["drains_in_s"] == {"before": 100.0, "after": 100.0 + 9 * 6}
        assert any(note.startswith("It is closed until 20") for note in closed["notes"])


def test_what_is_learned_can_be_bounded_and_pinned(app: App) -> None:
    app.upstream(HOST, learn={"concurrency": 2, "rpm": 60})
    with World(app) as world:
        crowded(app, world)
        said = told(app, {"learn": {"pin_concurrency": 5, "pin_rpm": 6}})
        assert {change["name"]: change["after"] for change in said["changes"]} == {
            "learn.pin_concurrency": 5, "learn.pin_rpm": 6,
        }  # fmt: skip
        assert said["after"]["learn"]["rpm"] == 60, "a table adds to the one below it"
        assert 0 <= said["starts_now"] <= 5 - said["running"]
        assert said["drains_in_s"]["after"] >= 10.0 * (said["waiting"] - 3)
        assert told(app, {"learn": {"max_concurrency": 1}})["over"] == said["running"] - 1
        assert told(app, {"learn": {"pin_concurrency": 1}})["over"] == said["running"] - 1
        assert told(app, {"learn": False})["starts_now"] == said["waiting"]


def test_a_name_of_its_own_takes_the_place_of_a_pattern(app: App) -> None:
    app.upstream(PATTERN, limit=2, every="1s")
    with World(app) as world:
        crowded(app, world)
        said = told(app, {"limit": 3})
        assert said["after"] == {"limit": 3}
        assert (f"What is declared for {HOST} takes the place of what is declared for {PATTERN}; "
                "every no longer holds.") in said["notes"]  # fmt: skip
        wide = told(app, {"limit": 9}, name=PATTERN)
        assert (wide["after"], wide["running"]) == ({"limit": 9, "every": "1s"}, said["running"])
        assert any("1 of them are in use" in note for note in wide["notes"])
        app.set(f"upstream:{HOST}", limit=1)
        assert told(app, {"limit": 9}, name=PATTERN)["running"] == 0, "it decides nothing there"
        assert told(app, None)["after"] == {"limit": 2, "every": "1s"}


def test_settings_that_do_not_go_with_the_profile_of_a_host_are_refused(app: App) -> None:
    with SlotWorld(app, {"limit": 4, "min_hold": "1s"}) as world:
        assert world.asks().holds
        assert told(app, {"limit": 6}, name=SLOT_HOST)["running"] == 1
        with pytest.raises(ValueError, match="reserve"):
            told(app, {"reserve": 4}, name=SLOT_HOST)
        with pytest.raises(ValueError, match="reserve"):
            app.set(f"upstream:{SLOT_HOST}", reserve=4)


def test_where_nobody_is_counted_free_places_are_told(app: App) -> None:
    with World(app):
        assert told(app, {"limit": 3}, kind="tool", name="ffmpeg")["starts_now"] == 3
        free = told(app, {}, kind="tool", name="ffmpeg")
        assert (free["starts_now"], free["waiting"], free["changes"]) == (None, None, [])
        assert free["notes"][0].startswith("Nothing changes")
        lane = told(app, {"limit": 3}, kind="lane", name="main", waiting=2)
        assert (lane["starts_now"], lane["waiting"]) == (2, 2)


def test_differences_are_told_by_name() -> None:
    before = {"limit": 1, "every": "1s", "tenant": {"limit": 1, "every": "1s"}, "learn": True}
    after = {"limit": 1, "tenant": {"limit": 2, "every": "1s"}, "learn": {"rpm": 1}, "burst": 3}
    assert differences(before, after) == [
        {"name": "burst", "before": None, "after": 3},
        {"name": "every", "before": "1s", "after": None},
        {"name": "learn", "before": True, "after": {"rpm": 1}},
        {"name": "tenant.limit", "before": 1, "after": 2},
    ]
    assert differences({"breaker": 1}, {"breaker": True}) != []


NAMES = st.text("a.", min_size=1, max_size=4)
PATTERNS = NAMES.map(lambda text: "*" + text) | st.just("*")


@given(st.sets(NAMES | PATTERNS), NAMES | PATTERNS, st.booleans())
def test_the_longest_pattern_that_fits_is_behind_a_name(
    declared: set[str], name: str, own: bool
) -> None:
    settings = Settings()
    for each in declared:
        settings.declare("code", "upstream", each, {"limit": 1})
    fitting = {each for each in declared if (own and each == name)
               or (each.startswith("*") and name.endswith(each[1:]))}  # fmt: skip
    best = max(fitting, key=lambda each: (own and each == name, len(each)), default=None)
    found = settings.behind("upstream", name, own=own)
    assert (None if found is None else found["declared_as"]) == best
