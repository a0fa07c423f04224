"""The engine: a brain in a thread, hands beside it, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from headway.core import Outcome
from headway.engine.brain import Brain
from headway.engine.clock import Clock, SystemClock
from headway.engine.hands.local import Around, LocalHands
from headway.engine.recovery import load
from headway.engine.registry import Registry
from headway.engine.retention import Retention
from headway.engine.settings import Settings
from headway.engine.slots import Waiter
from headway.errors import EngineStopped
from headway.store import Store
from headway.store.records import Candidate

T = TypeVar("T")

logger = logging.getLogger("headway")

GRACE_S = 6.0  # for works that were told to stop, a little longer than programs get to end
COLLECT_AFTER = 10_000  # new objects
KILLED_S = 1.0  # for programs that were killed
LEADER_LEASE_S = Candidate().lease_s
STOP_AT, KILL_AT = 0.6, 0.8  # of a lease, in which it is not known who leads


class Engine:
    def __init__(
        self,
        store: Store,
        registry: Registry,
        settings: Settings,
        *,
        clock: Clock | None = None,
        threads: int = 16,
        payload_limit: int = 1_048_576,
        retention: Retention | None = None,
        lease_s: float = 90.0,
        url: str = "",
        leader_lease_s: float = LEADER_LEASE_S,
    ) -> None:
        """`url`: where other servers reach this one."""
        self._store = store
        self._lease_s = lease_s
        self._clock = clock or SystemClock()
        self._wake = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._hands = LocalHands(
            self._loop, self._clock.now, threads=threads, payload_limit=payload_limit
        )
        self.brain = Brain(store, registry, settings, self._clock, self._hands, wake=self._ring,
                           lease_s=lease_s)  # fmt: skip
        self._hands.brain = self.brain
        self.brain.candidate = Candidate(url, leader_lease_s, self._doubt)
        self._retention = self.brain.retention = retention or Retention()
        self._stopping = False
        self._hurried = False
        self._idle = False
        self._may_go_on = threading.Event()  # nothing runs any more, or somebody is in a hurry
        self._threads: list[threading.Thread] = []
        self.error: BaseException | None = None
        self.done = threading.Event()
        self.when_done: Callable[[], None] = lambda: None

    def surround(self, around: Around) -> None:
        """Let somebody watch each attempt that starts from now on."""
        self._hands.around = around

    def _ring(self) -> None:
        if not self._wake.is_set():
            self._wake.set()

    # ------------------------------------------------------------------ starting

    def start(self) -> None:
        """Load what is there, then work. Errors of the store are raised here."""
        _ease_collector()
        load(self.brain)
        self._retention.plan(self._clock.now())
        for target, name in ((self._work, "headway-hands"), (self._think, "headway-brain")):
            thread = threading.Thread(target=target, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _doubt(self, for_s: float) -> None:
        """Another engine may lead since then, and gives away what runs here when a lease is over.
        From another thread: the brain waits for the store.
        """
        if for_s > KILL_AT * self._lease_s:
            self._hands.kill_all()
        elif for_s > STOP_AT * self._lease_s:
            self._hands.stop_all("shutdown")

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _think(self) -> None:
        brain, wake, clock = self.brain, self._wake, self._clock
        try:
            while True:
                wake.clear()
                next_at = min(brain.turn(), self._retention.look(self._store, clock.now()))
                if self._stopping and not brain.hand_held and brain.under_way is None:
                    self._idle = True
                    self._may_go_on.set()
                    if self._threads_may_end:
                        break
                wait_s = next_at - clock.now()
                if wait_s > 0:
                    wake.wait(min(wait_s, 3600.0))
        except BaseException as error:
            self.error = error
            logger.error("the engine has stopped: %s", error)
            self._hands.stop_all("shutdown")  # what runs has nobody to report to
            self._store.let_go()  # whoever stops it may be busy
        finally:
            self._may_go_on.set()
            self.done.set()
            brain.abandon(self._over())
            self.when_done()

    _threads_may_end = False

    # ------------------------------------------------------------------ asking

    def ask(self, call: Callable[[float], T]) -> Future[T]:
        future: Future[T] = Future()
        self.ask_for(future, call)
        return future

    def ask_for(self, waiter: Waiter, call: Callable[[float], Any], *, later: bool = False) -> None:
        """See `Brain.ask_for`."""
        if self.done.is_set():
            raise self._over()
        self.brain.ask_for(waiter, call, later=later)
        if self.done.is_set():
            self.brain.abandon(self._over())  # it may have come too late to be heard

    def _over(self) -> EngineStopped:
        return EngineStopped(f"the engine has stopped: {self.error or 'it was asked to'}")

    # ------------------------------------------------------------------ stopping

    def stop(self, drain_s: float = 30.0) -> None:
        """Start nothing more, let what runs end within the time, then give the rest back
        without a burnt attempt.
        """
        if self._threads and not self.done.is_set():
            self.drain(drain_s)
            if not self._idle:
                self._hands.stop_all("shutdown")
                self._may_go_on.wait(GRACE_S)
            if self._hurried and not self._idle:
                self._may_go_on.clear()
                self._hands.kill_all()
                self._may_go_on.wait(KILLED_S)
            with contextlib.suppress(EngineStopped):
                self.ask(self._give_all_back)
            self._threads_may_end = True
            self._ring()
            if not self.done.wait(GRACE_S):
                self.brain.give_up()  # the store is away; what is not stored will be lost leases
                if not self.done.wait(GRACE_S):
                    self._store.leave()  # it does not answer, and is waited for no longer
                    self.done.wait(GRACE_S)
        self._end_hands()
        self._store.leave()
        gc.unfreeze()  # what was loaded at the start may go now

    def drain(self, within_s: float) -> bool:
        """Start nothing more, and wait for what runs. All else goes on until it is stopped. True:
        nothing runs any more.
        """
        with contextlib.suppress(EngineStopped):
            self.ask(self._stop_granting)
        self._may_go_on.wait(max(within_s, 0.0))
        return self._idle

    def hurry(self) -> None:
        """Do not wait for what runs: a stop that is under way, or comes, ends at once."""
        self._hurried = True
        self._may_go_on.set()

    def _stop_granting(self, now: float) -> None:
        self.brain.granting = False
        self._stopping = True  # from here on nothing running means that nothing will

    def _give_all_back(self, now: float) -> None:
        for fence, work in list(self.brain.hand_held.items()):
            self.brain.core.finish(work.id, fence, Outcome.returned(), now)
            del self.brain.hand_held[fence]

    def _end_hands(self) -> None:
        self._hands.close()
        if self._threads:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._threads[0].join(GRACE_S)
        if not self._loop.is_running():
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.close()


def _ease_collector() -> None:
    """Python looks for cyclic garbage after every 700 new objects, and the engine makes none. A
    program that has chosen another threshold keeps it.
    """
    first, second, third = gc.get_threshold()
    if 0 < first < COLLECT_AFTER:
        gc.set_threshold(COLLECT_AFTER, second, third)
