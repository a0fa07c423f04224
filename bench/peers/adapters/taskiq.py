"""taskiq on a Redis stream (acknowledged), one worker with 100 async tasks, no results."""

import redis
from taskiq_redis import RedisStreamBroker

from bench.peers import surroundings
from bench.peers.recording import record

broker = RedisStreamBroker(surroundings.redis_url())


@broker.task(task_name="noop")
async def noop(i: int) -> None:
    record(i)


class Client:
    def __init__(self) -> None:
        self.started = False

    async def enqueue(self, i: int) -> None:
        if not self.started:
            self.started = True  # before the await: the first call is made alone
            await broker.startup()
        await noop.kiq(i)

    async def close(self) -> None:
        await broker.shutdown()


def reset() -> None:
    surroundings.flush_redis()


def pending() -> int:
    with redis.Redis.from_url(surroundings.redis_url()) as client:
        return int(client.xpending(broker.queue_name, broker.consumer_group_name)["pending"])


def worker(workload: str) -> list[str]:  # noqa: ARG001
    command = [surroundings.script("taskiq"), "worker", "bench.peers.adapters.taskiq:broker"]
    return [*command, "--workers", "1", "--log-level", "ERROR"]
