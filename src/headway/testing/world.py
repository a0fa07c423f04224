"""A world with a clock of its own: the engine and the handlers run in this thread, and time jumps
to the next moment at which anything happens.
"""

from __future__ import annotations

import asyncio
import selectors
import shutil
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from headway.engine.brain import Brain
from headway.engine.hands.local import LocalHands
from headway.engine.recovery import load
from headway.engine.slots import Waiter
from headway.errors import EngineStopped
from headway.outcomes import Duration, seconds
from headway.sdk.app import App
from headway.sdk.scheduling import declared_schedule
from headway.store.protocol import Done
from headway.store.records import NewJob
from headway.testing.upstream import Line, ScriptedUpstream

T = TypeVar("T")
INF = float("inf")
START_AT = 1_767_225_600.0  # 2026-01-01 00:00 UTC
PATIENCE = 100  # times that a task is cancelled in a crash before it is called stubborn


class VirtualClock:
    """A clock that stands still until somebody moves it: `at` is the time."""

    def __init__(self, at: float = START_AT) -> None:
        self.at = at

    def now(self) -> float:
        """The time that it shows."""
        return self.at


class _Selector(selectors.DefaultSelector):
    """The loop asks its selector to wait; here that is the moment to let time pass."""

    idle: Callable[[], None]

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready and (timeout is None or timeout > 0):
            self.idle()
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

    def next_timer_at(self) -> float:
        """Exactly; what the selector is told is a difference, and that is rounded."""
        scheduled: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        return scheduled[0].when() if scheduled else INF


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
        self.brain.retention = app.retention
        for prepare in app.preparing:
            prepare(self.brain)
        if app.slot_profile is not None:
            self.brain.policies.hosts.profile_of = app.slot_profile
        self._hands = hands
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
        future: Future[T] = Future()
        self.ask_for(future, call)
        return future

    def ask_for(self, waiter: Waiter, call: Callable[[float], Any], *, later: bool = False) -> None:
        if self.done.is_set():
            raise EngineStopped("the engine of this world has crashed; call world.restart()")
        self.brain.ask_for(waiter, call, later=later)
        if not self._in_turn:
            self.turn()
            self.woken = True

    def stop(self, drain_s: float = 0.0) -> None:
        self.done.set()
        self._hands.forget()
        self._app.store.leave()


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
        self._next_at = INF
        self._before: tuple[Any, ...] = ()

    # ------------------------------------------------------------------ entering and leaving

    def __enter__(self) -> World:
        app = self.app
        if app.engine is not None:
            raise EngineStopped("an engine runs in this app already; a world needs it stopped")
        app.close()  # it may be open at its own address
        self._before = (app.url, app.clock)
        if not self._keep_store:
            app.url = self._new_store()
        app.clock = self.clock
        app.read_settings()
        self._loop = _Loop(self.clock)
        self._loop._selector_here.idle = self._idle
        self._engine = self._start()
        return self

    def _new_store(self) -> str:
        """The address of a new and empty one."""
        memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
        self._directory = tempfile.mkdtemp(prefix="headway-", dir=memory)
        return f"sqlite:///{self._directory}/world.db"

    def _start(self) -> VirtualEngine:
        app = self.app
        app.store.post = self._post  # type: ignore[method-assign]
        engine = VirtualEngine(app, self._loop, self._seed)
        load(engine.brain)
        app.retention.plan(app.now())
        app.engine = engine  # type: ignore[assignment]
        for each in app.recurring:
            row = declared_schedule(each, app.now())
            engine.ask(lambda now, row=row: engine.brain.controls.schedule(row, now))  # type: ignore[misc]
        return engine

    def _post(self, jobs: Sequence[NewJob], done: Done) -> None:
        """Stored at once: time would run on while another thread is at it."""
        try:
            receipts = self.app.store.insert(jobs)
        except Exception as error:
            done(None, error)
        else:
            done(receipts, None)

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
        """The virtual time, in seconds since 1970."""
        return self.clock.at

    def run_for(self, duration: Duration) -> None:
        """Let this much time pass, and everything happen that it brings."""
        self.run_until(self.clock.at + seconds(duration))

    def run_until(self, at: float) -> None:
        """Let time pass until this moment, and everything happen that it brings."""
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

    def _idle(self) -> None:
        """Nothing is ready. Let the brain have its turn, or let time jump."""
        engine = self._engine
        alive = not engine.done.is_set()
        if engine.woken and alive:
            self._next_at = engine.turn()
            if self._next_at <= self.clock.at:
                engine.woken = True
            return
        at = min(self._next_at if alive else INF, self._loop.next_timer_at())
        if at > self._until:  # all that the last moment brings has happened
            self.clock.at = max(self.clock.at, self._until)
            self._loop.stop()
        else:
            self.clock.at = max(at, self.clock.at)
            engine.woken = True

    # ------------------------------------------------------------------ what happens to it

    def upstream(self, name: str, script: Iterable[Line] = (200,)) -> ScriptedUpstream:
        """One that answers by a script: `[200, (429, "30s"), TimeoutError(), 200]`."""
        return ScriptedUpstream(name, script, self.clock.now)

    def crash(self) -> None:
        """The engine is gone in the middle of everything; what is committed stays. Handlers are
        cancelled, but nobody hears what they say any more, and time does not wait for them.
        """
        self._engine.stop()
        self.app.engine = None
        self._until = -INF
        for _ in range(PATIENCE):
            tasks = asyncio.all_tasks(self._loop)
            if not tasks:
                return
            for task in tasks:
                task.cancel()
            self._loop.run_forever()
        raise RuntimeError(f"these do not end although they are cancelled: {tasks}")

    def restart(self) -> None:
        """Another engine takes over where the last one stopped."""
        if self.app.engine is not None:
            self.crash()
        self._engine = self._start()
