"""One broker, one server and one worker of each kind, for all tests that do no harm to them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headway import App
from tests.celery import shop as shop_module
from tests.celery.kit import Redis, fleet_server, places, redis_in, until, upstream, worker_of
from tests.servers import Server


class Place(NamedTuple):
    redis: Redis
    server: Server
    app: App  # jobs of Headway, which Celery runs
    shop: Any  # tasks of Celery, which wait in Headway
    directory: Path

    def task(self, name: str) -> Any:
        return self.shop.tasks[f"shop.{name}"]


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("celery")
    with ExitStack() as stack:
        enter = stack.enter_context
        redis = enter(redis_in(directory))
        visited = enter(upstream())
        server = enter(fleet_server(redis, lease_s=3, celery_claim_s=5))
        environment = {"BROKER": redis.url, "SERVER": server.url, "UPSTREAM": str(visited.port)}
        enter(worker_of("tests.celery.shop:app", environment, directory / "shop.log",
                        queues="celery,elsewhere"))  # fmt: skip
        enter(worker_of("tests.celery.fleet:celery", environment, directory / "fleet.log",
                        pool="prefork", places=2, queues="headway"))  # fmt: skip
        until(lambda: places(server) == 6, "the workers did not come")
        app = App(server.url, executor="celery")
        stack.callback(app.close)
        shop = shop_module.make(redis.url, server.url)
        yield Place(redis, server, app, shop, directory)
        shop.close()
