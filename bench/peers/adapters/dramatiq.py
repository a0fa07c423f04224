"""Dramatiq on Redis, one process with eight threads (its default)."""

import logging
import time

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.rate_limits import ConcurrentRateLimiter
from dramatiq.rate_limits.backends import RedisBackend

from bench.peers import surroundings
from bench.peers.recording import END, record

logging.getLogger("dramatiq").setLevel(logging.CRITICAL)

broker = RedisBroker(url=surroundings.redis_url())
dramatiq.set_broker(broker)
limits = RedisBackend(url=surroundings.redis_url())


@dramatiq.actor
def noop(i: int) -> None:
    record(i)


# The documented way: a taken limiter raises, and the message is retried.
@dramatiq.actor(max_retries=10_000, min_backoff=1, max_backoff=50)
def keyed(i: int, key: str) -> None:
    with ConcurrentRateLimiter(limits, key, limit=1).acquire():
        record(i)
        time.sleep(0)
        record(i | END)


class Client:
    def enqueue(self, i: int) -> None:
        noop.send(i)

    def enqueue_keyed(self, i: int, key: str) -> None:
        keyed.send(i, key)

    def close(self) -> None:
        broker.close()


def reset() -> None:
    surroundings.flush_redis()


def pending() -> int:
    # Every message is kept here from its arrival until it is acknowledged.
    return int(broker.client.hlen("dramatiq:default.msgs"))


def worker(workload: str) -> list[str]:  # noqa: ARG001
    command = [surroundings.script("dramatiq"), "bench.peers.adapters.dramatiq"]
    return [*command, "--processes", "1", "--threads", "8"]
