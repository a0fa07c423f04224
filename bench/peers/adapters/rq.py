"""RQ on Redis, with the worker that does not fork for each job."""

from redis import Redis
from rq import Queue

from bench.peers import surroundings
from bench.peers.recording import record

JOB = "bench.peers.adapters.rq.noop"


def noop(i: int) -> None:
    record(i)


def opened() -> Queue:
    return Queue(connection=Redis.from_url(surroundings.redis_url()))


class Client:
    def __init__(self) -> None:
        self.queue = opened()

    def enqueue(self, i: int) -> None:
        self.queue.enqueue(JOB, i)

    def enqueue_bulk(self, numbers: list[int]) -> None:
        self.queue.enqueue_many([Queue.prepare_data(JOB, (i,)) for i in numbers])

    def close(self) -> None:
        self.queue.connection.close()


def reset() -> None:
    surroundings.flush_redis()


def pending() -> int:
    queue = opened()
    try:
        return queue.count + queue.started_job_registry.get_job_count(cleanup=False)
    finally:
        queue.connection.close()


def worker(workload: str) -> list[str]:  # noqa: ARG001
    command = [surroundings.script("rq"), "worker", "--quiet", "--url", surroundings.redis_url()]
    return [*command, "-w", "rq.worker.SimpleWorker", "default"]
