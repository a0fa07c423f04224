"""arq on Redis: 200 jobs at a time and a poll each 10 ms; its defaults are 10 jobs and 500 ms."""

import asyncio
import sys
from typing import Any

import redis
from arq import create_pool
from arq.connections import ArqRedis, RedisSettings
from arq.constants import default_queue_name
from arq.worker import Worker, func

from bench.peers import surroundings
from bench.peers.recording import record


async def noop(ctx: Any, i: int) -> None:  # noqa: ARG001
    record(i)


def settings() -> RedisSettings:
    return RedisSettings.from_dsn(surroundings.redis_url())


class Client:
    def __init__(self) -> None:
        self.pool: ArqRedis | None = None

    async def enqueue(self, i: int) -> None:
        if self.pool is None:
            self.pool = await create_pool(settings())
        await self.pool.enqueue_job("noop", i)

    async def close(self) -> None:
        if self.pool is not None:
            await self.pool.aclose()


def reset() -> None:
    surroundings.flush_redis()


def pending() -> int:
    # A job leaves the queue together with the storing of its result.
    with redis.Redis.from_url(surroundings.redis_url()) as client:
        return int(client.zcard(default_queue_name))


def worker(workload: str) -> list[str]:  # noqa: ARG001
    return [sys.executable, "-m", "bench.peers.adapters.arq"]


if __name__ == "__main__":
    asyncio.set_event_loop(asyncio.new_event_loop())
    functions = [func(noop, name="noop")]
    Worker(functions, redis_settings=settings(), max_jobs=200, poll_delay=0.01).run()
