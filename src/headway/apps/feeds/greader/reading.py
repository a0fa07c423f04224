"""Looking, as reader apps do it: what there is, what is unread, and the items themselves."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Response

from headway.api.auth import Principal, Reader
from headway.api.problems import Problem
from headway.api.site import Reply, Site, TheSite
from headway.apps.feeds.greader.asking import TheAsked, in_form, in_query
from headway.apps.feeds.greader.errors import documented
from headway.apps.feeds.greader.ids import ALL, FEED, Kind, Stream, short_id, stream_of
from headway.apps.feeds.greader.labels import tags, unread_counts
from headway.apps.feeds.greader.streams import (
    FEW,
    MOST_IDS,
    MOST_ITEMS,
    Page,
    Reading,
    microseconds,
)
from headway.apps.feeds.greader.subscriptions import subscription_list
from headway.apps.feeds.greader.views import (
    ItemRefs,
    Preferences,
    ReaderItems,
    ReaderSubscriptions,
    ReaderTags,
    StreamPreferences,
    UnreadCounts,
)
from headway.apps.feeds.importing import export
from headway.apps.feeds.routes.reach import TheFeeds, owner

router = APIRouter(prefix="/api/greader/reader/api/0", tags=["Reader apps"])

MOST_ASKED = 2_500  # items whose contents are asked for at once
NARROWED = ("n", "r", "c", "ot", "nt", "xt", "it")


def reading_of(site: Site, feeds: TheFeeds, principal: Principal) -> Reading:
    assert site.engine  # without one nobody knows who reads what
    return Reading(feeds.store, feeds.register, owner(principal))


async def _reading(site: TheSite, feeds: TheFeeds, principal: Reader) -> Reading:
    return reading_of(site, feeds, principal)


TheReading = Annotated[Reading, Depends(_reading)]


def _route(path: str, summary: str, name: str, model: Any, *fields: str) -> dict[str, Any]:
    return {
        "path": path, "summary": summary, "operation_id": name, "response_class": Reply,
        "responses": {200: {"model": model}, **documented(404)},
        "openapi_extra": in_query(*fields),
    }  # fmt: skip


@router.get(**_route("/subscription/list", "What you subscribe to", "greaderSubscriptions",
                     ReaderSubscriptions))  # fmt: skip
def list_subscriptions(reading: TheReading) -> Response:
    return Reply(subscription_list(reading))


@router.get(
    "/subscription/export",
    summary="What you subscribe to, as OPML",
    operation_id="greaderExport",
    response_class=Response,
    responses={
        200: {"description": "OPML.", "content": {"text/xml": {"schema": {"type": "string"}}}},
        **documented(),
    },
    openapi_extra=in_query(),
)
def export_opml(reading: TheReading, feeds: TheFeeds, site: TheSite) -> Response:
    headers = {"Content-Disposition": 'attachment; filename="subscriptions.opml"'}
    document = export(feeds.register, reading.tenant, site.now())
    return Response(document, media_type="text/xml", headers=headers)


@router.get(**_route("/tag/list", "Your labels", "greaderTags", ReaderTags))
def list_tags(reading: TheReading) -> Response:
    return Reply(tags(reading))


@router.get(**_route("/unread-count", "How much is unread", "greaderUnread", UnreadCounts))
def count_unread(reading: TheReading, feeds: TheFeeds) -> Response:
    return Reply(unread_counts(feeds.store, reading))


@router.get(**_route("/stream/items/ids", "Items of a stream, by their ids", "greaderItemIds",
                     ItemRefs, "s", *NARROWED))  # fmt: skip
def list_ids(asked: TheAsked, reading: TheReading) -> Response:
    """The newest first. What comes while you page is on none of the pages that follow."""
    page = reading.page(asked, asked.streams("s"), FEW, MOST_IDS)
    refs = [
        {
            "id": short_id(each.entry),
            "directStreamIds": [FEED + each.feed],
            "timestampUsec": microseconds(each.seen_at),
        }
        for each in page.refs
    ]
    return Reply({"itemRefs": refs, **_more(page)})


def _more(page: Page) -> dict[str, str]:
    return {"continuation": page.continuation} if page.continuation else {}


BY_ID = _route("/stream/items/contents", "Items by their ids", "greaderItems", ReaderItems, "i")
BY_ID_IN_FORM = {**BY_ID, "operation_id": "greaderItemsAsked", "openapi_extra": in_form("i")}


@router.get(**BY_ID)
@router.post(**BY_ID_IN_FORM)
def items_by_id(asked: TheAsked, reading: TheReading, site: TheSite) -> Response:
    """Those that are not yours are left out, like those that never were."""
    items = reading.items(asked.entries(MOST_ASKED))
    return _contents(reading, ALL, site.now(), items)


@router.get(**_route("/stream/contents", "Items of a stream", "greaderStreamAsked", ReaderItems,
                     "s", *NARROWED))  # fmt: skip
def stream_asked(asked: TheAsked, reading: TheReading, site: TheSite) -> Response:
    """Of all that you read, if no stream is named."""
    streams = asked.streams("s")
    page = reading.page(asked, streams, FEW, MOST_ITEMS)
    items = reading.items([each.entry for each in page.refs])
    return _contents(reading, streams[0] if streams else ALL, site.now(), items, page)


@router.get(**_route("/stream/contents/{stream:path}", "Items of a stream", "greaderStream",
                     ReaderItems, *NARROWED))  # fmt: skip
def stream_contents(
    stream: Annotated[str, Path(max_length=4_000, description="The stream, such as feed/ID.")],
    asked: TheAsked, reading: TheReading, site: TheSite,
) -> Response:  # fmt: skip
    named = stream_of(stream) if stream else ALL
    if named is None:
        raise Problem(404, f"there is no stream {stream[:60]!r}", kind="unknown-stream")
    page = reading.page(asked, [named], FEW, MOST_ITEMS)
    items = reading.items([each.entry for each in page.refs])
    return _contents(reading, named, site.now(), items, page)


def _contents(
    reading: Reading, stream: Stream, now: float, items: list[dict[str, Any]],
    page: Page | None = None,
) -> Response:  # fmt: skip
    title = stream.name
    if stream.kind is Kind.FEED:
        found = reading.subscription(stream.name)
        title = stream.name if found is None else reading.title(found)
    said = {
        "direction": "ltr", "id": stream.text, "title": title, "updated": int(now), "items": items,
    }  # fmt: skip
    return Reply(said if page is None else said | _more(page))


@router.get(**_route("/preference/list", "Preferences, of which there are none",
                     "greaderPreferences", Preferences))  # fmt: skip
async def list_preferences(reading: TheReading) -> Response:  # noqa: ARG001
    return Reply({"prefs": []})


@router.get(**_route("/preference/stream/list", "Preferences for streams, of which there are none",
                     "greaderStreamPreferences", StreamPreferences))  # fmt: skip
async def list_stream_preferences(reading: TheReading) -> Response:  # noqa: ARG001
    return Reply({"streamprefs": {}})
