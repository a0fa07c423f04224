"""Who can hold one of a few places at a key, what each of them promises, and how it is called.

Each contender is a class in its own file (`leases_redis`, `leases_postgres`, …), imported when it
is measured: nobody needs the clients of all the others. `hold(client, key)` is what a program would
write after `async with`.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from bench.peers.products import ON_DISK, POSTGRES, REDIS, SQLITE, WITHIN_1_S

CLIENTS = 64
CAP = 4  # places at each key
LEASE_S = 30  # for those that let a lease end by itself

MEMORY = "memory"

# What a place survives, beside what a queue's enqueue has to say.
IN_PROCESS = "in process"  # gone with it
IN_SERVER = "in server"  # gone with it, and with the connection

# Who gets a place that is free.
FIRST_COME = "first come"
FIRST_OF_ONE = "first at one"  # a client waits for one of the places, even if another is free
BY_CHANCE = "by chance"  # whoever asks again at the right moment
FAIR_SHARE = "fair share"  # between tenants, then first come


class Leases(ABC):
    """CAP places at each key, over a store that is empty when it is opened."""

    @abstractmethod
    async def open(self, keys: int) -> None:
        """Keys are numbers from 0; clients, too."""

    @abstractmethod
    def hold(self, client: int, key: int) -> AbstractAsyncContextManager[Any]: ...

    async def close(self) -> None:  # noqa: B027 - some have nothing to close
        pass


class TokenLeases(Leases):
    """Those that answer with a token, which is given back."""

    @abstractmethod
    async def acquire(self, client: int, key: int) -> Any: ...

    @abstractmethod
    async def release(self, client: int, key: int, token: Any) -> None: ...

    def hold(self, client: int, key: int) -> Held:
        return Held(self, client, key)


class Held:
    __slots__ = ("_client", "_key", "_leases", "_token")

    def __init__(self, leases: TokenLeases, client: int, key: int) -> None:
        self._leases = leases
        self._client = client
        self._key = key
        self._token: Any = None

    async def __aenter__(self) -> None:
        self._token = await self._leases.acquire(self._client, self._key)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        await self._leases.release(self._client, self._key, self._token)


@dataclass(frozen=True, slots=True)
class Contender:
    name: str
    adapter: str  # module:class beside this one
    store: str
    acknowledged: str  # what has happened when a place is given or taken back
    expires: bool  # a holder that is gone loses its place after a time
    order: str
    settings: str
    options: Mapping[str, Any] = field(default_factory=dict)
    headroom: bool = False  # no product but a limit: of the machine, or of what memory alone can do

    @property
    def durable(self) -> bool:
        return self.acknowledged == ON_DISK

    def make(self) -> Leases:
        module, _, name = self.adapter.partition(":")
        made: Leases = getattr(importlib.import_module(f"bench.peers.{module}"), name)(
            **self.options
        )
        return made


SEMAPHORE = Contender(
    "asyncio.Semaphore", "leases_memory:Semaphores", MEMORY, IN_PROCESS, False, FIRST_COME,
    "one process, nothing is stored: the bound of all that await", headroom=True,
)  # fmt: skip
RAW = Contender(
    "raw limit", "leases_sqlite:GroupCommit", SQLITE, ON_DISK, False, FIRST_COME,
    "a row for each lease, one writer, all that wait in one transaction, WAL, synchronous=FULL",
    headroom=True,
)  # fmt: skip
HEADWAY = Contender(
    "headway", "leases_headway:Slots", SQLITE, ON_DISK, True, FAIR_SHARE,
    "`async with app.slot(host)` on SQLite", {"store": SQLITE},
)  # fmt: skip
HEADWAY_PG = Contender(
    "headway-pg", "leases_headway:Slots", POSTGRES, ON_DISK, True, FAIR_SHARE,
    "the same on PostgreSQL", {"store": POSTGRES},
)  # fmt: skip
PEERS = (
    Contender(
        "redis-lua", "leases_redis:Lua", REDIS, WITHIN_1_S, True, BY_CHANCE,
        "a sorted set and a script, asked again after 1 to 8 ms; AOF each second",
    ),
    Contender(
        "redis-lua-always", "leases_redis:Lua", REDIS, ON_DISK, True, BY_CHANCE,
        "the same, appendfsync always", {"fsync": "always"},
    ),
    Contender(
        "redis-tokens", "leases_redis:Tokens", REDIS, WITHIN_1_S, False, FIRST_COME,
        "four tokens in a list, BLPOP and RPUSH; AOF each second",
    ),
    Contender(
        "redis-tokens-always", "leases_redis:Tokens", REDIS, ON_DISK, False, FIRST_COME,
        "the same, appendfsync always", {"fsync": "always"},
    ),
    Contender(
        "redis-lock", "leases_redis:Locks", REDIS, WITHIN_1_S, True, BY_CHANCE,
        "redis-py's Lock, one of four at random, asked again after 100 ms, its default",
    ),
    Contender(
        "redis-lock-2ms", "leases_redis:Locks", REDIS, WITHIN_1_S, True, BY_CHANCE,
        "the same, asked again after 2 ms", {"again_s": 0.002},
    ),
    Contender(
        "pg-rows", "leases_postgres:Rows", POSTGRES, ON_DISK, True, BY_CHANCE,
        "update … for update skip locked, 64 connections, asked again after 2 to 16 ms",
    ),
    Contender(
        "pg-rows-async", "leases_postgres:Rows", POSTGRES, WITHIN_1_S, True, BY_CHANCE,
        "the same, synchronous_commit off", {"synchronous_commit": "off"},
    ),
    Contender(
        "pg-advisory", "leases_postgres:AdvisoryLocks", POSTGRES, IN_SERVER, False, FIRST_OF_ONE,
        "pg_advisory_lock on one of four at random, 64 connections",
    ),
)  # fmt: skip
OURS = (HEADWAY, HEADWAY_PG)
CONTENDERS = {each.name: each for each in (SEMAPHORE, RAW, *OURS, *PEERS)}


def compared_with(contender: Contender) -> Contender:
    """Headway on the same store; those on Redis and in memory beside the one on SQLite."""
    return HEADWAY_PG if contender.store == POSTGRES else HEADWAY


def chosen(names: Iterable[str]) -> list[Contender]:
    """By name or by store; all of them if none is named. The Headway beside them comes along."""
    asked = set(names)
    known = {*CONTENDERS, *(each.store for each in CONTENDERS.values())}
    if unknown := asked - known:
        raise ValueError(f"there is no {min(unknown)!r}; there are: {', '.join(sorted(known))}")
    found = [each for each in CONTENDERS.values() if {each.name, each.store} & asked or not asked]
    beside = {compared_with(each).name for each in found}
    return [each for each in CONTENDERS.values() if each in found or each.name in beside]
