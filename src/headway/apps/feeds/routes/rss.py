"""Looking at addresses over HTTP before anybody subscribes: whether it is a feed, what is in it,
and which feeds a site has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from headway.api.auth import Principal, Submitter
from headway.api.models import Moment
from headway.api.problems import Problem, documented
from headway.api.site import Reply, Site, TheSite
from headway.api.views import moment
from headway.apps.feeds.parsing import ParsedEntry
from headway.apps.feeds.previewing import Found, Preview, TooManyLooks, Unusable
from headway.apps.feeds.routes.article_views import EnclosureModel
from headway.apps.feeds.routes.feed_bodies import Address, FeedBody, Lenient
from headway.apps.feeds.routes.feeds import add_feeds
from headway.apps.feeds.routes.reach import TheFeeds, owner
from headway.apps.feeds.views import FeedModel
from headway.errors import EngineStopped

router = APIRouter(tags=["RSS"])

T = TypeVar("T")
MOST_TEXT = 2_000_000  # characters of all articles that are shown


class AddressBody(Lenient):
    """An address as somebody has typed it."""

    url: Address = Field(description="Of a feed or a site; without https:// it is added.")


class ValidityModel(BaseModel):
    valid: bool
    url: str = Field(description="The address of the feed; as it was typed, if there is none.")
    title: str | None
    format: str | None = Field(description="Such as rss20, atom10 or json11.")
    article_count: int
    error: str | None = Field(description="Why it cannot be read.")
    kind: str | None = Field(description="A name for that, such as refused-address or not-a-feed.")


class ParsedArticleModel(BaseModel):
    guid: str | None
    link: str | None
    title: str | None
    author: str | None
    published_at: Moment
    updated_at: Moment
    summary: str | None = Field(description="HTML that is safe to show.")
    content: str | None = Field(description="HTML that is safe to show.")
    enclosures: list[EnclosureModel]
    categories: list[str]


class ParsedFeedModel(BaseModel):
    url: str = Field(description="Where to subscribe to it.")
    format: str
    title: str | None
    site_link: str | None
    description: str | None
    language: str | None
    ttl_minutes: int | None = Field(description="How long it says that it stays the same.")
    problems: list[str] = Field(description="What is wrong with the document, and was put up with.")
    article_count: int = Field(description="All that are in it.")
    articles: list[ParsedArticleModel] = Field(description="The first of them.")


class CandidateModel(BaseModel):
    url: str
    title: str | None
    format: str | None
    article_count: int | None
    found_by: Literal["address", "page", "guess"] = Field(
        description="It is what was asked for, the page names it, or it is at a usual place."
    )
    checked: bool = Field(description="Whether somebody has looked.")
    valid: bool | None = Field(description="Whether it can be read; null: nobody has looked.")
    error: str | None = Field(description="Why it cannot be read.")


class Candidates(BaseModel):
    candidates: list[CandidateModel] = Field(description="The best first.")


class SubscribeBody(FeedBody):
    """A feed to subscribe to, or a site that has one. Only its address is needed."""

    url: Address = Field(description="Of a feed or a site; without https:// it is added.")


# ---------------------------------------------------------------------- looking


@router.post(
    "/api/backend/rss/validate",
    summary="Whether an address is that of a feed",
    operation_id="validateFeed",
    response_class=Reply,
    responses={200: {"model": ValidityModel}, **documented()},
)
async def validate(
    body: AddressBody, site: TheSite, feeds: TheFeeds, principal: Submitter
) -> Response:
    try:
        there = await looked(site, feeds, principal, partial(feeds.previews.look, body.url))
    except Unusable as error:
        said = {
            "valid": False, "url": body.url, "title": None, "format": None, "article_count": 0,
            "error": str(error), "kind": error.kind,
        }  # fmt: skip
        return Reply(said)
    feed = there.feed
    return Reply({
        "valid": True, "url": there.url, "title": feed.title, "format": feed.format,
        "article_count": len(feed.entries), "error": None, "kind": None,
    })  # fmt: skip


@router.post(
    "/api/backend/rss/parse",
    summary="What is in a feed",
    operation_id="parseFeed",
    response_class=Reply,
    responses={200: {"model": ParsedFeedModel}, **documented()},
)
async def parse(
    body: AddressBody,
    site: TheSite,
    feeds: TheFeeds,
    principal: Submitter,
    limit: Annotated[int, Query(ge=1, le=200, description="At most so many articles.")] = 50,
) -> Response:
    """Nothing is stored, and nobody subscribes."""
    with refusals():
        there = await looked(site, feeds, principal, partial(feeds.previews.look, body.url))
    return Reply(_feed_view(there, limit))


@router.post(
    "/api/backend/rss/discover",
    summary="Which feeds a site has",
    operation_id="discoverFeeds",
    response_class=Reply,
    responses={200: {"model": Candidates}, **documented()},
)
async def discover(
    body: AddressBody, site: TheSite, feeds: TheFeeds, principal: Submitter
) -> Response:
    """The address itself, if it is a feed; else those that its page names; else what is at usual
    places. The site is asked a few times at most, at its own pace.
    """
    with refusals():
        found = await looked(site, feeds, principal, partial(feeds.previews.discover, body.url))
    return Reply({"candidates": [_candidate_view(each) for each in found]})


async def looked(
    site: Site, feeds: TheFeeds, principal: Principal, look: Callable[[], Awaitable[T]]
) -> T:
    """In one of the places for that, and no longer than the server runs."""
    found: list[T] = []
    try:
        with feeds.previews.place(owner(principal)):
            async with site.patience():
                found.append(await look())
    except TooManyLooks as error:
        raise Problem(429, str(error), kind="too-many-looks",
                      headers={"Retry-After": "2"}) from error  # fmt: skip
    if not found:
        raise EngineStopped("the server is stopping; try again when it is back")
    return found[0]


@contextmanager
def refusals() -> Iterator[None]:
    """Where there is no feed, a problem says why."""
    try:
        yield
    except Unusable as error:
        after_s = None if error.fetched is None else error.fetched.retry_after_s
        if after_s is None:
            raise Problem(422, str(error), kind=error.kind) from error
        raise Problem(422, str(error), kind=error.kind, retry_after_s=round(after_s)) from error


# ---------------------------------------------------------------------- subscribing


@router.post(
    "/api/backend/rss/subscribe",
    status_code=201,
    summary="Subscribe to a site",
    operation_id="subscribeToSite",
    response_class=Reply,
    responses={201: {"model": FeedModel}, **documented(409)},
)
async def subscribe(
    body: SubscribeBody, site: TheSite, feeds: TheFeeds, principal: Submitter
) -> Response:
    """To the best of the feeds that `discover` would find there. With 409 the answer names in
    `duplicates` what is there already.
    """
    with refusals():
        best = await looked(site, feeds, principal, partial(feeds.previews.best, body.url))
    wanted = FeedBody(**{**body.model_dump(), "url": best.url})
    return await asyncio.to_thread(add_feeds, wanted, site, feeds, principal)


# ---------------------------------------------------------------------- showing


def _feed_view(there: Preview, limit: int) -> dict[str, Any]:
    feed = there.feed
    return {
        "url": there.url,
        "format": feed.format,
        "title": feed.title,
        "site_link": feed.site_link,
        "description": feed.description,
        "language": feed.language,
        "ttl_minutes": feed.ttl_minutes,
        "problems": list(feed.problems),
        "article_count": len(feed.entries),
        "articles": [_article_view(each) for each in _shown(feed.entries[:limit])],
    }


def _shown(entries: Sequence[ParsedEntry]) -> Iterator[ParsedEntry]:
    """The first of them, as far as their texts are not too long together."""
    room = MOST_TEXT
    for each in entries:
        room -= len(each.summary or "") + len(each.content or "")
        if room < 0:
            return
        yield each


def _article_view(entry: ParsedEntry) -> dict[str, Any]:
    return {
        "guid": entry.guid,
        "link": entry.link,
        "title": entry.title,
        "author": entry.author,
        "published_at": _moment(entry.published),
        "updated_at": _moment(entry.updated),
        "summary": entry.summary,
        "content": entry.content,
        "enclosures": [
            {"url": each.url, "type": each.type, "length": each.length} for each in entry.enclosures
        ],
        "categories": list(entry.categories),
    }


def _moment(at: datetime | None) -> str | None:
    try:
        return None if at is None else moment(at.timestamp())
    except (OverflowError, ValueError):
        return None


def _candidate_view(each: Found) -> dict[str, Any]:
    return {
        "url": each.url,
        "title": each.title,
        "format": each.format,
        "article_count": each.article_count,
        "found_by": each.by,
        "checked": each.valid is not None,
        "valid": each.valid,
        "error": each.error,
    }
