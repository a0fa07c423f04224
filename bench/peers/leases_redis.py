"""Three ways to hold a place with Redis.

Each client has a connection of its own, which is twice as fast as taking one from a pool.
"""

from __future__ import annotations

import asyncio
import random
from uuid import uuid4

from redis.asyncio import Redis
from redis.asyncio.lock import Lock

from bench.peers import surroundings
from bench.peers.leases import CAP, CLIENTS, LEASE_S, Leases, TokenLeases

# Leases that are over go; then there is a place, or there is none. The server's own clock counts.
TAKE = """
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now_ms)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], now_ms + ARGV[3], ARGV[1])
return 1
"""
SHORTEST_S, LONGEST_S = 0.001, 0.008  # until a client asks again


class OnRedis(Leases):
    def __init__(self, fsync: str = "everysec") -> None:
        self._fsync = fsync

    async def open(self, keys: int) -> None:
        address = surroundings.redis_url()
        self._clients = [
            Redis.from_url(address, single_connection_client=True) for _ in range(CLIENTS)
        ]
        await self._clients[0].flushall()
        await self._clients[0].config_set("appendfsync", self._fsync)
        self._names = [f"h{key}" for key in range(keys)]

    async def close(self) -> None:
        for client in self._clients:
            await client.aclose()


class Lua(OnRedis, TokenLeases):
    async def open(self, keys: int) -> None:
        await super().open(keys)
        self._take = self._clients[0].register_script(TAKE)

    async def acquire(self, client: int, key: int) -> str:
        token, pause_s = uuid4().hex, SHORTEST_S
        name, values = [self._names[key]], [token, CAP, LEASE_S * 1000]
        while not await self._take(name, values, self._clients[client]):
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))
            pause_s = min(pause_s * 2, LONGEST_S)
        return token

    async def release(self, client: int, key: int, token: str) -> None:
        await self._clients[client].zrem(self._names[key], token)


class Tokens(OnRedis, TokenLeases):
    async def open(self, keys: int) -> None:
        await super().open(keys)
        for name in self._names:
            await self._clients[0].rpush(name, *range(CAP))

    async def acquire(self, client: int, key: int) -> bytes:
        _, token = await self._clients[client].blpop([self._names[key]])
        return bytes(token)

    async def release(self, client: int, key: int, token: bytes) -> None:
        await self._clients[client].rpush(self._names[key], token)


class Locks(OnRedis):
    def __init__(self, again_s: float = 0.1) -> None:
        super().__init__()
        self._again_s = again_s

    def hold(self, client: int, key: int) -> Lock:
        name = f"{self._names[key]}:{random.randrange(CAP)}"
        return self._clients[client].lock(name, timeout=LEASE_S, sleep=self._again_s)
