"""A server in the place of a store: for programs that must not, or cannot, touch the store itself.

It does what any process may do with a store (`Producing`, `Looking`), and passes orders on to the
server's engine, whose answer is exact. What only an engine does with its store is refused.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from headway.errors import BadJob, StoreError
from headway.outcomes import Duration
from headway.remote.client import ANSWER_S, Ask, Client
from headway.remote.looking import RemoteLooker, path
from headway.remote.orders import RemoteOrders
from headway.remote.slots import RemoteSlot
from headway.remote.wire import ToolsOf, job_body
from headway.store.protocol import Done
from headway.store.records import NewJob, Receipt

MOST_JOBS = 10_000  # in one call, since all of them are stored or none
POLL_S = 30.0  # how long the server may think about one question for the end of a job
SOON_S = 0.2  # the least time between two of them
AWAY_S = 60.0  # for so long a server may be away while somebody waits for a job
ENDED = frozenset({"completed", "failed", "cancelled"})

# What only the engine of a store, or the server on top of it, asks.
NOT_HERE = frozenset(
    (
        "enter", "leave", "commit", "send", "settle", "version", "load_open", "load_new",
        "load_some", "states", "waits", "commands", "errands", "gates", "open_occurrences",
        "slots", "slot_totals", "processes", "add_token", "token", "tokens", "revoke_token",
        "used_token", "secret", "failures", "install", "write", "rows", "open_by_tenant", "let_go",
    )
)  # fmt: skip


class Stored(msgspec.Struct):
    id: int
    joined: bool = False


class Receipts(msgspec.Struct):
    jobs: list[Stored]


class Seen(msgspec.Struct):
    status: str


class RemoteStore(RemoteLooker, RemoteOrders):
    """`tools_of` says what every job of a type needs, which the server may not know."""

    def __init__(self, client: Client, tools_of: ToolsOf = lambda _: ()) -> None:
        self._client = client
        self._slots = client.for_waiting()
        self._tools_of = tools_of

    def __getattr__(self, name: str) -> Any:
        if name in NOT_HERE:
            raise StoreError(
                f"{name!r} is for the engine of a store, and {self._client.url} is a server; open "
                "the store itself, where it may be used"
            )
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    def close(self) -> None:
        self._client.close()
        self._slots.close()

    def slot(
        self, wish: Mapping[str, Any], timeout: Duration | None,
        on_lost: Callable[[], None] | None,
    ) -> RemoteSlot:  # fmt: skip
        return RemoteSlot(self._slots, wish, timeout, on_lost=on_lost)

    # ------------------------------------------------------------------ producing

    def insert(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        """All of them or none. OutcomeUnknown: the connection was lost before the answer came."""
        if not jobs:
            return []
        return self._receipts(self._client.call(self._put(jobs), Receipts), jobs)

    async def ainsert(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        """The same without blocking the loop."""
        if not jobs:
            return []
        return self._receipts(await self._client.acall(self._put(jobs), Receipts), jobs)

    def post(self, jobs: Sequence[NewJob], done: Done) -> None:
        def send() -> None:
            try:
                receipts = self.insert(jobs)
            except BaseException as error:
                done(None, error)
            else:
                done(receipts, None)

        threading.Thread(target=send, name="headway-post", daemon=True).start()

    def _put(self, jobs: Sequence[NewJob]) -> Ask:
        if len(jobs) > MOST_JOBS:
            raise BadJob(
                f"{len(jobs)} jobs are too many for one request, which stores all of them or none; "
                f"enqueue at most {MOST_JOBS} at once"
            )
        body = {"jobs": [job_body(job, self._tools_of) for job in jobs]}
        return Ask("POST", path("work", "put"), body)

    def _receipts(self, answer: Receipts, jobs: Sequence[NewJob]) -> list[Receipt]:
        if len(answer.jobs) != len(jobs):
            raise StoreError(f"{self._client.url} was sent {len(jobs)} jobs, and answers for "
                             f"{len(answer.jobs)}; it is no Headway server")  # fmt: skip
        return [Receipt(each.id, each.joined) for each in answer.jobs]

    def insert_with(self, conn: Any, jobs: Sequence[NewJob]) -> list[Receipt]:
        raise _no_transaction()

    async def ainsert_with(self, conn: Any, jobs: Sequence[NewJob]) -> list[Receipt]:
        raise _no_transaction()

    def open_batch(self, label: str, now: float, tenant: str = "") -> int:
        body = {"label": label, **({"tenant": tenant} if tenant else {})}
        return int(self._post("batches", body=body)["id"])

    # ------------------------------------------------------------------ waiting

    def await_end(self, id: int, timeout: float | None = None) -> str:
        """Until the job has ended. Returns its state; TimeoutError when it takes longer."""
        waiting = Waiting(id, timeout)
        while True:
            ask, patience_s = waiting.question()
            state = self._client.call(ask, Seen, patience_s=patience_s).status
            pause_s = waiting.hears(state)
            if pause_s is None:
                return state
            time.sleep(pause_s)

    async def aawait_end(self, id: int, timeout: float | None = None) -> str:
        """The same without blocking the loop."""
        waiting = Waiting(id, timeout)
        while True:
            ask, patience_s = waiting.question()
            state = (await self._client.acall(ask, Seen, patience_s=patience_s)).status
            pause_s = waiting.hears(state)
            if pause_s is None:
                return state
            await asyncio.sleep(pause_s)


class Waiting:
    """Asks a server to answer when a job has ended. The server does the waiting."""

    def __init__(self, id: int, timeout: float | None) -> None:
        self._id = id
        self._until = None if timeout is None else time.monotonic() + timeout
        self._asked_at = self._wait_s = 0.0

    def _left_s(self) -> float:
        return AWAY_S if self._until is None else max(self._until - time.monotonic(), 0.0)

    def question(self) -> tuple[Ask, float]:
        """What to ask, and how long to bear that nobody answers."""
        left_s = self._left_s()
        self._wait_s = min(POLL_S, left_s)
        self._asked_at = time.monotonic()
        query = {"wait_s": round(self._wait_s, 3)} if self._wait_s else None
        ask = Ask("GET", path("jobs", self._id), query=query, answer_s=self._wait_s + ANSWER_S)
        return ask, min(AWAY_S, left_s)

    def hears(self, state: str) -> float | None:
        """How long to wait before the next question; None: it has ended."""
        if state in ENDED:
            return None
        now = time.monotonic()
        if self._until is not None and now >= self._until:
            raise TimeoutError(f"job {self._id} is still {state}")
        # A server that is about to stop answers at once, and must not be asked without end.
        answered_early = now - self._asked_at < self._wait_s / 2
        return min(SOON_S, self._left_s()) if answered_early else 0.0


def _no_transaction() -> BadJob:
    return BadJob(
        "a job cannot be stored in a transaction of yours over HTTP; use an app that is opened on "
        "the PostgreSQL database itself, or leave `conn` out"
    )
