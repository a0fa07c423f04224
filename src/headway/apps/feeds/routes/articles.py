"""Articles over HTTP: reading, searching, marking, posting, and sending to the archive."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from fastapi import APIRouter, Path, Query, Response
from pydantic import ValidationError

from headway.api import models
from headway.api.auth import Reader, Submitter
from headway.api.bodies import MAX_ID, Name, Text
from headway.api.problems import Problem, documented
from headway.api.routes.jobs import Page, Size
from headway.api.routes.requests import EnqueueBody, enqueued
from headway.api.site import Reply, Site, TheSite
from headway.api.turns import in_turn
from headway.apps.feeds import articles
from headway.apps.feeds.articles import Article, Order, Wanted
from headway.apps.feeds.folders import folder_path
from headway.apps.feeds.marking import Marks
from headway.apps.feeds.model import Subscription
from headway.apps.feeds.posting import Posted, Poster, Posting
from headway.apps.feeds.routes.article_views import (
    ArchiveBody,
    ArticleModel,
    ArticlePage,
    ArticleStats,
    BulkMarksBody,
    ChangedModel,
    DeletedModel,
    MarkedModel,
    MarkReadBody,
    MarksBody,
    OneOrMany,
    PostedModel,
    article_view,
    before_of,
    cursor_of,
    entry_of,
    place_of,
)
from headway.apps.feeds.routes.reach import TheFeeds, owner
from headway.apps.feeds.routes.showing import unknown as unknown_feed
from headway.apps.feeds.storing import DAY_S

router = APIRouter(tags=["Articles"])

ARCHIVES = "download"  # the type of the jobs that do it

ArticleId = Annotated[int, Path(ge=1, le=MAX_ID, description="The number of an article.")]


def unknown(id: int) -> Problem:
    return Problem(404, f"there is no article {id}", kind="unknown-article")


def found(feeds: TheFeeds, tenant: str, id: int, *, content: bool = True) -> Article:
    article = articles.one(feeds.store, tenant, id, content=content)
    if article is None:
        raise unknown(id)
    return article


# ---------------------------------------------------------------------- looking


@router.get(
    "/api/backend/articles",
    summary="List and search articles",
    operation_id="listArticles",
    response_class=Reply,
    responses={200: {"model": ArticlePage}, **documented()},
)
def list_articles(
    feeds: TheFeeds,
    principal: Reader,
    feed: Annotated[Name | None, Query(description="Of this feed.")] = None,
    folder: Annotated[
        Text | None, Query(description="Of feeds in this folder, or inside of it; empty: in none.")
    ] = None,
    unread: Annotated[bool | None, Query(description="Only unread ones; false: read ones.")] = None,
    starred: Annotated[
        bool | None, Query(description="Only starred ones; false: the others.")
    ] = None,
    q: Annotated[
        str,
        Query(
            max_length=1_000,
            description='Words of title or text, which must all be there; "some phrase", begin*, '
            "-without. Capitals and accents do not matter.",
        ),
    ] = "",
    since_id: Annotated[
        int | None, Query(ge=0, le=MAX_ID, description="Only what came after this article.")
    ] = None,
    before: Annotated[
        Text | None,
        Query(description="Only what came up to this: the number of an article, or ISO 8601."),
    ] = None,
    order: Annotated[
        Order,
        Query(description="By when they appeared, or as they came here, the first one first."),
    ] = "newest",
    content: Annotated[bool, Query(description="With all of their text.")] = False,
    cursor: Annotated[
        Text | None,
        Query(description="`next` of the page before: quick in any list; `page` counts from it."),
    ] = None,
    page: Page = 1,
    size: Size = 50,
) -> Response:
    """Newest first, unless `order` says otherwise; filters combine. Of each text there is only the
    beginning, unless `content` is wanted.
    """
    number, at = (None, None) if before is None else _read("before", before_of, before)
    after = None if not cursor else _read("cursor", place_of, cursor)
    wanted = Wanted(feed, _folder(folder), unread, starred, q, since_id, number, at)
    tenant = owner(principal)
    items = articles.listed(
        feeds.store, tenant, wanted, order, size=size + 1, offset=(page - 1) * size, after=after,
        content=content,
    )  # fmt: skip
    shown = items[:size]
    views = [article_view(each) for each in shown]
    return Reply({
        "items": views, "count": len(views),
        "total": articles.counted(feeds.store, tenant, wanted), "page": page, "size": size,
        "next": cursor_of(shown[-1]) if len(items) > size else None,
    })  # fmt: skip


def _folder(said: str | None) -> str | None:
    return None if said is None else folder_path(said)


def _read(name: str, read: Any, text: str) -> Any:
    try:
        return read(text)
    except (ValueError, OverflowError):
        what = {
            "before": "the number of an article, or a time in ISO 8601",
            "cursor": "what `next` of another page says",
        }[name]
        raise Problem(422, f"query.{name}: write {what}", kind="wrong-input") from None


@router.get(
    "/api/backend/articles/stats",
    summary="How many articles there are",
    operation_id="getArticleStats",
    response_class=Reply,
    responses={200: {"model": ArticleStats}, **documented()},
)
def get_stats(site: TheSite, feeds: TheFeeds, principal: Reader) -> Response:
    by_feed = articles.stats(feeds.store, owner(principal), site.now() // DAY_S * DAY_S)
    names = articles.Counts._fields
    total = {name: sum(getattr(each, name) for each in by_feed.values()) for name in names}
    listed = [{"feed_id": feed, **counts._asdict()} for feed, counts in sorted(by_feed.items())]
    return Reply({**total, "by_feed": listed})


# ---------------------------------------------------------------------- marking


@router.patch(
    "/api/backend/articles",
    summary="Mark many articles",
    operation_id="markArticles",
    response_class=Reply,
    responses={200: {"model": MarkedModel}, **documented()},
)
def mark_articles(
    body: BulkMarksBody, site: TheSite, feeds: TheFeeds, principal: Submitter
) -> Response:
    marked = articles.mark_some(
        feeds.store, owner(principal), body.ids, _marks(body), site.now()
    )  # fmt: skip
    return Reply(marked._asdict())


@router.post(
    "/api/backend/articles/mark-read",
    summary="Mark a feed, a folder or everything as read",
    operation_id="markRead",
    response_class=Reply,
    responses={200: {"model": ChangedModel}, **documented(404)},
)
def mark_read(body: MarkReadBody, site: TheSite, feeds: TheFeeds, principal: Submitter) -> Response:
    """What comes while somebody reads stays unread, if `before` says what he has seen."""
    if [body.feed is not None, body.folder is not None, body.all].count(True) != 1:
        raise Problem(422, "say one of feed, folder and all", kind="wrong-input")
    tenant = owner(principal)
    if body.feed is not None:
        _subscription(feeds, tenant, body.feed)
    seen = body.before
    wanted = Wanted(
        body.feed, _folder(body.folder),
        before_id=seen if isinstance(seen, int) else None,
        before_at=seen.timestamp() if isinstance(seen, datetime) else None,
    )  # fmt: skip
    return Reply({"changed": articles.mark_read(feeds.store, tenant, wanted, site.now())})


@router.delete(
    "/api/backend/articles/old",
    summary="Delete what is read and old",
    operation_id="deleteOldArticles",
    response_class=Reply,
    responses={200: {"model": DeletedModel}, **documented()},
)
def delete_old(
    site: TheSite,
    feeds: TheFeeds,
    principal: Submitter,
    days: Annotated[
        float,
        Query(ge=0, le=36_500, allow_inf_nan=False, description="That they are old at least."),
    ] = 30.0,
) -> Response:
    """Starred and unread ones stay. What is deleted does not come back with the next refresh."""
    tenant = owner(principal)
    deleted = articles.drop_read(feeds.store, site.now() - days * DAY_S, tenant)
    site.record(principal, "articles_delete", f"articles:{tenant}", f"{deleted} of {days} days")
    return Reply({"deleted": deleted})


def _refuse(word: str, allowed: str, *methods: str) -> None:
    """These words are no numbers of articles, whatever is asked of them."""

    def refuse() -> Response:
        raise Problem(405, f"only {allowed} is possible here; /docs lists what else there is",
                      headers={"Allow": allowed})  # fmt: skip

    path = f"/api/backend/articles/{word}"
    router.api_route(path, methods=list(methods), include_in_schema=False)(refuse)


_refuse("stats", "GET", "PATCH")
_refuse("mark-read", "POST", "GET", "PATCH")
_refuse("old", "DELETE", "GET", "PATCH")


# ---------------------------------------------------------------------- one of them


@router.get(
    "/api/backend/articles/{id}",
    summary="Read an article",
    operation_id="getArticle",
    response_class=Reply,
    responses={200: {"model": ArticleModel}, **documented(404)},
)
def get_article(id: ArticleId, feeds: TheFeeds, principal: Reader) -> Response:
    """With all of its text."""
    return Reply(article_view(found(feeds, owner(principal), id)))


@router.patch(
    "/api/backend/articles/{id}",
    summary="Mark an article",
    operation_id="markArticle",
    response_class=Reply,
    responses={200: {"model": ArticleModel}, **documented(404)},
)
def mark_article(
    id: ArticleId, body: MarksBody, site: TheSite, feeds: TheFeeds, principal: Submitter
) -> Response:
    """The article as it is then, without its text."""
    tenant = owner(principal)
    if articles.mark_some(feeds.store, tenant, [id], _marks(body), site.now()).not_found:
        raise unknown(id)
    return Reply(article_view(found(feeds, tenant, id, content=False)))


def _marks(body: MarksBody) -> Marks:
    if body.is_read is None and body.is_starred is None:
        raise Problem(422, "say is_read, is_starred, or both", kind="wrong-input")
    return Marks(body.is_read, body.is_starred)


def _subscription(feeds: TheFeeds, tenant: str, feed: str) -> Subscription:
    subscription = feeds.register.subscriptions.get((tenant, feed))
    if subscription is None:
        raise unknown_feed(feed)
    return subscription


# ---------------------------------------------------------------------- posting


@router.post(
    "/api/backend/articles",
    summary="Add articles that the client has parsed",
    operation_id="addArticles",
    response_class=Reply,
    responses={200: {"model": PostedModel}, **documented(404)},
)
def add_articles(body: OneOrMany, site: TheSite, feeds: TheFeeds, principal: Submitter) -> Response:
    """One, or a list. An article that is there keeps its marks; what its site says of it goes
    before what is sent. All else is seen by nobody but the tenant that sends it.
    """
    tenant = owner(principal)
    given: dict[Subscription, list[Posting]] = {}
    for number, each in enumerate(body if isinstance(body, list) else [body]):
        subscription = _subscription(feeds, tenant, each.feed_id)
        try:
            entry = entry_of(each, subscription.url)
        except ValueError as error:
            raise Problem(422, f"article {number}: {error}", kind="bad-article") from None
        posting = Posting(entry, bool(each.is_read), bool(each.is_starred))
        given.setdefault(subscription, []).append(posting)
    posted, now = Posted(), site.now()
    rules, keep_days = feeds.rules.get(tenant, ()), feeds.settings.keep_days
    for subscription, postings in given.items():
        poster = Poster(feeds.store, subscription, rules, keep_days)
        posted = posted.plus(poster.post(postings, now))
    return Reply(posted._asdict())


# ---------------------------------------------------------------------- the archive


@router.post(
    "/api/backend/articles/{id}/archive",
    status_code=202,
    summary="Send what an article links to into the archive",
    operation_id="archiveArticle",
    response_class=Reply,
    responses={202: {"model": models.RequestAnswer}, **documented(404, 409)},
)
async def archive(
    id: ArticleId,
    site: TheSite,
    feeds: TheFeeds,
    principal: Submitter,
    body: ArchiveBody | None = None,
) -> Response:
    """A request of type download, as `POST /api/requests/enqueue` makes it. 409 if nobody here can
    do it.
    """
    tenant = owner(principal)
    article = await asyncio.to_thread(found, feeds, tenant, id, content=False)
    url = chosen(article, None if body is None else body.url)
    if not await _can_archive(site):
        raise Problem(409, "no archive is on: nobody here does jobs of type download; switch the "
                      "media app on, or start a worker for them", kind="no-archive")  # fmt: skip
    try:
        wanted = EnqueueBody.model_validate({"type": ARCHIVES, "url": url, "requires_cookie": True})
    except ValidationError:
        raise Problem(422, "this link is too long for the archive", kind="bad-link") from None
    return await enqueued(site, wanted, principal)


def chosen(article: Article, url: str | None) -> str:
    """The link of this very article that is meant."""
    files = msgspec.json.decode(article.enclosures)
    links = [each["url"] for each in files] + [article.link or ""]
    videos = [each["url"] for each in files if (each["type"] or "").startswith("video/")]
    usable = [link for link in links if urlsplit(link).scheme in ("http", "https")]
    if url is not None:
        if url not in usable:
            raise Problem(422, "url is neither the link of this article nor one of its enclosures",
                          kind="bad-link")  # fmt: skip
        return url
    for link in (*videos, article.link, *usable):
        if link in usable:
            return str(link)
    raise Problem(422, "this article has no link and no enclosure to archive", kind="bad-link")


async def _can_archive(site: Site) -> bool:
    brain = site.engine.brain
    if ARCHIVES in brain.registry.types:
        return True
    gates = brain.remote.gates

    def look(now: float) -> bool:
        return gates.demand.wants(ARCHIVES) or gates.known_until(ARCHIVES) > now

    return await in_turn(site.engine, look)
