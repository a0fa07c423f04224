"""Somebody's Celery application, as it was before, and the two lines that make it polite."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

from celery import Celery, Task
from celery.exceptions import Reject

import headway.celery
from headway import Pushback, job


class Counting(Task):  # type: ignore[misc]
    """A base class of their own, with a `__call__` of its own."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return 100 + self.run(*args, **kwargs)


class TooMany(Exception):
    """As HTTP clients raise it."""

    def __init__(self) -> None:
        super().__init__("429 Too Many Requests")
        self.status_code = 429
        self.headers = {"Retry-After": "1"}
        self.response = self


def make(broker: str, server: str, **options: Any) -> Celery:
    app = Celery("shop", broker=broker, backend=broker)
    app.conf.broker_connection_retry_on_startup = True
    app.conf.task_routes = {"shop.elsewhere": {"queue": "elsewhere"}}

    @app.task(name="shop.add", shared=False)  # type: ignore[untyped-decorator]
    def add(x: int, y: int) -> int:
        return x + y

    @app.task(name="shop.total", shared=False)  # type: ignore[untyped-decorator]
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    @app.task(name="shop.twice", shared=False, bind=True)  # type: ignore[untyped-decorator]
    def twice(self: Any, x: int) -> Any:
        return add(x, x), self.request.id == str(self.request.id), job.upstream

    @app.task(name="shop.note", shared=False)  # type: ignore[untyped-decorator]
    def note(file: str, line: str) -> None:
        with open(file, "a") as notes:
            notes.write(f"{line} {time.time()!r}\n")

    @app.task(name="shop.again", shared=False, bind=True, max_retries=3)  # type: ignore[untyped-decorator]
    def again(self: Any, times: int) -> int:
        if self.request.retries < times:
            raise self.retry(countdown=0)
        return int(self.request.retries)

    @app.task(name="shop.auto", shared=False, autoretry_for=(TooMany,), bind=True)  # type: ignore[untyped-decorator]
    def auto(self: Any, file: str) -> int:
        if not Path(file).exists():
            Path(file).touch()
            raise TooMany
        return int(self.request.retries)

    @app.task(name="shop.pushed", shared=False)  # type: ignore[untyped-decorator]
    def pushed(file: str) -> str:
        if not Path(file).exists():
            Path(file).touch()
            raise Pushback(0.2)
        return "after all"

    @app.task(name="shop.replaced", shared=False, bind=True)  # type: ignore[untyped-decorator]
    def replaced(self: Any, x: int) -> Any:
        return self.replace(app.signature("shop.add", (x, 1)))

    @app.task(name="shop.rejected", shared=False, acks_late=True)  # type: ignore[untyped-decorator]
    def rejected(file: str) -> str:
        if not Path(file).exists():
            Path(file).touch()
            raise Reject("not here", requeue=True)
        return "after all"

    @app.task(name="shop.fail", shared=False)  # type: ignore[untyped-decorator]
    def fail() -> None:
        raise ValueError("on purpose")

    @app.task(name="shop.endless", shared=False)  # type: ignore[untyped-decorator]
    def endless() -> None:
        job.progress(1)
        while True:
            threading.Event().wait(0.01)

    @app.task(name="shop.counting", shared=False, base=Counting)  # type: ignore[untyped-decorator]
    def counting(x: int) -> int:
        return x

    @app.task(name="shop.elsewhere", shared=False)  # type: ignore[untyped-decorator]
    def elsewhere() -> str:
        return "from another queue"

    headway.celery.polite(app, server=server, **{"upstream": "shop.example", **options})
    return app


if "BROKER" in os.environ and "SERVER" in os.environ:
    app = make(os.environ["BROKER"], os.environ["SERVER"])
