"""Celery on Redis: eight threads (the quickest of its pools here), no results (its default)."""

import redis
from celery import Celery

from bench.peers import surroundings
from bench.peers.recording import record

app = Celery("bench", broker=surroundings.redis_url())
app.conf.update(
    worker_prefetch_multiplier=128,
    task_ignore_result=True,
    broker_connection_retry_on_startup=True,
    worker_hijack_root_logger=False,
)


@app.task(name="noop")
def noop(i: int) -> None:
    record(i)


class Client:
    def enqueue(self, i: int) -> None:
        noop.delay(i)

    def close(self) -> None:
        app.close()


def reset() -> None:
    surroundings.flush_redis()


def pending() -> int:
    # It acknowledges on receipt by default, so there is nothing to wait for but the queue.
    with redis.Redis.from_url(surroundings.redis_url()) as client:
        return int(client.llen("celery")) + int(client.hlen("unacked"))


def worker(workload: str) -> list[str]:  # noqa: ARG001
    command = [surroundings.script("celery"), "-A", "bench.peers.adapters.celery:app", "worker"]
    command += ["-P", "threads", "-c", "8", "-l", "ERROR"]
    return [*command, "--without-gossip", "--without-mingle", "--without-heartbeat"]
