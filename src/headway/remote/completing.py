"""Reporting how jobs ended: while one request is on its way, the next one collects.

A report that may not have arrived is sent again, with the same fence: a server that has it already
says so, and one that has given the job to somebody else changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec

from headway.core import Outcome
from headway.errors import BadJob, NotAllowed, StoreError
from headway.lease_clock import lease_clock
from headway.remote.client import Backoff
from headway.remote.connection import Connection
from headway.remote.desk import Desk, Held
from headway.remote.protocol import Ending, outcome_body, rate_words

logger = logging.getLogger("headway.worker")

MAX_JOBS = 500  # in one request
MAX_BYTES = 4_000_000  # of results in one request, as far as it can be helped
ANSWER_S = 15.0
# How long after the end of its lease a report is still worth sending: after a restart the server
# gives every job that somebody holds a new lease.
LATE_S = 600.0


class Completing:
    def __init__(self, connection: Connection, desk: Desk) -> None:
        self._connection = connection
        self._desk = desk
        self._wake = asyncio.Event()
        self._backoff = Backoff()
        desk.report = self._wake.set

    async def run(self) -> None:
        while True:
            self._wake.clear()
            self._drop_late(lease_clock())
            ready = pick(self._desk.ended.values())
            if not ready:
                await self._wake.wait()
            elif await self._send(ready):
                self._backoff.reset()
            else:
                await asyncio.sleep(self._backoff.next_s())

    def _drop_late(self, now: float) -> None:
        for held in list(self._desk.ended.values()):
            if now > held.ends_at + LATE_S:
                logger.error("how job %s ended could not be reported; it will run again", held.id)
                self._desk.settled(held)

    async def _send(self, ready: list[Held]) -> bool:
        """False: the server cannot be reached, and has to be told again."""
        try:
            bodies = [_body(held) for held in ready]
            answer = await self._connection.line.complete(bodies, ANSWER_S)
        except NotAllowed:
            raise
        except BadJob as error:
            return await self._send_apart(ready, error)
        except StoreError as error:
            self._connection.lost(error)
            return False
        self._connection.heard(answer.server)
        endings: dict[int, Ending] = {ending.fence: ending for ending in answer.jobs}
        for held in ready:
            ending = endings.get(held.fence)
            if ending is not None and not ending.accepted:
                logger.warning("job %s was not held here any more when it ended", held.id)
            held.state = None if ending is None else ending.state
            self._desk.settled(held)
        return True

    async def _send_apart(self, ready: list[Held], error: BadJob) -> bool:
        """Something in it is refused: find out what, and fail that job alone."""
        if len(ready) > 1:
            half = len(ready) // 2
            return await self._send(ready[:half]) and await self._send(ready[half:])
        [held] = ready
        if held.outcome is None or held.outcome.error.startswith(REFUSED):
            logger.error("how job %s ended was refused: %s", held.id, error)
            self._desk.settled(held)
            return True
        held.outcome, held.result = Outcome.failed(f"{REFUSED}: {error}", fatal=True), None
        return await self._send(ready)


REFUSED = "the server has refused the report of its end"


def pick(ended: Any) -> list[Held]:
    """The first of them that fit into one request. Who has last words waits until they are said."""
    found: list[Held] = []
    room = MAX_BYTES
    for held in ended:
        if held.noted_at is not None or held.saying:
            continue
        room -= len(held.result or "")
        if found and (room < 0 or len(found) == MAX_JOBS):
            break
        found.append(held)
    return found


def _body(held: Held) -> dict[str, Any]:
    assert held.outcome is not None
    return ending_body(held.id, held.fence, held.outcome, held.result)


def ending_body(id: int, fence: int, outcome: Outcome, result: str | None) -> dict[str, Any]:
    body: dict[str, Any] = {"id": id, "fence": fence, "outcome": outcome_body(outcome)}
    if outcome.rates is not None:
        body["headers"] = rate_words(outcome.rates)
    if result is not None:
        body["body"] = msgspec.Raw(result.encode())
    return body
