"""Two ways to hold a place with PostgreSQL alone: rows with a lease, and the server's own locks.

Each client has a connection of its own: a lock belongs to one, and for rows it is twice as fast as
taking one of a few from a pool.
"""

from __future__ import annotations

import asyncio
import random
from uuid import UUID, uuid4

import asyncpg

from bench.peers import surroundings
from bench.peers.leases import CAP, CLIENTS, LEASE_S, TokenLeases

TABLE = """
create table places (
    key integer, place integer, holder uuid, ends_at timestamptz, primary key (key, place)
) with (fillfactor = 50)
"""
FILL = "insert into places (key, place) select k, p from generate_series(0, $1) k, "
FILL += "generate_series(1, $2) p"
TAKE = f"""
update places set holder = $2, ends_at = now() + interval '{LEASE_S} s'
where key = $1 and place = (
    select place from places where key = $1 and (holder is null or ends_at < now())
    limit 1 for update skip locked
) returning place
"""
GIVE = "update places set holder = null, ends_at = null "
GIVE += "where key = $1 and place = $2 and holder = $3"
SHORTEST_S, LONGEST_S = 0.002, 0.016  # until a client asks again


class OnPostgres(TokenLeases):
    def __init__(self, synchronous_commit: str = "on") -> None:
        self._settings = {"synchronous_commit": synchronous_commit}

    async def open(self, keys: int) -> None:
        surroundings.new_database()
        address, settings = surroundings.postgres_url(), self._settings
        self._connections = [
            await asyncpg.connect(address, server_settings=settings) for _ in range(CLIENTS)
        ]

    async def close(self) -> None:
        for connection in self._connections:
            await connection.close()


class Rows(OnPostgres):
    async def open(self, keys: int) -> None:
        await super().open(keys)
        await self._connections[0].execute(TABLE)
        await self._connections[0].execute(FILL, keys - 1, CAP)

    async def acquire(self, client: int, key: int) -> tuple[int, UUID]:
        holder, pause_s, connection = uuid4(), SHORTEST_S, self._connections[client]
        while (place := await connection.fetchval(TAKE, key, holder)) is None:
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))
            pause_s = min(pause_s * 2, LONGEST_S)
        return int(place), holder

    async def release(self, client: int, key: int, token: tuple[int, UUID]) -> None:
        await self._connections[client].execute(GIVE, key, *token)


class AdvisoryLocks(OnPostgres):
    async def acquire(self, client: int, key: int) -> int:
        place = random.randrange(CAP)
        await self._connections[client].execute("select pg_advisory_lock($1, $2)", key, place)
        return place

    async def release(self, client: int, key: int, token: int) -> None:
        await self._connections[client].execute("select pg_advisory_unlock($1, $2)", key, token)
