"""Lists of subscriptions over HTTP, as OPML: one comes in, and all that is there goes out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from headway.api import guard
from headway.api.auth import Reader, Submitter
from headway.api.bodies import NO_NUL
from headway.api.problems import Problem, documented
from headway.api.site import Reply, TheSite
from headway.api.turns import in_turn
from headway.apps.feeds.folders import folder_path
from headway.apps.feeds.importing import export
from headway.apps.feeds.opml import MAX_BYTES, BadOpml, read_opml
from headway.apps.feeds.rounds import Round
from headway.apps.feeds.routes import rounds
from headway.apps.feeds.routes.reach import TheFeeds, owner
from headway.apps.feeds.routes.rounds import RoundModel, begun, round_view

router = APIRouter(tags=["OPML"])

PATH = "/api/backend/opml"
guard.UPLOADS.add(PATH)  # which leaves the body as it is; it is read here, up to a limit

AROUND_FILE = 65_536  # bytes of a form beside its file
ANSWER_S = 30.0

TEXT = {"schema": {"type": "string", "description": "The list, as other readers export it."}}
BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "text/x-opml": TEXT,
            "application/xml": TEXT,
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {
                            "type": "string",
                            "format": "binary",
                            "description": "The list, as other readers export it.",
                        }
                    },
                }
            },
        },
    }
}


@router.post(
    PATH,
    status_code=202,
    summary="Import a list of subscriptions",
    operation_id="importOpml",
    response_class=Reply,
    responses={202: {"model": RoundModel}, **documented()},
    openapi_extra=BODY,
)
async def import_opml(
    request: Request,
    site: TheSite,
    feeds: TheFeeds,
    principal: Submitter,
    folder: Annotated[
        str, Query(max_length=1_000, pattern=NO_NUL, description="Put all feeds below this one.")
    ] = "",
    refresh_interval: Annotated[
        float, Query(ge=1, le=10_080, description="Minutes between two refreshes of each.")
    ] = 30.0,
    adaptive: Annotated[
        bool, Query(description="Follow how often each of them really changes.")
    ] = False,
) -> Response:
    """The body is the list itself, or a form with it in `file`. It is taken in, and each new feed
    fetched for the first time, by a round that goes on if the server is restarted meanwhile.
    """
    document, content_type = await _document(request)
    try:
        listed = await asyncio.to_thread(read_opml, document, content_type)
    except BadOpml as error:
        raise Problem(422, str(error), kind="bad-opml") from error
    tenant = owner(principal)
    brain = site.engine.brain
    begin = partial(
        feeds.importer.begin, tenant, listed, folder=folder_path(folder),
        interval_s=refresh_interval * 60.0, adaptive=adaptive,
    )  # fmt: skip

    def turn(now: float) -> Round:
        with brain.controls.acting(principal.who):
            made = begun(partial(begin, now=now))
            brain.record(now, "opml_imported", subject=f"round:{made.id}")
            return made

    made = await in_turn(site.engine, turn, ANSWER_S)
    view = await asyncio.to_thread(round_view, site, feeds, tenant, made.id)
    return Reply(view, 202, headers={"Location": f"{rounds.PATH}/{made.id}"})


async def _document(request: Request) -> tuple[bytes, str]:
    """What was sent, and what it is said to be."""
    content_type = request.headers.get("content-type", "")
    is_form = content_type.partition(";")[0].strip().lower() == "multipart/form-data"
    limit = MAX_BYTES + (AROUND_FILE if is_form else 0)
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > limit:
            raise Problem(413, f"a list may have at most {MAX_BYTES:,} bytes; split it",
                          kind="too-large")  # fmt: skip
    return await _file(request, bytes(body)) if is_form else (bytes(body), content_type)


async def _file(request: Request, body: bytes) -> tuple[bytes, str]:
    async def pieces() -> AsyncGenerator[bytes, None]:
        yield body

    try:
        form = await MultiPartParser(
            request.headers, pieces(), max_files=1, max_fields=10, max_part_size=AROUND_FILE
        ).parse()
    except (MultiPartException, KeyError) as error:
        why = getattr(error, "message", "it does not say where its parts begin")
        raise Problem(400, f"this is no valid form: {why}", kind="invalid-form") from error
    try:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise Problem(400, "the form has no part 'file'; that is the list",
                          kind="invalid-form")  # fmt: skip
        return await file.read(), file.content_type or ""
    finally:
        await form.close()


@router.get(
    PATH,
    summary="Export all subscriptions",
    operation_id="exportOpml",
    response_class=Response,
    responses={
        200: {
            "description": "The list, which any reader can import.",
            "content": {"text/x-opml": {"schema": {"type": "string"}}},
        },
        **documented(),
    },
)
def export_opml(site: TheSite, feeds: TheFeeds, principal: Reader) -> Response:
    return Response(
        export(feeds.register, owner(principal), site.now()),
        media_type="text/x-opml",
        headers={"Content-Disposition": 'attachment; filename="feeds.opml"'},
    )
