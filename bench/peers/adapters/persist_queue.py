"""persist-queue: SQLite, synchronous FULL. It is a queue without a runner: see the loop below."""

import sqlite3
import sys
import time

import persistqueue
from persistqueue.sqlackqueue import AckStatus

from bench.peers import surroundings
from bench.peers.recording import record

PATH = surroundings.directory() / "persist-queue"


def opened() -> persistqueue.SQLiteAckQueue:
    return persistqueue.SQLiteAckQueue(str(PATH), auto_commit=True, multithreading=True)


class Client:
    def __init__(self) -> None:
        self.queue = opened()

    def enqueue(self, i: int) -> None:
        self.queue.put(i)

    def close(self) -> None:
        self.queue.close()


def reset() -> None:
    surroundings.remove_files(PATH.name)


def pending() -> int:
    db = sqlite3.connect(PATH / "data.db")
    try:
        query = "select count(*) from ack_queue_default where status <> ?"
        [(count,)] = db.execute(query, (int(AckStatus.acked),))
    finally:
        db.close()
    return int(count)


def worker(workload: str) -> list[str]:  # noqa: ARG001
    return [sys.executable, "-m", "bench.peers.adapters.persist_queue"]


def work() -> None:
    queue = opened()
    while True:
        try:
            number = queue.get(block=False)
        except persistqueue.Empty:
            time.sleep(0.002)
            continue
        record(number)
        queue.ack(number)


if __name__ == "__main__":
    work()
