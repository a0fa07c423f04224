"""The running job, as its handler sees it: `from headway import job`."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from headway.engine.hands import Work
from headway.engine.json_text import json_text
from headway.engine.ledger import clean
from headway.outcomes import rates_in

if TYPE_CHECKING:
    from headway.core.rate_headers import RateHeaders
    from headway.engine.hands.processes import Completed, Group

NOTE_EVERY_S = 0.25  # progress is stored at most this often
MAX_LINES = 1_000  # log lines of one attempt that are kept
MAX_LINE = 2_000  # characters of one of them
MAX_NOTE = 500  # characters beside the numbers of progress


class Stopped(BaseException):
    """The job was asked to stop. Clean up if you must, and let it pass."""


class Reporter(Protocol):
    """Where a running job reports to."""

    def note(self, kind: str, job: int, fence: int, values: tuple[Any, ...]) -> None: ...


class RunningJob:
    """One attempt. Everything here may be called from the handler's own thread or task."""

    __slots__ = (
        "_lines", "_loop", "_noted_at", "_now", "_payload_limit", "_reporter", "_unsaid", "ending",
        "groups", "programs", "rates", "stop", "task", "thread_id", "work",
    )  # fmt: skip

    lock = threading.Lock()  # around `thread_id`; held for a moment, so one is enough for all

    def __init__(
        self, work: Work, reporter: Reporter, loop: asyncio.AbstractEventLoop,
        now: Callable[[], float], payload_limit: int,
    ) -> None:  # fmt: skip
        self.work = work
        self.stop: str | None = None  # cancel, pause, timeout, shutdown or ended
        self.task: asyncio.Task[None] | None = None
        self.ending: asyncio.Task[None] | None = None  # the handler is done, a program is not
        self.thread_id: int | None = None
        self.rates: RateHeaders | None = None  # what the last answer said about rates
        self.groups: set[Group] = set()
        self.programs: set[asyncio.Future[None]] = set()  # one for each that is not over yet
        self._reporter = reporter
        self._loop = loop
        self._now = now
        self._payload_limit = payload_limit
        self._noted_at = -1e18
        self._unsaid: tuple[Any, ...] | None = None
        self._lines = 0

    @property
    def id(self) -> int:
        """The number of the job."""
        return self.work.id

    @property
    def type(self) -> str:
        """The name of its type."""
        return self.work.type.name

    @property
    def attempt(self) -> int:
        """1 for the first."""
        return self.work.attempt

    @property
    def tenant(self) -> str:
        """For whom it is; empty if nobody was named."""
        return self.work.tenant

    @property
    def key(self) -> str | None:
        """The key that it holds, one at a time."""
        return self.work.key

    @property
    def upstream(self) -> str | None:
        """Which of the candidates was chosen."""
        return self.work.upstream

    @property
    def fence(self) -> int:
        """Grows with every permit: let other systems refuse writes that carry an older one."""
        return self.work.fence

    @property
    def saved(self) -> Any:
        """What the last checkpoint of this job kept, in this attempt or an earlier one."""
        kept = self.work.checkpoint
        return None if kept is None else msgspec.json.decode(kept)

    @property
    def stopping(self) -> bool:
        """Whether it was asked to stop; `check` raises then."""
        return self.stop is not None

    def check(self) -> None:
        """Raises when the job was asked to stop; call it now and then in a long loop."""
        if self.stop is not None:
            raise Stopped(self.stop)

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Say how far the work is. Cheap: call it as often as you like."""
        now = self._now()
        if not math.isfinite(done) or not (total is None or math.isfinite(total)):
            raise ValueError(f"progress is told in plain numbers, not {done!r} of {total!r}")
        said = clean(str(note)[:MAX_NOTE])
        values = (float(done), None if total is None else float(total), said, now)
        if now - self._noted_at >= NOTE_EVERY_S:
            self._noted_at = now
            self._unsaid = None
            self._reporter.note("progress", self.id, self.fence, values)
        else:
            self._unsaid = values
        self.check()

    def checkpoint(self, data: Any) -> None:
        """Keep where the work stands, so that another attempt can go on from there."""
        text = json_text(data)
        if len(text) > self._payload_limit:
            raise ValueError(
                f"a checkpoint has at most {self._payload_limit} characters, this one {len(text)}"
            )
        self.work.checkpoint = text
        self._reporter.note("checkpoints", self.id, self.fence, (text, self._now()))
        self.check()

    def heard(self, headers: Mapping[str, str]) -> None:
        """The headers of an answer that went well: where the upstream learns, what they say about
        rates teaches it. Nothing else of them is kept.
        """
        self.rates = rates_in(headers, self._now()) or self.rates

    def log(self, line: str, level: str = "info") -> None:
        """A line in the job's own log."""
        self._lines += 1
        if self._lines > MAX_LINES:
            return
        text = clean(str(line)[:MAX_LINE])
        if self._lines == MAX_LINES:
            text = f"more than {MAX_LINES} lines; the rest of this attempt is not kept"
        self._reporter.note("logs", self.id, self.fence, (self._now(), clean(str(level)), text))

    def with_end(self, call: Callable[[float], None]) -> None:
        """Let the brain do this in the turn that ends this attempt, if its lease is still good:
        what it writes is committed with the end, or not at all. However the attempt ends; a
        handler of this process only.
        """
        self._reporter.note("with_end", self.id, self.fence, (call,))

    def flush(self) -> None:
        """Say what was held back, now that the attempt has ended."""
        if self._unsaid is not None:
            self._reporter.note("progress", self.id, self.fence, self._unsaid)
            self._unsaid = None

    async def arun(self, command: Sequence[str], **options: Any) -> Completed:
        """Run a program in a process group of its own; see `processes.run` for the options."""
        from headway.engine.hands.processes import run  # noqa: PLC0415 - it imports this module

        return await run(self, command, **options)

    def run(self, command: Sequence[str], **options: Any) -> Completed:
        """The same for handlers that are not async."""
        self.check()
        waiting = asyncio.run_coroutine_threadsafe(self.arun(command, **options), self._loop)
        return waiting.result()

    def note_process(self, pid: int | None, started_at: float | None) -> None:
        self._reporter.note("processes", self.id, self.fence, (pid, started_at))


current: ContextVar[RunningJob] = ContextVar("headway_job")


class _CurrentJob:
    """Stands for the job that runs here."""

    def __getattr__(self, name: str) -> Any:
        try:
            running = current.get()
        except LookupError:
            raise RuntimeError(
                f"job.{name} was asked for, but no job runs here; it works inside a handler"
            ) from None
        return getattr(running, name)

    def __repr__(self) -> str:
        running = current.get(None)
        return "<no job runs here>" if running is None else f"<job {running.id}>"


job: RunningJob = _CurrentJob()  # type: ignore[assignment]
