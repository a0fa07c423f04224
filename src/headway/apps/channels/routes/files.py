"""Files over HTTP, in OpenAI's shapes."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse

from headway.api import guard
from headway.api.auth import Principal, Reader, Submitter
from headway.api.problems import Problem
from headway.api.site import Reply, TheSite
from headway.apps.channels.batches.files import (
    BATCH,
    KEPT_S,
    UPLOADED,
    NotText,
    StoredFile,
    Writer,
    new_file_id,
)
from headway.apps.channels.batches.multipart import BadForm, Form
from headway.apps.channels.errors import documented
from headway.apps.channels.routes.channels import in_own_name
from headway.apps.channels.routes.reach import TheChannels
from headway.errors import EngineStopped

router = APIRouter(tags=["Files"])

PATH = "/v1/files"
guard.UPLOADS.add(PATH)

MOST_LISTED = 10_000
SHORTEST_S, LONGEST_S = 3_600, 2_592_000  # that a file may be kept, if its owner says so

FileId = Annotated[str, Path(max_length=100, description="The id of a file.")]


class FileModel(BaseModel):
    """A file as OpenAI shows it."""

    id: str
    object: Literal["file"]
    bytes: int = Field(description="How long it is.")
    created_at: int = Field(description="Seconds since 1970.")
    expires_at: int | None = Field(description="When it is deleted; null: never.")
    filename: str
    purpose: Literal["batch", "user_data", "batch_output"]
    status: Literal["processed"]
    status_details: str | None


class FileList(BaseModel):
    object: Literal["list"]
    data: list[FileModel]
    first_id: str | None
    last_id: str | None
    has_more: bool = Field(description="Whether there are others behind the last one.")


class DeletedFile(BaseModel):
    id: str
    object: Literal["file"]
    deleted: bool


FORM: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file", "purpose"],
                    "properties": {
                        "file": {
                            "type": "string",
                            "format": "binary",
                            "description": "Text in UTF-8; for a batch, JSON in each line.",
                        },
                        "purpose": {
                            "type": "string",
                            "enum": list(UPLOADED),
                            "description": "What it is for.",
                        },
                        "expires_after[anchor]": {
                            "type": "string",
                            "enum": ["created_at"],
                            "description": "From when it is kept.",
                        },
                        "expires_after[seconds]": {
                            "type": "integer",
                            "minimum": SHORTEST_S,
                            "maximum": LONGEST_S,
                            "description": "How long it is kept; a batch's 30 days otherwise.",
                        },
                    },
                }
            }
        },
    }
}


def wrong(detail: str, param: str | None = None, kind: str = "invalid-form") -> Problem:
    return Problem(400, detail, kind=kind, param=param)


def unknown(id: str) -> Problem:
    return Problem(404, f"No such File object: {id}", kind="file-not-found", param="id")


@router.post(
    PATH,
    summary="Upload a file",
    operation_id="createFile",
    response_class=Reply,
    responses={200: {"model": FileModel}, **documented()},
    openapi_extra=FORM,
)
async def create_file(
    request: Request, site: TheSite, channels: TheChannels, principal: Submitter
) -> Response:
    """It is stored as it comes. One that breaks off, or is refused, leaves nothing behind."""
    tenant = site.tenant_for(None, principal)
    try:
        form = Form(request.headers.get("content-type", ""), "file")
    except BadForm as error:
        raise wrong(str(error)) from error
    writer = channels.files.writer(new_file_id(), tenant, "", "", site.now())
    try:
        file = await _read(request, form, writer)
        await asyncio.to_thread(channels.files.add, file)
    except BaseException as error:
        await asyncio.shield(asyncio.to_thread(writer.give_up))
        if isinstance(error, BadForm | NotText):
            raise wrong(str(error), "file") from error
        if isinstance(error, ClientDisconnect):
            return Response(status_code=400)  # nobody hears it
        raise
    with suppress(EngineStopped):  # the next one sees to it
        site.engine.ask(channels.batches.tidy_tomorrow)
    return Reply(file.view())


async def _read(request: Request, form: Form, writer: Writer) -> StoredFile:
    async for data in request.stream():
        for piece in form.feed(data):
            if writer.add(piece):
                await asyncio.to_thread(writer.flush)
    form.end()
    purpose = form.fields.get("purpose", "")
    if purpose not in UPLOADED:
        raise wrong(f"purpose is {' or '.join(UPLOADED)}, not {purpose!r}", "purpose")
    kept_s = _kept_s(form, purpose)
    file = await asyncio.to_thread(writer.finish)
    expires_at = None if kept_s is None else file.created_at + kept_s
    name = form.filename or "upload"
    return file._replace(filename=name, purpose=purpose, expires_at=expires_at)


def _kept_s(form: Form, purpose: str) -> float | None:
    anchor = form.fields.get("expires_after[anchor]")
    seconds = form.fields.get("expires_after[seconds]")
    if anchor is None and seconds is None:
        return KEPT_S if purpose == BATCH else None
    if anchor != "created_at":
        raise wrong("expires_after[anchor] is created_at", "expires_after[anchor]")
    whole = int(seconds) if seconds and seconds.isdecimal() and len(seconds) < 10 else 0
    if not SHORTEST_S <= whole <= LONGEST_S:
        raise wrong(f"expires_after[seconds] is from {SHORTEST_S} to {LONGEST_S}",
                    "expires_after[seconds]")  # fmt: skip
    return float(whole)


@router.get(
    PATH,
    summary="List files",
    operation_id="listFiles",
    response_class=Reply,
    responses={200: {"model": FileList}, **documented()},
)
def list_files(
    channels: TheChannels,
    principal: Reader,
    purpose: Annotated[
        str | None, Query(max_length=100, description="Only those for this.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED, description="At most so many.")] = 10_000,
    order: Annotated[
        Literal["asc", "desc"], Query(description="By when they were made; desc: newest first.")
    ] = "desc",
    after: Annotated[
        str | None, Query(max_length=100, description="The id of the last one seen before.")
    ] = None,
) -> Response:
    files = channels.files
    last = None
    if after is not None:
        last = files.get(after, principal.tenant)
        if last is None:
            raise wrong(f"there is no file {after} to go on after", "after", "file-not-found")
    found = files.page(principal.tenant, purpose, limit + 1, last, newest_first=order == "desc")
    return Reply(listed([file.view() for file in found], limit))


def listed(views: list[dict[str, Any]], limit: int) -> dict[str, Any]:
    """A page in OpenAI's shape; one more than the limit says that there are others."""
    some = views[:limit]
    return {
        "object": "list",
        "data": some,
        "first_id": some[0]["id"] if some else None,
        "last_id": some[-1]["id"] if some else None,
        "has_more": len(views) > limit,
    }


def _own(channels: TheChannels, id: str, principal: Principal) -> StoredFile:
    file = channels.files.get(id, principal.tenant)
    if file is None:
        raise unknown(id)
    return file


@router.get(
    PATH + "/{id}",
    summary="Look at a file",
    operation_id="getFile",
    response_class=Reply,
    responses={200: {"model": FileModel}, **documented(404)},
)
def get_file(id: FileId, channels: TheChannels, principal: Reader) -> Response:
    return Reply(_own(channels, id, principal).view())


@router.get(
    PATH + "/{id}/content",
    summary="What is in a file",
    operation_id="getFileContent",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "The file itself.",
            "content": {
                "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
            },
        },
        **documented(404),
    },
)
def get_file_content(id: FileId, channels: TheChannels, principal: Reader) -> Response:
    file = _own(channels, id, principal)
    parts = (part.encode() for part in channels.files.content(id))
    return StreamingResponse(
        parts, media_type="application/octet-stream",
        headers={"Content-Length": str(file.bytes), "Content-Disposition": "attachment"},
    )  # fmt: skip


@router.delete(
    PATH + "/{id}",
    summary="Delete a file",
    operation_id="deleteFile",
    response_class=Reply,
    responses={200: {"model": DeletedFile}, **documented(404)},
)
def delete_file(id: FileId, site: TheSite, channels: TheChannels, principal: Submitter) -> Response:
    """Not while a batch reads it: cancel that one first."""
    _own(channels, id, principal)
    user = in_own_name(site, principal, partial(channels.batches.give_up_file, id))
    if user is not None:
        raise wrong(f"the batch {user} reads this file; cancel it, or wait for its end", "id",
                    "file-in-use")  # fmt: skip
    channels.files.drop(id)  # and all that was in it
    return Reply({"id": id, "object": "file", "deleted": True})
