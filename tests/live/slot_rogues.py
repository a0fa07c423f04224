"""Clients of the fair queue that do everything clients should not do, and what each of them knows.

Nobody outside knows when exactly a lease began, only that it was between a request and its answer;
and a word that was not answered may have been heard or not. So a client here says nothing when
it could not tell afterwards whether it was in time: either it speaks well before its lease is over,
or well after.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.live.slot_clients import (
    QUEUE,
    Caller,
    Grant,
    SlotClient,
    Unanswered,
    Unreachable,
    pause,
)
from tests.live.slot_upstream import INF, Upstream

HOST = "files.example.com"
IPS = [f"203.0.113.{number}/32" for number in range(12)]
CLEAR_S = 0.8  # between the end of a lease and whatever is said before or after it
# The service's clock for a turn is read when the turn begins, and a busy machine may stop in it.
TURN_S = 0.4
CLOCKS_S = (0.0, 0.0, -420.0, 300.0, 172_800.0, -172_800.0)
GARBAGE: tuple[tuple[Any, int], ...] = (
    (b"{", 400),
    (b"[]", 400),
    ({"slotToken": 5}, 400),
    ({"slotToken": "x" * 500}, 400),
    ({}, 200),
    ({"slotToken": ""}, 200),
    ({"slotToken": "zz.1.secret"}, 200),
    ({"slotToken": "1.1."}, 200),
    ({"slotToken": "ffffffffffffff.1.x"}, 200),
)
FATES = {  # how often each of them is chosen
    "plain": 40,
    "repeats": 10,
    "spoils": 10,
    "crashes": 8,
    "is late": 8,
    "cancels its wait": 8,
    "cancels its grant": 6,
    "hangs up": 12,
    "vanishes": 6,
}


@dataclass(slots=True, eq=False)
class Holding:
    """A slot that a client has had, and what it has said about it. The lease is over between
    `ends_from` and `ends_by`.
    """

    ip: str
    name: str
    ends_from: float
    ends_by: float
    said_from: float = INF  # the first word that may have been heard
    said_by: float = -INF  # then at the latest the last of them was heard or lost
    answered: bool = False

    def said(self, sent_at: float) -> None:
        """A word that was answered, or else lost, by now."""
        self.said_from = min(self.said_from, sent_at)
        self.said_by = time.monotonic()

    @property
    def said_in_time(self) -> bool:
        return self.said_from < self.ends_by

    @property
    def surely_over(self) -> bool:
        """The service must have counted it: it was heard, and not before the lease was over."""
        return self.answered and self.said_from > self.ends_by

    @property
    def surely_in_time(self) -> bool:
        """It cannot have been counted."""
        return self.said_by < self.ends_from - TURN_S


@dataclass(frozen=True, slots=True)
class Scene:
    """Where the rogues are at work, and what they have done so far."""

    service: str
    upstream: Upstream
    lease_s: float
    over: asyncio.Event
    holdings: list[Holding]
    done: Counter[str]


class Rogue:
    def __init__(self, scene: Scene, number: int, seed: int) -> None:
        self._scene = scene
        self._number = number
        self._lives = 0
        self._random = Random(f"{seed} {number}")
        self._ahead_s = self._random.choice(CLOCKS_S)

    async def live(self) -> None:
        fates, weights = list(FATES), list(FATES.values())
        while not self._scene.over.is_set():
            fate = self._random.choices(fates, weights)[0]
            self._lives += 1
            ip = self._random.choice(IPS)
            client = SlotClient(self._scene.service, HOST, ip, ahead_s=self._ahead_s)
            async with client.caller, Caller(self._scene.upstream.url) as upstream:
                await self._once(fate, client, upstream)

    async def _once(self, fate: str, client: SlotClient, upstream: Caller) -> None:
        grant = await self._wait(fate, client)
        if grant is None:
            return
        lease_s = self._scene.lease_s
        holding = Holding(client.ip, f"{self._number}-{self._lives}", grant.asked_at + lease_s,
                          grant.heard_at + lease_s)  # fmt: skip
        self._scene.holdings.append(holding)
        if self._scene.over.is_set() or holding.ends_from - time.monotonic() < 2 * CLEAR_S:
            return  # heard of too late to do anything with it
        self._scene.done[fate] += 1
        match fate:
            case "crashes":
                await self._visit(upstream, holding, self._random.uniform(0.0, lease_s), 60.0)
            case "is late":
                stays_s = holding.ends_by - time.monotonic() + CLEAR_S
                longer_s = self._random.choice((0.5, 4.0))  # some for longer than a restart takes
                await self._visit(upstream, holding, stays_s + self._random.uniform(0.0, longer_s))
                await self._give_back(holding, client, grant)
            case "cancels its grant":
                await self._give_back(holding, client, grant, cancels=True)
            case _:
                await self._visit(upstream, holding, self._random.uniform(0.01, 0.2))
                if fate == "spoils":
                    await self._spoil(client, grant)
                await self._give_back(holding, client, grant)
        if fate == "repeats" and holding.answered:
            await self._repeat(client, grant)

    # ------------------------------------------------------------------ waiting

    async def _wait(self, fate: str, client: SlotClient) -> Grant | None:
        """None: it wants nothing any more."""
        turns_away = fate in ("hangs up", "vanishes", "cancels its wait")
        while not self._scene.over.is_set():
            asking = asyncio.ensure_future(client.ask())
            if turns_away:
                await asyncio.wait([asking], timeout=self._random.uniform(0.0, 0.3))
                if not asking.done():
                    await self._turn_away(fate, client, asking)
                    if fate != "hangs up":
                        return None
                    turns_away = False
                    await self._pause(0.0, 1.2)  # some stay away for longer than they may
                    continue
            try:
                answer = await asking
            except (Unreachable, Unanswered):
                await self._pause(0.02, 0.2)
                continue
            if isinstance(answer, Grant):
                return answer
            assert answer in ("pending", "timeout"), answer
        return None

    async def _turn_away(
        self, fate: str, client: SlotClient, asking: asyncio.Future[Grant | str]
    ) -> None:
        self._scene.done[fate] += 1
        # A grant that was not heard of may be old by now, and to cancel it is a word about it.
        fresh = client.asked_at + self._scene.lease_s - CLEAR_S > time.monotonic()
        if fate == "cancels its wait" and client.query_token is not None and fresh:
            other = SlotClient(self._scene.service, HOST, client.ip)
            async with other.caller:
                with suppress(Unreachable, Unanswered):
                    await other.cancel(client.query_token)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)

    # ------------------------------------------------------------------ holding

    async def _visit(
        self, upstream: Caller, holding: Holding, stays_s: float, wants_s: float = 0.0
    ) -> None:
        """At the upstream, until it answers; who wants more than it stays for hangs up."""
        call = {"ip": holding.ip, "name": holding.name, "hold_s": wants_s or stays_s}
        visit = asyncio.ensure_future(upstream.post("/", call))
        over = asyncio.ensure_future(self._scene.over.wait())
        await asyncio.wait(
            [visit, over], timeout=stays_s if wants_s else None, return_when=asyncio.FIRST_COMPLETED
        )
        visit.cancel()
        over.cancel()
        await asyncio.gather(visit, over, return_exceptions=True)

    async def _give_back(
        self, holding: Holding, client: SlotClient, grant: Grant, *, cancels: bool = False
    ) -> None:
        """Say it until it is answered, and never when it could not be told what it meant."""
        over = self._scene.over
        while True:
            sent_at = time.monotonic()
            if sent_at > holding.ends_from - CLEAR_S and (holding.said_in_time or cancels):
                return  # whether that was heard will never be known
            if sent_at < holding.ends_by + CLEAR_S and over.is_set():
                return
            if holding.ends_from - CLEAR_S < sent_at < holding.ends_by + CLEAR_S:
                await pause(holding.ends_by + CLEAR_S - sent_at, over)
                continue
            try:
                if cancels:
                    assert await client.cancel(grant.query_token) in ("canceled", "gone", "noop")
                else:
                    await client.release(grant.slot_token)
            except Unreachable:
                await self._pause(0.02, 0.2)
                continue
            except Unanswered:
                holding.said(sent_at)
                await self._pause(0.02, 0.2)
                continue
            holding.said(sent_at)
            holding.answered = True
            return

    async def _repeat(self, client: SlotClient, grant: Grant) -> None:
        for _ in range(self._random.randint(1, 3)):
            await self._pause(0.0, 0.3)
            with suppress(Unreachable, Unanswered):
                await client.release(grant.slot_token)

    async def _spoil(self, client: SlotClient, grant: Grant) -> None:
        """Words about slots that no client has, or that only look like one's own."""
        number, fence, secret = grant.slot_token.split(".", 2)
        mine = (f"{number}.{int(fence, 16) + 1:x}.{secret}", f"{number}.{fence}.{secret[:-1]}",
                f"{int(number, 16) + 1:x}.{fence}.{secret}", grant.query_token)  # fmt: skip
        forged = [({"slotToken": token}, 200) for token in mine]
        for body, status in self._random.sample([*GARBAGE, *forged], 4):
            with suppress(Unreachable, Unanswered):
                assert (await client.caller.post(QUEUE + "/release", body))[0] == status

    async def _pause(self, least_s: float, most_s: float) -> None:
        await pause(self._random.uniform(least_s, most_s), self._scene.over)
