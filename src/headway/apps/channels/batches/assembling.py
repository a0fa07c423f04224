"""The files that a batch leaves: a line for each line that came, in the same order.

Nothing is in memory as a whole: lines, answers and jobs are read page by page, side by side. What
is written has a name that follows from the batch, so doing it twice does no harm.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import msgspec

from headway.apps.channels.batches.files import BATCH_OUTPUT, Files, Writer
from headway.apps.channels.batches.life import Batches, Status, StoredBatch, output_names
from headway.apps.channels.batches.tally import open_lines
from headway.apps.channels.queue.jobs import LINE
from headway.core import Outcome, State
from headway.core.lifecycle import Event
from headway.engine.hands.context import job
from headway.outcomes import Answered
from headway.sdk.app import App

PAGE = 100  # answers, which may be long
MANY = 1_000  # jobs
AGAIN_S = 1.0  # until it is seen whether a line that somebody has started again is over

EXPIRED, CANCELLED, FAILED = "batch_expired", "batch_cancelled", "failed"
WHY = {
    EXPIRED: "The completion window was over before this request was answered.",
    CANCELLED: "The batch was cancelled before this request was answered.",
    FAILED: "This request has failed, and it is not known why.",
}

_TOO_LATE = (
    f"exists (select 1 from events where events.job = jobs.id and event = '{Event.DEADLINE.value}')"
)
ANSWERS = (
    "select line, custom_id, llm_answers.status, request_id, body, coalesce(state, ''), "
    f"coalesce({_TOO_LATE}, false) from llm_answers left join jobs on jobs.id = llm_answers.job "
    "where llm_answers.batch = ? and line > ? order by line limit ?"
)
SILENT = (
    f"select id from jobs where batch = ? and type = '{LINE}' and not exists "
    "(select 1 from llm_answers where llm_answers.job = jobs.id) order by id"
)
# By their own numbers, so that each page costs as much as it shows.
ENDS = (
    f"select id, state, error, {_TOO_LATE} from jobs "
    "where id >= ? and id <= ? and batch = ? order by id"
)
COUNT_ANSWERS = "select count(distinct line) from llm_answers where batch = ?"


class Kept(NamedTuple):
    """An answer, and what became of its job."""

    line: int
    custom_id: str
    status: int
    request_id: str
    body: str
    state: str
    too_late: bool

    @property
    def fault(self) -> str | None:
        """Why this is not the last word on its line. None: it is."""
        if self.status < 300:
            return None
        if self.too_late:
            return EXPIRED
        return CANCELLED if self.state == State.CANCELLED.value else None

    def response(self) -> dict[str, Any]:
        return {
            "status_code": self.status, "request_id": self.request_id, "body": _json(self.body),
        }  # fmt: skip


class Assembler:
    def __init__(self, app: App, batches: Batches, files: Files) -> None:
        self._app = app
        self._store = app.store
        self._batches = batches
        self._files = files

    def assemble(self, batch: str) -> Answered | None:
        """The job `llm.assemble`."""
        row = self._batches.get(batch, None)
        if row is None or row.status not in (Status.FINALIZING, Status.CANCELLING):
            return None
        if open_lines(self._store, row.number):
            return Answered(Outcome.returned(after_s=AGAIN_S))
        work = Assembly(self._app, self._files, row)
        work.write()
        output, errors = work.output.close(), work.errors.close()
        status = Status.COMPLETED
        if row.status == Status.CANCELLING:
            status = Status.CANCELLED
        elif work.expired:
            status = Status.EXPIRED
        job.with_end(
            partial(self._batches.finish, row.number, status, output, errors, work.output.lines)
        )
        return None


class Sheet:
    """A file that is made with its first line."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.lines = 0

    def add(self, line: dict[str, Any]) -> None:
        self.lines += 1
        if self._writer.add(msgspec.json.encode(line) + b"\n"):
            self._writer.flush()

    def close(self) -> Any:
        """The file; None if it would be empty."""
        return self._writer.finish() if self.lines else None


class Assembly:
    """The work on one batch."""

    def __init__(self, app: App, files: Files, row: StoredBatch) -> None:
        self._app = app
        self._store = app.store
        self._files = files
        self._row = row
        self.expired = False
        self.output, self.errors = (
            Sheet(files.writer(id, row.tenant, f"{row.id}_{what}.jsonl", BATCH_OUTPUT, app.now()))
            for id, what in zip(output_names(row.id), ("output", "error"), strict=True)
        )

    def write(self) -> None:
        if not self._row.total:
            return  # it was cancelled before its lines were counted
        answers = self._answers()
        ends = self._ends()
        kept = next(answers, None)
        lines = self._files.lines(self._row.input_file, self._app.payload_limit)
        for place, (number, text) in enumerate(lines):
            if kept is not None and kept.line == number:
                self._answered(kept)
                kept = next(answers, None)
            else:
                planned = place < self._row.planned
                code, why = next(ends, self._unknown()) if planned else (CANCELLED, WHY[CANCELLED])
                custom_id = msgspec.json.decode(text or "{}").get("custom_id")
                self._refused(number, custom_id, code, why)
            if place % MANY == 0:
                job.check()

    def _answered(self, kept: Kept) -> None:
        if kept.fault is not None:
            self._refused(kept.line, kept.custom_id, kept.fault, WHY[kept.fault])
            return
        sheet = self.output if kept.status < 300 else self.errors
        sheet.add(self._line(kept.line, kept.custom_id, kept.response(), None))

    def _refused(self, line: int, custom_id: str | None, code: str, why: str) -> None:
        self.expired = self.expired or code == EXPIRED
        self.errors.add(self._line(line, custom_id, None, {"code": code, "message": why}))

    def _line(
        self, line: int, custom_id: str | None, response: dict[str, Any] | None,
        error: dict[str, str] | None,
    ) -> dict[str, Any]:  # fmt: skip
        mark = self._row.id.removeprefix("batch_")
        return {
            "id": f"batch_req_{mark}_{line}",
            "custom_id": custom_id,
            "response": response,
            "error": error,
        }

    # ------------------------------------------------------------------ what is stored

    def _answers(self) -> Iterator[Kept]:
        """One for each line that has any, in order."""
        line = 0
        while rows := self._store.rows(ANSWERS, (self._row.id, line, PAGE)):
            for row in rows:
                kept = Kept._make(row)
                if kept.line > line:
                    line = kept.line
                    yield kept

    def _ends(self) -> Iterator[tuple[str, str]]:
        """How the lines without an answer have ended. Their jobs were made in the order of the
        lines; if some of those are not there any more, nobody knows which line is whose.
        """
        row = self._row
        silent = [id for (id,) in self._store.rows(SILENT, (row.number,))]
        (answered,) = self._store.rows(COUNT_ANSWERS, (row.id,))[0]
        if len(silent) != row.planned - answered:
            return
        for start in range(0, len(silent), MANY):
            some = silent[start : start + MANY]
            wanted = set(some)
            for id, state, error, too_late in self._store.rows(
                ENDS, (some[0], some[-1], row.number)
            ):
                if id not in wanted:
                    continue  # it has an answer
                if too_late:
                    yield EXPIRED, WHY[EXPIRED]
                elif state == State.CANCELLED.value:
                    yield CANCELLED, WHY[CANCELLED]
                else:
                    yield FAILED, error or WHY[FAILED]

    def _unknown(self) -> tuple[str, str]:
        code = FAILED
        if self._row.status == Status.CANCELLING:
            code = CANCELLED
        elif self._app.now() >= self._row.expires_at:
            code = EXPIRED
        return code, WHY[code]


def _json(text: str) -> Any:
    """An answer as it came, in one line; text, if it is no JSON."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
    return msgspec.Raw(text.encode()) if "\n" not in text and "\r" not in text else found
