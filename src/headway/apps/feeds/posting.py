"""Articles that a client has parsed itself. They have the same identities as those of the refresh.

What the site has published under an identity is what counts, so nobody can change what others read.
All else is the tenant's own, and seen by nobody else, until the site says the same: then the tenant
has that one, with the marks of its own. What a tenant has seen and let go does not come back only
because a client sends it once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from headway.apps.feeds.identity import distinct
from headway.apps.feeds.model import Subscription
from headway.apps.feeds.parsing.model import ParsedEntry
from headway.apps.feeds.parsing.sanitising import html_as_text
from headway.apps.feeds.rules import PLAIN, Rule, Verdict, judge, readable
from headway.apps.feeds.storing import (
    DAY_S,
    SHARED,
    Known,
    keep,
    known,
    owner_name,
    sorted_at,
)
from headway.apps.feeds.tables import (
    ANNOUNCE,
    ARTICLES,
    REAL,
    TEXT,
    WHOLE,
)
from headway.store import Store
from headway.store.tables import Table, Write

AT_ONCE = 500  # articles in one question

# A row is that of an entry, with an article of the tenant's own, or of the site. If the site has
# said the same meanwhile, its article is taken; if the feed is gone, nothing is.
ADD_POSTED = Write(
    sqlite="insert into feed_entries (tenant, feed, article, at, seen_at, is_read, is_starred, "
    "changed_at) select given.value ->> 0, given.value ->> 1, coalesce((select twin.id "
    "from feed_articles as own join feed_articles as twin on twin.source = own.source "
    "and twin.owner = '' and twin.identity = own.identity where own.id = given.value ->> 2), "
    "given.value ->> 2), given.value ->> 3, given.value ->> 4, given.value ->> 5, "
    "given.value ->> 6, given.value ->> 7 from jsonb_each(?1) as given where exists (select 1 "
    "from feed_subscriptions as theirs where theirs.tenant = given.value ->> 0 "
    "and theirs.id = given.value ->> 1) on conflict (tenant, feed, article) do nothing",
    postgres="insert into feed_entries (tenant, feed, article, at, seen_at, is_read, is_starred, "
    "changed_at) select given.cells ->> 0, given.cells ->> 1, coalesce((select twin.id "
    "from feed_articles as own join feed_articles as twin on twin.source = own.source "
    "and twin.owner = '' and twin.identity = own.identity "
    "where own.id = (given.cells ->> 2)::bigint), (given.cells ->> 2)::bigint), "
    "(given.cells ->> 3)::double precision, (given.cells ->> 4)::double precision, "
    "(given.cells ->> 5)::bigint, (given.cells ->> 6)::bigint, "
    "(given.cells ->> 7)::double precision "
    "from jsonb_array_elements($1) with ordinality as given (cells, place) where exists (select 1 "
    "from feed_subscriptions as theirs where theirs.tenant = given.cells ->> 0 "
    "and theirs.id = given.cells ->> 1) order by given.place "
    "on conflict (tenant, feed, article) do nothing",
    types=(TEXT, TEXT, WHOLE, REAL, REAL, WHOLE, WHOLE, REAL),
    name="entries of what was posted",
)
SENT_AGAIN = Table(
    ARTICLES.name, {"id": WHOLE, "changed_at": REAL}, ("id",)
).change("changed_at")  # fmt: skip


class Posting(NamedTuple):
    entry: ParsedEntry
    is_read: bool = False  # these two count for what is new alone
    is_starred: bool = False


class Posted(NamedTuple):
    saved: int = 0
    updated: int = 0
    unchanged: int = 0
    dropped: int = 0  # by a rule of the tenant

    def plus(self, other: Posted) -> Posted:
        return Posted(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class Poster:
    """For one feed of one tenant."""

    def __init__(
        self, store: Store, subscription: Subscription, rules: Sequence[Rule], keep_days: float
    ) -> None:
        self._store = store
        self._feed = subscription
        self._rules = rules
        self._keep_s = keep_days * DAY_S

    def post(self, postings: Sequence[Posting], now: float) -> Posted:
        """Doing it again changes nothing."""
        source, owner = self._feed.source, owner_name(self._feed.tenant)
        given = self._distinct(postings)
        shared = known(self._store, source, list(given), SHARED)
        own = known(self._store, source, list(given), owner)
        seen = self._seen([each.id for each in (*shared.values(), *own.values())])
        to_keep: list[str] = []  # as own articles
        to_give: dict[str, Verdict] = {}
        dropped = 0
        for name, posting in given.items():
            article = shared.get(name) or own.get(name)
            there = any(name in those and those[name].id in seen for those in (shared, own))
            if article is not None and not there and not self._is_new(article, now):
                continue  # its tenant has let it go
            verdict = PLAIN if there else self._judged(posting.entry)
            if verdict.dropped:
                dropped += 1
                continue
            if name not in shared:
                to_keep.append(name)
            if not there:
                to_give[name] = verdict
        stored = keep(self._store, source, [given[name].entry for name in to_keep], now, owner)
        found = {**known(self._store, source, list(to_give), owner), **shared}
        rows = [
            self._row(found[name], given[name], verdict, now) for name, verdict in to_give.items()
        ]
        again = [(each.id, now) for each in own.values() if now - each.changed_at >= DAY_S]
        self._give(rows, {each.id for each in shared.values()}, again)
        saved, updated = len(rows), stored.changed
        return Posted(saved, updated, len(postings) - saved - updated - dropped, dropped)

    # ------------------------------------------------------------------ how

    def _distinct(self, postings: Sequence[Posting]) -> dict[str, Posting]:
        by_entry = {id(each.entry): each for each in postings}
        entries = distinct(each.entry for each in postings)
        return {name: by_entry[id(entry)] for name, entry in entries.items()}

    def _judged(self, entry: ParsedEntry) -> Verdict:
        if not self._rules:
            return PLAIN
        text = readable(
            title=entry.title, author=entry.author, link=entry.link, categories=entry.categories,
            text=html_as_text(entry.content or entry.summary or ""),
        )  # fmt: skip
        return judge(self._rules, self._feed.id, self._feed.folder, text)

    def _seen(self, numbers: Sequence[int]) -> set[int]:
        """Those of the articles that the feed has."""
        found: set[int] = set()
        for start in range(0, len(numbers), AT_ONCE):
            some = numbers[start : start + AT_ONCE]
            rows = self._store.rows(
                "select article from feed_entries where tenant = ? and feed = ? "
                f"and article in ({', '.join('?' * len(some))})",
                (*self._feed.name, *some),
            )
            found.update(article for (article,) in rows)
        return found

    def _is_new(self, article: Known, now: float) -> bool:
        """Whether the feed never had it. Else somebody has let it go."""
        feed = self._feed
        if self._keep_s and article.first_seen_at < now - self._keep_s:
            return False
        if article.first_seen_at < feed.created_at:
            return True
        if article.is_own:  # its entry was to come with it, and something came in between
            return not article.announced
        return feed.paused_at is not None and article.first_seen_at >= feed.paused_at

    def _row(
        self, article: Known, posting: Posting, verdict: Verdict, now: float
    ) -> tuple[Any, ...]:
        return (
            *self._feed.name, article.id, sorted_at(posting.entry, now), now,
            int(posting.is_read or verdict.is_read),
            int(posting.is_starred or verdict.is_starred), now,
        )  # fmt: skip

    def _give(
        self, rows: list[tuple[Any, ...]], shared: set[int], again: list[tuple[int, float]]
    ) -> None:
        """What clients still send stays known, also what its tenant has let go."""
        rows.sort(key=lambda row: row[3])
        own = [(row[2], 1) for row in rows if row[2] not in shared]
        writes = [(ADD_POSTED, rows), (ANNOUNCE, own), (SENT_AGAIN, again)]
        if rows or again:
            self._store.write([(write, some) for write, some in writes if some])
