"""Batches: what becomes of one, from the file that comes in to the files that go out.

All of it happens in the brain's turn, so each step is one commit, and none happens twice. The
long work between the steps is done by jobs: `planning` reads the lines and makes jobs of them,
`cancelling` ends those that wait, `assembling` writes the files.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from secrets import token_hex
from typing import Any, NamedTuple, TypeVar

import msgspec

from headway.api.site import no_engine
from headway.apps.channels.batches.files import KEPT_S, StoredFile
from headway.apps.channels.batches.tally import Tally, counted
from headway.apps.channels.queue.jobs import LANE
from headway.apps.channels.tables import BATCHES, DROP_FILE, PUT_BATCH, PUT_FILE
from headway.core import State
from headway.core.change import Change
from headway.engine.brain import Brain
from headway.sdk.app import App
from headway.store.records import NewJob, Unique, UniqueScope

PLAN, CANCEL, ASSEMBLE, TIDY = "llm.plan", "llm.cancel", "llm.assemble", "llm.tidy"

T = TypeVar("T")
DAY_S = 86_400.0
AGAIN_S = 60.0  # until what could not be done is tried once more
COLUMNS = ", ".join(BATCHES.columns)


class Status(StrEnum):
    VALIDATING = "validating"
    FAILED = "failed"
    IN_PROGRESS = "in_progress"
    FINALIZING = "finalizing"
    COMPLETED = "completed"
    EXPIRED = "expired"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"


OVER = frozenset({Status.FAILED, Status.COMPLETED, Status.EXPIRED, Status.CANCELLED})
OPEN = tuple(status for status in Status if status not in OVER)
TIMES = tuple(f"{status.value}_at" for status in Status if status is not Status.VALIDATING)


class WrongState(Exception):
    """The batch is not in a state that allows this."""


class NoSuchFile(Exception):
    """The file of a batch is not there any more."""


class StoredBatch(NamedTuple):
    """The columns of `llm_batches`."""

    id: str
    number: int  # of the engine's batch, which its lines belong to
    tenant: str
    endpoint: str
    input_file: str
    completion_window: str
    status: str
    total: int  # lines; 0 as long as they are not counted
    planned: int  # lines that are jobs
    output_file: str | None
    error_file: str | None
    errors: str | None  # JSON
    metadata: str | None  # JSON
    created_at: float
    expires_at: float
    times: str  # JSON: when it came into each status, and, once it is over, its `answered` lines

    @property
    def over(self) -> bool:
        return self.status in OVER

    def becomes(self, status: Status, now: float, **changes: Any) -> StoredBatch:
        times = {**msgspec.json.decode(self.times), f"{status.value}_at": now}
        text = msgspec.json.encode(times).decode()
        return self._replace(status=status.value, times=text, **changes)

    def view(self, tally: Tally | None) -> dict[str, Any]:
        """In OpenAI's shape. `tally`: how far it is, if it is not over."""
        times = msgspec.json.decode(self.times)
        completed = times.get("answered", 0) if tally is None else tally.completed
        failed = self.total - completed if tally is None else tally.failed
        errors = None if self.errors is None else msgspec.json.decode(self.errors)
        return {
            "id": self.id,
            "object": "batch",
            "endpoint": self.endpoint,
            "errors": None if errors is None else {"object": "list", "data": errors},
            "input_file_id": self.input_file,
            "completion_window": self.completion_window,
            "status": self.status,
            "output_file_id": self.output_file,
            "error_file_id": self.error_file,
            "created_at": int(self.created_at),
            "expires_at": int(self.expires_at),
            **{name: int(times[name]) if name in times else None for name in TIMES},
            "request_counts": {"total": self.total, "completed": completed, "failed": failed},
            "metadata": None if self.metadata is None else msgspec.json.decode(self.metadata),
        }


class OpenBatch:
    """One that is not over, as the brain's turn knows it."""

    __slots__ = ("row", "tally")

    def __init__(self, row: StoredBatch, tally: Tally) -> None:
        self.row = row
        self.tally = tally


def new_batch(
    number: int, file: StoredFile, endpoint: str, window: str, window_s: float,
    metadata: dict[str, str] | None, now: float,
) -> StoredBatch:  # fmt: skip
    """It belongs to whom its file belongs to."""
    text = None if metadata is None else msgspec.json.encode(metadata).decode()
    return StoredBatch(
        f"batch_{token_hex(16)}", number, file.tenant, endpoint, file.id, window,
        Status.VALIDATING.value, total=0, planned=0, output_file=None, error_file=None, errors=None,
        metadata=text, created_at=now, expires_at=now + window_s, times="{}",
    )  # fmt: skip


class Batches:
    def __init__(self, app: App) -> None:
        self._app = app
        self._store = app.store
        self.brain: Brain  # from the moment that an engine is about to start
        self._open: dict[int, OpenBatch] = {}  # by number; changed in the turn only
        self._tidies_at = 0.0

    # ------------------------------------------------------------------ looking, from any thread

    def get(self, id: str, tenant: str | None) -> StoredBatch | None:
        """As it is stored. One that this tenant may see; None stands for all of them."""
        rows = self._store.rows(
            f"select {COLUMNS} from llm_batches where id = ? and tenant = coalesce(?, tenant)",
            (id, tenant),
        )
        return StoredBatch._make(rows[0]) if rows else None

    def page(self, tenant: str | None, limit: int, after: StoredBatch | None) -> list[StoredBatch]:
        """Those behind this one, the newest first."""
        where = ""
        values: tuple[Any, ...] = ()
        if after is not None:
            where = "and (created_at, id) < (?, ?) "
            values = (after.created_at, after.id)
        rows = self._store.rows(
            f"select {COLUMNS} from llm_batches where tenant = coalesce(?, tenant) {where}"
            "order by created_at desc, id desc limit ?",
            (tenant, *values, limit),
        )
        return [StoredBatch._make(row) for row in rows]

    def tally_of(self, row: StoredBatch) -> Tally | None:
        """How far it is at this moment. None: it is over."""
        found = None if row.over else self._open.get(row.number)
        if found is None:
            return None if row.over else counted(self._store, row.id, row.number, row.planned)
        return found.tally

    def turn(self, call: Callable[[float], T]) -> T:
        """Let the brain do this, and wait until it is committed. From a job or a request."""
        engine = self._app.engine
        if engine is None:
            raise no_engine(self._app)
        return engine.ask(call).result()

    # ------------------------------------------------------------------ starting

    def meet(self, brain: Brain) -> None:
        """An engine is about to start: go on with what the last one has left."""
        self.brain = brain
        names = ", ".join(f"'{status.value}'" for status in OPEN)
        rows = self._store.rows(f"select {COLUMNS} from llm_batches where status in ({names})")
        self._open = {}
        for row in map(StoredBatch._make, rows):
            tally = counted(self._store, row.id, row.number, row.planned)
            self._open[row.number] = OpenBatch(row, tally)
        now = brain.clock.now()
        self.go_on(now)
        self._tidies_at = 0.0
        if self.anything_kept():
            self.tidy_tomorrow(now)

    def go_on(self, now: float) -> None:
        """See to it that each has the job that brings it further; it may have failed for good."""
        for each in list(self._open.values()):
            match each.row.status:
                case Status.VALIDATING:
                    self._enqueue(PLAN, each.row, now)
                case Status.IN_PROGRESS if each.row.planned < each.row.total:
                    self._enqueue(PLAN, each.row, now)
                case Status.CANCELLING:
                    self._enqueue(CANCEL, each.row, now)
                case Status.FINALIZING:
                    self._enqueue(ASSEMBLE, each.row, now)
            self._look(each, now)

    # ------------------------------------------------------------------ in the brain's turn

    def create(self, row: StoredBatch, now: float) -> StoredBatch:
        """It is there, and so is the job that reads it. NoSuchFile: its file was just deleted."""
        brain = self.brain
        found = brain.insist(
            lambda: self._store.rows(
                "select 1 from llm_files where id = ? and bytes >= 0", (row.input_file,)
            )
        )
        if not found:
            raise NoSuchFile(row.input_file)
        self._open[row.number] = each = OpenBatch(row, Tally())
        self._put(each, row)
        self._enqueue(PLAN, row, now)
        return row

    def refuse(self, number: int, errors: list[dict[str, Any]], now: float) -> None:
        """Its file is not what it should be: nothing of it runs."""
        each = self._open.get(number)
        if each is not None and each.row.status == Status.VALIDATING:
            text = msgspec.json.encode(errors).decode()
            self._put(each, each.row.becomes(Status.FAILED, now, errors=text))

    def begin(self, number: int, total: int, now: float) -> bool:
        """Its file is as it should be, and has so many lines. False: it is not wanted any more."""
        each = self._open.get(number)
        if each is None or each.row.status != Status.VALIDATING:
            return each is not None and each.row.status == Status.IN_PROGRESS
        self._put(each, each.row.becomes(Status.IN_PROGRESS, now, total=total))
        return True

    def add_lines(self, number: int, start: int, jobs: list[NewJob], now: float) -> bool:
        """The lines from this one on become jobs, if that one is the next. False: stop here."""
        each = self._open.get(number)
        if each is None or each.row.status != Status.IN_PROGRESS or each.row.planned != start:
            return False
        self.brain.batch.jobs.extend(jobs)
        each.tally.planned += len(jobs)
        self._put(each, each.row._replace(planned=each.tally.planned))
        return True

    def line_ended(self, number: int | None, change: Change, now: float) -> None:
        """`JobType.ended` of lines."""
        each = None if number is None else self._open.get(number)
        if each is not None:
            each.tally.count(change.after)
            self._look(each, now)

    def plan_ended(self, number: int | None, change: Change, now: float) -> None:
        """`JobType.ended` of plans. One that cannot be made ends its batch."""
        each = None if number is None else self._open.get(number)
        if each is None or change.after is State.COMPLETED:
            return
        if each.row.status == Status.VALIDATING:
            why = f"The file could not be read: {change.detail or change.after.value}"
            error = {"code": "server_error", "message": why, "param": None, "line": None}
            self.refuse(each.row.number, [error], now)
        elif each.row.planned < each.row.total:
            self.cancel(each.row.number, now)

    def step_ended(self, number: int | None, change: Change, now: float) -> None:
        """`JobType.ended` of what cancels and assembles. A batch may not hang because that could
        not be done, or because somebody did not want it.
        """
        each = None if number is None else self._open.get(number)
        if each is not None and change.after is not State.COMPLETED:
            self._enqueue(change.ticket.type, each.row, now, at=now + AGAIN_S)

    def cancel(self, number: int, now: float) -> StoredBatch:
        """What waits is cancelled; what runs may end. WrongState: it is over, or nearly."""
        each = self._open.get(number)
        if each is None or each.row.status == Status.FINALIZING:
            raise WrongState("over" if each is None else each.row.status)
        if each.row.status != Status.CANCELLING:
            self.brain.record(now, "batch_cancel", subject=f"batch:{each.row.id}")
            self._put(each, each.row.becomes(Status.CANCELLING, now))
            self._enqueue(CANCEL, each.row, now)
            self._look(each, now)
        return each.row

    def finish(
        self, number: int, status: Status, output: StoredFile | None, errors: StoredFile | None,
        answered: int, now: float,
    ) -> None:  # fmt: skip
        """Its files are written: they and the batch are seen together."""
        each = self._open.get(number)
        if each is None:
            return
        made = [file._replace(created_at=now, expires_at=now + KEPT_S)
                for file in (output, errors) if file is not None]  # fmt: skip
        if made:
            self.brain.write(PUT_FILE, *made)
        row = each.row.becomes(
            status, now, output_file=None if output is None else output.id,
            error_file=None if errors is None else errors.id,
        )  # fmt: skip
        times = {**msgspec.json.decode(row.times), "answered": answered}
        self._put(each, row._replace(times=msgspec.json.encode(times).decode()))
        self._tidy_up(now, at=now)

    def anything_kept(self) -> bool:
        """Files, or answers to single calls."""
        files = "exists (select 1 from llm_files)"
        return bool(
            self._store.rows(f"select 1 where {files} or exists (select 1 from llm_answers)")
        )

    def tidy_tomorrow(self, now: float) -> None:
        """As long as anything is kept, some will be too old."""
        self._tidies_at = now + DAY_S
        self._tidy_up(now, at=self._tidies_at)

    def answer_kept(self, now: float) -> None:
        """The answer to a single call, which will be too old one day."""
        if now >= self._tidies_at:
            self.tidy_tomorrow(now)

    def give_up_file(self, file: str, now: float) -> str | None:
        """Nobody sees the file any more, unless a batch still reads it, which is then named."""
        for each in self._open.values():
            if each.row.input_file == file:
                return each.row.id
        self.brain.write(DROP_FILE, (file,))
        self.brain.record(now, "file_delete", subject=f"file:{file}")
        return None

    def in_use(self, now: float) -> set[str]:
        """The files that batches read or write."""
        rows = [each.row for each in self._open.values()]
        written = {name for row in rows for name in output_names(row.id)}
        return written | {row.input_file for row in rows}

    # ------------------------------------------------------------------ how

    def _put(self, each: OpenBatch, row: StoredBatch) -> None:
        each.row = row
        self.brain.write(PUT_BATCH, row)
        if row.over:
            self._open.pop(row.number, None)

    def _look(self, each: OpenBatch, now: float) -> None:
        """When all lines have ended, its files can be written."""
        row = each.row
        cancelled = row.status == Status.CANCELLING
        planned = row.status == Status.IN_PROGRESS and row.planned == row.total
        if each.tally.left <= 0 and (cancelled or planned):
            if planned:
                self._put(each, row.becomes(Status.FINALIZING, now))
            self._enqueue(ASSEMBLE, row, now)

    def _enqueue(self, type: str, row: StoredBatch, now: float, *, at: float = 0.0) -> None:
        """One of a kind for each batch: a second one is the same."""
        args = msgspec.json.encode({"batch": row.id}).decode()
        self.brain.batch.jobs.append(
            NewJob(
                type, args, created_at=now, lane=LANE, tenant=row.tenant, batch=row.number,
                not_before=at, unique=Unique(f"{type}:{row.id}"),
            )
        )  # fmt: skip

    def _tidy_up(self, now: float, *, at: float) -> None:
        """One that waits is enough for each of now and tomorrow."""
        key = f"{TIDY}:{'now' if at <= now else 'tomorrow'}"
        self.brain.batch.jobs.append(
            NewJob(
                TIDY, "{}", created_at=now, lane=LANE, not_before=at,
                unique=Unique(key, UniqueScope.QUEUED),
            )
        )  # fmt: skip


def output_names(batch: str) -> tuple[str, str]:
    """The files of a batch have names that follow from its own: written twice, they are the
    same.
    """
    mark = batch.removeprefix("batch_")
    return f"file-{mark}-output", f"file-{mark}-errors"
