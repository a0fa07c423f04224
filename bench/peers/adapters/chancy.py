"""Chancy on PostgreSQL: 1,000 async jobs at a time, asking for more as soon as there is room."""

import asyncio
import logging
import sys

from chancy import Chancy, Queue, Worker, job

from bench.peers import surroundings
from bench.peers.recording import record

log = logging.getLogger("bench.chancy")  # it would write a line for each job
log.setLevel(logging.CRITICAL)


@job()
async def noop(*, i: int) -> None:
    record(i)


def opened() -> Chancy:
    return Chancy(surroundings.postgres_url(), no_default_plugins=True, log=log)


class Client:
    def __init__(self) -> None:
        self.app: Chancy | None = None

    async def enqueue(self, i: int) -> None:
        await (await self._opened()).push(noop.job.with_kwargs(i=i))

    async def enqueue_bulk(self, numbers: list[int]) -> None:
        app = await self._opened()
        jobs = [noop.job.with_kwargs(i=i) for i in numbers]
        async for _ in app.push_many(jobs, batch_size=len(jobs)):
            pass

    async def _opened(self) -> Chancy:
        if self.app is None:
            self.app = opened()
            await self.app.__aenter__()
        return self.app

    async def close(self) -> None:
        if self.app is not None:
            await self.app.__aexit__(None, None, None)


async def install() -> None:
    queue = Queue(
        "default",
        concurrency=1_000,
        executor=Chancy.Executor.Async,
        eager_polling=True,
        polling_interval=1,
    )
    async with opened() as app:
        await app.migrate()
        await app.declare(queue, upsert=True)


def reset() -> None:
    surroundings.new_database()
    asyncio.run(install())


def pending() -> int:
    return surroundings.postgres_count(
        "select count(*) from chancy_jobs where state <> 'succeeded'"
    )


def worker(workload: str) -> list[str]:  # noqa: ARG001
    return [sys.executable, "-m", "bench.peers.adapters.chancy"]


async def work() -> None:
    async with opened() as app, Worker(app) as runner:
        await runner.wait_for_shutdown()


if __name__ == "__main__":
    asyncio.run(work())
