"""Lanes, upstreams, tools and everything: paused, closed and paced, also across restarts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import App, Pushback
from headway.testing import World
from tests.engine.kit import Diary, gaps, states, takes
from tests.stores import second_store_in_the_soak

HOST = "api.example.com"
TARGETS = ["all", "lane:main", f"upstream:{HOST}", "type:work", "tool:ffmpeg"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("restart", [False, True])
def test_what_is_paused_stands_still_until_it_is_resumed(
    app: App, diary: Diary, target: str, restart: bool
) -> None:
    @app.job(type="work", lane="main", upstream=HOST, tools=("ffmpeg",))
    def work() -> None:
        diary.note()

    @app.job(type="other", lane="side")
    def other() -> str:
        return "went on"

    with World(app) as world:
        diary.begin(world)
        app.pause(target)
        handle, free = work.enqueue(), other.enqueue()
        world.run_for("1h")
        if restart:
            world.restart()
            world.run_for("1h")
        assert handle.state == "queued"
        assert handle.explain().reason == "paused"
        assert free.state == ("queued" if target == "all" else "completed")
        app.resume(target)
        world.run_for(0)
        assert handle.state == "completed"
        if restart:
            world.restart()
            assert work.enqueue().id
            world.run_for(0)
            assert len(diary.rows) == 2


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("restart", [False, True])
def test_what_is_closed_opens_at_its_time(
    app: App, diary: Diary, target: str, restart: bool
) -> None:
    @app.job(type="work", lane="main", upstream=HOST, tools=("ffmpeg",))
    def work() -> None:
        diary.note()

    with World(app) as world:
        diary.begin(world)
        app.close_until(target, world.now + 600, "maintenance")
        handle = work.enqueue()
        world.run_for(10)
        if restart:
            world.restart()
            world.run_for(0)
        why = handle.explain()
        assert (why.reason, why.detail) == ("closed", "maintenance")
        world.run_for("1h")
    assert diary.times == [600.0]


def test_an_operator_may_open_a_closed_upstream_before_its_time(app: App, diary: Diary) -> None:
    @app.job(upstream=HOST)
    def work() -> object:
        diary.note()
        return Pushback(retry_after="1h") if len(diary.rows) == 1 else None

    with World(app) as world:
        diary.begin(world)
        work.enqueue()
        world.run_for(60)
        app.open(f"upstream:{HOST}")
        world.run_for(1)
    assert diary.times == [0.0, 60.0]


@pytest.mark.parametrize("target", ["lane", "lane:", "planet:x", "", "tenant:ann"])
def test_what_is_no_gate_is_refused(app: App, target: str) -> None:
    with World(app), pytest.raises(ValueError, match="is no gate"):
        app.pause(target)


def test_a_pool_is_never_overdrawn_by_jobs_of_many_types(app: App) -> None:
    app.upstream(HOST, limit=3)
    inside = most = 0

    async def work() -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await takes(7)
        inside -= 1

    kinds = [app.job(type=f"type {n}", upstream=HOST, lane=f"lane {n}")(work) for n in range(4)]
    with World(app) as world:
        handles = [kinds[n % 4].enqueue() for n in range(40)]
        world.run_for("10m")
        assert set(states(handles)) == {"completed"}
    assert most == 3


def test_the_disk_has_two_places_unless_told_otherwise(app: App) -> None:
    inside = most = 0

    @app.job(tools=("disk",))
    async def unpack() -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await takes(10)
        inside -= 1

    with World(app) as world:
        for _ in range(10):
            unpack.enqueue()
        world.run_for(10)
        assert most == 2
        app.set("tool:disk", limit=4)
        world.run_for("1m")
        assert most == 4


def test_a_tool_may_be_asked_for_by_a_single_job(app: App, diary: Diary) -> None:
    app.tool("ffmpeg", limit=1)

    @app.job()
    async def work(name: str) -> None:
        diary.note(name)
        await takes(10)

    with World(app) as world:
        diary.begin(world)
        for name in ("one", "two"):
            work.options(tools=("ffmpeg",)).enqueue(name)
        work.enqueue("without")
        world.run_for("1m")
    assert diary.rows == [(0.0, "one"), (0.0, "without"), (10.0, "two")]


def test_a_pace_is_not_beaten_by_a_restart(app: App, diary: Diary) -> None:
    app.upstream(HOST, every="10s")

    @app.job(upstream=HOST)
    def fetch() -> None:
        diary.note()

    with World(app) as world:
        diary.begin(world)
        for _ in range(20):
            fetch.enqueue()
        for _ in range(40):
            world.run_for(3)
            world.restart()
        world.run_for("10m")
    assert len(diary.times) == 20
    assert min(gaps(diary.times)) >= 10.0


@second_store_in_the_soak
@settings(max_examples=25)
@given(
    interval_s=st.sampled_from([0.5, 1.0, 7.0]),
    limit=st.integers(1, 3),
    steps=st.lists(
        st.tuples(
            st.sampled_from(["enqueue", "restart", "down", "pushback", "wait", "settings"]),
            st.integers(0, 20),
        ),
        max_size=15,
    ),
)
def test_no_script_beats_a_pace_a_pool_or_a_closure(
    interval_s: float, limit: int, steps: list[tuple[str, int]]
) -> None:
    app = App()
    app.upstream(HOST, every=f"{interval_s}s", limit=limit)
    starts: list[float] = []
    inside: set[int] = set()
    pushes = closed_until = 0.0
    lost = 0

    @app.job(upstream=HOST)
    async def fetch(n: int) -> object:
        nonlocal closed_until, pushes
        assert world.now >= closed_until, "not into a closed upstream"
        starts.append(world.now)
        inside.add(n)
        assert len(inside) <= limit
        try:
            await takes(n % 5)
        finally:
            inside.discard(n)
        if pushes:
            pushes -= 1
            closed_until = world.now + 30
            return Pushback(retry_after=30)
        return None

    with World(app) as world:
        asked = 0
        for what, number in steps:
            match what:
                case "enqueue":
                    for _ in range(number):
                        fetch.enqueue(asked)
                        asked += 1
                case "restart":
                    lost += 1
                    world.restart()
                case "down":
                    lost += 1
                    world.crash()
                    world.run_for(number)
                    world.restart()
                case "pushback":
                    pushes += 1
                case "settings":
                    app.set("lane:default", limit=max(number, 1))
                case _:
                    world.run_for(number)
        world.run_for("2h")
        done = {row.type: row for row in app.stats()}
        if asked:
            assert done["fetch"].ended == asked
            assert done["fetch"].completed == asked or lost >= 3
    assert all(gap >= interval_s - 0.001 for gap in gaps(starts))


def test_a_flood_of_tenants_leaves_nothing_behind_in_the_store(app: App) -> None:
    app.upstream(HOST, tenant={"every": "10s"}, cooldown="5s")

    @app.job(upstream=HOST, tenant=lambda tenant: tenant)
    def work(tenant: str) -> None: ...

    with World(app) as world:
        app.enqueue_many(work.call(f"tenant-{number}") for number in range(20))
        world.run_for("30s")
        assert len(app.store.gates()) > 5
        world.run_for("1h")
        assert app.store.gates() == []
        world.restart()
        world.run_for("1h")
        assert app.store.gates() == []


def test_the_tenant_without_a_name_is_not_taken_for_all_of_them(app: App) -> None:
    """What is remembered of it and of the upstream itself are two things."""

    @app.job(upstream=HOST)
    def work() -> None:
        return None

    with World(app) as world:
        for tenant, seconds in (("", 600), (None, 60)):
            what = {"do": "close", "kind": "upstream", "name": HOST, "until": world.now + seconds}
            told = {**what, "why": "so", **({} if tenant is None else {"tenant": tenant})}
            assert app.engine is not None
            app.engine.ask(lambda now, told=told: app.engine.brain.controls.gate(told, now))  # type: ignore
        nameless, other = work.enqueue(), work.options(tenant="acme").enqueue()
        world.run_for(1)
        world.restart()
        world.run_for(30)
        assert states([nameless, other]) == ["queued", "queued"]
        world.restart()
        world.run_for(60)
        assert states([nameless, other]) == ["queued", "completed"]
        world.run_for(600)
        assert nameless.state == "completed"
