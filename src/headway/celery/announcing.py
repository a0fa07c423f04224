"""A Celery worker says that it is there, from its main process, as long as it is.

The server sends no more than the workers have places, so nothing is sent before it has heard this.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from celery import signals

from headway.celery.claiming import FleetLine
from headway.errors import HeadwayError, NotAllowed
from headway.remote.client import Backoff, Client
from headway.remote.taking import Introduction
from headway.remote.worker import worker_name

logger = logging.getLogger("headway.celery")

AGAIN_S = 10.0
LAST_WORD_S = 2.0
LONGEST_S = 1.0  # between two tries to reach the server

Types = Callable[[], list[dict[str, Any]]]


def keep_quiet() -> None:
    """Celery's workers log at the level of info, where our client would write a line for each
    request.
    """
    client = logging.getLogger("httpx2")
    if client.level == logging.NOTSET:
        client.setLevel(logging.WARNING)


class Announcer:
    """`said` is told to each start of the server anew, `types` with it. `name` is made before the
    worker forks its processes, so that they know it.
    """

    def __init__(
        self, celery_app: Any, client: Client, said: Callable[[], Introduction], types: Types
    ) -> None:
        self._app = celery_app
        self._client = client
        self._said = said
        self._types = types
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._server = ""
        self._trouble = ""
        self.name = ""
        signals.celeryd_init.connect(self._begins, weak=False)
        signals.worker_ready.connect(self._ready, weak=False)
        signals.worker_shutting_down.connect(self._leaves, weak=False)

    def _begins(self, instance: Any, **_: Any) -> None:
        if instance.app is self._app:
            self.name = worker_name()

    def _ready(self, sender: Any, **_: Any) -> None:
        """`sender`: what reads the queues for the worker."""
        if sender.app is not self._app or self._thread is not None:
            return
        self.name = self.name or worker_name()
        line = FleetLine(self._client, self.name)
        self._thread = threading.Thread(
            target=self._run, args=(line, sender), name="headway-here", daemon=True
        )
        self._thread.start()

    def _leaves(self, **_: Any) -> None:
        self._ending.set()
        if self._thread is not None:
            self._thread.join(LAST_WORD_S)

    def _run(self, line: FleetLine, consumer: Any) -> None:
        backoff = Backoff(LONGEST_S)
        while True:
            wait_s = AGAIN_S
            try:
                self._say(line, consumer)
                backoff.reset()
            except HeadwayError as error:
                self._complain(error)
                wait_s = AGAIN_S if isinstance(error, NotAllowed) else backoff.next_s()
            if self._ending.wait(wait_s):
                break
        try:
            line.here([], 0)
        except HeadwayError as error:
            self._complain(error)

    def _say(self, line: FleetLine, consumer: Any) -> None:
        queues = list(self._app.amqp.queues.consume_from)
        if not self._server:
            self._introduce(line)
        here = line.here(queues, consumer.pool.num_processes or 1)
        if here.server != self._server:
            self._introduce(line)  # it was started anew
        if self._trouble:
            logger.warning("%s is back", self._client.url)
            self._trouble = ""

    def _introduce(self, line: FleetLine) -> None:
        line.carry(self._types())
        self._server = line.hello(self._said()).server

    def _complain(self, error: HeadwayError) -> None:
        if not self._trouble:
            logger.warning("%s; no jobs come to this Celery worker until it is", error)
        self._trouble = str(error)
