"""Files of the archive over HTTP, whole or in parts, for whoever has the item."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Path, Query, Response

from headway.api.auth import Reader
from headway.api.bodies import MAX_ID
from headway.api.problems import Problem, documented
from headway.api.site import TheSite
from headway.apps.media import items
from headway.apps.media.library.errors import LibraryError
from headway.apps.media.routes.reach import TheMedia
from headway.apps.media.serving import BYTES, TYPES, LibraryFile, NotThere, open_file

router = APIRouter(tags=["Archive"])

Kind = Literal["video", "thumbnail", "info", "nfo"]
AS_BYTES = {"schema": {"type": "string", "format": "binary"}}
JSON = "application/json"
BINARY = {
    **dict.fromkeys(sorted({*TYPES.values(), BYTES} - {JSON}), AS_BYTES),
    JSON: {"schema": {"type": "object"}},
}
STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file itself.", "content": BINARY},
    206: {"description": "The part that Range asks for.", "content": BINARY},
}


def handed_out(media: TheMedia, path: str | None) -> LibraryFile:
    """Problem: there is no such file, or nobody can say. Blocking."""
    try:
        if path is None:
            raise NotThere
        return open_file(media.library.root, path)
    except NotThere:
        raise Problem(404, "there is no such file in the archive", kind="no-file") from None
    except LibraryError:
        raise Problem(503, "the library cannot be read now; GET /api/archive says why",
                      kind="no-library", headers={"Retry-After": "60"}) from None  # fmt: skip


@router.head("/api/archive/items/{id}/file", include_in_schema=False)
@router.get(
    "/api/archive/items/{id}/file",
    summary="A file of an item",
    operation_id="getItemFile",
    response_class=Response,
    responses={**STREAMED, **documented(404, 409, 416)},
)
def get_file(
    id: Annotated[int, Path(ge=1, le=MAX_ID, description="The number of an item.")],
    principal: Reader,
    site: TheSite,
    media: TheMedia,
    kind: Annotated[Kind, Query(description="Which of its files.")] = "video",
) -> Response:
    """Range is understood, so that players can jump."""
    item = items.item(site.store, id)
    if item is None or principal.tenant not in (None, item.tenant):
        raise Problem(404, f"there is no item {id}", kind="unknown-item")
    return handed_out(media, msgspec.json.decode(item.files or "{}").get(kind))
