"""Headway on SQLite: a commit is on disk before the call returns."""

import asyncio
import sqlite3
import sys

from bench.peers import surroundings
from bench.peers.recording import END, record
from headway import App

PATH = surroundings.directory() / "headway.db"
app = App(f"sqlite:///{PATH}")


@app.job(type="noop")
async def noop(i: int) -> None:
    record(i)


@app.job(type="keyed", key=lambda i, key: key)  # noqa: ARG005 - the arguments of the job
async def keyed(i: int, key: str) -> None:  # noqa: ARG001 - read by the line above
    record(i)
    await asyncio.sleep(0)
    record(i | END)


class Client:
    def enqueue(self, i: int) -> None:
        noop.enqueue(i)

    async def enqueue_in_flight(self, i: int) -> None:
        await noop.aenqueue(i)

    def enqueue_bulk(self, numbers: list[int]) -> None:
        app.enqueue_many([noop.call(i) for i in numbers])

    def enqueue_keyed_bulk(self, pairs: list[tuple[int, str]]) -> None:
        app.enqueue_many([keyed.call(i, key) for i, key in pairs])

    def close(self) -> None:
        app.close()


def reset() -> None:
    surroundings.remove_files(PATH.name)


def pending() -> int:
    db = sqlite3.connect(f"file:{PATH}?mode=ro", uri=True)
    try:
        [(count,)] = db.execute("select count(*) from jobs where finished_at is null")
    finally:
        db.close()
    return int(count)


def worker(workload: str) -> list[str]:  # noqa: ARG001
    return [sys.executable, "-m", "bench.peers.adapters.headway"]


if __name__ == "__main__":
    app.run()
