"""Downloads of what was found earlier, and looks by the clock. These jobs call nobody: they put
other jobs into the queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from headway.api.turns import in_turn
from headway.apps.media import items
from headway.apps.media.listing import InThread, download_job
from headway.apps.media.model import Item, State, Subscription
from headway.apps.media.register import Register
from headway.apps.media.tables import MOVE_ITEM_FROM
from headway.core import RetryPolicy
from headway.engine.brain import Brain
from headway.engine.hands.context import job
from headway.store import Store

RULES = RetryPolicy(timeout_s=600.0, retries=5, delay_s=10.0, growth=2.0, max_lost=20)
AT_ONCE = 500  # jobs in one turn
WANTED = (State.FOUND, State.MISSING)


class Starter:
    def __init__(self, store: Store, register: Register, in_thread: InThread) -> None:
        self._store = store
        self._register = register
        self.in_thread = in_thread
        self.brain: Brain  # from the moment that an engine is about to start

    async def refresh(self, subscription: int) -> dict[str, Any]:
        """The job `media.refresh`: a look by the clock."""
        asked = await in_turn(self.brain, partial(self._register.refresh, subscription))
        return {"subscription": subscription, "asked": asked}

    async def start(self, subscription: int) -> dict[str, Any]:
        """The job `media.start`."""
        row = self._register.subscriptions.get(subscription)
        if row is None:
            return {"subscription": subscription, "queued": 0}
        queued = await self.start_found(row)
        job.progress(queued, queued, f"{queued} downloads are in line")
        return {"subscription": subscription, "queued": queued}

    async def start_found(self, row: Subscription, *, by_hand: bool = False) -> int:
        """How many are in line now that were not."""
        done = after = 0
        while True:
            found = await self.in_thread(self._found, row.id, after)
            if not found:
                return done
            after = found[-1].id
            done += await in_turn(self.brain, partial(self._queue, row.id, found, by_hand))

    def _found(self, subscription: int, after: int) -> list[Item]:
        return items.in_states(self._store, subscription, WANTED, most=AT_ONCE, after=after)

    def _queue(self, id: int, found: Sequence[Item], by_hand: bool, now: float) -> int:
        """In the brain's turn."""
        row = self._register.subscriptions.get(id)
        if row is None:
            return 0
        self.queue(row, found, now, by_hand=by_hand)
        return len(found)

    def queue(
        self, row: Subscription, found: Sequence[Item], now: float, *, by_hand: bool = False
    ) -> None:
        """In the brain's turn: these are in line with its commit."""
        jobs = [download_job(each, row, now, by_hand=by_hand) for each in found]
        queued = State.QUEUED.value
        self.brain.write(
            MOVE_ITEM_FROM,
            *((each.id, queued, None, None, now, each.state) for each in found),
        )
        self._register.enqueue(jobs)
