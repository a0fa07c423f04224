"""What the disk and SQLite allow: leases without a product around them.

Who waits for a key stands in a queue in memory. Whatever was asked for while the last transaction
was on its way goes into the next one, which a thread commits; then all of them are answered.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from concurrent.futures import ThreadPoolExecutor

import apsw

from bench.peers import surroundings
from bench.peers.leases import CAP, LEASE_S, TokenLeases

FILE = "raw-leases.db"
TAKE = "insert into leases (id, key, ends_at) values (?, ?, ?)"
GIVE = "delete from leases where id = ?"

Waiter = asyncio.Future[int]


class GroupCommit(TokenLeases):
    async def open(self, keys: int) -> None:
        surroundings.remove_files(FILE)
        self._db = _connected(str(surroundings.directory() / FILE))
        self._writer = ThreadPoolExecutor(1)
        self._waiting: list[deque[Waiter]] = [deque() for _ in range(keys)]
        self._held: dict[int, int] = defaultdict(int)
        self._taken: list[tuple[int, int, float]] = []
        self._given: list[tuple[int]] = []
        self._answers: list[tuple[Waiter, int]] = []
        self._last = 0
        self._asked = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._commits = asyncio.create_task(self._commit_for_ever())

    async def acquire(self, client: int, key: int) -> int:
        answer: Waiter = self._loop.create_future()
        self._waiting[key].append(answer)
        self._grant(key)
        return await answer

    async def release(self, client: int, key: int, token: int) -> None:
        answer: Waiter = self._loop.create_future()
        self._held[key] -= 1
        self._given.append((token,))
        self._answers.append((answer, token))
        self._grant(key)
        await answer

    def _grant(self, key: int) -> None:
        waiting = self._waiting[key]
        while waiting and self._held[key] < CAP:
            self._held[key] += 1
            self._last += 1
            self._taken.append((self._last, key, time.time() + LEASE_S))
            self._answers.append((waiting.popleft(), self._last))
        self._asked.set()

    async def _commit_for_ever(self) -> None:
        while True:
            await self._asked.wait()
            self._asked.clear()
            taken, self._taken = self._taken, []
            given, self._given = self._given, []
            answers, self._answers = self._answers, []
            if answers:
                await self._loop.run_in_executor(self._writer, self._commit, taken, given)
            for answer, token in answers:
                if not answer.done():
                    answer.set_result(token)

    def _commit(self, taken: list[tuple[int, int, float]], given: list[tuple[int]]) -> None:
        with self._db:  # the given ones first: they were taken in an earlier transaction
            self._db.executemany(GIVE, given)
            self._db.executemany(TAKE, taken)

    async def close(self) -> None:
        self._commits.cancel()
        await asyncio.wait([self._commits])
        self._writer.shutdown()
        self._db.close()


def _connected(path: str) -> apsw.Connection:
    db = apsw.Connection(path)
    db.pragma("journal_mode", "wal")
    db.pragma("synchronous", "full")
    db.execute("create table leases (id integer primary key, key integer, ends_at real) strict")
    return db
