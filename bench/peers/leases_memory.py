"""A semaphore for each key, in one process: nothing survives, and nothing is sent."""

from __future__ import annotations

import asyncio

from bench.peers.leases import CAP, Leases


class Semaphores(Leases):
    async def open(self, keys: int) -> None:
        self._keys = [asyncio.Semaphore(CAP) for _ in range(keys)]

    def hold(self, client: int, key: int) -> asyncio.Semaphore:
        return self._keys[key]
