"""Subscriptions over HTTP: what a tenant has, and changing it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal
from uuid import uuid4

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, Field

from headway.api.auth import Principal, Reader, Submitter
from headway.api.bodies import NO_NUL
from headway.api.problems import MAX_ERRORS, Problem, documented
from headway.api.site import Reply, Site, TheSite
from headway.api.turns import in_own_name
from headway.apps.feeds.folders import folder_path, is_below
from headway.apps.feeds.model import Subscription
from headway.apps.feeds.parsing.text import MAX_NAME, one_line
from headway.apps.feeds.register import Duplicates, Register, Wanted
from headway.apps.feeds.routes.feed_bodies import (
    FeedBody,
    FeedChangeBody,
    Feeds,
    NamedFeedChangeBody,
)
from headway.apps.feeds.routes.reach import TheFeeds, owner
from headway.apps.feeds.routes.showing import feed_shown, shown, unknown
from headway.apps.feeds.views import (
    MINUTE_S,
    FeedList,
    FeedModel,
    FeedStatus,
    numbers_of,
    status_of,
    title_of,
)
from headway.net.addresses import Allowed
from headway.net.outbound import Refused, check_url
from headway.net.urls import host_of, plain_url

router = APIRouter(tags=["Feeds"])

PATH = "/api/backend/feeds"
NAMED = 5  # of what is wrong, in the text of a problem

ThisFeed = Annotated[str, Path(max_length=200, pattern=NO_NUL, description="The id of a feed.")]
NamedFeed = Annotated[str, Query(max_length=200, pattern=NO_NUL, description="The id of a feed.")]


class FeedRemoved(BaseModel):
    feed_deleted: Literal[True]
    articles_deleted: int = Field(description="That were there for you; others keep theirs.")


def duplicate(error: Duplicates, what_to_do: str) -> Problem:
    """Names what is there already, and under which id."""
    listed = [
        {"url": wanted.url, "id": wanted.id, "existing_id": there.id}
        for wanted, there in error.found
    ]
    ids = ", ".join(repr(each["existing_id"]) for each in listed[:NAMED])
    more = f" and {len(listed) - NAMED} more" if len(listed) > NAMED else ""
    return Problem(409, f"you have this already, as {ids}{more}; {what_to_do}", kind="duplicate",
                   duplicates=listed)  # fmt: skip


def register_of(site: Site, feeds: TheFeeds) -> Register:
    """All that is known. EngineStopped: no engine runs here, so nothing is."""
    register: Register = feeds.register
    assert register.brain is site.engine.brain
    return register


def usable_url(url: str, allowed: Allowed) -> str:
    """In its plain form. ValueError or Refused: it may not be called, or is no address."""
    plain = plain_url(url)
    check_url(plain, allowed)
    return plain


@contextmanager
def one_address() -> Iterator[None]:
    """What is wrong with the one that was sent."""
    try:
        yield
    except (ValueError, Refused) as error:
        errors = [{"where": "body.url", "what": str(error)}]
        raise Problem(422, f"body.url: {error}", kind="bad-feed", errors=errors) from error


# ---------------------------------------------------------------------- looking


@router.get(
    PATH,
    summary="List your feeds",
    operation_id="listFeeds",
    response_class=Reply,
    responses={200: {"model": FeedList}, **documented()},
)
def list_feeds(
    site: TheSite,
    feeds: TheFeeds,
    principal: Reader,
    folder: Annotated[
        str | None,
        Query(max_length=1_000, description="Those in this folder or below it; empty: in none."),
    ] = None,
    status: Annotated[FeedStatus | None, Query(description="Those in this state.")] = None,
    q: Annotated[str, Query(max_length=200, description="In the title or the address.")] = "",
) -> Response:
    register, tenant = register_of(site, feeds), owner(principal)
    found = (
        each
        for each in register.of_tenant(tenant)
        if folder is None or is_below(each.folder, folder_path(folder))
        if _is_meant(feeds, each, status, q.strip().casefold())
    )
    return Reply({"feeds": shown(site, feeds, tenant, found)})


def _is_meant(feeds: TheFeeds, subscription: Subscription, status: str | None, text: str) -> bool:
    row = feeds.register.sources.get(subscription.source)
    if row is None or status not in (None, status_of(subscription, row)):
        return False
    return text in title_of(subscription, row).casefold() or text in row.url.casefold()


@router.get(
    PATH + "/{id}",
    summary="Look at a feed",
    operation_id="getFeed",
    response_class=Reply,
    responses={200: {"model": FeedModel}, **documented(404)},
)
def get_feed(id: ThisFeed, site: TheSite, feeds: TheFeeds, principal: Reader) -> Response:
    register_of(site, feeds)
    return Reply(feed_shown(site, feeds, owner(principal), id))


# ---------------------------------------------------------------------- adding


@router.post(
    PATH,
    status_code=201,
    summary="Subscribe to a feed, or to several",
    operation_id="addFeeds",
    response_class=Reply,
    responses={201: {"model": FeedModel | FeedList}, **documented(409)},
)
def add_feeds(body: Feeds, site: TheSite, feeds: TheFeeds, principal: Submitter) -> Response:
    """All of them or none. It is fetched at once, and its articles are there as soon as the site
    has answered. With 409 the answer names in `duplicates` what is there already.
    """
    tenant = owner(principal)
    listed = body if isinstance(body, list) else [body]
    wanted = _wanted(listed, Allowed(site.config.outbound_allow), isinstance(body, list))
    brain, limit = site.engine.brain, feeds.settings.max_feeds

    def add(now: float) -> list[Subscription]:
        room = max(0, limit - len(feeds.register.of_tenant(tenant)))
        if len(wanted) > room:
            raise Problem(409, f"a tenant has at most {limit} feeds, and you have room for {room} "
                          "more; remove some, or let the operator raise max_feeds",
                          kind="too-many-feeds")  # fmt: skip
        made = feeds.register.subscribe(tenant, wanted, now)
        for each in made:
            brain.record(now, "feed_add", subject=f"feed:{each.id}", detail=host_of(each.url))
        return made

    try:
        made = in_own_name(site, principal, add)
    except Duplicates as error:
        advice = "nothing was added. Leave out what is there, or change it instead"
        raise duplicate(error, advice) from error
    if not isinstance(body, list):
        (only,) = made
        headers = {"Location": f"{PATH}/{only.id}"}
        return Reply(feed_shown(site, feeds, tenant, only.id), 201, headers=headers)
    return Reply({"feeds": shown(site, feeds, tenant, made)}, 201)


def _wanted(listed: Sequence[FeedBody], allowed: Allowed, several: bool) -> list[Wanted]:
    """Problem: says of each that is wrong what is."""
    wanted: list[Wanted] = []
    errors: list[dict[str, str]] = []
    for place, each in enumerate(listed):
        try:
            url = usable_url(each.url, allowed)
        except (ValueError, Refused) as error:
            where = f"body.list.{place}.url" if several else "body.url"
            errors.append({"where": where, "what": str(error)})
            continue
        id = str(uuid4()) if each.id is None else str(each.id)
        wanted.append(
            Wanted(
                id, url, _title(each.title), folder_path(each.folder or ""),
                each.refresh_interval * MINUTE_S, each.adaptive, each.paused,
            )
        )  # fmt: skip
    if errors:
        first = errors[0]
        raise Problem(422, f"{first['where']}: {first['what']}; nothing was added",
                      kind="bad-feed", errors=errors[:MAX_ERRORS])  # fmt: skip
    return wanted


def _title(said: str | None) -> str | None:
    return one_line(said, MAX_NAME)


# ---------------------------------------------------------------------- changing


@router.patch(
    PATH + "/{id}",
    summary="Change a feed",
    operation_id="changeFeed",
    response_class=Reply,
    responses={200: {"model": FeedModel}, **documented(404, 409)},
)
def change_feed(
    id: ThisFeed, body: FeedChangeBody, site: TheSite, feeds: TheFeeds, principal: Submitter
) -> Response:
    """What is left out stays. The next refresh follows the new interval at once."""
    return _changed(id, body, site, feeds, principal)


@router.patch(
    PATH,
    summary="Change a feed that the body names",
    operation_id="changeNamedFeed",
    response_class=Reply,
    responses={200: {"model": FeedModel}, **documented(404, 409)},
)
def change_named_feed(
    body: NamedFeedChangeBody, site: TheSite, feeds: TheFeeds, principal: Submitter
) -> Response:
    return _changed(str(body.id), body, site, feeds, principal)


# How what was sent is kept, by its name.
_KEPT: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "title": ("title", _title),
    "folder": ("folder", lambda said: folder_path(said or "")),
    "refresh_interval": ("interval_s", lambda said: said * MINUTE_S),
    "adaptive": ("adaptive", int),
    "paused": ("paused", int),
}


def _changed(
    id: str, body: FeedChangeBody, site: Site, feeds: TheFeeds, principal: Principal
) -> Response:
    tenant = owner(principal)
    sent = {name: getattr(body, name) for name in body.model_fields_set - {"id"}}
    url = ""
    if "url" in sent:
        with one_address():
            url = usable_url(sent.pop("url"), Allowed(site.config.outbound_allow))
    changes = {_KEPT[name][0]: _KEPT[name][1](said) for name, said in sent.items()}
    said = ", ".join(sorted(sent) + ([f"url at {host_of(url)}"] if url else []))
    register, brain = feeds.register, site.engine.brain

    def change(now: float) -> None:
        if (tenant, id) not in register.subscriptions:
            raise unknown(id)
        if url:
            register.repoint((tenant, id), url, now)
        register.change((tenant, id), now, **changes)
        brain.record(now, "feed_change", subject=f"feed:{id}", detail=said)

    try:
        in_own_name(site, principal, change)
    except Duplicates as error:
        advice = "nothing was changed. Remove one of the two, or leave the address as it is"
        raise duplicate(error, advice) from error
    return Reply(feed_shown(site, feeds, tenant, id))


# ---------------------------------------------------------------------- removing


@router.delete(
    PATH + "/{id}",
    summary="Remove a feed",
    operation_id="removeFeed",
    response_class=Reply,
    responses={200: {"model": FeedRemoved}, **documented(404)},
)
def remove_feed(id: ThisFeed, site: TheSite, feeds: TheFeeds, principal: Submitter) -> Response:
    """With its articles and marks, for you. Nobody fetches it any more, unless others read it."""
    return _removed(id, site, feeds, principal)


@router.delete(
    PATH,
    summary="Remove a feed that the query names",
    operation_id="removeNamedFeed",
    response_class=Reply,
    responses={200: {"model": FeedRemoved}, **documented(404)},
)
def remove_named_feed(
    id: NamedFeed, site: TheSite, feeds: TheFeeds, principal: Submitter
) -> Response:
    return _removed(id, site, feeds, principal)


def _removed(id: str, site: Site, feeds: TheFeeds, principal: Principal) -> Response:
    tenant = owner(principal)
    brain = site.engine.brain
    numbers = numbers_of(feeds.store, tenant, id).get(id)

    def remove(now: float) -> None:
        if (tenant, id) not in feeds.register.subscriptions:
            raise unknown(id)
        gone = feeds.register.unsubscribe((tenant, id), now)
        brain.record(now, "feed_remove", subject=f"feed:{id}", detail=host_of(gone.url))

    in_own_name(site, principal, remove)
    return Reply({"articles_deleted": 0 if numbers is None else numbers.articles,
                  "feed_deleted": True})  # fmt: skip
