"""A store that is away for a while: nothing is promised meanwhile, then all goes on by itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from headway import App
from headway.engine.brain import Brain
from headway.errors import StoreFull
from headway.store.records import Query
from tests.engine_real.disks import Disk, disk_of
from tests.hands.kit import WAIT_S, eventually, names_of


@pytest.fixture
def disk(app: App) -> Iterator[Disk]:
    disk = disk_of(app)
    yield disk
    disk.clear()


def test_nothing_is_acknowledged_while_the_disk_is_full(app: App, disk: Disk) -> None:
    @app.job()
    def note() -> None: ...

    with app.running():
        disk.fill()
        with pytest.raises(StoreFull, match="no space is left"):
            note.enqueue()
        disk.clear()
        assert note.enqueue().wait(WAIT_S) == "completed"
        assert app.store.count(Query()) == 1


def test_nothing_is_granted_while_the_disk_is_full_and_then_all_goes_on(
    app: App, disk: Disk
) -> None:
    begun, free, ran = threading.Event(), threading.Event(), []
    app.lane("narrow", limit=1)

    @app.job(lane="narrow")
    def first() -> str:
        begun.set()
        free.wait(WAIT_S)
        return "kept"

    @app.job(lane="narrow")
    def second() -> None:
        ran.append(1)

    with app.running():
        assert app.engine is not None
        brain = app.engine.brain
        ends, waits = first.enqueue(), second.enqueue()
        assert begun.wait(WAIT_S)
        app.explain(waits.id)  # the engine has seen it
        assert brain.trouble == ""
        disk.fill()
        free.set()  # its end cannot be stored, so nobody gets its place
        eventually(lambda: disk.refused > 2 and "no space is left" in brain.trouble)
        asked = app.engine.ask(lambda _: "heard")
        assert ran == []
        assert ends.state == "running"
        assert not asked.done()
        disk.clear()
        assert ends.result(WAIT_S) == "kept"
        assert waits.wait(WAIT_S) == "completed"
        assert asked.result(WAIT_S) == "heard"
        assert brain.trouble == ""
        assert ran == [1]
        assert names_of(app, ends.id) == ["submit", "grant", "ok"]


class ShortLeases(Brain):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "lease_s": 0.6})


def test_what_runs_keeps_its_lease_while_the_store_is_away(
    app: App, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.engine.engine.Brain", ShortLeases)
    begun, free = threading.Event(), threading.Event()

    @app.job()
    def long() -> str:
        begun.set()
        free.wait(WAIT_S)
        return "kept"

    @app.job()
    def other() -> None: ...

    with app.running():
        handle = long.enqueue()
        assert begun.wait(WAIT_S)
        expires_at = handle.row().granted_at or 0
        other.enqueue()
        disk.fill()
        app.engine.ask(lambda _: app.engine.brain.record(0, "something"))  # type: ignore[union-attr]
        eventually(lambda: disk.refused > 1 and app.now() > expires_at + 2)
        disk.clear()
        free.set()
        assert handle.result(WAIT_S) == "kept"
        assert names_of(app, handle.id) == ["submit", "grant", "ok"]


def test_an_engine_can_be_stopped_although_the_store_is_away(
    app: App, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.engine.engine.GRACE_S", 0.2)
    begun, free = threading.Event(), threading.Event()

    @app.job()
    def long() -> str:
        begun.set()
        free.wait(WAIT_S)
        return "done"

    app.start()
    engine = app.engine
    assert engine is not None
    handle = long.enqueue()
    assert begun.wait(WAIT_S)
    disk.fill()
    free.set()
    app.stop(drain=0.1)
    assert engine.done.wait(WAIT_S)
    disk.clear()
    with app.running():  # what could not be stored has to be done again
        assert handle.result(WAIT_S) == "done"
        assert names_of(app, handle.id) == ["submit", "grant", "lost", "grant", "ok"]
