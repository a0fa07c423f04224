"""One measurement of slots in a process of its own; the driver reads its one line of JSON.

    python -m bench.slots_drive CONTENDER KEYS SECONDS [asyncio|uvloop]

Each client takes a place at a random key, holds it for one turn of the loop, gives it back, and
begins again. Meanwhile the holders of each key are counted here, in memory.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import Any

import uvloop

from bench.peers.figures import percentile
from bench.peers.leases import CAP, CLIENTS, CONTENDERS, Contender, Leases

WARM_UP_S = 0.5
PATIENCE_S = 30.0  # for clients that still wait at the end
LOOPS = ("asyncio", "uvloop")

Run = dict[str, Any]
Hold = Callable[[int, int], AbstractAsyncContextManager[Any]]  # client, key


class Tally:
    """What the clients of one measurement have seen."""

    def __init__(self, keys: int, clients: int, cap: int = CAP) -> None:
        self.held = [0] * keys
        self.pairs = [0] * clients
        self.waits_s: list[float] = []
        self.too_many = 0
        self._cap = cap

    def taken(self, key: int, waited_s: float) -> None:
        self.waits_s.append(waited_s)
        self.held[key] += 1
        self.too_many += self.held[key] > self._cap

    def given(self, key: int) -> None:
        self.held[key] -= 1

    def run(self, seconds: float, cpu_s: float) -> Run:
        """The figures, by the names that `figures` and the tables know."""
        pairs = sum(self.pairs)
        if not pairs:
            return {"jobs": 0, "error": "not one pair in time"}
        return {
            "figure": pairs / seconds,
            "jobs": pairs,
            "p50": percentile(self.waits_s, 0.5) * 1000,
            "p99": percentile(self.waits_s, 0.99) * 1000,
            "least": min(self.pairs) / max(self.pairs),
            "overlaps": self.too_many,
            "cpu_us": cpu_s / pairs * 1e6,
        }


async def drive(hold: Hold, keys: int, seconds: float, clients: int = CLIENTS) -> Run:
    """All clients at once. A pair that ends after the time does not count."""
    tally = Tally(keys, clients)
    cpu_s, end = time.process_time(), time.perf_counter() + seconds

    async def client(number: int) -> None:
        rng = Random(number)
        while (asked_at := time.perf_counter()) < end:
            key = rng.randrange(keys)
            async with hold(number, key):
                tally.taken(key, time.perf_counter() - asked_at)
                await asyncio.sleep(0)  # so that one holder too many would be seen
                tally.given(key)
            if time.perf_counter() < end:
                tally.pairs[number] += 1

    async with asyncio.timeout(seconds + PATIENCE_S):
        await all_of(client, clients)
    return tally.run(seconds, time.process_time() - cpu_s)


async def all_of(client: Callable[[int], Awaitable[None]], clients: int) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(clients):
            group.create_task(client(number))  # type: ignore[arg-type]


def warm_up_s(seconds: float) -> float:
    return min(WARM_UP_S, seconds / 2)


async def measure(contender: Contender, keys: int, seconds: float) -> Run:
    leases: Leases = contender.make()
    await leases.open(keys)
    try:
        await drive(leases.hold, keys, warm_up_s(seconds))
        return await drive(leases.hold, keys, seconds)
    finally:
        await leases.close()


def main() -> None:
    name, keys, seconds, *loop = sys.argv[1:]
    run_on = uvloop.run if loop == ["uvloop"] else asyncio.run
    try:
        run = run_on(measure(CONTENDERS[name], int(keys), float(seconds)))
    except Exception as error:
        run = failed(error)
    print(json.dumps(run))


def failed(error: Exception) -> Run:
    """What the first client of a group met; the others will have met the same."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return {"jobs": 0, "error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    main()
