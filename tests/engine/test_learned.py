"""What was learned about upstreams: switched on, seen, pinned, reset, taken elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headway import App, Job, Pushback
from headway.core.learning import Learning, LearnRule
from headway.engine import learned
from headway.engine.inspection import picture
from headway.engine.learned import NotLearning
from headway.engine.settings import Settings, policy_of
from headway.testing import World

HOST = "api.example.com"
HINTS = {"rpm": 600, "tpm": 90_000, "concurrency": 8}


def rule_of(learn: Any) -> LearnRule | None:
    return policy_of("upstream", {"learn": learn}, HOST).learn


def look(app: App, name: str = HOST) -> dict[str, Any]:
    assert app.engine is not None
    brain = app.engine.brain
    return app.engine.ask(lambda now: learned.look_at(brain, name, now)).result()


def do(app: App, what: Any, *args: Any) -> Any:
    assert app.engine is not None
    brain = app.engine.brain
    return app.engine.ask(lambda now: what(brain, *args, now)).result()


def calls(app: App, answers: list[BaseException] | None = None) -> Job[[str], None]:
    """Each call is answered at once; the first ones with these."""
    left = list(answers or [])

    @app.job(upstream=lambda host: host)
    def call(host: str = HOST) -> None:  # noqa: ARG001 - it says where to
        if left:
            raise left.pop(0)

    return call


# ---------------------------------------------------------------------- settings


def test_what_can_be_said_about_learning() -> None:
    assert rule_of(True) == rule_of({}) == LearnRule()
    assert rule_of(False) is rule_of(None) is None
    assert rule_of(HINTS) == LearnRule(hint_rpm=600, hint_tpm=90_000, hint_concurrency=8)
    bounds = {"min_rpm": 1, "max_rpm": 900, "min_concurrency": 2, "max_concurrency": 20}
    assert rule_of(bounds) == LearnRule(min_rpm=1, max_rpm=900, min_concurrency=2,
                                        max_concurrency=20)  # fmt: skip
    pins = {"pin_rpm": 1.5, "pin_tpm": 2, "pin_concurrency": 3, "remaining_threshold": 0.2}
    assert rule_of(pins) == LearnRule(**pins)  # type: ignore[arg-type]
    assert rule_of({"rpm": 60, "pin_rpm": None}) == LearnRule(hint_rpm=60)


@pytest.mark.parametrize(
    ("learn", "why"),
    [
        ("yes", "learn is true, false or a table"),
        (1, "learn is true, false or a table"),
        ({"speed": 3}, "learn has no speed; known: rpm, tpm"),
        ({"rpm": "fast"}, "rpm of learn must be a number"),
        ({"rpm": True}, "rpm of learn must be a number"),
        ({"rpm": 0}, "learn: rpm must be above 0"),
        ({"rpm": 5e-324}, "rpm of learn is at least 0.001"),
        ({"rpm": float("inf")}, "rpm of learn is at most"),
        ({"pin_rpm": float("nan")}, "pin_rpm of learn is at most"),
        ({"concurrency": 2.5}, "concurrency of learn must be a whole number"),
        ({"min_rpm": 9, "max_rpm": 3}, "min_rpm must be from 0 to max_rpm"),
        ({"remaining_threshold": 1}, "remaining_threshold is a share"),
    ],
)
def test_what_makes_no_sense_is_refused(learn: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        rule_of(learn)


@pytest.mark.parametrize("kind", ["lane", "tool", "type", "key", "everything"])
def test_only_upstreams_learn(kind: str) -> None:
    with pytest.raises(ValueError, match=f"for an upstream, not for a {kind}"):
        policy_of(kind, {"learn": True})
    with pytest.raises(ValueError, match="cannot learn"):
        policy_of("upstream", {"tenant": {"learn": True}})


def test_layers_add_to_the_table_and_false_ends_it(tmp_path: Path) -> None:
    file = tmp_path / "headway.toml"
    file.write_text(f'[upstream."{HOST}"]\nlearn = {{rpm = 600, max_rpm = 900}}\n')
    settings = Settings()
    settings.declare("code", "upstream", HOST, {"learn": True})
    settings.read_file(str(file))
    settings.read_environment({f"HEADWAY_UPSTREAM__{HOST}__learn": '{"max_rpm": 700}'})
    (row,) = settings.shown()
    assert row["value"] == {"learn": {"rpm": 600, "max_rpm": 700}}
    settings.read_environment({f"HEADWAY_UPSTREAM__{HOST}__learn": "true"})
    assert settings.shown()[0]["value"] == {"learn": {"rpm": 600, "max_rpm": 900}}
    settings.put("upstream", HOST, {"learn": {"pin_rpm": 10}})
    assert settings.shown()[0]["value"] == {"learn": {"rpm": 600, "max_rpm": 900, "pin_rpm": 10}}
    assert settings.shown()[0]["from"] == {"learn": "operator"}
    assert settings.put("upstream", HOST, {"learn": False}) == policy_of("upstream", {}, HOST)


# ---------------------------------------------------------------------- looking


def test_the_view_of_an_upstream_that_was_refused(app: App) -> None:
    app.upstream(HOST, learn={"remaining_threshold": 0.25})
    call = calls(app, [Pushback(status=429)])
    with World(app) as world:
        assert look(app)["source"] == "open"
        assert look(app)["limit_rpm"] is None
        began = world.now
        call.enqueue()
        world.run_for(0.5)
        seen = look(app)
        assert (seen["source"], seen["threshold"]) == ("history", 0.25)
        assert seen["phase"] == "holding"
        assert seen["holding_why"] == "rate"
        assert seen["opens_at"] > world.now
        assert [point["at"] for point in seen["history"]] == [began]
        assert seen["believed"]["rpm"] is not None
        assert 0 <= seen["remaining"] <= 1
        world.run_for("5m")
        assert look(app)["phase"] == "cruise"
        assert look(app)["queued"] == {"concurrent": 0, "rpm": 0}


def test_calls_are_counted_for_a_minute_and_a_gate_shows_its_learner(app: App) -> None:
    app.upstream(HOST, learn={"pin_rpm": 600})
    call = calls(app)
    with World(app) as world:
        for _ in range(5):
            call.enqueue()
        world.run_for(10)
        assert look(app)["queued"] == {"concurrent": 0, "rpm": 5}
        assert look(app)["online"] == {"concurrent": 0, "rpm": 0}
        assert look(app)["pins"] == {"rpm": 600, "tpm": None, "concurrency": None}
        assert app.engine is not None
        (limit,) = picture(app.engine.brain, "upstream", HOST, world.now, whole=False)["limits"]
        assert limit["name"] == "learning"
        assert limit["source"] == "peak"
        assert limit["queued"]["rpm"] == 5
        world.run_for(60)
        assert look(app)["queued"]["rpm"] == 0


def test_what_does_not_learn_says_how_to_switch_it_on(app: App) -> None:
    with World(app), pytest.raises(NotLearning, match="headway upstreams set other learn=true"):
        look(app, "other")


def test_all_that_learn_are_found_by_name_and_by_pattern(app: App) -> None:
    app.upstream("*.example.com", learn=True)
    app.upstream("named.example.org", learn=True)
    app.upstream("plain.example.org", limit=1)
    call = calls(app)
    with World(app) as world:
        call.enqueue("plain.example.org")
        call.enqueue("some.example.com")
        world.run_for(1)
        assert app.engine is not None
        found = learned.names_that_learn(app.engine.brain)
        assert found == ["named.example.org", "some.example.com"]


# ---------------------------------------------------------------------- steering


def operator_said(app: App, name: str = HOST) -> Any:
    return app.settings.said_by_operator("upstream", name)


def test_a_pin_is_an_operators_setting_and_outlives_a_restart(app: App) -> None:
    app.upstream(HOST, learn={"rpm": 600}, limit=5)
    with World(app) as world:
        do(app, learned.pin, HOST, {"rpm": 300, "concurrency": 4})
        assert operator_said(app) == {"learn": {"pin_rpm": 300, "pin_concurrency": 4}}
        world.restart()
        assert look(app)["believed"]["rpm"] == 300
        assert look(app)["believed"]["concurrency"] == 4
        do(app, learned.pin, HOST, {"rpm": None})
        assert look(app)["pins"] == {"rpm": None, "tpm": None, "concurrency": 4}
        do(app, learned.pin, HOST, {"concurrency": None})
        assert operator_said(app) is None, "nothing is overridden any more"
        assert look(app)["believed"]["rpm"] == 600
        do(app, learned.pin, HOST, {"rpm": 10})
        app.reset(f"upstream:{HOST}")
        assert look(app)["pins"]["rpm"] is None


def test_a_pin_of_a_lower_layer_can_be_taken_off(app: App) -> None:
    app.upstream(HOST, learn={"pin_rpm": 600})
    with World(app):
        do(app, learned.pin, HOST, {"rpm": None})
        assert operator_said(app) == {"learn": {"pin_rpm": None}}
        assert look(app)["believed"]["rpm"] is None


def test_a_pin_beside_other_settings_of_the_operator_leaves_them(app: App) -> None:
    with World(app):
        app.set(f"upstream:{HOST}", limit=3, learn=True)
        do(app, learned.pin, HOST, {"tpm": 5_000})
        assert operator_said(app) == {"limit": 3, "learn": {"pin_tpm": 5_000}}
        do(app, learned.pin, HOST, {"tpm": None})
        assert operator_said(app) == {"limit": 3, "learn": True}


def test_a_pin_of_one_name_keeps_what_its_pattern_says(app: App) -> None:
    app.upstream("*.example.com", limit=2, learn=True)
    with World(app):
        do(app, learned.pin, HOST, {"rpm": 60})
        assert app.settings.behind("upstream", HOST)["value"] == {  # type: ignore[index]
            "limit": 2, "learn": {"pin_rpm": 60}
        }  # fmt: skip
        do(app, learned.pin, HOST, {"rpm": None})
        assert app.settings.behind("upstream", HOST)["declared_as"] == "*.example.com"  # type: ignore[index]


def test_a_wrong_pin_changes_nothing(app: App) -> None:
    app.upstream(HOST, learn=True)
    with World(app):
        with pytest.raises(ValueError, match="pin_rpm"):
            do(app, learned.pin, HOST, {"rpm": -1})
        assert operator_said(app) is None
        with pytest.raises(NotLearning):
            do(app, learned.pin, "other", {"rpm": 1})


def test_a_reset_forgets_what_was_learned_and_is_in_the_trail(app: App) -> None:
    app.upstream(HOST, learn={"rpm": 600})
    call = calls(app, [Pushback(status=429)])
    with World(app) as world:
        call.enqueue()
        world.run_for("1m")
        assert look(app)["history"]
        assert look(app)["believed"]["rpm"] < 600
        do(app, learned.reset, HOST)
        seen = look(app)
        assert (seen["history"], seen["believed"]["rpm"]) == ([], 600)
        world.run_for(1)
        rows = [event for event in app.store.events(0, 1_000) if event.event == "learned_reset"]
        assert [row.subject for row in rows] == [f"upstream:{HOST}"]
        world.restart()
        assert look(app)["history"] == []


def test_a_reset_lets_waiting_jobs_go(app: App) -> None:
    app.upstream(HOST, learn={"pin_rpm": 60})
    call = calls(app, [Pushback(status=429, retry_after=80)])
    with World(app) as world:
        handle = call.enqueue()
        world.run_for(20)
        assert handle.state != "completed"
        do(app, learned.reset, HOST)
        world.run_for(5)
        assert handle.state == "completed"


def test_what_was_learned_elsewhere_is_a_hint_where_nothing_is_known(app: App) -> None:
    for name in ("new", "knows", "empty"):
        app.upstream(name, learn={"rpm": 60} if name == "knows" else True)
    found = {"new": {"rpm": 300.0, "concurrency": 4}, "knows": {"rpm": 900.0}, "empty": {},
             "other": {"rpm": 5.0}}  # fmt: skip
    with World(app):
        hinted, left_out = do(app, learned.hint, found)
        assert hinted == ["new"]
        assert set(left_out) == {"knows", "empty", "other"}
        assert "does not learn" in left_out["other"]
        assert operator_said(app, "new") == {"learn": {"rpm": 300.0, "concurrency": 4}}
        assert look(app, "new")["believed"]["rpm"] == 300
        assert look(app, "knows")["believed"]["rpm"] == 60
        assert do(app, learned.hint, found)[0] == [], "now it knows"


def test_a_wrong_hint_sets_none_of_them(app: App) -> None:
    app.upstream("one", learn=True)
    app.upstream("two", learn=True)
    with World(app):
        with pytest.raises(ValueError, match="rpm"):
            do(app, learned.hint, {"one": {"rpm": 5.0}, "two": {"rpm": -5.0}})
        assert operator_said(app, "one") is None


def test_a_gate_of_a_pattern_that_taught_nothing_is_forgotten(app: App) -> None:
    app.upstream("*", learn=True)
    call = calls(app)
    with World(app) as world:
        for number in range(50):
            call.enqueue(f"host{number}.example")
        world.run_for("10m")
        assert app.engine is not None
        gates = app.engine.brain.core.admission.atlas.gates
        learners = [gate for gate in gates.values() if any(type(limit) is Learning
                                                           for limit in gate.limits)]  # fmt: skip
        assert len(learners) == 50
        world.run_for("3h")
        assert not [name for kind, name in gates if kind == "upstream"]
