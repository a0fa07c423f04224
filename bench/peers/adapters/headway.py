"""Headway on SQLite and on PostgreSQL: a commit is on disk before the call returns.

With limits, each job has one of 20 tenants and stands at a lane and at one of 50 upstreams, which
has all that an upstream can have. All of it is so wide that it does not decide how fast the jobs
go: what is measured is the price of asking.
"""

import asyncio
import sqlite3
import sys
from typing import Any

from bench.peers import surroundings
from bench.peers.recording import END, record
from headway import App

STORE, _, WITH = surroundings.variant().partition("-")
PATH = surroundings.directory() / "headway.db"
UNFINISHED = "select count(*) from {} where finished_at is null"
SITES, TENANTS = 50, 20
AMPLE = 1_000  # more than an engine runs at once

app = App(surroundings.postgres_url() if STORE == "postgres" else f"sqlite:///{PATH}", tasks=AMPLE)


def options() -> dict[str, Any]:
    """Of jobs that stand at an upstream and belong to a tenant; declares the limits, if asked."""
    if WITH == "limits":
        declare_limits()
    return {
        "upstream": lambda i: f"site-{i % SITES}.example",
        "tenant": lambda i: f"tenant-{i // SITES % TENANTS}",
    }


def declare_limits() -> None:
    app.lane("default", limit=AMPLE)
    app.upstream(
        "*.example",
        limit=AMPLE,
        per_second=1_000_000,
        burst=AMPLE,
        breaker=True,
        cooldown="0.001s",  # the shortest there is
        tenant={"limit": AMPLE},
    )


@app.job(type="noop", **(options() if WITH else {}))
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
    if STORE == "postgres":
        surroundings.new_database()
    else:
        surroundings.remove_files(PATH.name)


def pending() -> int:
    if STORE == "postgres":
        return surroundings.postgres_count(UNFINISHED.format("headway.jobs"))
    db = sqlite3.connect(f"file:{PATH}?mode=ro", uri=True)
    try:
        [(count,)] = db.execute(UNFINISHED.format("jobs"))
    finally:
        db.close()
    return int(count)


def worker(workload: str) -> list[str]:  # noqa: ARG001
    return [sys.executable, "-m", "bench.peers.adapters.headway"]


if __name__ == "__main__":
    app.run()
