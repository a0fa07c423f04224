"""PgQueuer on PostgreSQL: so many jobs in a batch; done jobs become log rows (its default)."""

import asyncio
import logging
import signal
import sys

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from bench.peers import surroundings
from bench.peers.recording import record

logging.getLogger("pgqueuer").setLevel(logging.CRITICAL)


class Client:
    def __init__(self) -> None:
        self.pool: asyncpg.Pool | None = None

    async def enqueue(self, i: int) -> None:
        await (await self._queries()).enqueue("noop", b"%d" % i)

    async def enqueue_bulk(self, numbers: list[int]) -> None:
        jobs, payloads = ["noop"] * len(numbers), [b"%d" % i for i in numbers]
        await (await self._queries()).enqueue(jobs, payloads, [0] * len(numbers))

    async def _queries(self) -> Queries:
        if self.pool is None:
            self.pool = await asyncpg.create_pool(surroundings.postgres_url(), min_size=1)
            self.queries = Queries(AsyncpgPoolDriver(self.pool))
        return self.queries

    async def close(self) -> None:
        if self.pool is not None:
            await self.pool.close()


async def install() -> None:
    connection = await asyncpg.connect(surroundings.postgres_url())
    try:
        await Queries(AsyncpgDriver(connection)).install()
    finally:
        await connection.close()


def reset() -> None:
    surroundings.new_database()
    asyncio.run(install())


def pending() -> int:
    # A job leaves this table together with the row that logs its end.
    return surroundings.postgres_count("select count(*) from pgqueuer")


def worker(workload: str) -> list[str]:  # noqa: ARG001
    return [sys.executable, "-m", "bench.peers.adapters.pgqueuer"]


async def work() -> None:
    connection = await asyncpg.connect(surroundings.postgres_url())
    app = PgQueuer(AsyncpgDriver(connection))

    @app.entrypoint("noop")
    async def noop(job: Job) -> None:
        record(int(job.payload or b""))

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, app.shutdown.set)
    await app.run(batch_size=int(surroundings.variant()))


if __name__ == "__main__":
    asyncio.run(work())
