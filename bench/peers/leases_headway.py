"""Headway's own slots, in the process of the clients."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any

from bench.peers import surroundings
from bench.peers.leases import CAP, Leases
from bench.peers.products import POSTGRES
from headway import App

FILE = "slots.db"


class Slots(Leases):
    def __init__(self, store: str) -> None:
        self._store = store

    async def open(self, keys: int) -> None:
        if self._store == POSTGRES:
            surroundings.new_database()
            self._app = App(surroundings.postgres_url())
        else:
            surroundings.remove_files(FILE)
            self._app = App(f"sqlite:///{surroundings.directory() / FILE}")
        self._app.upstream("*.slots.example", limit=CAP)
        self._hosts = [f"h{key}.slots.example" for key in range(keys)]
        await asyncio.to_thread(self._app.start)

    def hold(self, client: int, key: int) -> AbstractAsyncContextManager[Any]:
        return self._app.slot(self._hosts[key])

    async def close(self) -> None:
        await asyncio.to_thread(self._app.close)
