"""Running something until SIGINT or SIGTERM; a second signal ends it at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from typing import Protocol


class Runner(Protocol):
    """An engine, or a worker."""

    error: BaseException | None
    done: threading.Event
    when_done: Callable[[], None]

    def hurry(self) -> None: ...


def run_until_told(start: Callable[[], Runner], stop: Callable[[], None]) -> None:
    """`stop` may take its time; whatever ended the runner by itself is raised."""
    news: SimpleQueue[str] = SimpleQueue()  # the one thing a signal handler may safely touch

    def ask_to_end(_number: int, _frame: object) -> None:
        news.put("signal")

    before = {each: signal.signal(each, ask_to_end) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        runner = start()
        _wait(runner, stop, news)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    if runner.error is not None:
        raise runner.error


def _wait(runner: Runner, stop: Callable[[], None], news: SimpleQueue[str]) -> None:
    def end() -> None:
        try:
            stop()
        finally:
            news.put("stopped")

    runner.when_done = partial(news.put, "over")
    if runner.done.is_set():
        news.put("over")
    stopping = threading.Thread(target=end, name="headway-stop")
    new = ""
    while new != "stopped":
        try:
            # A signal that comes just before the wait begins does not end it, hence the time.
            new = news.get(timeout=0.5)
        except Empty:
            continue
        if stopping.ident is None:
            stopping.start()
        elif new == "signal":
            runner.hurry()
    stopping.join()
