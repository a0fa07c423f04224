"""SAQ on Redis, ten jobs at a time (its default), and on PostgreSQL, 100; results are kept."""

import asyncio
import logging
import sys
from typing import Any

from saq import Queue, Worker

from bench.peers import surroundings
from bench.peers.recording import record

logging.getLogger("saq").setLevel(logging.CRITICAL)

ON_POSTGRES = surroundings.variant() == "postgres"
AT_ONCE = 100 if ON_POSTGRES else 10


async def noop(ctx: Any, *, i: int) -> None:  # noqa: ARG001
    record(i)


def named() -> Queue:
    """Not connected yet."""
    return Queue.from_url(surroundings.postgres_url() if ON_POSTGRES else surroundings.redis_url())


class Client:
    def __init__(self) -> None:
        self.queue = named()
        self.connected = False

    async def enqueue(self, i: int) -> None:
        if not self.connected:
            self.connected = True  # before the await: the first call is made alone
            await self.queue.connect()
        await self.queue.enqueue("noop", i=i)

    async def close(self) -> None:
        await self.queue.disconnect()


def reset() -> None:
    if ON_POSTGRES:
        surroundings.new_database()
    else:
        surroundings.flush_redis()


async def pending() -> int:
    if ON_POSTGRES:
        open_states = "('new', 'deferred', 'queued', 'active')"
        return surroundings.postgres_count(
            f"select count(*) from saq_jobs where status in {open_states}"
        )
    queue = named()
    try:
        return await queue.count("incomplete")
    finally:
        await queue.disconnect()


def worker(workload: str) -> list[str]:  # noqa: ARG001
    return [sys.executable, "-m", "bench.peers.adapters.saq"]


async def work() -> None:
    queue = named()
    await queue.connect()
    await Worker(queue, functions=[("noop", noop)], concurrency=AT_ONCE).start()


if __name__ == "__main__":
    asyncio.run(work())
