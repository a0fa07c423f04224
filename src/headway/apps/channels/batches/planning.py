"""From the file of a batch to its jobs: every line is checked before the first one runs.

Lines become jobs some at a time. The jobs of a chunk and the count of what is planned are one
commit, so a server that dies in between goes on with the next line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec

from headway.api.guard import too_deep
from headway.apps.channels.batches.files import Files
from headway.apps.channels.batches.life import Batches, Status, StoredBatch
from headway.apps.channels.directory import Directory
from headway.apps.channels.queue.jobs import LINE, queued_call
from headway.engine.hands.context import job
from headway.sdk.app import App
from headway.store.records import NewJob

MOST_LINES = 50_000
MOST_ERRORS = 100
LONGEST_ID = 512  # characters of a custom_id
CHUNK = 1_000  # lines that become jobs in one commit
CHUNK_BYTES = 4_194_304

_Faults = list[dict[str, Any]]


class Fault(Exception):
    """What is wrong with a line."""

    def __init__(self, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.param = param

    def at(self, line: int | None) -> dict[str, Any]:
        return {"code": self.code, "message": str(self), "param": self.param, "line": line}


def read_line(
    text: str | None, endpoint: str, serves: Callable[[str], bool], longest: int, deepest: int
) -> str:
    """The custom_id of a line that can be sent. Fault says what is wrong with it."""
    if text is None or len(encoded := text.encode()) > longest:
        raise Fault("line_too_large", f"A line may have at most {longest} bytes.")
    if too_deep(encoded, deepest):
        raise Fault("invalid_json_line", f"JSON may be at most {deepest} levels deep.")
    try:
        said = msgspec.json.decode(encoded)
        msgspec.json.encode(said)  # half a character cannot be written again
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Fault("invalid_json_line", "This line is not valid JSON.") from error
    if not isinstance(said, dict):
        raise Fault("invalid_json_line", "This line is not a JSON object.")
    custom_id = said.get("custom_id")
    if not isinstance(custom_id, str) or not 0 < len(custom_id) <= LONGEST_ID or "\0" in custom_id:
        raise Fault("invalid_custom_id", f"custom_id is text of 1 to {LONGEST_ID} characters, and "
                    "different in each line.", "custom_id")  # fmt: skip
    if said.get("method") != "POST":
        raise Fault("invalid_method", "method is POST.", "method")
    if said.get("url") != endpoint:
        raise Fault("mismatched_url", f"url is that of the batch, {endpoint}.", "url")
    body = said.get("body")
    if not isinstance(body, dict):
        raise Fault("invalid_body", "body is a JSON object: what would be sent alone.", "body")
    model = body.get("model")
    if not isinstance(model, str) or not serves(model):
        raise Fault("model_not_found", f"No channel takes queued work for the model {model!r}.",
                    "body.model")  # fmt: skip
    if body.get("stream"):
        raise Fault("streaming_not_supported", "A batch cannot stream; leave out stream.",
                    "body.stream")  # fmt: skip
    return custom_id


class Planner:
    def __init__(
        self, app: App, batches: Batches, files: Files, directory: Directory, *,
        max_depth: int, max_open: int,
    ) -> None:  # fmt: skip
        self._app = app
        self._batches = batches
        self._files = files
        self._directory = directory
        self._max_depth = max_depth
        self._max_open = max_open

    def plan(self, batch: str) -> None:
        """The job `llm.plan`."""
        row = self._batches.get(batch, None)
        if row is None or row.over:
            return
        if row.status == Status.VALIDATING:
            total, faults = self._checked(row)
            faults = faults or self._no_room(row, total)
            if faults:
                self._batches.turn(partial(self._batches.refuse, row.number, faults))
                return
            if not self._batches.turn(partial(self._batches.begin, row.number, total)):
                return
        start = row.planned
        for jobs in self._chunks(row, start):
            if not self._batches.turn(partial(self._batches.add_lines, row.number, start, jobs)):
                return  # it was cancelled, or another attempt is at it
            start += len(jobs)
            job.check()

    # ------------------------------------------------------------------ checking

    def _checked(self, row: StoredBatch) -> tuple[int, _Faults]:
        """How many lines there are, and the first of those that are wrong."""
        faults: _Faults = []
        ids: set[str] = set()
        total = 0
        for number, text in self._files.lines(row.input_file, self._app.payload_limit):
            total += 1
            if total > MOST_LINES:
                message = f"A batch has at most {MOST_LINES} lines; make several."
                return total, [Fault("too_many_lines", message).at(number), *faults]
            try:
                custom_id = self._read(row, text)
                if custom_id in ids:
                    message = f"The custom_id {custom_id!r} is in another line, too."
                    raise Fault("duplicate_custom_id", message, "custom_id")
                ids.add(custom_id)
            except Fault as fault:
                if len(faults) < MOST_ERRORS:
                    faults.append(fault.at(number))
            if total % CHUNK == 0:
                job.check()
        if total == 0:
            faults.append(Fault("empty_file", "The file has no line to send.").at(None))
        return total, faults

    def _read(self, row: StoredBatch, text: str | None) -> str:
        return read_line(text, row.endpoint, self._serves, self._app.payload_limit, self._max_depth)

    def _serves(self, model: str) -> bool:
        return any(channel.pulls for channel in self._directory.models.get(model, ()))

    def _no_room(self, row: StoredBatch, total: int) -> _Faults:
        engine = self._app.engine
        waiting = 0 if engine is None else engine.brain.open_by_tenant.get(row.tenant, 0)
        if waiting + total <= self._max_open:
            return []
        message = (
            f"You have {waiting} open jobs, and may have {self._max_open} at once; try again when "
            "some have ended."
        )
        return [Fault("too_many_open", message).at(None)]

    # ------------------------------------------------------------------ making jobs

    def _chunks(self, row: StoredBatch, start: int) -> Iterator[list[NewJob]]:
        """The lines from this one on, some at a time."""
        jobs: list[NewJob] = []
        size = 0
        lines = self._files.lines(row.input_file, self._app.payload_limit)
        for place, (number, text) in enumerate(lines):
            if place < start:
                continue
            said = msgspec.json.decode(text or "")
            jobs.append(
                queued_call(
                    LINE, row.endpoint, said["body"], tenant=row.tenant, now=self._app.now(),
                    deadline=row.expires_at, number=row.number, batch=row.id, line=number,
                    custom_id=said["custom_id"],
                )
            )  # fmt: skip
            size += len(jobs[-1].args)
            if len(jobs) == CHUNK or size >= CHUNK_BYTES:
                yield jobs
                jobs, size = [], 0
        if jobs:
            yield jobs
