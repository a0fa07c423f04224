"""huey on SQLite (synchronous FULL, its default, or OFF), on Redis and on PostgreSQL."""

import logging
import time

from huey import RedisHuey, SqliteHuey
from huey.api import PostgresHuey

from bench.peers import surroundings
from bench.peers.recording import END, record

logging.getLogger("huey").setLevel(logging.CRITICAL)

VARIANT = surroundings.variant()
PATH = surroundings.directory() / "huey.db"

if VARIANT == "redis":
    app = RedisHuey("bench", url=surroundings.redis_url())
elif VARIANT == "postgres":
    app = PostgresHuey("bench", dsn=surroundings.postgres_url(), create_tables=False)
else:
    options = {"fsync": False} if VARIANT == "sqlite-off" else {}
    app = SqliteHuey("bench", filename=str(PATH), **options)


@app.task()
def noop(i: int) -> None:
    record(i)


# The documented way: a taken lock raises, and the retry puts the task at the end of the queue.
@app.task(retries=10_000, retry_delay=0)
def keyed(i: int, key: str) -> None:
    with app.lock_task(key):
        record(i)
        time.sleep(0)
        record(i | END)


class Client:
    def enqueue(self, i: int) -> None:
        noop(i)

    def enqueue_keyed(self, i: int, key: str) -> None:
        keyed(i, key)

    def close(self) -> None:
        app.storage.close()


def reset() -> None:
    if VARIANT == "redis":
        surroundings.flush_redis()
        return
    app.storage.close()
    if VARIANT == "postgres":
        surroundings.new_database()
    else:
        surroundings.remove_files(PATH.name)
    app.storage.initialize_schema()


def pending() -> int:
    # A task leaves the queue before it runs, and that nothing was returned is not stored.
    return int(app.pending_count())


def worker(workload: str) -> list[str]:
    command = [surroundings.script("huey_consumer"), "bench.peers.adapters.huey.app"]
    command += ["-k", "thread", "-q", "-n", "-C"]
    if VARIANT == "sqlite-off":
        threads = "4" if workload.startswith("w4") else "1"
        return [*command, "-w", threads, "-d", "0.001", "-m", "0.01"]
    return [*command, "-w", "4"]
