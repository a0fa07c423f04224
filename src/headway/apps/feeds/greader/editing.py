"""Changing, as reader apps do it: marks, feeds and labels. The answer is OK, in plain text."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import PlainTextResponse

from headway.api.auth import Submitter
from headway.api.problems import Problem
from headway.api.site import Reply, Site, TheSite
from headway.api.turns import in_own_name
from headway.apps.feeds.greader import labels
from headway.apps.feeds.greader.asking import EXACT_S, Asked, TheAsked, in_form
from headway.apps.feeds.greader.errors import bad, documented
from headway.apps.feeds.greader.ids import FEED, Kind
from headway.apps.feeds.greader.reading import reading_of
from headway.apps.feeds.greader.streams import Reading
from headway.apps.feeds.greader.subscriptions import (
    EDIT,
    SUBSCRIBE,
    UNSUBSCRIBE,
    Shelf,
    edits_asked,
)
from headway.apps.feeds.greader.views import TEXT, QuickAdded
from headway.apps.feeds.marking import Marks, mark
from headway.apps.feeds.opml import BadOpml, read_opml
from headway.apps.feeds.previewing import TooManyLooks, Unusable
from headway.apps.feeds.rounds import TooManyRounds
from headway.apps.feeds.routes.reach import TheFeeds
from headway.net.addresses import Allowed

router = APIRouter(prefix="/api/greader/reader/api/0", tags=["Reader apps"])

MOST_MARKED = 10_000  # items that one request marks
MOST_UNREAD = 10_000_000


async def _reading(site: TheSite, feeds: TheFeeds, principal: Submitter) -> Reading:
    return reading_of(site, feeds, principal)


TheReading = Annotated[Reading, Depends(_reading)]


async def _body(request: Request) -> bytes:
    return await request.body()


TheBody = Annotated[bytes, Depends(_body)]


def _route(path: str, summary: str, name: str, *fields: str) -> dict[str, Any]:
    return {
        "path": path, "summary": summary, "operation_id": name,
        "response_class": PlainTextResponse, "responses": {200: TEXT, **documented(404)},
        "openapi_extra": in_form(*fields),
    }  # fmt: skip


def ok() -> Response:
    return PlainTextResponse("OK")


# ---------------------------------------------------------------------- marks


@router.post(**_route("/edit-tag", "Mark items", "greaderMark", "i", "a", "r"))
def edit_tag(asked: TheAsked, reading: TheReading, feeds: TheFeeds, site: TheSite) -> Response:
    """As read, unread, starred or not. Items that are not yours are left alone; so are states that
    nothing here has, such as `broadcast`.
    """
    marks = marks_asked(asked)
    if marks != Marks():
        entries = asked.entries(MOST_MARKED)
        mark(feeds.store, reading.tenant, entries, marks, site.now())
    return ok()


def marks_asked(asked: Asked) -> Marks:
    read: bool | None = None
    starred: bool | None = None
    named = [(True, each) for each in asked.streams("a")]
    named += [(False, each) for each in asked.streams("r")]
    for added, stream in named:
        match stream.kind:
            case Kind.READ:
                read = added
            case Kind.UNREAD if added:
                read = False
            case Kind.STARRED:
                starred = added
            case Kind.LABEL | Kind.FEED:
                raise bad("an article has no labels of its own here; its feed has one")
    return Marks(read, starred)


@router.post(**_route("/mark-all-as-read", "Mark all of a stream as read", "greaderMarkAll",
                      "s", "ts"))  # fmt: skip
def mark_all_as_read(
    asked: TheAsked, reading: TheReading, feeds: TheFeeds, site: TheSite
) -> Response:
    streams = asked.streams("s")
    if not streams:
        raise bad("s is the stream whose items are read, such as feed/ID")
    until = asked.until("ts") or site.now() + EXACT_S
    clauses = [reading.any_of(streams), ("e.is_read = 0", ()), ("e.seen_at < ?", (until,))]
    refs = reading.select(clauses, "", MOST_UNREAD)
    mark(feeds.store, reading.tenant, [each.entry for each in refs], Marks(True), site.now())
    return ok()


# ---------------------------------------------------------------------- labels


@router.post(**_route("/rename-tag", "Give a label another name", "greaderRenameLabel", "s", "t",
                      "dest"))  # fmt: skip
def rename_tag(
    asked: TheAsked, feeds: TheFeeds, site: TheSite, principal: Submitter, reading: TheReading
) -> Response:
    before = labels.label_asked(asked, "s", "t")
    after = labels.folder_of(labels.label_asked(asked, "dest", "dest"))
    in_own_name(site, principal, lambda now: labels.rename(
        feeds.register, feeds.ruling, reading.tenant, before, after, now))  # fmt: skip
    return ok()


@router.post(**_route("/disable-tag", "Take a label off all feeds", "greaderDropLabel", "s", "t"))
def disable_tag(
    asked: TheAsked, feeds: TheFeeds, site: TheSite, principal: Submitter, reading: TheReading
) -> Response:
    """The feeds stay. A label is there as long as a feed has it, so it is fine if none has: apps
    take their feeds out of a folder before they remove it.
    """
    label = labels.label_asked(asked, "s", "t")
    in_own_name(site, principal, lambda now: labels.remove(
        feeds.register, reading.tenant, label, now))  # fmt: skip
    return ok()


# ---------------------------------------------------------------------- feeds


def _shelf(feeds: TheFeeds, site: Site, reading: Reading) -> Shelf:
    allowed = Allowed(site.config.outbound_allow)
    return Shelf(feeds.register, reading, allowed, feeds.settings.max_feeds)


@router.post(**_route("/subscription/edit", "Subscribe, change or unsubscribe", "greaderEdit",
                      "ac", "s", "t", "a", "r"))  # fmt: skip
def edit_subscription(
    asked: TheAsked, feeds: TheFeeds, site: TheSite, principal: Submitter, reading: TheReading
) -> Response:
    """Subscribing to what you have already changes it. All feeds that are named, or none."""
    action = asked.one("ac") or EDIT
    if action not in (SUBSCRIBE, EDIT, UNSUBSCRIBE):
        raise bad("ac is subscribe, edit or unsubscribe")
    edits = edits_asked(asked)
    shelf = _shelf(feeds, site, reading)
    in_own_name(site, principal, lambda now: shelf.edit(action, edits, now))
    return ok()


@router.post(
    "/subscription/quickadd",
    summary="Subscribe to a feed, or to what a page names",
    operation_id="greaderQuickAdd",
    response_class=Reply,
    responses={200: {"model": QuickAdded}, **documented()},
    openapi_extra=in_form("quickadd"),
)
async def quick_add(
    asked: TheAsked, feeds: TheFeeds, site: TheSite, principal: Submitter, reading: TheReading
) -> Response:
    """`numResults` is 0 if there is no feed, and `error` says why."""
    query = asked.one("quickadd").removeprefix(FEED)
    there = reading.subscription_at(query)
    if there is None:
        try:
            with feeds.previews.place(reading.tenant):
                url = (await feeds.previews.best(query)).url
        except (Unusable, TooManyLooks) as error:
            said = {"numResults": 0, "query": query, "streamId": "", "streamName": ""}
            return Reply(said | {"error": str(error)})
        shelf = _shelf(feeds, site, reading)
        add = partial(shelf.at, url)
        there = await asyncio.to_thread(in_own_name, site, principal, add)
    name = reading.title(there)
    return Reply({"numResults": 1, "query": query, "streamId": FEED + there.id, "streamName": name})


@router.post(
    "/subscription/import",
    summary="Subscribe to all that an OPML file lists",
    operation_id="greaderImport",
    response_class=PlainTextResponse,
    responses={200: TEXT, **documented()},
    openapi_extra={"requestBody": {
        "description": "The file.", "content": {"text/xml": {"schema": {"type": "string"}}},
    }},
)  # fmt: skip
def import_opml(
    body: TheBody, feeds: TheFeeds, site: TheSite, principal: Submitter, reading: TheReading
) -> Response:
    """Answers how many there are in it. What you have already stays as it is; the others come one
    after the other.
    """
    try:
        listed = read_opml(body)
    except BadOpml as error:
        raise bad(str(error)) from None

    def begin(now: float) -> None:
        try:
            made = feeds.importer.begin(reading.tenant, listed, now)
        except TooManyRounds as error:
            raise Problem(429, str(error), headers={"Retry-After": "10"}) from None
        feeds.importer.brain.record(now, "opml_imported", subject=f"round:{made.id}")

    in_own_name(site, principal, begin)
    return PlainTextResponse(f"OK: {len(listed.subscriptions)}")
