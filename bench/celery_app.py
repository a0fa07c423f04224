"""The application that `bench.celery` measures, in three kinds: plain, polite, executor."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import redis as redis_client
from celery import Celery

import headway.celery
from headway import App
from headway.store.records import NewJob


def built(kind: str, broker: str, server: str) -> tuple[Any, Callable[[int], None]]:
    """The Celery application, and what sends so many tasks."""
    app = Celery(f"bench-{kind}", broker=broker)
    app.conf.update(
        broker_connection_retry_on_startup=True, task_ignore_result=True, task_default_queue=kind
    )
    counting = redis_client.Redis.from_url(broker)

    if kind == "executor":
        jobs = App(server, executor="celery")

        @jobs.job()
        def work(number: int) -> None:  # noqa: ARG001
            counting.incr("done")

        headway.celery.serve(app, jobs, queue=kind)

        def put(count: int) -> None:
            now = time.time()
            jobs.enqueue_many(
                NewJob("work", f'{{"number": {n}}}', created_at=now) for n in range(count)
            )

        return app, put

    @app.task(name=f"bench.{kind}", shared=False)  # type: ignore[untyped-decorator]
    def task(number: int) -> None:  # noqa: ARG001
        counting.incr("done")

    if kind == "polite":
        headway.celery.polite(app, server=server)

    def send(count: int) -> None:
        for number in range(count):
            task.delay(number)

    return app, send


def made(kind: str, **where: str) -> Callable[[int], None]:
    return built(kind, where["BENCH_BROKER"], where["BENCH_SERVER"])[1]


if "BENCH_KIND" in os.environ:
    app, _ = built(os.environ["BENCH_KIND"], os.environ["BENCH_BROKER"], os.environ["BENCH_SERVER"])
