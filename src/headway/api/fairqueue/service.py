"""The fair queue as a service: its settings while it runs, the controller, and its upkeep."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from headway.api.fairqueue.config import FairQueueConfig, load, parse
from headway.api.fairqueue.controller import Controller
from headway.api.fairqueue.reporting import Reporter, Seen, report_forever
from headway.api.turns import in_turn
from headway.core.limits import MinHold
from headway.engine import Engine
from headway.engine.slots import FAIRQUEUE, Phase
from headway.errors import HeadwayError, StoreUnavailable
from headway.net.redaction import SECRETS

if TYPE_CHECKING:
    from headway.api.site import Site

logger = logging.getLogger("headway.fairqueue")

T = TypeVar("T")

ANSWER_S = 7.0  # for the brain, which waits for the store
AGAIN_S = 30.0  # until a controller that could not be reached is asked again
RESETS = frozenset({"all", "fairqueue"})
TARGETS = frozenset({"all", "config", "bootstrap", "fairqueue"})


class FairQueue:
    def __init__(self, file: str = "") -> None:
        self._file = file
        self._local = load(file) if file else parse({})
        self.config = self._local
        self._site: Site | None = None
        self._controller: Controller | None = None
        self._reporter: Reporter | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._say_notes()

    @property
    def configured(self) -> bool:
        """Whether somebody has set it up, and so decided who may use it."""
        return bool(self._file)

    def settings_of(self, hostname: str) -> dict[str, Any]:
        """What holds for a host, for the engine."""
        return self.config.profile(hostname).settings

    def _say_notes(self) -> None:
        for secret in self.config.secrets:
            SECRETS.add(secret)
        for note in self.config.notes:
            logger.info("%s", note)

    # ------------------------------------------------------------------ running

    def serve(self, site: Site) -> None:
        """The engine runs: it goes by these settings."""
        self._site = site
        if site.app.engine is not None:
            hosts = site.app.engine.brain.policies.hosts
            hosts.profile_of = self.settings_of
            site.app.engine.brain.slots.max_sessions = self.config.max_sessions

    async def start(self) -> None:
        """On the server's loop, before the first request."""
        settings = self._local.controller
        if settings.enabled:
            self._controller = Controller(settings)
            self._reporter = Reporter(self._controller, lambda: self.config, self._look)
            if not await self._ask_controller():
                self._tasks.append(asyncio.create_task(self._ask_again()))
            self._tasks.append(asyncio.create_task(report_forever(self._reporter)))
        self._tasks.append(asyncio.create_task(self._clean_for_ever()))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        self._tasks.clear()
        if self._controller is not None:
            await self._controller.close()

    async def _ask_controller(self) -> bool:
        try:
            await self._bootstrap()
        except HeadwayError as error:
            logger.warning("%s; going on with the settings that are here", error)
            return False
        return True

    async def _ask_again(self) -> None:
        await asyncio.sleep(AGAIN_S)
        while not await self._ask_controller():
            await asyncio.sleep(AGAIN_S)

    async def _clean_for_ever(self) -> None:
        """Sessions end by the clock anyway; this is for what only a look around finds."""
        while True:
            cleanup = self.config.cleanup
            await asyncio.sleep(max(1.0, cleanup.interval_s))
            if self.config.cleanup.enabled:
                try:
                    await self.clean()
                except Exception:
                    logger.exception("cleaning up failed; it is tried again")

    # ------------------------------------------------------------------ settings

    async def _bootstrap(self) -> None:
        if self._controller is not None:
            version, sent = await self._controller.bootstrap()
            await self._adopt(self._local.updated(sent, version))

    async def _adopt(self, config: FairQueueConfig) -> None:
        self.config = config
        self._say_notes()
        engine = self._engine()
        if engine is not None:
            engine.brain.slots.max_sessions = config.max_sessions
            hosts = engine.brain.policies.hosts
            await _done(engine, hosts.look_again)

    async def refresh(self, targets: list[str]) -> None:
        """New settings, from the controller if there is one, else from the file. Held slots stay;
        waiting sessions and smoothing are reset by `all` and `fairqueue`.
        """
        if not {"all", "config", "bootstrap"}.isdisjoint(targets):
            if self._controller is not None:
                await self._bootstrap()
            elif self._file:
                self._local = await asyncio.to_thread(load, self._file)
                await self._adopt(self._local)
        engine = self._engine()
        if engine is not None and not RESETS.isdisjoint(targets):
            await _done(engine, partial(_reset, engine))

    # ------------------------------------------------------------------ upkeep

    async def clean(self) -> None:
        engine = self._engine()
        if engine is not None:
            await _done(engine, engine.brain.sweep)

    async def flush(self) -> None:
        """Clean up, and tell the controller at once."""
        await self.clean()
        if self._reporter is not None:
            await self._reporter.report()

    async def _look(self) -> Seen:
        engine = self._engine()
        if engine is None:
            return {}, {}
        return await _done(engine, partial(_seen, engine))

    def _engine(self) -> Engine | None:
        return None if self._site is None else self._site.app.engine


async def _done(engine: Engine, call: Callable[[float], T]) -> T:
    try:
        return await in_turn(engine, call, ANSWER_S)
    except TimeoutError:
        raise StoreUnavailable("the store cannot be reached; try again when it is back") from None


def _reset(engine: Engine, now: float) -> None:
    brain = engine.brain
    brain.slots.reset(FAIRQUEUE, now)
    for name in brain.policies.hosts.profiles:
        gate = brain.core.admission.atlas.gates.get(("upstream", name))
        for limit in () if gate is None else gate.limits:
            if isinstance(limit, MinHold):
                limit.forget()
                brain.core.admission.touched.add(gate)  # type: ignore[arg-type]


def _seen(engine: Engine, _now: float) -> Seen:
    desk = engine.brain.slots
    counts = desk.counted[FAIRQUEUE]
    sessions = [each for each in desk.sessions.values() if each.wish.kind == FAIRQUEUE]
    waiting = sum(1 for each in sessions if each.phase is Phase.WAITING)
    totals = {
        "session_created": counts.created,
        "granted": counts.granted,
        "throttled": counts.throttled,
        "timeout": counts.timed_out,
        "released": counts.released,
    }
    return totals, {
        "total": len(sessions), "pending": waiting, "granted": len(sessions) - waiting,
        "throttled": 0, "timeout": 0,
    }  # fmt: skip
