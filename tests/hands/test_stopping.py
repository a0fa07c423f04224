"""Timeouts and cancelling: the work has really stopped before its permit is released."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from headway import App, job
from headway.core import IllegalTransition
from headway.engine.brain import Brain
from headway.engine.hands import local
from tests.hands.kit import KINDS, WAIT_S, Endless, eventually, names_of, state_is

TERMINAL_EVENTS = {"ok", "fatal", "exhausted", "cancel", "lost_too_often", "deadline"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_timeout_really_stops_the_work(app: App, tmp_path: Path, kind: str) -> None:
    endless = Endless(app, kind, tmp_path, timeout=0.4)
    with app.running():
        handle = endless.job.enqueue()
        endless.has_started()
        assert handle.wait(WAIT_S) == "failed"
        assert not endless.is_at_work()
        assert "longer than 0.4 s" in (handle.row().error or "")


def test_a_timeout_burns_the_attempt_and_another_one_follows(app: App) -> None:
    @app.job(timeout=0.05, retries=1, retry_delay=0)
    async def slow_at_first() -> int:
        if job.attempt == 1:
            await asyncio.Event().wait()
        return job.attempt

    with app.running():
        assert slow_at_first.enqueue().result(WAIT_S) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_cancelling_really_stops_the_work(app: App, tmp_path: Path, kind: str) -> None:
    endless = Endless(app, kind, tmp_path)
    with app.running():
        handle = endless.job.enqueue()
        endless.has_started()
        assert handle.cancel() == "running"  # it is asked; its end comes when it has stopped
        assert handle.wait(WAIT_S) == "cancelled"
        assert not endless.is_at_work()
        assert names_of(app, handle.id) == ["submit", "grant", "cancel_requested", "cancel"]


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_gets_the_place_before_the_work_has_stopped(
    app: App, tmp_path: Path, kind: str
) -> None:
    app.lane("narrow", limit=1)
    endless = Endless(app, kind, tmp_path, lane="narrow")
    found_at_work: list[bool] = []

    @app.job(lane="narrow")
    def next_one() -> None:
        found_at_work.append(endless.is_at_work())

    with app.running():
        handle = endless.job.enqueue()
        endless.has_started()
        following = next_one.enqueue()
        handle.cancel()
        assert following.wait(WAIT_S) == "completed"
    assert found_at_work == [False]


def test_a_handler_cleans_up_before_it_is_over(app: App) -> None:
    started, cleaned = threading.Event(), threading.Event()

    @app.job()
    async def tidy() -> None:
        try:
            started.set()
            await asyncio.Event().wait()
        finally:
            for _ in range(50):
                await asyncio.sleep(0)
            cleaned.set()

    with app.running():
        handle = tidy.enqueue()
        assert started.wait(WAIT_S)
        handle.cancel()
        assert handle.wait(WAIT_S) == "cancelled"
        assert cleaned.is_set()


@pytest.mark.parametrize("is_async", [True, False])
def test_a_handler_that_swallows_the_order_gets_it_again(
    app: App, monkeypatch: pytest.MonkeyPatch, is_async: bool
) -> None:
    monkeypatch.setattr(local, "ASK_AGAIN_S", 0.05)
    orders = 0
    started = threading.Event()

    async def deaf_coroutine() -> None:
        nonlocal orders
        started.set()
        while orders < 3:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                orders += 1
        raise asyncio.CancelledError

    def deaf_function() -> None:
        nonlocal orders
        started.set()
        between = threading.Event()
        while orders < 3:
            try:
                while True:
                    between.wait(0.001)
            except BaseException:
                orders += 1
        job.check()

    deaf: Any = app.job(type="deaf")(deaf_coroutine if is_async else deaf_function)
    with app.running():
        handle = deaf.enqueue()
        assert started.wait(WAIT_S)
        handle.cancel()
        assert handle.wait(WAIT_S) == "cancelled"
    assert orders == 3


def test_work_that_is_done_although_it_was_cancelled_counts_as_done(app: App) -> None:
    started = threading.Event()

    @app.job()
    async def stubborn() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done anyway"
        return ""

    with app.running():
        handle = stubborn.enqueue()
        assert started.wait(WAIT_S)
        handle.cancel()
        assert handle.result(WAIT_S) == "done anyway"
        assert names_of(app, handle.id)[-1] == "ok"


def test_a_cancelled_error_from_within_is_an_ordinary_failure(app: App) -> None:
    @app.job(retries=0)
    async def confused() -> None:
        raise asyncio.CancelledError

    with app.running():
        handle = confused.enqueue()
        assert handle.wait(WAIT_S) == "failed"
        assert "cancelled from within" in (handle.row().error or "")


@pytest.mark.parametrize("is_async", [True, False])
def test_cancelling_and_completing_at_once_never_gives_both(app: App, is_async: bool) -> None:
    async def coroutine() -> str:
        await asyncio.sleep(0)
        return "done"

    def function() -> str:
        return "done"

    quick: Any = app.job(type="quick")(coroutine if is_async else function)
    random = Random(7)
    with app.running():
        for _ in range(60):
            handle = quick.enqueue()
            for _ in range(random.randrange(2_000)):
                pass
            with suppress(IllegalTransition):  # it is too late, and hears so
                app.cancel(handle.id)
            state = handle.wait(WAIT_S)
            ends = [name for name in names_of(app, handle.id) if name in TERMINAL_EVENTS]
            assert (state, ends) in [("completed", ["ok"]), ("cancelled", ["cancel"])]
            assert (app.store.result(handle.id) is not None) == (state == "completed")


def test_a_job_can_be_cancelled_as_soon_as_it_is_enqueued(app: App) -> None:
    app.lane("shut", limit=0)

    @app.job(lane="shut")
    def wait_in_line() -> None: ...

    with app.running():
        for _ in range(50):
            assert wait_in_line.enqueue().cancel() == "cancelled"
        last = app.enqueue_many(wait_in_line.call() for _ in range(5_000))[-1]
        assert last.cancel() == "cancelled"
        assert app.explain(last.id - 1).state == "queued"


def test_cancelling_what_waits_keeps_it_from_ever_running(app: App) -> None:
    ran = []
    app.lane("narrow", limit=1)
    free = threading.Event()

    @app.job(lane="narrow")
    def first() -> None:
        free.wait(WAIT_S)

    @app.job(lane="narrow")
    def second() -> None:
        ran.append(job.id)

    with app.running():
        first.enqueue()
        handle = second.enqueue()
        assert handle.cancel() == "cancelled"
        free.set()
        assert second.enqueue().wait(WAIT_S) == "completed"
    assert handle.id not in ran


# Leases


class ShortLeases(Brain):
    """A brain whose leases end within the time of a test."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "lease_s": 1.0})


@pytest.fixture
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.engine.engine.Brain", ShortLeases)


@pytest.mark.usefixtures("short_leases")
def test_a_handler_that_blocks_the_loop_keeps_its_lease_and_stops_no_decision(app: App) -> None:
    started, free = threading.Event(), threading.Event()
    app.lane("shut", limit=0)

    @app.job()
    async def block() -> int:
        started.set()
        free.wait(WAIT_S)  # blocks every other async handler too
        return job.attempt

    @app.job(lane="shut")
    def wait_in_line() -> None: ...

    with app.running():
        assert app.engine is not None
        leases = app.engine.brain.core.leases.permits
        handle = block.enqueue()
        assert started.wait(WAIT_S)
        fence = handle.row().fence
        first_end = leases[fence].expires_at
        eventually(lambda: leases[fence].expires_at > first_end + 2)  # two whole leases later
        other = wait_in_line.enqueue()
        assert other.cancel() == "cancelled"
        free.set()
        assert handle.result(WAIT_S) == 1
        assert names_of(app, handle.id) == ["submit", "grant", "ok"]


@pytest.mark.usefixtures("short_leases")
def test_a_lease_that_ends_stops_its_work(app: App, tmp_path: Path) -> None:
    """Nothing renews beyond the longest time that a key may be locked."""
    endless = Endless(app, "task", tmp_path, key="one")
    with app.running():
        assert app.engine is not None
        app.engine.brain.core.max_key_hold_s = 1.0
        handle = endless.job.enqueue()
        for _ in range(2):
            endless.has_started()
        assert handle.state == "running"
        assert endless.attempts[:2] == [1, 2]
        handle.cancel()
        handle.wait(WAIT_S)


@pytest.mark.usefixtures("short_leases")
def test_the_last_lease_that_is_lost_stops_the_work_too(app: App, tmp_path: Path) -> None:
    endless = Endless(app, "task", tmp_path, key="one")
    with app.running():
        assert app.engine is not None
        app.engine.brain.core.max_key_hold_s = 0.2
        handle = endless.job.enqueue()
        assert handle.wait(WAIT_S) == "failed"
        assert endless.attempts == [1, 2, 3]
        eventually(lambda: not endless.is_at_work())
        eventually(lambda: not app.engine.brain.hand_held)  # type: ignore[union-attr]


# What operators may do to types that nobody knows


def test_opening_the_gate_of_an_unknown_type_does_no_harm(app: App, url: str) -> None:
    elsewhere = App(url)

    @elsewhere.job()
    def unknown() -> None: ...

    handle = unknown.enqueue()
    elsewhere.close()

    @app.job()
    def known() -> str:
        return "fine"

    with app.running():
        assert known.enqueue().result(WAIT_S) == "fine"
        app.open("type:unknown")
        assert known.enqueue().result(WAIT_S) == "fine"
        state_is(app, handle.id, "queued")
        assert "no worker knows this type" in str(app.explain(handle.id))

    @app.job(type="unknown")
    def known_now() -> None: ...

    with app.running():
        assert app.handle(handle.id).wait(WAIT_S) == "completed"
