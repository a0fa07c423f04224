"""Settings: code < file < environment < operator, and which of several names holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headway import App, Job
from headway.engine.settings import Settings
from headway.testing import World
from tests.engine.kit import Diary, gaps, takes

HOST = "api.example.com"


def shown(app: App, kind: str, name: str) -> dict[str, Any]:
    rows = [row for row in app.settings.shown() if (row["kind"], row["name"]) == (kind, name)]
    return rows[0] if rows else {}


def calls(app: App, diary: Diary) -> Job[[str], None]:
    @app.job(upstream=lambda host: host)
    def fetch(host: str = HOST) -> None:
        diary.note(host)

    return fetch


def pace_of(diary: Diary, world: World, fetch: Job[[str], None]) -> float:
    """Seconds between two calls, by experiment."""
    before = len(diary.rows)
    for _ in range(4):
        fetch.enqueue(HOST)
    world.run_for("10m")
    (gap,) = set(gaps(diary.times[before + 1 :]))
    return gap


def test_each_layer_wins_over_the_ones_below_it(
    tmp_path: Path, diary: Diary, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "headway.toml"
    file.write_text(f'[upstream."{HOST}"]\nevery = "2s"\nburst = 1\n[lane.slow]\nlimit = 3\n')
    app = App(settings_file=str(file))
    app.upstream(HOST, every="1s", limit=7)
    fetch = calls(app, diary)
    with World(app) as world:
        diary.begin(world)
        assert pace_of(diary, world, fetch) == 2.0
        said = shown(app, "upstream", HOST)
        assert said["value"] == {"every": "2s", "limit": 7, "burst": 1}
        assert said["from"] == {"every": "file", "limit": "code", "burst": "file"}
        assert said["overridden"] is False
        assert shown(app, "lane", "slow")["value"] == {"limit": 3}

    monkeypatch.setenv(f"HEADWAY_UPSTREAM__{HOST}__every", "3s")
    monkeypatch.setenv("HEADWAY_LANE__slow__limit", "4")
    monkeypatch.setenv("HEADWAY_SOMETHING_ELSE", "1")
    with World(app) as world:
        diary.begin(world)
        assert pace_of(diary, world, fetch) == 3.0
        assert shown(app, "upstream", HOST)["from"]["every"] == "environment"
        assert shown(app, "lane", "slow")["value"] == {"limit": 4}
        app.set(f"upstream:{HOST}", every="4s")
        assert pace_of(diary, world, fetch) == 4.0
        assert shown(app, "upstream", HOST)["from"]["every"] == "operator"
        assert shown(app, "upstream", HOST)["overridden"] is True


def test_what_an_operator_set_is_kept_over_a_restart_until_it_is_reset(
    app: App, diary: Diary
) -> None:
    app.upstream(HOST, every="1s")
    fetch = calls(app, diary)
    with World(app) as world:
        diary.begin(world)
        app.set(f"upstream:{HOST}", every="10s")
        world.restart()
        assert pace_of(diary, world, fetch) == 10.0
        assert shown(app, "upstream", HOST)["overridden"] is True
        app.reset(f"upstream:{HOST}")
        assert pace_of(diary, world, fetch) == 1.0
        assert shown(app, "upstream", HOST)["overridden"] is False
        world.restart()
        assert pace_of(diary, world, fetch) == 1.0
        said = [each for each in app.store.events(0, 10_000) if each.event == "set"]
        assert [(each.subject, each.detail) for each in said] == [
            (f"upstream:{HOST}", '{"every":"10s"}'),
            (f"upstream:{HOST}", "reset"),
        ]


def test_what_only_an_operator_set_leaves_no_trace_when_it_is_reset(app: App) -> None:
    with World(app) as world:
        app.set("lane:new", limit=1)
        assert shown(app, "lane", "new")["value"] == {"limit": 1}
        app.reset("lane:new")
        assert shown(app, "lane", "new") == {}
        world.restart()
        assert shown(app, "lane", "new") == {}


def test_an_operator_may_say_a_pace_in_other_words_than_the_code(app: App, diary: Diary) -> None:
    app.upstream(HOST, every="1s")
    fetch = calls(app, diary)
    with World(app) as world:
        diary.begin(world)
        app.set(f"upstream:{HOST}", per_minute=12)
        assert pace_of(diary, world, fetch) == 5.0
        app.reset(f"upstream:{HOST}")
        assert pace_of(diary, world, fetch) == 1.0


def test_a_raised_and_a_lowered_limit_hold_at_once(app: App) -> None:
    app.lane("narrow", limit=1)
    inside = most = 0

    @app.job(lane="narrow")
    async def work() -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await takes(60)
        inside -= 1

    with World(app) as world:
        for _ in range(30):
            work.enqueue()
        world.run_for(1)
        assert inside == 1
        app.set("lane:narrow", limit=5)
        world.run_for(0)
        assert inside == 5
        app.set("lane:narrow", limit=2)
        world.run_for(60)
        assert (inside, most) == (2, 5)


def test_the_most_specific_name_of_an_upstream_wins(app: App, diary: Diary) -> None:
    app.upstream("*", every="8s")
    app.upstream("*.example.com", every="4s")
    app.upstream("*.eu.example.com", every="2s")
    app.upstream("a.eu.example.com", every="1s")
    fetch = calls(app, diary)
    expected = {
        "elsewhere.org": 8.0,
        "b.example.com": 4.0,
        "b.eu.example.com": 2.0,
        "a.eu.example.com": 1.0,
    }
    with World(app) as world:
        diary.begin(world)
        for host in expected:
            for _ in range(3):
                fetch.enqueue(host)
        world.run_for("10m")
    for host, gap in expected.items():
        assert gaps([at for at, where in diary.rows if where == host]) == [gap, gap], host


def test_hosts_that_share_a_pattern_do_not_share_its_places(app: App, diary: Diary) -> None:
    app.upstream("*.example.com", every="1m")
    fetch = calls(app, diary)
    with World(app) as world:
        diary.begin(world)
        for host in ("a.example.com", "b.example.com"):
            fetch.enqueue(host)
        world.run_for(0)
    assert diary.times == [0.0, 0.0]


@pytest.mark.parametrize(
    ("target", "settings"),
    [
        ("lane:x", {"limit": "4"}),
        ("lane:x", {"limit": 1.5}),
        ("lane:x", {"limit": True}),
        ("lane:x", {"limit": -1}),
        ("lane:x", {"colour": "red"}),
        ("lane:x", {"every": 5}),
        ("lane:x", {"every": "5"}),
        ("lane:x", {"every": "5s", "per_minute": 3}),
        ("lane:x", {"per_second": 0}),
        ("lane:x", {"per_second": "many"}),
        ("lane:x", {"tenant": {"limit": 1}}),
        ("lane:x", {"quiet": [["25:99", "3"]]}),
        ("lane:x", {"quiet": [1]}),
        ("lane:x", {"quiet": [["23:00", "01:00"]], "zone": "Mars/Phobos"}),
        ("upstream:x", {"tenant": {"limit": "1"}}),
        ("upstream:x", {"breaker": {"colour": 1}}),
        ("upstream:*.a.*", {"limit": 1}),
        ("key:x", {"limit": 0}),
        ("planet:x", {"limit": 1}),
    ],
)
@pytest.mark.parametrize("running", [True, False])
def test_wrong_settings_are_refused_and_change_nothing(
    app: App, target: str, settings: dict[str, Any], running: bool
) -> None:
    with World(app) as world:
        before = app.settings.shown()
        if not running:
            world.crash()
        with pytest.raises(ValueError):  # noqa: PT011 - each says something else
            app.set(target, **settings)
        if not running:
            world.restart()
            world.run_for(0)
        assert app.settings.shown() == before
        assert app.store.settings() == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[planet.x]\nlimit = 1\n", "planet"),
        ("[lane.x]\nlimit = 'one'\n", "whole number"),
        ("[lane.x\n", "TOML"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(
    tmp_path: Path, text: str | None, message: str
) -> None:
    file = tmp_path / "headway.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ValueError, match=message):
        Settings().read_file(str(file))


def test_what_an_operator_set_long_ago_does_not_keep_an_engine_from_starting(
    app: App, diary: Diary
) -> None:
    fetch = calls(app, diary)
    with World(app) as world:
        diary.begin(world)
        app.set(f"upstream:{HOST}", reserve=3, limit=5)
        world.crash()
        app.upstream(HOST, limit=2)  # the code is another one now
        app.settings.put("upstream", HOST, None)
        world.restart()
        fetch.enqueue()
        world.run_for(1)
    assert diary.rows == [(0.0, HOST)]


def test_quiet_hours_are_local_and_kept(app: App, diary: Diary) -> None:
    app.upstream(HOST, quiet=[["22:00", "06:00"]], zone="Europe/Berlin")
    fetch = calls(app, diary)
    with World(app) as world:  # 00:00 UTC is 01:00 in Berlin
        diary.begin(world)
        fetch.enqueue()
        world.run_for("1d")
    assert diary.times == [5 * 3600.0]
