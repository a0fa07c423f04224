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

# Where the jobs are.
SQLITE = "sqlite"
REDIS = "redis"
POSTGRES = "postgres"
STORES = (SQLITE, REDIS, POSTGRES)

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
    store: str
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
    SQLITE,
    ON_DISK,
    "the same rows and indexes straight into SQLite: 1, 64 and 1,000 in a transaction",
    workloads=("w1", "w1b", "w1c"),
    jobs={"w1": 4_000, "w1b": 64_000, "w1c": 100_000},
    headroom=True,
)
RAW_PG = Product(
    "raw limit pg",
    "raw_postgres",
    POSTGRES,
    ON_DISK,
    "the same rows straight into one table: 1 inserted, 64 and 1,000 copied in a transaction",
    workloads=("w1", "w1b", "w1c"),
    jobs={"w1": 2_000, "w1b": 32_000, "w1c": 50_000},
    headroom=True,
)
HEADWAY = Product(
    "headway",
    "headway",
    SQLITE,
    ON_DISK,
    "SQLite, one process with the engine and its local hands, 1,000 tasks at once",
    workloads=tuple(WORKLOADS),
    variant="sqlite",
    jobs={"w1": 4_000, "w1b": 20_000, "w1c": 60_000, "w2": 20_000} | dict.fromkeys(W4, 10_000),
)
HEADWAY_OPEN = Product(
    "headway-open",
    "headway",
    SQLITE,
    ON_DISK,
    "the jobs of headway-limits, 50 upstreams and 20 tenants shared fairly, with no limits",
    workloads=("w2",),
    variant="sqlite-open",
    jobs={"w2": 20_000},
)
HEADWAY_LIMITS = Product(
    "headway-limits",
    "headway",
    SQLITE,
    ON_DISK,
    "the same jobs with limits that do not bind: a lane, 50 upstreams with pool, pace, breaker,"
    " cooldown and a pool for each of 20 tenants",
    workloads=("w2",),
    variant="sqlite-limits",
    jobs={"w2": 20_000},
)
HEADWAY_PG = Product(
    "headway-pg",
    "headway",
    POSTGRES,
    ON_DISK,
    "PostgreSQL, one process with the engine and its local hands, 1,000 tasks at once",
    workloads=tuple(WORKLOADS),
    variant="postgres",
    jobs={"w1b": 10_000, "w1c": 40_000, "w2": 20_000} | dict.fromkeys(W4, 10_000),
)
HEADWAY_PG_OPEN = Product(
    "headway-pg-open",
    "headway",
    POSTGRES,
    ON_DISK,
    "the jobs of headway-open",
    workloads=("w2",),
    variant="postgres-open",
    jobs={"w2": 20_000},
)
HEADWAY_PG_LIMITS = Product(
    "headway-pg-limits",
    "headway",
    POSTGRES,
    ON_DISK,
    "the same, with the limits of headway-limits",
    workloads=("w2",),
    variant="postgres-limits",
    jobs={"w2": 20_000},
)
OURS = (
    HEADWAY,
    HEADWAY_OPEN,
    HEADWAY_LIMITS,
    HEADWAY_PG,
    HEADWAY_PG_OPEN,
    HEADWAY_PG_LIMITS,
)
PEERS = (
    Product(
        "huey-sqlite",
        "huey",
        SQLITE,
        ON_DISK,
        "SqliteHuey (WAL, FULL, its default), 4 threads",
        variant="sqlite",
    ),
    Product(
        "huey-sqlite-off",
        "huey",
        SQLITE,
        IN_SYSTEM,
        "SqliteHuey fsync=False (OFF), 1 thread (4 in w4), polls each 1 to 10 ms",
        workloads=("w1", "w2", "w3", *W4),
        variant="sqlite-off",
        jobs={"w1": 6_000, "w2": 5_000},
    ),
    Product(
        "huey-redis",
        "huey",
        REDIS,
        WITHIN_1_S,
        "RedisHuey, 4 threads",
        workloads=("w1", "w2", "w3", *W4),
        variant="redis",
    ),
    Product(
        "persist-queue",
        "persist_queue",
        SQLITE,
        ON_DISK,
        "SQLiteAckQueue(auto_commit=True): get and ack in a loop",
        jobs={"w2": 1_000},
    ),
    Product(
        "litequeue",
        "litequeue",
        SQLITE,
        IN_SYSTEM,
        "WAL, NORMAL (its default): pop and done in a loop that polls each 2 ms",
        jobs={"w1": 6_000},
    ),
    Product(
        "rq",
        "rq",
        REDIS,
        WITHIN_1_S,
        "SimpleWorker (no fork), results kept (its default)",
        workloads=("w1", "w1c", "w2", "w3"),
        jobs={"w1c": 5_000, "w2": 600},
    ),
    Product(
        "dramatiq",
        "dramatiq",
        REDIS,
        WITHIN_1_S,
        "1 process, 8 threads",
        workloads=("w1", "w2", "w3", *W4),
        jobs={"w4-burst": 400},
    ),
    Product(
        "saq-redis",
        "saq",
        REDIS,
        WITHIN_1_S,
        "10 at a time (its default)",
        workloads=("w1", "w1b", "w2", "w3"),
        variant="redis",
    ),
    Product(
        "taskiq",
        "taskiq",
        REDIS,
        WITHIN_1_S,
        "RedisStreamBroker (acknowledged), 100 at a time",
        workloads=("w1", "w1b", "w2", "w3"),
    ),
    Product(
        "celery",
        "celery",
        REDIS,
        WITHIN_1_S,
        "8 threads, prefetch x128, acknowledged on receipt",
    ),
    Product(
        "arq",
        "arq",
        REDIS,
        WITHIN_1_S,
        "200 at a time, polls each 10 ms",
        workloads=("w1", "w1b", "w2", "w3"),
        environment="arq",
    ),
    Product(
        "pgqueuer-100",
        "pgqueuer",
        POSTGRES,
        ON_DISK,
        "batch_size=100, asyncpg, deleted and logged when done (its default)",
        workloads=("w1", "w1b", "w1c", "w2", "w3"),
        variant="100",
        jobs={"w2": 20_000},
    ),
    Product(
        "pgqueuer-1000",
        "pgqueuer",
        POSTGRES,
        ON_DISK,
        "the same with batch_size=1000",
        workloads=("w2", "w3"),  # enqueueing is the same
        variant="1000",
        jobs={"w2": 20_000},
    ),
    Product(
        "procrastinate",
        "procrastinate",
        POSTGRES,
        ON_DISK,
        "30 at a time, woken by NOTIFY, done jobs kept (its default)",
        workloads=tuple(WORKLOADS),
        jobs={"w1c": 10_000, "w2": 1_000} | dict.fromkeys(W4, 400),
    ),
    Product(
        "chancy",
        "chancy",
        POSTGRES,
        ON_DISK,
        "1,000 async jobs at a time, eager_polling, results kept",
        workloads=("w1", "w1b", "w1c", "w2", "w3"),
        jobs={"w1c": 5_000, "w2": 10_000},
    ),
    Product(
        "saq-postgres",
        "saq",
        POSTGRES,
        ON_DISK,
        "100 at a time, results kept (its default)",
        workloads=("w1", "w1b", "w2", "w3"),
        variant="postgres",
        jobs={"w2": 1_000},
    ),
    Product(
        "huey-postgres",
        "huey",
        POSTGRES,
        ON_DISK,
        "PostgresHuey, 4 threads",
        workloads=("w1", "w2", "w3", *W4),
        variant="postgres",
    ),
)
PRODUCTS = {product.name: product for product in (RAW, RAW_PG, *OURS, *PEERS)}


def compared_with(product: Product) -> Product:
    """The Headway on the same store; for Redis, which Headway does not use, the one on SQLite."""
    return HEADWAY_PG if product.store == POSTGRES else HEADWAY


def chosen_products(only: Iterable[str]) -> list[Product]:
    """By name, by store, or all variants by the first part of a name.

    The raw limits of their stores come along.
    """
    wanted = list(only)
    chosen = {name for word in wanted for name in _meant(word)} if wanted else set(PRODUCTS)
    stores = {PRODUCTS[name].store for name in chosen}
    return [
        product
        for name, product in PRODUCTS.items()
        if name in chosen or (product.headroom and product.store in stores)
    ]


def _meant(word: str) -> list[str]:
    if word in PRODUCTS:
        return [word]
    found = [
        name
        for name, product in PRODUCTS.items()
        if product.store == word or name.startswith(f"{word}-")
    ]
    if not found:
        there = ", ".join([*STORES, *PRODUCTS])
        raise ValueError(f"no product is called {word!r}; there are: {there}")
    return found


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
