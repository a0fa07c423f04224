"""Who is measured, with which settings, in which workloads, with how many jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

WORKLOADS = {
    "w1": "W1   enqueue one by one, jobs/s",
    "w1b": "W1b  enqueue, 64 in flight, jobs/s",
    "w1c": "W1c  enqueue in bulk, 1,000 in each call, jobs/s",
    "w2": "W2   drain, one worker process, until all completions are stored, jobs/s",
    "w3": "W3   pick-up latency, one job each 20 ms, ms",
    "w4-rr": "W4   one at a time per key, 100 keys, interleaved, jobs/s",
    "w4-burst": "W4   one at a time per key, 100 keys, one key after another, jobs/s",
}
W4 = ("w4-rr", "w4-burst")

# What has happened when an enqueue returns.
ON_DISK = "on disk"
IN_SYSTEM = "in system"  # a crash of the process loses nothing, a loss of power may
WITHIN_1_S = "within 1 s"  # Redis writes each second: a crash may lose the last one

QUICK_SHARE = 10
FEWEST_JOBS = 200

_JOBS = {"w1": 2_000, "w1b": 4_000, "w1c": 20_000, "w2": 2_000, "w3": 150}
_JOBS |= {"w4-rr": 1_000, "w4-burst": 1_000}


@dataclass(frozen=True, slots=True)
class Product:
    name: str
    adapter: str
    acknowledged: str
    settings: str
    workloads: tuple[str, ...] = ("w1", "w2", "w3")
    variant: str = ""
    environment: str = ""  # a directory in the benchmark's environment, for one of its own
    jobs: Mapping[str, int] = field(default_factory=dict)
    headroom: bool = False  # no product but a limit of the machine

    def job_count(self, workload: str, *, quick: bool) -> int:
        full = self.jobs.get(workload, _JOBS[workload])
        if not quick:
            return full
        return 25 if workload == "w3" else max(min(full, FEWEST_JOBS), full // QUICK_SHARE)


RAW = Product(
    "raw limit",
    "raw",
    ON_DISK,
    "the same rows and indexes straight into SQLite: 1, 64 and 1,000 in a transaction",
    workloads=("w1", "w1b", "w1c"),
    jobs={"w1": 4_000, "w1b": 64_000, "w1c": 100_000},
    headroom=True,
)
HEADWAY = Product(
    "headway",
    "headway",
    ON_DISK,
    "SQLite, one process with the engine and its local hands",
    workloads=tuple(WORKLOADS),
    jobs={"w1": 4_000, "w1b": 20_000, "w1c": 60_000, "w2": 20_000} | dict.fromkeys(W4, 10_000),
)
PEERS = (
    Product(
        "huey-sqlite",
        "huey",
        ON_DISK,
        "SqliteHuey (WAL, FULL, its default), 4 threads",
        variant="sqlite",
    ),
    Product(
        "huey-sqlite-off",
        "huey",
        IN_SYSTEM,
        "SqliteHuey fsync=False (OFF), 1 thread (4 in w4), polls each 1 to 10 ms",
        workloads=("w1", "w2", "w3", *W4),
        variant="sqlite-off",
        jobs={"w1": 6_000, "w2": 5_000},
    ),
    Product(
        "huey-redis",
        "huey",
        WITHIN_1_S,
        "RedisHuey, 4 threads",
        workloads=("w1", "w2", "w3", *W4),
        variant="redis",
    ),
    Product(
        "persist-queue",
        "persist_queue",
        ON_DISK,
        "SQLiteAckQueue(auto_commit=True): get and ack in a loop",
        jobs={"w2": 1_000},
    ),
    Product(
        "litequeue",
        "litequeue",
        IN_SYSTEM,
        "WAL, NORMAL (its default): pop and done in a loop that polls each 2 ms",
        jobs={"w1": 6_000},
    ),
    Product(
        "rq",
        "rq",
        WITHIN_1_S,
        "SimpleWorker (no fork), results kept (its default)",
        workloads=("w1", "w1c", "w2", "w3"),
        jobs={"w1c": 5_000, "w2": 600},
    ),
    Product(
        "dramatiq",
        "dramatiq",
        WITHIN_1_S,
        "1 process, 8 threads",
        workloads=("w1", "w2", "w3", *W4),
        jobs={"w4-burst": 400},
    ),
    Product(
        "saq", "saq", WITHIN_1_S, "10 at a time (its default)", workloads=("w1", "w1b", "w2", "w3")
    ),
    Product(
        "taskiq",
        "taskiq",
        WITHIN_1_S,
        "RedisStreamBroker (acknowledged), 100 at a time",
        workloads=("w1", "w1b", "w2", "w3"),
    ),
    Product("celery", "celery", WITHIN_1_S, "8 threads, prefetch x128, acknowledged on receipt"),
    Product(
        "arq",
        "arq",
        WITHIN_1_S,
        "200 at a time, polls each 10 ms",
        workloads=("w1", "w1b", "w2", "w3"),
        environment="arq",
    ),
)
PRODUCTS = {product.name: product for product in (RAW, HEADWAY, *PEERS)}


def chosen_products(only: Iterable[str]) -> list[Product]:
    """By name, or all variants by the first part of it. The raw limits are always there."""
    wanted = list(only)
    for word in wanted:
        if not any(_meant(word, name) for name in PRODUCTS):
            raise ValueError(f"no product is called {word!r}; there are: {', '.join(PRODUCTS)}")
    return [
        product
        for name, product in PRODUCTS.items()
        if product is RAW or not wanted or any(_meant(word, name) for word in wanted)
    ]


def _meant(word: str, name: str) -> bool:
    return name == word or name.startswith(f"{word}-")


def chosen_workloads(only: Iterable[str]) -> list[str]:
    wanted = list(only)
    for word in wanted:
        if word not in {*WORKLOADS, "w4"}:
            raise ValueError(f"no workload is called {word!r}; there are: {', '.join(WORKLOADS)}")
    return [
        name
        for name in WORKLOADS
        if not wanted or name in wanted or ("w4" in wanted and name in W4)
    ]
