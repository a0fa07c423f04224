"""One measurement in a process of its own; the driver starts it and reads its one line of JSON.

python -m bench.peers.measure <adapter> <workload> <jobs>
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.peers.figures import key_of, overlaps, percentile
from bench.peers.recording import END, read
from bench.peers.worker_process import POLL_S, WorkerProcess, adopt_orphans

WARM_UP = 50
WARM_UP_NUMBER = 10_000_000
IN_FLIGHT = 64
CHUNK = 1_000
KEYS = 100
GAP_S = 0.020
IDLE_S = 0.5
LIMIT_S = 60.0
STORED_LIMIT_S = 15.0

Outcome = dict[str, Any]


class Bench:
    """A product's client, whether its methods are coroutines or not, on one event loop."""

    def __init__(self, adapter: ModuleType, runner: asyncio.Runner) -> None:
        self.adapter = adapter
        self.runner = runner

    def settle(self, answer: Any) -> Any:
        """Waits if there is something to wait for."""
        return self.runner.run(_awaited(answer)) if inspect.isawaitable(answer) else answer

    @contextmanager
    def fresh_client(self) -> Iterator[Any]:
        self.adapter.reset()
        client = self.adapter.Client()
        try:
            yield client
        finally:
            self.settle(client.close())

    def one_by_one(self, client: Any, numbers: range) -> None:
        enqueue = client.enqueue
        if not inspect.iscoroutinefunction(enqueue):
            for number in numbers:
                enqueue(number)
            return

        async def each_in_turn() -> None:
            for number in numbers:
                await enqueue(number)

        self.runner.run(each_in_turn())

    def in_flight(self, client: Any, numbers: range) -> None:
        enqueue = getattr(client, "enqueue_in_flight", client.enqueue)
        left = iter(numbers)

        async def take() -> None:
            for number in left:
                await enqueue(number)

        async def all_at_once() -> None:
            await asyncio.gather(*(take() for _ in range(IN_FLIGHT)))

        self.runner.run(all_at_once())

    def in_bulk(self, client: Any, numbers: range) -> None:
        for start in range(0, len(numbers), CHUNK):
            self.settle(client.enqueue_bulk(list(numbers[start : start + CHUNK])))

    def fill(self, client: Any, numbers: range) -> None:
        """The quickest way there is; nobody looks at the clock."""
        if hasattr(client, "enqueue_bulk"):
            self.in_bulk(client, numbers)
        elif inspect.iscoroutinefunction(client.enqueue):
            self.one_by_one(client, numbers[:1])  # opens what there is to open
            self.in_flight(client, numbers[1:])
        else:
            self.one_by_one(client, numbers)

    def wait_until_stored(self) -> int | None:
        """When the last completion was in the store, in ns. None: never."""
        end = time.monotonic() + STORED_LIMIT_S
        while time.monotonic() < end:
            if self.settle(self.adapter.pending()) == 0:
                return time.monotonic_ns()
            time.sleep(POLL_S)
        return None


async def _awaited(answer: Awaitable[Any]) -> Any:
    return await answer


def enqueueing(bench: Bench, workload: str, jobs: int, _directory: Path) -> Outcome:
    enqueue = {"w1": bench.one_by_one, "w1b": bench.in_flight, "w1c": bench.in_bulk}[workload]
    with bench.fresh_client() as client:
        bench.one_by_one(client, range(WARM_UP_NUMBER, WARM_UP_NUMBER + WARM_UP))
        start = time.perf_counter()
        enqueue(client, range(jobs))
        return {"figure": jobs / (time.perf_counter() - start)}


def draining(bench: Bench, workload: str, jobs: int, directory: Path) -> Outcome:
    """From the first job's record, so that starting the worker does not count."""
    records = directory / "records"
    with bench.fresh_client() as client:
        bench.fill(client, range(jobs))
    started_at = time.monotonic_ns()
    with WorkerProcess(bench.adapter.worker(workload), records) as worker:
        complete = worker.wait_for_records(jobs, LIMIT_S)
        stored_at = bench.wait_until_stored() if complete else None
        complaint = worker.complaint()
    found = read(records)
    if len({number for number, _ in found}) != jobs:
        return {"error": f"{len(found):,} of {jobs:,} jobs ran; {complaint}"}
    if stored_at is None:
        return {"error": f"not all completions were stored after {STORED_LIMIT_S:.0f} s"}
    first, last = found[0][1], found[-1][1]
    return {
        "figure": jobs / ((stored_at - first) / 1e9),
        "until_last_record": jobs / ((last - first) / 1e9),
        "start_s": (first - started_at) / 1e9,
        "twice": len(found) - jobs,
    }


def picking_up(bench: Bench, workload: str, jobs: int, directory: Path) -> Outcome:
    records = directory / "records"
    sent: dict[int, int] = {}
    with bench.fresh_client() as client:
        bench.one_by_one(client, range(WARM_UP_NUMBER, WARM_UP_NUMBER + 1))
        with WorkerProcess(bench.adapter.worker(workload), records) as worker:
            if not worker.wait_for_records(1, LIMIT_S):
                return {"error": f"the worker did not start; {worker.complaint()}"}
            time.sleep(IDLE_S)
            _paced(bench, client.enqueue, sent, jobs)
            complete = worker.wait_for_records(jobs + 1, LIMIT_S)
            complaint = worker.complaint()
    waits = [(at - sent[number]) / 1e6 for number, at in read(records) if number in sent]
    if not complete:
        return {"error": f"{len(waits):,} of {jobs:,} jobs ran; {complaint}"}
    return {"figure": percentile(waits, 0.5), "p99": percentile(waits, 0.99), "max": max(waits)}


def _paced(bench: Bench, enqueue: Any, sent: dict[int, int], jobs: int) -> None:
    """A product whose calls are not awaited is called where no event loop runs."""
    if inspect.iscoroutinefunction(enqueue):
        bench.runner.run(_paced_awaits(enqueue, sent, jobs))
        return
    for number, pause_s in _moments(sent, jobs):
        enqueue(number)
        time.sleep(pause_s())


async def _paced_awaits(enqueue: Any, sent: dict[int, int], jobs: int) -> None:
    for number, pause_s in _moments(sent, jobs):
        await enqueue(number)
        await asyncio.sleep(pause_s())


def _moments(sent: dict[int, int], jobs: int) -> Iterator[tuple[int, Callable[[], float]]]:
    """The number of each job, just before it is due, and how long to wait after its call."""
    due = time.monotonic()

    def pause_s() -> float:
        nonlocal due
        due = max(due + GAP_S, time.monotonic())
        return max(0.0, due - time.monotonic())

    for number in range(jobs):
        sent[number] = time.monotonic_ns()
        yield number, pause_s


def one_per_key(bench: Bench, workload: str, jobs: int, directory: Path) -> Outcome:
    """From the first start until the last end."""
    key = key_of(workload, jobs, KEYS)
    pairs = [(number, f"k{key(number)}") for number in range(jobs)]
    records = directory / "records"
    with bench.fresh_client() as client:
        if hasattr(client, "enqueue_keyed_bulk"):
            for start in range(0, jobs, CHUNK):
                bench.settle(client.enqueue_keyed_bulk(pairs[start : start + CHUNK]))
        else:
            for pair in pairs:
                bench.settle(client.enqueue_keyed(*pair))
    with WorkerProcess(bench.adapter.worker(workload), records) as worker:
        complete = worker.wait_for_records(2 * jobs, LIMIT_S)
        complaint = worker.complaint()
    found = read(records)
    ended = {number for number, _ in found if number & END}
    if not complete or len(ended) != jobs:
        return {"error": f"{len(ended):,} of {jobs:,} jobs ran; {complaint}"}
    seconds = (found[-1][1] - found[0][1]) / 1e9
    return {"figure": jobs / seconds, "overlaps": overlaps(found, key)}


MEASURES = {
    "w1": enqueueing,
    "w1b": enqueueing,
    "w1c": enqueueing,
    "w2": draining,
    "w3": picking_up,
    "w4-rr": one_per_key,
    "w4-burst": one_per_key,
}


def measured(adapter_name: str, workload: str, jobs: int) -> Outcome:
    if adapter_name.startswith("raw"):
        raw = importlib.import_module(f"bench.peers.{adapter_name}")
        return {"figure": raw.rows_per_s(workload, jobs)}
    adapter = importlib.import_module(f"bench.peers.adapters.{adapter_name}")
    memory = Path("/dev/shm")
    with (
        tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as directory,
        asyncio.Runner() as runner,
    ):
        return MEASURES[workload](Bench(adapter, runner), workload, jobs, Path(directory))


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that every worker is ended
    adopt_orphans()
    adapter_name, workload, jobs = sys.argv[1:]
    try:
        outcome = measured(adapter_name, workload, int(jobs))
    except Exception as error:  # a failure is a result too, and the others go on
        outcome = {"error": f"{type(error).__name__}: {error}"[:300]}
    print(json.dumps({"jobs": int(jobs)} | outcome))


if __name__ == "__main__":
    main()
