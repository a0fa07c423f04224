"""Workers as processes of their own, and a server that may go away, on every kind of store."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headway import App
from headway.store.records import NewJob
from tests.hands.kit import eventually, is_alive, pid_in
from tests.remote.processes import Server
from tests.stores import PLACES, Place

Serve = Callable[..., Server]


@pytest.fixture(params=("sqlite", pytest.param("postgres", marks=pytest.mark.soak)))
def new_url(request: pytest.FixtureRequest) -> Place:
    """Whole processes are slow, so the second kind of store is for `make soak`."""
    return PLACES[request.param]


@pytest.fixture
def serve(url: str, tmp_path: Path) -> Iterator[Serve]:
    started: list[Server] = []

    def start(**environment: str) -> Server:
        server = Server(url, tmp_path, **environment)
        started.append(server)
        server.start()
        return server

    yield start
    for server in started:
        server.end()


@pytest.fixture
def producer() -> Iterator[Callable[[Server], App]]:
    """An app that enqueues over HTTP, and knows no handler."""
    apps: list[App] = []

    def make(server: Server) -> App:
        app = App(server.url)
        apps.append(app)
        return app

    yield make
    for app in apps:
        app.close()


def call(type: str, args: str = "{}") -> NewJob:
    return NewJob(type, args, created_at=0.0)


Producer = Callable[[Server], App]


def test_cancelling_reaches_a_running_job_within_a_second(
    serve: Serve, producer: Producer, tmp_path: Path
) -> None:
    server = serve()
    app = producer(server)
    server.worker()
    took_s = []
    for _ in range(3):  # a machine that is busy with other tests may be slow once
        (tmp_path / "program").unlink(missing_ok=True)
        task, program = app.enqueue(call("endless")), app.enqueue(call("program"))
        pid = pid_in(tmp_path / "program")
        eventually(lambda id=task.id: id in {job for job, _, _ in server.lines("started")})
        begun = time.monotonic()
        task.cancel()
        program.cancel()
        assert task.wait(10) == program.wait(10) == "cancelled"
        took_s.append(time.monotonic() - begun)
        assert server.lines("stopped")[-1][0] == task.id
        assert not is_alive(pid)
    assert min(took_s) < 1.0


def test_what_a_killed_worker_held_runs_again_after_its_lease(
    serve: Serve, producer: Producer, tmp_path: Path
) -> None:
    server = serve(HEADWAY_LEASE_S="2")
    app = producer(server)
    first = server.worker()
    handle = app.enqueue(call("wait", '{"name":"free"}'))
    eventually(lambda: server.lines("started"))
    first.signal(signal.SIGKILL)
    first.ended()
    second = server.worker()
    eventually(lambda: len(server.lines("started")) == 2)
    (tmp_path / "free").touch()
    assert handle.result(20) == "free"
    (job, fence, pid), (job_again, fence_again, pid_again) = server.lines("started")
    assert job == job_again == handle.id
    assert fence_again > fence
    assert (pid, pid_again) == (first.pid, second.pid)
    names = [event.event for event in handle.events()]
    assert names.count("lost") == 1
    assert names.count("ok") == 1


def test_a_restart_of_the_server_loses_nothing_and_doubles_nothing(
    serve: Serve, producer: Producer, tmp_path: Path
) -> None:
    server = serve(HEADWAY_LEASE_S="60")
    app = producer(server)
    server.worker()
    server.worker()
    held = app.enqueue(call("wait", '{"name":"free"}'))
    handles = app.enqueue_many(call("step", f'{{"number":{n}}}') for n in range(300))
    eventually(lambda: len(server.lines("started")) > 40)
    server.stop()
    (tmp_path / "free").touch()  # it ends while nobody is there to hear it
    eventually(lambda: server.lines("ended"))
    server.start()
    assert held.result(30) == "free"
    assert [handle.result(60) for handle in handles] == list(range(300))
    started = [job for job, _, _ in server.lines("started")]
    assert sorted(started) == sorted({held.id, *(handle.id for handle in handles)})
    for handle in (held, handles[0], handles[-1]):
        assert [event.event for event in handle.events()].count("grant") == 1


def test_a_server_that_was_killed_goes_on_with_what_workers_hold(
    serve: Serve, producer: Producer, tmp_path: Path
) -> None:
    server = serve(HEADWAY_LEASE_S="60")
    app = producer(server)
    worker = server.worker()
    handle = app.enqueue(call("wait", '{"name":"free"}'))
    eventually(lambda: server.lines("started"))
    server.kill()
    server.start()
    again = app.enqueue(call("step", '{"number":5}'))
    assert again.result(30) == 5
    (tmp_path / "free").touch()
    assert handle.result(30) == "free"
    assert len([job for job, _, _ in server.lines("started") if job == handle.id]) == 1
    assert not worker.is_over()


def test_sigterm_lets_jobs_end_and_gives_the_others_back(
    serve: Serve, producer: Producer, tmp_path: Path
) -> None:
    server = serve()
    app = producer(server)
    worker = server.worker("3", cold=True)
    quick = app.enqueue(call("wait", '{"name":"free"}'))
    slow = app.enqueue(call("endless"))
    eventually(lambda: len(server.lines("started")) == 2)
    worker.signal(signal.SIGTERM)
    (tmp_path / "free").touch()
    assert quick.wait(20) == "completed"
    assert worker.ended() == 0, worker.log()
    assert slow.state == "queued"
    assert [event.event for event in slow.events()].count("return") == 1
    assert slow.row().tries is None  # no attempt is burnt
    assert [job for job, _, _ in server.lines("stopped")] == [slow.id]


def test_a_second_signal_ends_the_worker_at_once(serve: Serve, producer: Producer) -> None:
    server = serve()
    app = producer(server)
    worker = server.worker("1000")
    handle = app.enqueue(call("endless"))
    eventually(lambda: server.lines("started"))
    worker.signal(signal.SIGTERM)
    worker.signal(signal.SIGTERM)
    eventually(lambda: worker.is_over() or worker.signal(signal.SIGTERM))
    assert handle.state == "queued"


def test_an_idle_worker_leaves_at_once_and_takes_nothing_with_it(
    serve: Serve, producer: Producer
) -> None:
    server = serve()
    app = producer(server)
    worker = server.worker()
    assert app.enqueue(call("step", '{"number":1}')).result(20) == 1
    begun = time.monotonic()
    worker.signal(signal.SIGTERM)
    assert worker.ended() == 0
    assert time.monotonic() - begun < 5.0
    handle = app.enqueue(call("step", '{"number":2}'))
    server.worker()
    assert handle.result(20) == 2
    assert [event.event for event in handle.events()].count("grant") == 1


def test_without_a_token_a_worker_ends_with_a_word(serve: Serve) -> None:
    server = serve(HEADWAY_AUTH="required", HEADWAY_JWT_SECRET="x" * 40)
    worker = server.worker()
    assert worker.ended() != 0
    assert "NotAllowed" in worker.log()
    assert "HEADWAY_TOKEN" in worker.log()
