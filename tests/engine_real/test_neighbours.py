"""Several processes and threads on one store, one engine among them."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from headway import App
from headway.core import IllegalTransition
from headway.engine.brain import NET_S
from headway.errors import EngineRunning
from tests.hands.kit import WAIT_S, eventually
from tests.stores import second_store_in_the_soak

NEIGHBOUR = str(Path(__file__).with_name("neighbour.py"))


def started(url: str, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, NEIGHBOUR, url, *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def said(url: str, *words: str) -> str:
    neighbour = started(url, *words)
    out, _ = neighbour.communicate(timeout=600)
    assert neighbour.returncode == 0
    return out


@pytest.fixture
def note(app: App) -> Any:
    @app.job()
    def note(number: int) -> int:
        return number

    return note


class OnRequest:
    """A neighbour that enqueues when it is asked to."""

    def __init__(self, url: str) -> None:
        self._process = started(url, "enqueue_on_request")
        assert self._line() == "ready"

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def enqueue(self) -> tuple[int, float]:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        id, at = self._line().split()
        return int(id), float(at)

    def close(self) -> None:
        self._process.communicate(timeout=WAIT_S)


@pytest.mark.usefixtures("note")
def test_the_bell_brings_a_job_of_another_process_to_the_engine_at_once(app: App, url: str) -> None:
    with app.running():
        neighbour = OnRequest(url)
        delays = []
        for _ in range(5):
            id, at = neighbour.enqueue()
            assert app.handle(id).wait(WAIT_S) == "completed"
            delays.append((app.handle(id).row().granted_at or 0) - at)
        neighbour.close()
    assert sorted(delays)[2] < 1.0


@second_store_in_the_soak
@pytest.mark.usefixtures("note")
def test_a_job_whose_bell_nobody_heard_is_caught_by_the_net(app: App, url: str) -> None:
    with app.running():
        app.store._listener.close()  # type: ignore[attr-defined]
        neighbour = OnRequest(url)
        id, at = neighbour.enqueue()
        assert app.handle(id).wait(NET_S + WAIT_S) == "completed"
        assert (app.handle(id).row().granted_at or 0) - at < NET_S + 5
        neighbour.close()


def test_a_second_engine_is_refused_and_the_first_goes_on(app: App, url: str, note: Any) -> None:
    with app.running():
        second = started(url, "engine")
        out, _ = second.communicate(timeout=WAIT_S)
        assert second.returncode == 3
        assert "an engine runs on" in out
        assert "stop it first, or only enqueue here" in out
        assert note.enqueue(1).result(WAIT_S) == 1


def test_a_second_engine_in_the_same_process_is_refused_too(app: App, url: str, note: Any) -> None:
    other = App(url)
    with app.running():
        with pytest.raises(EngineRunning):
            other.start()
        assert note.enqueue(1).result(WAIT_S) == 1
    with other.running():  # now it may
        pass
    other.close()


def test_several_processes_and_threads_enqueue_at_once(app: App, url: str, note: Any) -> None:
    with app.running():
        neighbours = [started(url, "enqueue", "40") for _ in range(3)]
        own: list[int] = []

        def enqueue_here() -> None:
            own.extend(note.enqueue(number).id for number in range(40))

        threads = [threading.Thread(target=enqueue_here) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ids = [int(id) for each in neighbours for id in each.communicate(timeout=60)[0].split()]
        ids += own
        assert sorted(ids) == list(range(1, 3 * 40 + 2 * 40 + 1))
        for id in ids:
            assert app.handle(id).wait(WAIT_S) == "completed"


def test_another_process_may_steer_the_engine(app: App, url: str, note: Any) -> None:
    app.lane("shut", limit=0)
    handles = app.enqueue_many(note.options(lane="shut").call(each) for each in range(20))
    with app.running():
        said(url, "cancel", "20")
        for handle in handles:
            assert handle.wait(WAIT_S) == "cancelled"


def test_orders_from_many_threads_are_all_answered(app: App, note: Any) -> None:
    app.lane("shut", limit=0)
    answers: list[str] = []

    def steer(id: int) -> None:
        for order in (app.pause, app.resume, app.pin, app.cancel):
            answers.append(order(id))

    with app.running():
        handles = app.enqueue_many(note.options(lane="shut").call(each) for each in range(30))
        threads = [threading.Thread(target=steer, args=(each.id,)) for each in handles]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answers) == sorted(["paused", "queued", "queued", "cancelled"] * 30)
        with pytest.raises(IllegalTransition):
            app.cancel(handles[0].id)


def test_an_order_for_a_job_that_no_engine_has_seen_yet_is_carried_out(app: App, note: Any) -> None:
    app.lane("shut", limit=0)
    last = app.enqueue_many(note.options(lane="shut").call(each) for each in range(4_500))[-1]
    app.cancel(last.id)  # left in the store
    with app.running():
        eventually(lambda: last.state == "cancelled")
