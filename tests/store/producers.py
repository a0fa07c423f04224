"""What runs in other processes: Python starts them anew, so they must be found by name."""

from __future__ import annotations

import sys
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier

from headway.store import open_store
from tests.store.kit import job, unique


def produce(url: str, name: str, count: int, start: Barrier, answers: Queue[list[int]]) -> None:
    """Open the store when all others do, and insert: one by one, a few, many, and unique ones."""
    start.wait()
    store = open_store(url)
    numbers: list[int] = []
    for each in range(count):
        size = (1, 2, 8)[each % 3]
        jobs = [job(f"{name} {each} {place}") for place in range(size)]
        numbers += [receipt.id for receipt in store.insert(jobs)]
        store.insert([job(unique=unique(f"everybody wants {each}"))])
    store.close()
    answers.put(numbers)


def insert_one(url: str) -> None:
    store = open_store(url)
    store.insert([job("from afar")])
    store.close()


def hold_the_engine(url: str) -> None:
    """Become the engine, say so, and stay until killed."""
    store = open_store(url)
    store.enter(lambda: None)
    print("in", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    {"insert": insert_one, "engine": hold_the_engine}[sys.argv[1]](sys.argv[2])
