"""Procrastinate on PostgreSQL: 30 at a time, woken by NOTIFY; done jobs are kept (its default)."""

import asyncio
import sys

from procrastinate import App, PsycopgConnector

from bench.peers import surroundings
from bench.peers.recording import END, record

app = App(connector=PsycopgConnector(conninfo=surroundings.postgres_url(), max_size=20))


@app.task(name="noop")
async def noop(i: int) -> None:
    record(i)


@app.task(name="keyed")
async def keyed(i: int) -> None:
    record(i)
    await asyncio.sleep(0)
    record(i | END)


class Client:
    def __init__(self) -> None:
        self.opened = False

    async def enqueue(self, i: int) -> None:
        await self._open()
        await noop.defer_async(i=i)

    async def enqueue_bulk(self, numbers: list[int]) -> None:
        await self._open()
        await noop.batch_defer_async(*({"i": i} for i in numbers))

    async def enqueue_keyed(self, i: int, key: str) -> None:
        await self._open()
        await keyed.configure(lock=key).defer_async(i=i)

    async def _open(self) -> None:
        if not self.opened:
            self.opened = True  # before the await: the first call is made alone
            await app.open_async()

    async def close(self) -> None:
        await app.close_async()


async def install() -> None:
    connector = PsycopgConnector(conninfo=surroundings.postgres_url())
    async with App(connector=connector).open_async() as opened:
        await opened.schema_manager.apply_schema_async()


def reset() -> None:
    surroundings.new_database()
    asyncio.run(install())


def pending() -> int:
    return surroundings.postgres_count(
        "select count(*) from procrastinate_jobs where status in ('todo', 'doing')"
    )


def worker(workload: str) -> list[str]:  # noqa: ARG001
    return [sys.executable, "-m", "bench.peers.adapters.procrastinate"]


async def work() -> None:
    async with app.open_async():
        await app.run_worker_async(concurrency=30)


if __name__ == "__main__":
    asyncio.run(work())
