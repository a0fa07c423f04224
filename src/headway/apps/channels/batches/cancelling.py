"""Ending the lines of a batch that was cancelled. What waits is cancelled, some at a time; what
runs may end, for its answer is paid for.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from headway.apps.channels.batches.life import Batches, Status
from headway.apps.channels.queue.jobs import LINE
from headway.core import IllegalTransition, Outcome, State
from headway.core.change import UnknownTicket
from headway.engine.hands.context import job
from headway.errors import UnknownJob
from headway.outcomes import Answered
from headway.sdk.app import App

AT_ONCE = 500  # lines that are cancelled in one turn, so that nobody waits long
AGAIN_S = 1.0  # until it is seen whether a line that ran would run once more
OPEN = (
    f"select id from jobs where batch = ? and type = '{LINE}' and finished_at is null order by id"
)


class Canceller:
    def __init__(self, app: App, batches: Batches) -> None:
        self._app = app
        self._batches = batches

    def cancel(self, batch: str) -> Answered | None:
        """The job `llm.cancel`."""
        row = self._batches.get(batch, None)
        if row is None or row.status != Status.CANCELLING:
            return None
        ids = [id for (id,) in self._app.store.rows(OPEN, (row.number,))]
        left = 0
        for start in range(0, len(ids), AT_ONCE):
            some = ids[start : start + AT_ONCE]
            left += self._batches.turn(partial(self._cancel_some, some))
            job.check()
        return Answered(Outcome.returned(after_s=AGAIN_S)) if left else None

    def _cancel_some(self, ids: list[int], now: float) -> int:
        """How many of them run."""
        engine = self._app.engine
        assert engine is not None, "a turn has an engine"
        brain = engine.brain
        running = 0
        for id in ids:
            ticket = brain.core.tickets.get(id)
            if ticket is not None and ticket.state is State.RUNNING:
                running += 1
                continue
            with suppress(IllegalTransition, UnknownTicket, UnknownJob):  # it has just ended
                brain.controls.cancel(id, now)
        return running
