"""litequeue: SQLite, synchronous NORMAL. A queue without a runner: the worker is the loop below."""

import sqlite3
import sys
import time

from litequeue import LiteQueue, MessageStatus

from bench.peers import surroundings
from bench.peers.recording import record

PATH = surroundings.directory() / "litequeue.db"


class Client:
    def __init__(self) -> None:
        self.queue = LiteQueue(str(PATH))

    def enqueue(self, i: int) -> None:
        self.queue.put(str(i))

    def close(self) -> None:
        self.queue.close()


def reset() -> None:
    surroundings.remove_files(PATH.name)


def pending() -> int:
    db = sqlite3.connect(PATH)
    try:
        query = "select count(*) from Queue where status <> ?"
        [(count,)] = db.execute(query, (int(MessageStatus.DONE),))
    finally:
        db.close()
    return int(count)


def worker(workload: str) -> list[str]:  # noqa: ARG001
    return [sys.executable, "-m", "bench.peers.adapters.litequeue"]


def work() -> None:
    queue = LiteQueue(str(PATH))
    while True:
        message = queue.pop()
        if message is None:
            time.sleep(0.002)
            continue
        record(int(message.data))
        queue.done(message.message_id)


if __name__ == "__main__":
    work()
