"""A world with a clock of its own: the engine and the handlers run in this thread, and time jumps
to the next moment at which anything happens.
"""

from __future__ import annotations

import asyncio
import selectors
import shutil
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from headway.engine.brain import Brain
from headway.engine.hands.local import LocalHands
from headway.engine.recovery import load
from headway.outcomes import Duration, seconds
from headway.sdk.app import App
from headway.sdk.scheduling import declared_schedule
from headway.testing.upstream import Line, ScriptedUpstream

T = TypeVar("T")
INF = float("inf")
START_AT = 1_767_225_600.0  # 2026-01-01 00:00 UTC


class VirtualClock:
    def __init__(self, at: float = START_AT) -> None:
        self.at = at

    def now(self) -> float:
        return self.at


class _Selector(selectors.DefaultSelector):
    """The loop asks its selector to wait; here that is the moment to let time pass."""

    idle: Callable[[float], None]

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready and (timeout is None or timeout > 0):
            self.idle(INF if timeout is None else timeout)
            ready = super().select(0)
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, clock: VirtualClock) -> None:
        self._selector_here = _Selector()
        self._clock_here = clock
        super().__init__(self._selector_here)
        # The loop takes timers as due within this; a float of today's time is no finer.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        return self._clock_here.at


class VirtualEngine:
    """What `App` expects of an engine, driven by the loop of the world."""

    def __init__(self, app: App, loop: asyncio.AbstractEventLoop, seed: int) -> None:
        self.error: BaseException | None = None
        self.done = threading.Event()
        self.woken = True
        hands = LocalHands(loop, app.now, threads=0, payload_limit=app.payload_limit)
        self.brain = Brain(
            app.store, app.registry, app.settings, app.clock, hands, wake=self._wake,
            rng=Random(seed), net_s=INF,
        )  # fmt: skip
        hands.brain = self.brain
        self._app = app
        self._in_turn = False

    def _wake(self) -> None:
        self.woken = True

    def turn(self) -> float:
        self.woken = False
        self._in_turn = True
        try:
            next_at = self.brain.turn()
        finally:
            self._in_turn = False
        return min(next_at, self._app.retention.look(self._app.store, self._app.now()))

    def ask(self, call: Callable[[float], T]) -> Future[T]:
        future = self.brain.ask(call)
        if not self._in_turn:
            self.turn()
            self.woken = True
        return future

    def stop(self, drain_s: float = 0.0) -> None:
        self._app.store.leave()
        self.done.set()


class World:
    """`with World(app) as world:`. The store is a new file in memory unless `keep_store`."""

    def __init__(
        self, app: App, *, seed: int = 0, at: float = START_AT, keep_store: bool = False
    ) -> None:
        self.app = app
        self.clock = VirtualClock(at)
        self._seed = seed
        self._keep_store = keep_store
        self._directory: str | None = None
        self._until = at
        self._before: tuple[Any, ...] = ()

    # ------------------------------------------------------------------ entering and leaving

    def __enter__(self) -> World:
        app = self.app
        self._before = (app.url, app.clock)
        if not self._keep_store:
            memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
            self._directory = tempfile.mkdtemp(prefix="headway-", dir=memory)
            app.url = f"sqlite:///{self._directory}/world.db"
        app.clock = self.clock
        self._loop = _Loop(self.clock)
        self._loop._selector_here.idle = self._idle
        self._engine = self._start()
        return self

    def _start(self) -> VirtualEngine:
        app = self.app
        engine = VirtualEngine(app, self._loop, self._seed)
        load(engine.brain)
        app.retention.plan(app.now())
        app.engine = engine  # type: ignore[assignment]
        for each in app.recurring:
            row = declared_schedule(each, app.now())
            engine.ask(lambda now, row=row: engine.brain.controls.schedule(row, now))  # type: ignore[misc]
        return engine

    def __exit__(self, *_: object) -> None:
        self.crash()
        self._loop.close()
        self.app.close()
        self.app.url, self.app.clock = self._before
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    # ------------------------------------------------------------------ time

    @property
    def now(self) -> float:
        return self.clock.at

    def run_for(self, duration: Duration) -> None:
        """Let this much time pass, and everything happen that it brings."""
        self.run_until(self.clock.at + seconds(duration))

    def run_until(self, at: float) -> None:
        self._until = at
        self._engine.woken = True
        self._loop.run_forever()

    def run(self, work: Coroutine[Any, Any, T], *, within: Duration = "1d") -> T:
        """Run a coroutine of the test itself to its end, on virtual time."""
        task = self._loop.create_task(work)
        task.add_done_callback(lambda _: self._loop.stop())
        self.run_for(within)
        if not task.done():
            task.cancel()
            raise TimeoutError(f"it did not end within {within}")
        return task.result()

    def _idle(self, timer_s: float) -> None:
        """Nothing is ready. Let the brain have its turn, or let time jump."""
        engine = self._engine
        if engine.woken:
            self._next_at = engine.turn()
            return
        at = min(self._next_at, self.clock.at + timer_s, self._until)
        if at >= self._until:
            self.clock.at = max(self.clock.at, self._until)
            engine.turn()
            self._loop.stop()
        else:
            self.clock.at = max(at, self.clock.at)
            engine.woken = True

    _next_at = INF

    # ------------------------------------------------------------------ what happens to it

    def upstream(self, name: str, script: Iterable[Line] = (200,)) -> ScriptedUpstream:
        return ScriptedUpstream(name, script, self.clock.now)

    def crash(self) -> None:
        """The engine is gone in the middle of everything; what is committed stays."""
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self._engine.woken = False
            self._until = self.clock.at
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._engine.stop()
        self.app.engine = None

    def restart(self) -> None:
        """Another engine takes over where the last one stopped."""
        if self.app.engine is not None:
            self.crash()
        self._engine = self._start()
