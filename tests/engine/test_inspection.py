"""What can be seen of a gate: who holds it and with which traffic, places that open later, tenants'
shares, and the tick of a pace.
"""

from __future__ import annotations

from typing import Any

import pytest

from headway import App, Pushback
from headway.core import Outcome
from headway.engine.inspection import glance, picture
from headway.engine.online import OnlineCall
from headway.testing import World
from tests.engine.kit import takes

HOST = "api.example.com"


def seen(app: App, kind: str = "upstream", name: str = HOST) -> dict[str, Any]:
    engine: Any = app.engine
    return engine.ask(lambda now: picture(engine.brain, kind, name, now, whole=True)).result()  # type: ignore[no-any-return]


def called(app: App, tenant: str = "t") -> OnlineCall:
    engine: Any = app.engine
    call = engine.ask(lambda now: engine.brain.online.go((HOST,), now, tenant=tenant)).result()
    assert isinstance(call, OnlineCall)
    return call


def test_holders_are_told_apart_by_their_traffic(app: App) -> None:
    @app.job(type="work", upstream=HOST)
    async def work() -> None:
        await takes(10)

    with World(app) as world:
        plain = work.options(key="k", labels={"at": "home"}).enqueue()
        work.options(traffic="leftover").enqueue()
        world.run_for(1)
        call = called(app)
        gate = seen(app)
        assert (gate["running"], gate["running_by"]) == (
            3, {"online": 1, "normal": 1, "leftover": 1},
        )  # fmt: skip
        by_traffic = {each["traffic"]: each for each in gate["holders"]}
        online = by_traffic["online"]
        assert call.permit is not None
        assert (online["kind"], online["id"]) == ("online", f"online-{call.permit.fence}")
        normal = by_traffic["normal"]
        assert (normal["kind"], normal["id"], normal["key"]) == ("job", plain.id, "k")
        assert normal["labels"] == {"at": "home"}


def test_a_place_that_was_given_back_early_cools_until_it_opens(app: App) -> None:
    @app.job(type="work", upstream=HOST)
    async def work() -> None:
        await takes(1)

    app.upstream(HOST, limit=2, min_hold="30s")
    with World(app) as world:
        start = world.now
        work.enqueue()
        world.run_for(5)
        gate = seen(app)
        assert (gate["running"], gate["cooling"], gate["holders"]) == (0, 1, [])
        assert gate["cooling_until"] == [pytest.approx(start + 30, abs=1)]
        world.restart()
        assert seen(app)["cooling_until"] == gate["cooling_until"]
        world.run_for(30)
        gate = seen(app)
        assert (gate["cooling"], gate["cooling_until"]) == (0, [])


def test_shares_are_what_tenants_used_of_late(app: App) -> None:
    @app.job(type="work", upstream=HOST)
    async def work(seconds: float) -> None:
        await takes(seconds)

    app.upstream(HOST, limit=4)
    with World(app) as world:
        for _ in range(3):
            work.options(tenant="busy", weight=3.0).enqueue(500.0)
        for _ in range(200):  # one after the other, with nothing between
            work.options(tenant="brief").enqueue(1.0)
            world.run_for(1)
        work.options(tenant="brief").enqueue(10.0)
        world.run_for(1)
        work.options(tenant="late").enqueue(10.0)
        world.run_for(1)
        rows = {row["tenant"]: row for row in seen(app)["tenants"]}
        assert set(rows) == {"busy", "brief", "late"}
        assert sum(row["share"] for row in rows.values()) == pytest.approx(1.0, abs=0.001)
        assert rows["busy"]["share"] == pytest.approx(0.75, abs=0.1)
        assert rows["brief"]["share"] == pytest.approx(0.25, abs=0.1)
        assert (rows["late"]["share"], rows["late"]["running"], rows["late"]["waiting"]) == (
            0,
            0,
            1,
        )
        assert rows["busy"]["weight"] == 3.0
        world.run_for("20m")
        work.options(tenant="late").enqueue(10.0)
        world.run_for(5)
        assert [row["share"] for row in seen(app)["tenants"]] == [1.0], "the others are long gone"


def test_a_tenant_waits_since_its_oldest_came(app: App) -> None:
    @app.job(type="work", upstream=HOST)
    async def work() -> None:
        await takes(100)

    app.upstream(HOST, limit=1)
    with World(app) as world:
        work.options(tenant="a").enqueue()
        world.run_for(5)
        came = world.now
        for priority in (5, 1):
            work.options(tenant="b", priority=priority).enqueue()
            world.run_for(10)
        rows = {row["tenant"]: row for row in seen(app)["tenants"]}
        assert rows["a"]["waiting_since"] is None
        assert rows["b"]["waiting"] == 2
        assert rows["b"]["waiting_since"] == pytest.approx(came, abs=0.01)


def test_a_pace_tells_its_next_tick_and_its_last(app: App) -> None:
    @app.job(type="work", upstream=HOST)
    def work() -> None:
        pass

    app.upstream(HOST, every="10s", burst=2)
    with World(app) as world:
        (pace,) = seen(app)["limits"]
        assert (pace["tokens"], pace["next_at"], pace["last_at"]) == (2, None, None)
        began = world.now
        for _ in range(3):
            work.enqueue()
        world.run_for(5)
        (pace,) = seen(app)["limits"]
        assert (pace["interval_s"], pace["burst"], pace["tokens"]) == (10, 2, 0.5)
        assert pace["last_at"] == pytest.approx(began, abs=0.01)
        assert pace["next_at"] == pytest.approx(began + 10, abs=0.01)
        world.run_for(6)
        (pace,) = seen(app)["limits"]
        assert pace["last_at"] == pytest.approx(began + 10, abs=0.01)


def test_a_glance_sees_what_is_busy_closed_and_pushed_back(app: App) -> None:
    @app.job(type="work", upstream=HOST)
    async def work(answer: str) -> None:
        if answer == "no":
            raise Pushback(retry_after="1h")
        await takes(100)

    engine_of: Any = app
    app.upstream(HOST, limit=1)

    def look(name: str = HOST) -> Any:
        engine = engine_of.engine
        return engine.ask(lambda now: glance(engine.brain, "upstream", name, now)).result()

    with World(app) as world:
        assert look("nobody") == (0, False, float("-inf"))
        for _ in range(3):
            work.enqueue("yes")
        world.run_for(1)
        assert look()[:2] == (3, False)
        app.close_until(f"upstream:{HOST}", world.now + 60)
        assert look().closed
        world.run_for("6m")
        work.enqueue("no")
        world.run_for(1)
        assert look().closed
        assert look().pushed_at == pytest.approx(world.now, abs=2)


def test_an_online_call_that_ended_is_no_holder_any_more(app: App) -> None:
    with World(app):
        engine: Any = app.engine
        call = called(app)
        engine.ask(lambda now: engine.brain.online.end(call, Outcome.ok(), now)).result()
        assert seen(app)["running_by"]["online"] == 0
