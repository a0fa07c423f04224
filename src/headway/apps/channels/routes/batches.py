"""Batches over HTTP, in OpenAI's shapes."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, Field, StringConstraints

from headway.api.auth import Principal, Reader, Submitter
from headway.api.bodies import NO_NUL, Body
from headway.api.problems import Problem
from headway.api.site import Reply, TheSite
from headway.apps.channels.batches.files import BATCH
from headway.apps.channels.batches.life import NoSuchFile, StoredBatch, WrongState, new_batch
from headway.apps.channels.errors import documented
from headway.apps.channels.routes.channels import in_own_name
from headway.apps.channels.routes.files import listed
from headway.apps.channels.routes.reach import TheChannels
from headway.core.recurrence import duration_s

router = APIRouter(tags=["LLM batches"])

PATH = "/v1/batches"
SHORTEST_S, LONGEST_S = 60.0, 7 * 86_400.0  # of a completion window

BatchId = Annotated[str, Path(max_length=100, description="The id of a batch.")]
Label = Annotated[str, StringConstraints(max_length=64, pattern=NO_NUL)]
Note = Annotated[str, StringConstraints(max_length=512, pattern=NO_NUL)]
Endpoint = Literal["/v1/chat/completions", "/v1/embeddings"]


class BatchFault(BaseModel):
    """What is wrong with the file."""

    code: str
    message: str
    param: str | None
    line: int | None = Field(description="From 1; null: the file as a whole.")


class BatchFaults(BaseModel):
    object: Literal["list"]
    data: list[BatchFault]


class RequestCounts(BaseModel):
    total: int = Field(description="Lines; 0 as long as they are not counted.")
    completed: int = Field(description="Lines with an answer that is a success.")
    failed: int = Field(description="Lines that ended in any other way.")


class LlmBatchModel(BaseModel):
    """A batch as OpenAI shows it. Times are seconds since 1970; null: that has not happened."""

    id: str
    object: Literal["batch"]
    endpoint: Endpoint
    errors: BatchFaults | None = Field(description="Why its status is failed.")
    input_file_id: str
    completion_window: str
    status: Literal[
        "validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling",
        "cancelled",
    ]  # fmt: skip
    output_file_id: str | None = Field(description="The answers; null: there are none, or not yet.")
    error_file_id: str | None = Field(description="The lines that went wrong.")
    created_at: int
    in_progress_at: int | None
    expires_at: int = Field(description="Lines that are not answered by then are given up.")
    finalizing_at: int | None
    completed_at: int | None
    failed_at: int | None
    expired_at: int | None
    cancelling_at: int | None
    cancelled_at: int | None
    request_counts: RequestCounts
    metadata: dict[str, str] | None


class LlmBatchList(BaseModel):
    object: Literal["list"]
    data: list[LlmBatchModel]
    first_id: str | None
    last_id: str | None
    has_more: bool = Field(description="Whether there are others behind the last one.")


class LlmBatchBody(Body):
    """A new batch."""

    input_file_id: Annotated[str, StringConstraints(max_length=100, pattern=NO_NUL)] = Field(
        description="A file that was uploaded for a batch."
    )
    endpoint: Endpoint = Field(description="Where all of its lines go.")
    completion_window: Annotated[str, StringConstraints(max_length=40)] = Field(
        "24h", description="Until when it is to be done: 24h, or any time from 1m to 7d."
    )
    metadata: Annotated[dict[Label, Note], Field(max_length=16)] | None = Field(
        None, description="For you; it is shown with the batch."
    )


def wrong(detail: str, param: str, kind: str) -> Problem:
    return Problem(400, detail, kind=kind, param=param)


def unknown(id: str) -> Problem:
    return Problem(404, f"No batch found with id '{id}'.", kind="batch-not-found", param="id")


def _no_file(id: str) -> Problem:
    return wrong(f"there is no file {id}; upload it first", "input_file_id", "file-not-found")


def window_s(text: str) -> float:
    try:
        found = duration_s(text)
    except ValueError as error:
        raise wrong(str(error), "completion_window", "invalid-completion-window") from error
    if not SHORTEST_S <= found <= LONGEST_S:
        raise wrong(f"a completion window is from 1m to 7d, not {text}", "completion_window",
                    "invalid-completion-window")  # fmt: skip
    return found


@router.post(
    PATH,
    summary="Start a batch",
    operation_id="createLlmBatch",
    response_class=Reply,
    responses={200: {"model": LlmBatchModel}, **documented()},
)
def create_batch(
    body: LlmBatchBody, site: TheSite, channels: TheChannels, principal: Submitter
) -> Response:
    """Its lines run on what online calls leave over. All of them are checked first."""
    within_s = window_s(body.completion_window)
    file = channels.files.get(body.input_file_id, principal.tenant)
    if file is None:
        raise _no_file(body.input_file_id)
    if file.purpose != BATCH:
        raise wrong(f"the file {file.id} was uploaded for {file.purpose}, not for a batch",
                    "input_file_id", "invalid-file-purpose")  # fmt: skip
    now = site.now()
    number = site.store.open_batch(f"{body.endpoint} of {file.id}", now, file.tenant)
    row = new_batch(
        number, file, body.endpoint, body.completion_window, within_s, body.metadata, now
    )
    try:
        site.wait(site.engine.ask(partial(channels.batches.create, row)))
    except NoSuchFile as error:
        raise _no_file(file.id) from error
    return Reply(row.view(channels.batches.tally_of(row)))


@router.get(
    PATH,
    summary="List batches",
    operation_id="listLlmBatches",
    response_class=Reply,
    responses={200: {"model": LlmBatchList}, **documented()},
)
def list_batches(
    channels: TheChannels,
    principal: Reader,
    limit: Annotated[int, Query(ge=1, le=100, description="At most so many.")] = 20,
    after: Annotated[
        str | None, Query(max_length=100, description="The id of the last one seen before.")
    ] = None,
) -> Response:
    """The newest first."""
    batches = channels.batches
    last = None
    if after is not None:
        last = batches.get(after, principal.tenant)
        if last is None:
            raise wrong(f"there is no batch {after} to go on after", "after", "batch-not-found")
    found = batches.page(principal.tenant, limit + 1, last)
    return Reply(listed([row.view(batches.tally_of(row)) for row in found], limit))


def _own(channels: TheChannels, id: str, principal: Principal) -> StoredBatch:
    row = channels.batches.get(id, principal.tenant)
    if row is None:
        raise unknown(id)
    return row


@router.get(
    PATH + "/{id}",
    summary="How far a batch is",
    operation_id="getLlmBatch",
    response_class=Reply,
    responses={200: {"model": LlmBatchModel}, **documented(404)},
)
def get_batch(id: BatchId, channels: TheChannels, principal: Reader) -> Response:
    row = _own(channels, id, principal)
    return Reply(row.view(channels.batches.tally_of(row)))


@router.post(
    PATH + "/{id}/cancel",
    summary="Cancel a batch",
    operation_id="cancelLlmBatch",
    response_class=Reply,
    responses={200: {"model": LlmBatchModel}, **documented(404)},
)
def cancel_batch(
    id: BatchId, site: TheSite, channels: TheChannels, principal: Submitter
) -> Response:
    """What waits is given up, what runs may end. The answers there are become its files."""
    row = _own(channels, id, principal)
    try:
        row = in_own_name(site, principal, partial(channels.batches.cancel, row.number))
    except WrongState:
        status = _own(channels, id, principal).status
        raise wrong(f"Cannot cancel a batch with status '{status}'.", "id",
                    "invalid-batch-status") from None  # fmt: skip
    return Reply(row.view(channels.batches.tally_of(row)))
