"""Workers of a server that is not there, which are stopped when the test is over."""

from collections.abc import Callable, Iterator

import pytest

from headway import App
from headway.remote.worker import Worker
from tests.remote.kit import URL, FakeServer


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
def app() -> App:
    return App(URL)


@pytest.fixture
def working(server: FakeServer, app: App) -> Iterator[Callable[..., Worker]]:
    """Starts a worker of the app."""
    started: list[Worker] = []

    def start(**options: object) -> Worker:
        worker = server.worker(app, **options)
        started.append(worker)
        worker.start()
        return worker

    yield start
    server.let_go()
    server.away = False
    for worker in started:
        worker.stop(0.0)
