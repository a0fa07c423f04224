"""Items of streams: which ones, in pages, and what is in them.

Items come in the order in which they appeared, which is that of their numbers. A page ends at a
number and the next one begins there, so nothing is lost or seen twice while new items come.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from headway.apps.feeds.catalog import Name
from headway.apps.feeds.greader.asking import Asked
from headway.apps.feeds.greader.errors import bad
from headway.apps.feeds.greader.ids import (
    ALL,
    FEED,
    LABEL,
    STATE,
    Kind,
    Stream,
    entry_of,
    long_id,
    short_id,
)
from headway.apps.feeds.marking import in_parts
from headway.apps.feeds.model import Subscription
from headway.apps.feeds.register import Register
from headway.apps.feeds.views import title_of
from headway.net.urls import plain_url
from headway.store import Store

# Times are those of turns, and what a turn has found can be seen a moment later. Whoever asks for
# what came since he was last here is given a little more, so that nothing falls in between.
OVERLAP_S = 30.0
FEW, MOST_ITEMS, MOST_IDS = 20, 1_000, 10_000
AT_ONCE = 500  # items in one question

_ITEMS = (
    "select e.id, e.feed, e.at, e.seen_at, e.is_read, e.is_starred, a.link, a.title, a.author, "
    "coalesce(a.content, a.summary, ''), a.updated_at, a.enclosures, a.categories "
    "from feed_entries e join feed_articles a on a.id = e.article where e.tenant = ? and e.id in "
)
_OF_LABEL = "e.feed in (select id from feed_subscriptions where tenant = ? and folder = ?)"

Clause = tuple[str, tuple[Any, ...]]


class Ref(NamedTuple):
    """An item, before anybody looks inside."""

    entry: int
    feed: str
    seen_at: float


class Page(NamedTuple):
    refs: list[Ref]
    continuation: str = ""  # empty: this was the last one


class Reading:
    """What one tenant can read; for one request."""

    def __init__(self, store: Store, register: Register, tenant: str) -> None:
        self._store = store
        self._register = register
        self.tenant = tenant

    # ------------------------------------------------------------------ feeds

    def subscription(self, name: str) -> Subscription | None:
        """By its id, or by its address."""
        found = self._register.subscriptions.get((self.tenant, name))
        return found or self.subscription_at(name)

    def subscription_at(self, url: str) -> Subscription | None:
        try:
            url = plain_url(url)
        except ValueError:
            return None
        source = self._register.source_at(url)
        if source is not None:
            for each in self._register.subscribers(source.id):
                if each.tenant == self.tenant:
                    return each
        name = self._by_url.get(url)
        return None if name is None else self._register.subscriptions.get(name)

    @cached_property
    def _by_url(self) -> dict[str, Name]:
        """As they were subscribed to; meanwhile some may have moved."""
        return {each.url: each.name for each in self.subscriptions()}

    def subscriptions(self) -> list[Subscription]:
        return self._register.of_tenant(self.tenant)

    def title(self, subscription: Subscription) -> str:
        return title_of(subscription, self._register.sources.get(subscription.source))

    def site_link(self, subscription: Subscription) -> str:
        source = self._register.sources.get(subscription.source)
        return (source and source.site_link) or subscription.url

    # ------------------------------------------------------------------ which items

    def page(self, asked: Asked, streams: list[Stream], usual: int, most: int) -> Page:
        """Of all that is in any of these streams, what is asked for."""
        size = int(min(max(asked.number("n", usual), 1), most))
        oldest_first = asked.one("r") == "o"
        clauses = [self.any_of(streams), *self._narrowed(asked)]
        if continuation := asked.one("c"):
            last = entry_of(continuation)
            if not last:
                raise bad("c is not the continuation of an answer; leave it out to begin anew")
            clauses.append(("e.id > ?" if oldest_first else "e.id < ?", (last,)))
        refs = self.select(clauses, "" if oldest_first else "desc", size + 1)
        if len(refs) <= size:
            return Page(refs)
        return Page(refs[:size], short_id(refs[size - 1].entry))

    def select(self, clauses: Iterable[Clause], order: str, limit: int) -> list[Ref]:
        parts = list(clauses)
        texts = [text for text, _ in parts]
        values = [value for _, some in parts for value in some]
        rows = self._store.rows(
            "select e.id, e.feed, e.seen_at from feed_entries e "
            f"where e.tenant = ? and {' and '.join(texts)} order by e.id {order} limit ?",
            (self.tenant, *values, limit),
        )
        return [Ref._make(row) for row in rows]

    def _narrowed(self, asked: Asked) -> list[Clause]:
        clauses = [self.clause(each) for each in asked.streams("it")]
        for each in asked.streams("xt"):
            text, values = self.clause(each)
            clauses.append((f"not ({text})", values))
        since, until = asked.since("ot"), asked.until("nt")
        if since is not None:
            clauses.append(("e.seen_at >= ?", (since - OVERLAP_S,)))
        if until is not None:
            clauses.append(("e.seen_at < ?", (until,)))
        return clauses

    def any_of(self, streams: list[Stream]) -> Clause:
        clauses = [self.clause(each) for each in streams or [ALL]]
        text = " or ".join(f"({text})" for text, _ in clauses)
        return f"({text})", tuple(value for _, values in clauses for value in values)

    def clause(self, stream: Stream) -> Clause:
        """The condition of being in a stream. In one that never was there is nothing."""
        match stream.kind:
            case Kind.ALL:
                return "true", ()
            case Kind.READ:
                return "e.is_read = 1", ()
            case Kind.UNREAD:
                return "e.is_read = 0", ()
            case Kind.STARRED:
                return "e.is_starred = 1", ()
            case Kind.LABEL:
                return _OF_LABEL, (self.tenant, stream.name)
            case Kind.FEED:
                found = self.subscription(stream.name)
                return ("false", ()) if found is None else ("e.feed = ?", (found.id,))
            case Kind.OTHER:
                return "false", ()

    # ------------------------------------------------------------------ what is in them

    def items(self, entries: list[int]) -> list[dict[str, Any]]:
        """In this order, without those that this tenant does not have."""
        found: dict[int, dict[str, Any]] = {}
        for some in in_parts(entries, AT_ONCE):
            marks = ", ".join("?" * len(some))
            for row in self._store.rows(f"{_ITEMS}({marks})", (self.tenant, *some)):
                found[row[0]] = self._item(*row)
        return [found[entry] for entry in entries if entry in found]

    def _item(
        self, entry: int, feed: str, at: float, seen_at: float, is_read: int, is_starred: int,
        link: str | None, title: str | None, author: str | None, html: str,
        updated_at: float | None, enclosures: str, categories: str,
    ) -> dict[str, Any]:  # fmt: skip
        subscription = self._register.subscriptions.get((self.tenant, feed))
        origin = {"streamId": FEED + feed, "title": "", "htmlUrl": ""}
        tags = [STATE + "reading-list"]
        if is_read:
            tags.append(STATE + "read")
        if is_starred:
            tags.append(STATE + "starred")
        if subscription is not None:
            origin["title"] = self.title(subscription)
            origin["htmlUrl"] = self.site_link(subscription)
            if subscription.folder:
                tags.append(LABEL + subscription.folder)
        href = link or origin["htmlUrl"]
        return {
            "id": long_id(entry),
            "crawlTimeMsec": microseconds(seen_at)[:-3],
            "timestampUsec": microseconds(seen_at),
            "published": int(at),
            "updated": int(at if updated_at is None else updated_at),
            "title": title or "",
            "author": author or "",
            "canonical": [{"href": href}],
            "alternate": [{"href": href, "type": "text/html"}],
            "summary": {"direction": "ltr", "content": html},
            "categories": [*tags, *msgspec.json.decode(categories)],
            "enclosure": [_enclosure(each) for each in msgspec.json.decode(enclosures)],
            "origin": origin,
        }


def microseconds(at: float) -> str:
    return str(int(at * 1_000_000))


def _enclosure(said: dict[str, Any]) -> dict[str, Any]:
    found = {"href": said["url"], "type": said.get("type") or ""}
    if said.get("length") is not None:
        found["length"] = said["length"]
    return found
