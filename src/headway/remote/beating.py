"""Heartbeats: one request for all jobs, with what they have said meanwhile.

The same loop stops what has outlived its lease. It waits for no request, so it does so in time even
when the server does not answer.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from headway.errors import BadJob, NotAllowed, StoreError
from headway.lease_clock import lease_clock
from headway.remote.client import Backoff
from headway.remote.connection import Connection
from headway.remote.desk import Desk, Held, Notes
from headway.remote.protocol import Beat, Beats

logger = logging.getLogger("headway.worker")

NOTE_EVERY_S = 1.0  # how often at most a request is sent only because somebody has something to say
LOOK_S = 1.0  # how long the loop sleeps at most: a clock may have jumped while the machine slept
MAX_JOBS = 500  # in one request
MAX_BYTES = 2_000_000  # of checkpoints and log lines in one request, as far as it can be helped
MAX_ANSWER_S = 10.0
INF = float("inf")

Said = tuple[Held, Notes]


class Beating:
    def __init__(self, connection: Connection, desk: Desk) -> None:
        self._connection = connection
        self._desk = desk
        self._wake = asyncio.Event()
        self._said_at = -INF  # when notes were sent last
        self._not_before = -INF  # after a failure
        self._backoff = Backoff()
        self._round: asyncio.Task[None] | None = None
        desk.pulse = self._wake.set

    async def run(self) -> None:
        while True:
            self._wake.clear()
            now = lease_clock()
            self._desk.lose_overdue(now)
            if self._round is None or self._round.done():
                if self._round is not None:
                    self._round.result()  # so that its error is ours
                    self._round = None
                due = self._due(now)
                if due:
                    self._round = asyncio.create_task(self._beat(due))
                    self._round.add_done_callback(lambda _: self._wake.set())
            try:
                async with asyncio.timeout(self._sleep_s(lease_clock())):
                    await self._wake.wait()
            except TimeoutError:
                continue

    # ------------------------------------------------------------------ when, and for whom

    def _due(self, now: float) -> list[Held]:
        """Those whose time has come, and with them all whose time comes soon."""
        if now < self._not_before:
            return []
        alive = [held for held in self._desk.held.values() if not held.lost]
        may_say = self._said_at + NOTE_EVERY_S
        if not any(self._next(held, may_say) <= now for held in alive):
            return []
        return [
            held
            for held in alive
            if held.noted_at is not None or held.beat_at - 0.1 * held.lease_s <= now
        ]

    def _next(self, held: Held, may_say: float) -> float:
        if held.noted_at is None:
            return held.beat_at
        # Whoever has ended waits for his last words to be sent, and so does the report of it.
        return min(held.beat_at, held.noted_at if held.ended else max(held.noted_at, may_say))

    def _sleep_s(self, now: float) -> float | None:
        alive = [held for held in self._desk.held.values() if not held.lost]
        if not alive:
            return None if not self._desk.held else LOOK_S
        next_at = min((held.ends_at for held in alive if not held.ended), default=INF)
        if self._round is None:
            may_say = self._said_at + NOTE_EVERY_S
            beat_at = min(self._next(held, may_say) for held in alive)
            next_at = min(next_at, max(beat_at, self._not_before))
        return min(max(next_at - now, 0.001), LOOK_S)

    # ------------------------------------------------------------------ saying it

    async def _beat(self, due: list[Held]) -> None:
        said = [(held, held.take_notes()) for held in due]
        if any(notes for _, notes in said):
            self._said_at = lease_clock()
        reached = await asyncio.gather(*(self._send(some) for some in chunks(said)))
        if all(reached):
            self._backoff.reset()
        else:
            shortest_s = min(held.lease_s for held in due)
            self._backoff.longest_s = min(5.0, shortest_s / 6)
            self._not_before = lease_clock() + self._backoff.next_s()

    async def _send(self, said: list[Said]) -> bool:
        """False: the server cannot be reached, and has to be asked again."""
        jobs = [{"id": held.id, "fence": held.fence, **notes} for held, notes in said]
        answer_s = min(MAX_ANSWER_S, max(1.0, min(held.lease_s for held, _ in said) / 4))
        asked_at = lease_clock()
        try:
            answer = await self._connection.line.heartbeat(jobs, answer_s)
        except NotAllowed:
            raise
        except BadJob as error:
            return await self._send_apart(said, error)
        except StoreError as error:
            self._connection.lost(error)
            self._keep_for_later(said)
            return False
        self._connection.heard(answer.server)
        return self._hear(said, answer, asked_at)

    async def _send_apart(self, said: list[Said], error: BadJob) -> bool:
        """Something in it is refused: find out what, and leave that out. The lease matters more."""
        if len(said) > 1:
            half = len(said) // 2
            return await self._send(said[:half]) & await self._send(said[half:])
        [(held, notes)] = said
        if not notes:
            self._connection.lost(error)
            self._keep_for_later(said)
            return False
        logger.warning("what job %s has said is refused, and left out: %s", held.id, error)
        return await self._send([(held, {})])

    def _keep_for_later(self, said: list[Said]) -> None:
        """Perhaps it was heard, and is said twice then: a line too many is better than one lost."""
        for held, notes in said:
            held.saying = False
            if not held.lost:
                held.put_back(notes)
            if held.ended:
                self._desk.report()

    def _hear(self, said: list[Said], answer: Beats, asked_at: float) -> bool:
        beats: dict[int, Beat] = {beat.fence: beat for beat in answer.jobs}
        for held, notes in said:
            held.saying = False
            beat = beats.get(held.fence)
            if beat is None:  # the server has not understood; it is asked again like one not there
                held.put_back(notes)
            elif beat.lease_s is None:
                self._desk.lose(held, "the server has given it up")
            else:
                held.prolong(beat.lease_s, asked_at)
                if beat.stop is not None:
                    self._desk.stop(held.fence, beat.stop)
            if held.ended:
                self._desk.report()
        return all(held.fence in beats for held, _ in said)


def chunks(said: list[Said]) -> list[list[Said]]:
    """As many as fit into one request each."""
    found: list[list[Said]] = [[]]
    room = MAX_BYTES
    for each in said:
        size = _size(each[1])
        if found[-1] and (len(found[-1]) == MAX_JOBS or size > room):
            found.append([])
            room = MAX_BYTES
        found[-1].append(each)
        room -= size
    return found


def _size(notes: Notes) -> int:
    lines: list[dict[str, Any]] = notes.get("logs", [])
    return len(bytes(notes.get("checkpoint", b""))) + sum(len(each["line"]) + 80 for each in lines)
