"""What `enqueue` returns: a job to look at, to wait for and to steer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import msgspec

from headway.core.explain import Explanation
from headway.engine.registry import KEEP_RESULT_S
from headway.engine.tickets import spec_of
from headway.errors import JobFailed, ResultExpired, UnknownJob
from headway.store.records import Event, Progress
from headway.store.records import Job as JobRow

if TYPE_CHECKING:
    from headway.sdk.app import App

R = TypeVar("R")
ENDED = frozenset({"completed", "failed", "cancelled"})


class JobHandle(Generic[R]):
    """A job that was asked for. `joined`: it was there before, since its unique key was taken."""

    __slots__ = ("_app", "id", "joined")

    def __init__(self, app: App, id: int, joined: bool = False) -> None:
        self._app = app
        self.id = id
        self.joined = joined  # the job was there before: its unique key was taken

    def __repr__(self) -> str:
        return f"<job {self.id}>"

    def row(self) -> JobRow:
        """Everything that is stored about the job."""
        found = self._app.store.job(self.id)
        if found is None:
            raise UnknownJob(f"there is no job {self.id}; its record was purged, or never existed")
        return found

    @property
    def state(self) -> str:
        """`pending`, `queued`, `running`, `paused`, `completed`, `failed` or `cancelled`."""
        return self.row().state

    def events(self) -> list[Event]:
        """Its audit trail: each transition, the oldest first."""
        return self._app.store.events_of(self.id)

    def progress(self) -> Progress | None:
        """What the handler said last with `job.progress`."""
        return self._app.store.progress(self.id)

    def logs(self) -> list[tuple[float, str, str]]:
        """What the handler said with `job.log`: when, how serious, the line."""
        return self._app.store.logs(self.id)

    def explain(self) -> Explanation:
        """Why it waits, since when, in which place, until when."""
        return self._app.explain(self.id)

    def cancel(self) -> str:
        """What waits is cancelled at once, what runs is really stopped first."""
        return self._app.cancel(self.id)

    def wait(self, timeout: float | None = None) -> str:
        """Until the job has ended. Returns its state; TimeoutError when it takes longer."""
        if self._app.remote is not None:
            return self._app.remote.await_end(self.id, timeout)
        ended = threading.Event()
        until = None if timeout is None else monotonic() + timeout
        with self._app.watching(self.id, ended.set) as look_s:
            while (state := self.state) not in ENDED:
                left_s = look_s if until is None else min(look_s, until - monotonic())
                if left_s <= 0:
                    raise TimeoutError(f"job {self.id} is still {state}")
                ended.wait(left_s)
                ended.clear()  # an operator may have reopened it meanwhile
            return state

    async def await_end(self, timeout: float | None = None) -> str:
        """The same without blocking the loop."""
        if self._app.remote is not None:
            return await self._app.remote.aawait_end(self.id, timeout)
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()

        def tell() -> None:
            loop.call_soon_threadsafe(ended.set)

        async with asyncio.timeout(timeout):
            with self._app.watching(self.id, tell) as look_s:
                while (state := self.state) not in ENDED:
                    try:
                        async with asyncio.timeout(look_s):
                            await ended.wait()
                    except TimeoutError:
                        continue
                    ended.clear()
                return state

    def result(self, timeout: float | None = None) -> R:
        """What the handler returned; waits for it. JobFailed when it did not complete."""
        return cast(R, self._result(self.wait(timeout)))

    async def aresult(self, timeout: float | None = None) -> R:
        """`result` without blocking the loop."""
        state = await self.await_end(timeout)
        if self._app.remote is not None:
            return cast(R, await asyncio.to_thread(self._result, state))
        return cast(R, self._result(state))

    def result_expired(self) -> bool:
        """Whether a result that is not there may have been there."""
        row = self.row()
        keep_s = None if row.spec is None else spec_of(row.spec).keep_result_s
        known = self._app.registry.types.get(row.type)
        if keep_s is None:
            keep_s = KEEP_RESULT_S if known is None else known.keep_result_s
        return row.finished_at is not None and row.finished_at + keep_s <= self._app.now()

    def _result(self, state: str) -> Any:
        if state != "completed":
            why = self.row().error or "no reason was given"
            raise JobFailed(f"job {self.id} {state}: {why}", self.id, state)
        kept = self._app.store.result(self.id)
        if kept is None and not self.result_expired():
            return None
        if kept is None or kept.expires_at <= self._app.now():
            raise ResultExpired(f"the result of job {self.id} has expired; keep it longer")
        return msgspec.json.decode(kept.value)


class Batch:
    """Jobs that belong together. Its counters are counted from the jobs, so they cannot drift."""

    def __init__(self, app: App, id: int) -> None:
        self._app = app
        self.id = id

    def counts(self) -> Mapping[str, int]:
        """How many jobs are in which state; states without jobs are left out."""
        counts = self._app.store.batch(self.id)
        if counts is None:
            raise UnknownJob(f"there is no batch {self.id}")
        return counts

    @property
    def total(self) -> int:
        """How many jobs it has."""
        return sum(self.counts().values())

    @property
    def done(self) -> bool:
        """Every job has ended, well or not."""
        return set(self.counts()) <= ENDED
