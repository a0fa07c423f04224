"""SAQ on Redis, ten jobs at a time (its default), results kept (its default)."""

import asyncio
import logging
import sys
from typing import Any

from saq import Queue, Worker

from bench.peers import surroundings
from bench.peers.recording import record

logging.getLogger("saq").setLevel(logging.CRITICAL)


async def noop(ctx: Any, *, i: int) -> None:  # noqa: ARG001
    record(i)


class Client:
    def __init__(self) -> None:
        self.queue = Queue.from_url(surroundings.redis_url())

    async def enqueue(self, i: int) -> None:
        await self.queue.enqueue("noop", i=i)

    async def close(self) -> None:
        await self.queue.disconnect()


def reset() -> None:
    surroundings.flush_redis()


async def pending() -> int:
    queue = Queue.from_url(surroundings.redis_url())
    try:
        return await queue.count("incomplete")
    finally:
        await queue.disconnect()


def worker(workload: str) -> list[str]:  # noqa: ARG001
    return [sys.executable, "-m", "bench.peers.adapters.saq"]


async def work() -> None:
    queue = Queue.from_url(surroundings.redis_url())
    await queue.connect()
    await Worker(queue, functions=[("noop", noop)]).start()


if __name__ == "__main__":
    asyncio.run(work())
