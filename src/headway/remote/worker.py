"""A worker: takes jobs from a server and runs them with the same hands as an engine does.

Two threads beside those of the handlers: one loop for the hands, and one that talks to the server,
so that a handler which blocks its loop stops no heartbeat. In the second, taking, heartbeats and
reports go their own ways, so that none waits for the answer to another.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Protocol

import msgspec

from headway.engine.clock import Clock
from headway.engine.hands.local import LocalHands
from headway.engine.registry import ASYNC, THREADS, JobType, Registry
from headway.engine.settings import Settings
from headway.errors import BadJob, EngineStopped
from headway.remote.beating import Beating
from headway.remote.client import Client
from headway.remote.completing import Completing
from headway.remote.connection import Connection
from headway.remote.desk import Desk
from headway.remote.protocol import Line
from headway.remote.taking import Introduction, Places, Taking
from headway.remote.wire import with_tools
from headway.store.records import Schedule
from headway.until_told import run_until_told

logger = logging.getLogger("headway.worker")

GRACE_S = 6.0  # for jobs that were told to stop, a little longer than programs get to end
KILLED_S = 1.0  # for programs that were killed
LAST_WORDS_S = 5.0  # for the last reports
MAX_NAME = 200


class Declaring(Protocol):
    """What a worker must know of an app."""

    registry: Registry
    settings: Settings
    clock: Clock
    threads: int
    tasks: int
    payload_limit: int

    def declared_schedules(self) -> list[Schedule]: ...


def run(
    app: Declaring,
    server: str,
    token: str | None = None,
    *,
    concurrency: int | None = None,
    drain_s: float = 30.0,
) -> None:
    """Run the app's jobs for a server until SIGINT or SIGTERM; a second one ends at once."""
    worker = Worker(app, server, token, concurrency=concurrency)

    def start() -> Worker:
        worker.start()
        return worker

    run_until_told(start, lambda: worker.stop(drain_s))


class Worker:
    """`concurrency`: how many jobs at once, all together; else what the app allows of each kind.
    `takes`: it asks for jobs. One that does not is handed them in another way.
    """

    def __init__(
        self,
        app: Declaring,
        server: str,
        token: str | None = None,
        *,
        concurrency: int | None = None,
        client: Client | None = None,
        takes: bool = True,
    ) -> None:
        if takes and not app.registry.types:
            raise BadJob("this app has no jobs, so there is nothing to take; declare some with "
                         "@app.job(), or name the module that does")  # fmt: skip
        if concurrency is not None and concurrency < 1:
            raise BadJob(f"concurrency is how many jobs run at once, not {concurrency}")
        self._app = app
        self._client = client or Client(server, token)
        self.name = worker_name()
        places = app.threads + app.tasks if concurrency is None else concurrency
        self._takes = takes
        self._places = Places(places if takes else 0, app.tasks, app.threads)
        self._connection = Connection(Line(self._client, self.name))
        self._hands_loop = asyncio.new_event_loop()
        self._hands = LocalHands(
            self._hands_loop, app.clock.now, threads=min(app.threads, places),
            payload_limit=app.payload_limit,
        )  # fmt: skip
        self._loop: asyncio.AbstractEventLoop | None = None
        self._desk: Desk | None = None
        self._taking: Taking | None = None
        self._threads: list[threading.Thread] = []
        self._ready = threading.Event()
        self._may_go_on = threading.Event()  # nothing is held any more, or somebody is in a hurry
        self._hurried = self._idle = self._parting = False
        self._end: asyncio.Event
        self.error: BaseException | None = None
        self.done = threading.Event()
        self.when_done: Callable[[], None] = lambda: None

    @property
    def trouble(self) -> str:
        """Why nothing is taken: the server cannot be reached. Empty: all is well."""
        return self._connection.trouble

    # ------------------------------------------------------------------ starting

    def start(self) -> None:
        """Does not wait for the server: it is tried until it is there."""
        if self._threads:
            raise EngineStopped("this worker was started before; make another one")
        introduction = introduce(self._app) if self._takes else Introduction([], [], [])
        for target, name in (
            (self._work, "headway-hands"),
            (lambda: self._talk(introduction), "headway-worker"),
        ):
            thread = threading.Thread(target=target, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        self._ready.wait()

    def _work(self) -> None:
        asyncio.set_event_loop(self._hands_loop)
        self._hands_loop.run_forever()

    def _talk(self, introduction: Introduction) -> None:
        try:
            asyncio.run(self._serve(introduction))
        except BaseException as error:
            self.error = error
            logger.error("the worker has stopped: %s", error)
            self._hands.stop_all("shutdown")  # what runs has nobody to report to
        finally:
            self._ready.set()
            self._may_go_on.set()
            self.done.set()
            self.when_done()

    async def _serve(self, introduction: Introduction) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        self._desk = desk = self._new_desk(self._loop)
        self._hands.brain = desk
        beating = Beating(self._connection, desk)
        completing = Completing(self._connection, desk)
        self._taking = Taking(
            self._connection, desk, self._app.registry.types, self._places, introduction
        )
        self._ready.set()
        loops = [asyncio.create_task(each.run()) for each in (self._taking, beating, completing)]
        tasks: list[asyncio.Task[Any]] = [*loops, asyncio.create_task(self._end.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for each in loops:
                if each.done():
                    each.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _new_desk(self, loop: asyncio.AbstractEventLoop) -> Desk:
        return Desk(loop, self._hands)

    # ------------------------------------------------------------------ stopping

    def stop(self, drain_s: float = 30.0) -> None:
        """Take nothing more, let what runs end within the time, and give the rest back without a
        burnt attempt.
        """
        if self._threads and not self.done.is_set():
            self._tell(self._drain)
            self._may_go_on.wait(max(drain_s, 0.0))
            if not self._idle:
                # From that loop, since it is behind everything there that was still begun.
                self._tell(lambda: self._hands.stop_all("shutdown"))
                self._may_go_on.wait(GRACE_S)
            if self._hurried and not self._idle:
                self._may_go_on.clear()
                self._hands.kill_all()
                self._may_go_on.wait(KILLED_S)
            self._hurried, self._parting = False, True
            self._may_go_on.clear()
            self._tell(self._give_back)
            self._may_go_on.wait(LAST_WORDS_S)
            self._tell(self._end.set)
            self.done.wait(GRACE_S)
        self._end_hands()
        self._client.close()

    def hurry(self) -> None:
        """Do not wait for what runs: a stop that is under way, or comes, ends at once."""
        if self._parting:
            return  # what is given back now is worth a moment, however often one asks
        self._hurried = True
        self._may_go_on.set()

    def _tell(self, call: Callable[[], object]) -> None:
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself meanwhile
                loop.call_soon_threadsafe(call)

    def _drain(self) -> None:
        assert self._desk is not None
        assert self._taking is not None
        self._taking.drain()
        self._desk.empty = self._nothing_left
        if not self._desk.held:
            self._nothing_left()

    def _nothing_left(self) -> None:
        self._idle = True
        self._may_go_on.set()

    def _give_back(self) -> None:
        assert self._desk is not None
        self._desk.give_all_back()
        if not self._desk.held:
            self._nothing_left()

    def _end_hands(self) -> None:
        self._hands.close()
        loop = self._hands_loop
        if self._threads:
            with contextlib.suppress(RuntimeError):  # it was closed before
                loop.call_soon_threadsafe(loop.stop)
            for thread in self._threads:
                if thread is not threading.current_thread():
                    thread.join(GRACE_S)
        if not loop.is_running() and not loop.is_closed():
            for task in asyncio.all_tasks(loop):
                task.cancel()
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()


# ---------------------------------------------------------------------- what it says of itself


def worker_name() -> str:
    """No other worker has it, not even one on the same machine with the same number."""
    return f"{socket.gethostname()[: MAX_NAME - 40]}:{os.getpid()}:{secrets.token_hex(4)}"


def introduce(app: Declaring) -> Introduction:
    types = [_type(each) for each in app.registry.types.values()]
    schedules = [_schedule(row, app.registry) for row in app.declared_schedules()]
    return Introduction(types, _settings(app.settings), schedules)


def _type(job_type: JobType) -> dict[str, Any]:
    return {"name": job_type.name, **asdict(job_type.policy),
            "keep_result_s": job_type.keep_result_s}  # fmt: skip


def _settings(settings: Settings) -> list[dict[str, Any]]:
    """What the code declares. What is about the hands of this process is nobody else's business."""
    found = []
    for row in settings.shown():
        value = {name: row["value"][name] for name, layer in row["from"].items() if layer == "code"}
        if value and row["name"] not in (ASYNC, THREADS):
            found.append({"kind": row["kind"], "name": row["name"], "value": value})
    return found


def _schedule(row: Schedule, registry: Registry) -> dict[str, Any]:
    options = msgspec.json.decode(row.options)
    spec = with_tools(options.get("spec"), registry.types[row.type].tools)
    if spec is not None:
        options["spec"] = spec
    return {"name": row.name, "type": row.type, "args": row.args, "rule": row.rule,
            "options": msgspec.json.encode(options).decode()}  # fmt: skip
