"""Podcasts over HTTP: making the address of one, and what is behind it, for whoever has it."""

from __future__ import annotations

from email.utils import formatdate, parsedate_to_datetime
from hashlib import sha256
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, Field

from headway.api.auth import Submitter
from headway.api.bodies import MAX_ID, Body
from headway.api.logs import keep_private
from headway.api.problems import Problem, documented
from headway.api.site import Reply, TheSite
from headway.api.turns import in_own_name
from headway.apps.media import items
from headway.apps.media.library.kinds import suffix_of
from headway.apps.media.model import Item, State
from headway.apps.media.podcast import PATH, changed_at, feed
from headway.apps.media.routes.files import STREAMED, handed_out
from headway.apps.media.routes.reach import TheMedia, own

router = APIRouter(tags=["Podcasts"])

keep_private(f"{PATH}/")

RSS = "application/rss+xml"
NO_LOGIN: dict[str, Any] = {"security": []}  # the address is the key

SubscriptionId = Annotated[int, Path(ge=1, le=MAX_ID, description="The number of a subscription.")]
Secret = Annotated[str, Path(max_length=100, description="The secret part of the address.")]


class PodcastBody(Body):
    """How the address is wanted."""

    rotate: bool = Field(
        False, description="Make a new one; the one before leads nowhere from then on."
    )


class PodcastModel(BaseModel):
    url: str = Field(description="For a podcast player. Whoever has it can listen.")


# ---------------------------------------------------------------------- its address


@router.post(
    "/api/subscriptions/{id}/podcast",
    summary="The address of a podcast of what was archived",
    operation_id="makePodcast",
    response_class=Reply,
    responses={200: {"model": PodcastModel}, **documented(404, 409)},
)
def make_podcast(
    id: SubscriptionId,
    request: Request,
    principal: Submitter,
    site: TheSite,
    media: TheMedia,
    body: PodcastBody | None = None,
) -> Response:
    """It is made when it is first asked for."""
    own(media, id, principal)
    rotate = body is not None and body.rotate

    def make(now: float) -> str:
        own(media, id, principal)
        media.register.brain.record(
            now, "podcast_rotated" if rotate else "podcast_asked", subject=f"subscription:{id}"
        )
        return media.podcasts.open(id, now, rotate=rotate)

    secret = in_own_name(site, principal, make)
    return Reply({"url": f"{_base(request)}{PATH}/{secret}/feed.xml"})


@router.delete(
    "/api/subscriptions/{id}/podcast",
    status_code=204,
    summary="Take back the address of a podcast",
    operation_id="removePodcast",
    response_class=Response,
    responses=documented(404, 409),
)
def remove_podcast(
    id: SubscriptionId, principal: Submitter, site: TheSite, media: TheMedia
) -> Response:
    """It leads nowhere from now on."""

    def remove(now: float) -> None:
        own(media, id, principal)
        media.podcasts.close(id, now)
        media.register.brain.record(now, "podcast_removed", subject=f"subscription:{id}")

    in_own_name(site, principal, remove)
    return Response(status_code=204)


# ---------------------------------------------------------------------- what is behind it


def nothing() -> Problem:
    """The same for whatever is wrong."""
    return Problem(404, "there is no podcast here; ask for its address again", kind="no-podcast")


@router.head(PATH + "/{secret}/feed.xml", include_in_schema=False)
@router.get(
    PATH + "/{secret}/feed.xml",
    summary="A podcast",
    operation_id="getPodcast",
    response_class=Response,
    openapi_extra=NO_LOGIN,
    responses={
        200: {"description": "RSS 2.0.", "content": {RSS: {"schema": {"type": "string"}}}},
        304: {"description": "It is as it was."},
        **documented(404, 409),
    },
)
def get_podcast(secret: Secret, request: Request, media: TheMedia) -> Response:
    """No login is needed: the address is the key. What is on disk, the newest first."""
    row = media.podcasts.at(secret)
    if row is None:
        raise nothing()
    listed = media.podcasts.episodes(row)
    text = feed(row, secret, _base(request), listed)
    at = changed_at(row, listed)
    headers = {
        "ETag": f'"{sha256(text).hexdigest()[:32]}"',
        "Last-Modified": formatdate(at, usegmt=True),
        "Cache-Control": "private, no-cache",
    }
    if _is_known(request, headers["ETag"], at):
        return Response(status_code=304, headers=headers)
    return Response(text, media_type=RSS, headers=headers)


@router.head(PATH + "/{secret}/{file}", include_in_schema=False)
@router.get(
    PATH + "/{secret}/{file}",
    summary="An episode of a podcast",
    operation_id="getEpisode",
    response_class=Response,
    openapi_extra=NO_LOGIN,
    responses={**STREAMED, **documented(404, 409, 416)},
)
def get_episode(
    secret: Secret,
    file: Annotated[
        str, Path(max_length=50, description="The number of an item, and the kind of its file.")
    ],
    site: TheSite,
    media: TheMedia,
) -> Response:
    row = media.podcasts.at(secret)
    number, _, _ = file.partition(".")
    if row is None or not number.isdecimal() or not number.isascii() or len(number) > 18:
        raise nothing()
    item = items.item(site.store, int(number))
    path = None if item is None or item.subscription != row.id else _file_of(item, suffix_of(file))
    if path is None:
        raise nothing()
    return handed_out(media, path)


def _file_of(item: Item, suffix: str) -> str | None:
    if item.state != State.DONE:
        return None
    files = msgspec.json.decode(item.files or "{}")
    known = (files.get(kind, "") for kind in ("video", "thumbnail"))
    return next((path for path in known if path and suffix_of(path) == suffix), None)


def _base(request: Request) -> str:
    return str(request.base_url).rstrip("/")


def _is_known(request: Request, etag: str, at: float) -> bool:
    """What a client has is as new as this."""
    given = request.headers.get("if-none-match")
    if given is not None:
        tags = {each.strip().removeprefix("W/") for each in given.split(",")}
        return etag in tags or "*" in tags
    since = request.headers.get("if-modified-since")
    if since is None:
        return False
    try:
        return int(at) <= parsedate_to_datetime(since).timestamp()
    except (TypeError, ValueError, OverflowError):
        return False
