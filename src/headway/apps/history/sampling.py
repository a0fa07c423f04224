"""The loop that looks every other second, and stores what is finished every minute.

Neither an engine that does not answer nor a store that is away ends it: what cannot be seen is
unknown in the series, and what cannot be stored is kept until it can.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

from headway.api.turns import in_turn
from headway.apps.history.looking import Watcher
from headway.apps.history.recorder import SAMPLE_S, Look, Recorder
from headway.apps.history.tables import save
from headway.engine import Engine
from headway.engine.tallies import Reckoning
from headway.errors import EngineStopped
from headway.sdk.app import App

logger = logging.getLogger("headway.history")

LOOK_S = 1.0  # for the brain to answer
SAVE_S = 60.0


class Sampler:
    def __init__(self, app: App, engine: Engine, recorder: Recorder) -> None:
        self._app = app
        self._engine = engine
        self._recorder = recorder
        self._watcher = Watcher(engine.brain)
        self._asked = False  # the brain has not come to the last look yet
        self._save_at = app.now() + SAVE_S
        self._saving: asyncio.Task[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._troubles: set[str] = set()  # that are in the log already

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        for task in (self._task, self._saving):
            if task is not None:
                if task is self._task:
                    task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        if not self._app.trouble:
            await self._sample_safely()
            await self.save()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_pause_s(self._app.now()))
            await self._sample_safely()
            if self._app.now() >= self._save_at and (self._saving is None or self._saving.done()):
                self._save_at = self._app.now() + SAVE_S
                self._saving = asyncio.create_task(self.save())

    async def _sample_safely(self) -> None:
        try:
            await self.sample()
            self._well("sample")
        except Exception as error:
            self._ill("sample", error)

    async def sample(self) -> None:
        reading = self._engine.brain.meters.reckon()
        gates = await self._look(reading)
        self._recorder.record(self._app.now(), reading, gates)

    async def _look(self, reading: Reckoning) -> Look | None:
        """None: the brain is busy, or waits for the store. It is asked one thing at a time."""
        if self._asked:
            return None
        recorder, watcher = self._recorder, self._watcher
        lanes = {*recorder.names("lane"), *reading.lanes}
        upstreams = {*recorder.names("upstream"), *reading.upstreams}
        stale = recorder.stale(reading)

        def look(now: float) -> tuple[Look, list[str]]:
            self._asked = False
            return watcher.look(lanes, upstreams, now), watcher.forget(stale)

        self._asked = True
        try:
            seen, gone = await in_turn(self._engine, look, LOOK_S)
        except (TimeoutError, EngineStopped):
            return None
        for name in gone:
            reading.upstreams.pop(name, None)
        recorder.forgotten(gone)
        return seen

    async def save(self) -> None:
        rows = self._recorder.unsaved()
        try:
            await asyncio.to_thread(save, self._app.store, rows, self._app.now())
            self._recorder.saved(rows)
            self._well("store")
        except Exception as error:
            self._ill("store", error)

    def _ill(self, what: str, error: Exception) -> None:
        """Once, however long it lasts."""
        if what not in self._troubles:
            self._troubles.add(what)
            logger.warning("the history has gaps for now (%s): %s", what, error)

    def _well(self, what: str) -> None:
        if what in self._troubles:
            self._troubles.discard(what)
            logger.info("the history goes on (%s)", what)


def _pause_s(now: float) -> float:
    """At the end of each bucket; one who wakes a moment too early has done it already."""
    left_s = SAMPLE_S - now % SAMPLE_S
    return left_s if left_s > SAMPLE_S / 4 else left_s + SAMPLE_S
