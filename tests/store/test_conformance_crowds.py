"""Every store: many threads and processes at once, and nothing is lost or done twice."""

from __future__ import annotations

import multiprocessing
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from headway.errors import DuplicateJob
from headway.store import Store, open_store
from headway.store.records import OnConflict
from tests.store.kit import T0, WAIT_S, Engine, all_jobs, event, job, moved, put, unique
from tests.store.producers import produce

CROWD = 8
T = TypeVar("T")


def all_at_once(act: Callable[[int], T]) -> list[T]:
    """Let eight threads do it at the same moment; what each of them got."""
    start = threading.Barrier(CROWD)

    def one(number: int) -> T:
        start.wait(WAIT_S)
        return act(number)

    with ThreadPoolExecutor(CROWD) as pool:
        return list(pool.map(one, range(CROWD)))


def payloads(store: Store) -> Counter[str | None]:
    return Counter(store.payload(number) for number in all_jobs(store))


def test_threads_insert_at_once_and_everything_is_there_exactly_once(store: Store) -> None:
    def insert(thread: int) -> list[int]:
        numbers = []
        for each in range(50):
            size = (1, 2, 8)[each % 3]
            numbers += put(store, *(job(f"{thread} {each} {place}") for place in range(size)))
        return numbers

    numbers = [number for got in all_at_once(insert) for number in got]

    assert sorted(numbers) == all_jobs(store)
    assert len(numbers) == CROWD * (17 * 1 + 17 * 2 + 16 * 8)
    assert set(payloads(store).values()) == {1}


def test_each_thread_gets_the_numbers_of_its_own_jobs(store: Store) -> None:
    def insert(thread: int) -> bool:
        return all(
            store.payload(put(store, job(f"{thread} {each}"))[0]) == f"{thread} {each}"
            for each in range(40)
        )

    assert all(all_at_once(insert))


def test_a_unique_job_that_all_want_at_once_is_there_once(store: Store, other: Store) -> None:
    receipts = all_at_once(
        lambda thread: (store, other)[thread % 2].insert([job(unique=unique("k"))])[0]
    )

    assert len({receipt.id for receipt in receipts}) == 1
    assert sum(not receipt.joined for receipt in receipts) == 1


def test_an_occurrence_that_all_claim_at_once_is_claimed_once(store: Store, other: Store) -> None:
    receipts = all_at_once(
        lambda thread: (store, other)[thread % 2].insert([job(occurrence="n@1")])[0]
    )

    assert sum(not receipt.joined for receipt in receipts) == 1


def test_those_who_are_rejected_harm_nobody_else(store: Store) -> None:
    """However the store groups what comes at the same time."""
    put(store, job("there", unique=unique("k")))

    def insert(thread: int) -> None:
        for each in range(20):
            try:
                store.insert([job(f"{thread} {each}"), *([bad] if thread % 2 else [])])
            except DuplicateJob:
                assert thread % 2

    bad = job("bad", unique=unique("k", OnConflict.REJECT))
    all_at_once(insert)

    wanted = [f"{thread} {each}" for thread in range(0, CROWD, 2) for each in range(20)]
    assert payloads(store) == Counter(["there", *wanted])


def test_whoever_asks_for_new_jobs_misses_none(store: Store, other: Store) -> None:
    """The engine asks for what came after its mark, and never looks back."""
    over = threading.Event()
    seen: list[int] = []
    mark = ""

    def look() -> None:
        nonlocal mark
        last_turn = False
        while not last_turn:
            last_turn = over.is_set()
            page, mark, _ = store.load_new(mark, 7)
            seen.extend(each.id for each in page)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        all_at_once(lambda thread: [put((store, other)[thread % 2]) for _ in range(40)])
    finally:
        over.set()
        looking.join()
    page, mark, _ = store.load_new(mark, 1_000_000)
    seen.extend(each.id for each in page)

    assert sorted(seen) == all_jobs(store)
    assert len(seen) == CROWD * 40


def test_the_engine_commits_while_others_insert(store: Store, other: Store) -> None:
    engine = Engine(store)
    numbers = put(store, *[job()] * 100)

    def act(thread: int) -> None:
        if thread:
            for _ in range(30):
                put((store, other)[thread % 2])
        else:
            for fence, number in enumerate(numbers):
                engine.commit(fence=fence, moved=[moved(number)], events=[event(number)] * 2)

    all_at_once(act)

    assert store.event_range() == (1, 200)
    assert len(all_jobs(store)) == 100 + 30 * (CROWD - 1)
    assert set(store.states(numbers).values()) == {"running"}


def test_commands_and_batches_from_everywhere_are_all_there(store: Store, other: Store) -> None:
    def act(thread: int) -> list[int]:
        mine = (store, other)[thread % 2]
        for each in range(10):
            mine.command("pause", f"{thread} {each}", None, T0)
        return [mine.open_batch("", T0) for _ in range(10)]

    batches = [number for got in all_at_once(act) for number in got]

    assert len(set(batches)) == CROWD * 10
    targets = [command.target for command in store.commands(1_000)]
    assert sorted(targets) == sorted(f"{a} {b}" for a in range(CROWD) for b in range(10))


def test_processes_open_a_new_store_at_once_and_nothing_is_lost(url: str) -> None:
    count, each_inserts = 4, 15
    spawn = multiprocessing.get_context("spawn")
    start, answers = spawn.Barrier(count), spawn.Queue()
    processes = [
        spawn.Process(target=produce, args=(url, f"p{each}", each_inserts, start, answers))
        for each in range(count)
    ]
    for process in processes:
        process.start()
    numbers = [number for _ in processes for number in answers.get(timeout=WAIT_S)]
    for process in processes:
        process.join(WAIT_S)
    answers.close()

    assert [process.exitcode for process in processes] == [0] * count
    assert len(numbers) == len(set(numbers)) == count * 5 * (1 + 2 + 8)
    store = open_store(url)
    found = payloads(store)
    shared = found.pop("{}")
    assert (set(found.values()), len(found), shared) == ({1}, len(numbers), each_inserts)
    store.close()
