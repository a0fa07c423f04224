"""Pausing what runs: it stops at its next word, burns no attempt, and goes on from there."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from headway import App, job
from tests.hands.kit import WAIT_S, Endless, eventually, names_of, state_is


def burnt(app: App, id: int) -> list[Any] | None:
    tries = app.handle(id).row().tries
    return None if tries is None else json.loads(tries)


@pytest.mark.parametrize("is_async", [True, False])
def test_a_paused_job_stops_at_its_next_checkpoint_and_goes_on_from_there(
    app: App, is_async: bool
) -> None:
    steps: list[tuple[int, int]] = []  # attempt, step
    between = threading.Event()
    enough = threading.Event()

    async def coroutine() -> int:
        for step in range(job.saved or 0, 1_000_000):
            steps.append((job.attempt, step))
            job.checkpoint(step + 1)
            await asyncio.sleep(0)
            if enough.is_set():
                return step
        return -1

    def function() -> int:
        for step in range(job.saved or 0, 1_000_000):
            steps.append((job.attempt, step))
            job.checkpoint(step + 1)
            between.wait(0.0005)
            if enough.is_set():
                return step
        return -1

    walk: Any = app.job(type="walk", retries=0)(coroutine if is_async else function)
    with app.running():
        handle = walk.enqueue()
        eventually(lambda: len(steps) > 10)
        app.pause(handle.id)
        state_is(app, handle.id, "paused")
        done = len(steps)
        assert burnt(app, handle.id) is None
        app.resume(handle.id)
        eventually(lambda: len(steps) > done + 10)
        enough.set()
        assert handle.result(WAIT_S) > done
        assert names_of(app, handle.id) == [
            "submit", "grant", "pause_requested", "pause", "resume", "grant", "ok",
        ]  # fmt: skip
    assert {attempt for attempt, _ in steps} == {1}
    assert [step for _, step in steps] == list(range(len(steps)))  # none twice, none left out


def test_progress_is_a_place_to_stop_too(app: App) -> None:
    begun = threading.Event()

    @app.job()
    def count() -> None:
        between = threading.Event()
        while True:
            job.progress(1)
            begun.set()
            between.wait(0.001)

    with app.running():
        handle = count.enqueue()
        assert begun.wait(WAIT_S)
        app.pause(handle.id)
        state_is(app, handle.id, "paused")
        assert app.cancel(handle.id) == "cancelled"


def test_a_job_that_says_nothing_is_not_interrupted_by_a_pause(app: App) -> None:
    begun, free = threading.Event(), threading.Event()

    @app.job()
    def silent() -> str:
        begun.set()
        free.wait(WAIT_S)
        return "done"

    with app.running():
        handle = silent.enqueue()
        assert begun.wait(WAIT_S)
        assert app.pause(handle.id) == "running"
        free.set()
        assert handle.result(WAIT_S) == "done"


@pytest.mark.parametrize("kind", ["program", "async program"])
def test_a_pause_ends_a_running_program(app: App, tmp_path: Path, kind: str) -> None:
    endless = Endless(app, kind, tmp_path)
    with app.running():
        handle = endless.job.enqueue()
        endless.has_started()
        app.pause(handle.id)
        state_is(app, handle.id, "paused")
        assert not endless.is_at_work()
        app.resume(handle.id)
        endless.has_started()
        assert endless.attempts == [1, 1]
        handle.cancel()
        assert handle.wait(WAIT_S) == "cancelled"


def test_a_pause_that_is_taken_back_in_time_changes_nothing_for_good(app: App) -> None:
    begun, free = threading.Event(), threading.Event()

    @app.job(retries=0)
    def walk() -> int:
        begun.set()
        free.wait(WAIT_S)
        job.check()
        return job.attempt

    with app.running():
        handle = walk.enqueue()
        assert begun.wait(WAIT_S)
        app.pause(handle.id)
        app.resume(handle.id)
        free.set()
        assert handle.result(WAIT_S) == 1


def test_a_cancel_outdoes_a_pause(app: App) -> None:
    begun, free, between = threading.Event(), threading.Event(), threading.Event()

    @app.job()
    def walk() -> None:
        begun.set()
        free.wait(WAIT_S)
        while not job.stopping:  # the order is on its way
            between.wait(0.001)
        job.check()

    with app.running():
        handle = walk.enqueue()
        assert begun.wait(WAIT_S)
        app.pause(handle.id)
        app.cancel(handle.id)
        free.set()
        assert handle.wait(WAIT_S) == "cancelled"


def test_a_paused_job_stays_paused_over_a_restart(app: App) -> None:
    @app.job()
    def walk() -> str:
        return "done"

    handle = walk.options(delay="1h").enqueue()
    with app.running():
        assert app.pause(handle.id) == "paused"
    with app.running():
        assert handle.state == "paused"
        app.resume(handle.id)
        app.reschedule(handle.id, 0)
        assert handle.result(WAIT_S) == "done"
