"""A server that is to lead and cannot, though its engine runs, lets another one lead."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI

from headway import App
from headway.api.server import started
from headway.api.serving import Server
from headway.api.together.front import Front
from headway.api.together.standing import Standing
from headway.errors import EngineRunning, StoreUnavailable
from headway.store.records import Leader
from tests.hands.kit import WAIT_S

AWAY = StoreUnavailable("the session was cut")


class Candidate:
    """What it starts fails."""

    def __init__(self, did: list[str]) -> None:
        self.did = did

    def lead(self) -> FastAPI:
        self.did.append("lead")

        @asynccontextmanager
        async def fails(_: FastAPI) -> AsyncIterator[None]:
            raise AWAY
            yield

        return FastAPI(lifespan=fails)

    def settle(self, app: FastAPI) -> None:
        self.did.append("settle")

    def give_up(self) -> None:
        self.did.append("give up")


class Store:
    """Nobody leads, until somebody has given up."""

    def __init__(self, did: list[str]) -> None:
        self.did = did

    def announce(self, *_: str) -> None:
        pass

    def leader(self) -> Leader | None:
        return Leader(2, "b", "b", "http://b") if "give up" in self.did else None


def test_an_engine_that_cannot_be_used_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    did: list[str] = []
    front = Front()
    front.candidate = Candidate(did)

    async def watch() -> None:
        store: Any = Store(did)
        standing = Standing(store, "http://a", leads=False)
        watching = asyncio.ensure_future(standing.watch(front._take_over))
        async with asyncio.timeout(WAIT_S):
            await standing.found(float("inf"))
        watching.cancel()
        assert not standing.leads

    with caplog.at_level(logging.WARNING):
        asyncio.run(watch())
    assert did == ["lead", "give up"]
    assert "could not lead: the session was cut" in caplog.text


def test_a_server_that_is_to_stop_does_not_begin_to_lead() -> None:
    """Its address refuses connections already."""
    did: list[str] = []
    store: Any = Store(did)
    standing = Standing(store, "http://a", leads=False)

    async def take_over() -> None:
        did.append("lead")

    standing.stop()
    asyncio.run(standing._look(take_over))
    assert did == []
    assert not standing.leads


class Part:
    """An application, or the fair queue."""

    def __init__(self, name: str, did: list[str], error: Exception | None = None) -> None:
        self.name, self.did, self.error = name, did, error

    async def start(self) -> None:
        if self.error is not None:
            raise self.error
        self.did.append(f"start {self.name}")

    async def stop(self) -> None:
        self.did.append(f"stop {self.name}")


def test_what_had_started_is_stopped_when_something_else_cannot_start() -> None:
    did: list[str] = []

    async def close() -> None:
        did.append("streams end")

    async def go() -> None:
        parts = [Part("a", did), Part("b", did, AWAY), Part("c", did)]
        site: Any = SimpleNamespace(fairqueue=Part("queue", did), applications=parts,
                                    hub=SimpleNamespace(close=close))  # fmt: skip
        async with started(site):
            raise AssertionError("it cannot have started")

    with pytest.raises(StoreUnavailable):
        asyncio.run(go())
    assert did == ["start queue", "start a", "stop a", "stop queue"]


def test_an_app_whose_schedules_cannot_be_declared_leaves_no_engine_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = App()

    def fails() -> None:
        raise AWAY

    monkeypatch.setattr(app, "declared_schedules", fails)
    with pytest.raises(StoreUnavailable):
        app.start()
    assert app.engine is None
    monkeypatch.undo()
    with app.running():
        pass
    app.close()


def test_a_server_that_has_given_up_begins_again_when_its_store_is_back() -> None:
    """Its applications are not made to start twice."""
    did: list[str] = []

    class Away:
        def leader(self) -> None:
            did.append("look")
            if len(did) < 3:
                raise AWAY

    app: Any = SimpleNamespace(stop=lambda _: did.append("stop"), store=Away())
    config: Any = SimpleNamespace(dsn="postgresql://", drain_s=1.0)
    server = Server(config, app, None, ())  # type: ignore[arg-type]
    server.uvicorn = uvicorn = SimpleNamespace(  # type: ignore[assignment]
        should_exit=False, config=SimpleNamespace()
    )  # fmt: skip
    assert not server.begins_again
    server.give_up()
    assert uvicorn.should_exit
    server._pause.set()
    server.wait_for_store()
    assert did == ["stop", "look", "look"]
    assert server.begins_again


@pytest.mark.parametrize("told", [False, True])
def test_a_server_whose_routes_cannot_be_made_gives_up_its_engine(
    monkeypatch: pytest.MonkeyPatch, *, told: bool
) -> None:
    did: list[str] = []

    class Fake:
        engine: Any = None

        def start(self) -> None:
            self.engine = SimpleNamespace()
            server._told = told  # meanwhile

        def stop(self, _: float) -> None:
            self.engine = None
            did.append("stop")

    def fails(*_: object) -> None:
        raise AWAY

    config: Any = SimpleNamespace(dsn="postgresql://", drain_s=1.0)
    app: Any = Fake()
    server = Server(config, app, None, ())  # type: ignore[arg-type]
    monkeypatch.setattr(server, "_new_site", fails)
    with pytest.raises(EngineRunning if told else StoreUnavailable):
        server.lead()
    assert did == ["stop"]
    assert server.begins_again is not told


class Engine:
    """Nothing runs here but calls to an upstream, for so many looks."""

    def __init__(self, *, idle: bool = True, calls: int = 0) -> None:
        self.idle = idle
        self.left = calls
        self.brain = SimpleNamespace(online=SimpleNamespace(own=self))

    def __bool__(self) -> bool:
        self.left -= 1
        return self.left >= 0

    def drain(self, _: float) -> bool:
        return self.idle


def handed_over(engine: Engine, servers: int = 2, drain_s: float = 30.0) -> tuple[list[str], Any]:
    """What a server did that was told to stop, and its connections, which a slow client keeps."""
    did: list[str] = []
    store = SimpleNamespace(servers=lambda: [None] * servers)
    app: Any = SimpleNamespace(stop=lambda _: did.append("lease"), store=store)
    config: Any = SimpleNamespace(dsn="postgresql://", drain_s=drain_s)
    server = Server(config, app, None, ())  # type: ignore[arg-type]
    uvicorn: Any = SimpleNamespace(
        config=SimpleNamespace(timeout_graceful_shutdown=drain_s + 1),
        server_state=SimpleNamespace(connections=()),
        force_exit=False,
    )
    server.uvicorn = uvicorn
    server._pause.set()
    server.front.retire = lambda: did.append("retire")  # type: ignore[method-assign]
    server._hand_over(engine, lambda: did.append("stop"))  # type: ignore[arg-type]
    return did, uvicorn.config.timeout_graceful_shutdown


def test_a_leader_that_stops_lets_its_lease_go_when_nothing_runs() -> None:
    assert handed_over(Engine()) == (["stop", "retire", "lease"], 31.0)


def test_calls_to_an_upstream_are_waited_for_since_somebody_must_write_down_their_price() -> None:
    assert handed_over(Engine(calls=5)) == (["stop", "retire", "lease"], 31.0)
    long_ones = Engine(calls=1_000_000_000)
    assert handed_over(long_ones, drain_s=0.01) == (["stop"], 1.01)


def test_a_leader_whose_jobs_have_used_up_the_time_waits_for_no_client() -> None:
    assert handed_over(Engine(idle=False)) == (["stop"], 1)


def test_a_server_that_is_alone_has_nobody_to_hand_over_to() -> None:
    assert handed_over(Engine(), servers=1) == (["stop"], 31.0)
