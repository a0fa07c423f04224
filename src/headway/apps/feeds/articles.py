"""Articles as a tenant has them: which there are, and what it does with them.

Whose they are stands in every query. What a tenant calls an article is its entry: the number of
that grows in the order in which articles have come. Lists are sorted by when an article appeared,
as it says, and then by number; neither ever changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from headway.apps.feeds.marking import Marks, in_parts, mark
from headway.apps.feeds.searching import Condition, condition_of
from headway.apps.feeds.tables import WHOLE
from headway.store import Store
from headway.store.tables import Write

Order = Literal["newest", "oldest", "arrived"]

AT_ONCE = 1_000  # rows in one transaction
SHOWN_S = 1e-6  # times are shown so exactly, and may come back a little smaller than they were
LONG_AGO = -1e300  # no article is from before this
EXCERPT_OF = 4_000  # characters of HTML that the beginning of a text is made from

# A row is (entry): of somebody who has read it, unless that has just changed.
DROP_READ = Write(
    sqlite="delete from feed_entries where is_read = 1 and is_starred = 0 and id in "
    "(select given.value ->> 0 from jsonb_each(?1) as given)",
    # In these words PostgreSQL needs no statistics to look for each row by its number.
    postgres="delete from feed_entries where is_read = 1 and is_starred = 0 and id = any (array("
    "select (given.cells ->> 0)::bigint from jsonb_array_elements($1) as given (cells)))",
    types=(WHOLE,),
    name="entries that are read and old",
    table="feed_entries",
)

_DIRECTIONS: dict[Order, tuple[str, str]] = {
    # how to sort, and what comes after a place in the list
    "newest": ("{0}.at desc, {0}.id desc", "(e.at, e.id) < (?, ?)"),
    "oldest": ("{0}.at, {0}.id", "(e.at, e.id) > (?, ?)"),
    "arrived": ("{0}.id", "e.id > ?"),
}


class Wanted(NamedTuple):
    """Which articles. None and "" leave it open."""

    feed: str | None = None
    folder: str | None = None  # with those inside of it
    unread: bool | None = None
    starred: bool | None = None
    search: str = ""
    since_id: int | None = None  # only what has come after this one
    before_id: int | None = None  # only up to this one
    before_at: float | None = None  # only what had come by then


class Place(NamedTuple):
    """The last article of a page; the next page begins after it."""

    at: float
    id: int


class Article(NamedTuple):
    id: int
    feed: str
    at: float
    seen_at: float
    is_read: int
    is_starred: int
    changed_at: float
    title: str | None
    link: str | None
    author: str | None
    published_at: float | None
    updated_at: float | None
    enclosures: str  # JSON
    categories: str  # JSON
    beginning: str | None  # of its summary or its text, in HTML
    content: str | None  # None also if nobody wants it


_ARTICLE = (
    "e.id, e.feed, e.at, e.seen_at, e.is_read, e.is_starred, e.changed_at, a.title, a.link, "
    "a.author, a.published_at, a.updated_at, a.enclosures, a.categories, "
    f"substr(coalesce(a.summary, a.content), 1, {EXCERPT_OF}), "
)
_CONTENT = {True: "coalesce(a.content, a.summary)", False: "null"}


# ---------------------------------------------------------------------- looking


def listed(
    store: Store, tenant: str, wanted: Wanted, order: Order, *, size: int, offset: int = 0,
    after: Place | None = None, content: bool = False,
) -> list[Article]:  # fmt: skip
    """One page. Texts are read only for what is on it."""
    where = _where(store, tenant, wanted)
    sort, beyond = _DIRECTIONS[order]
    text, values = where
    if after is not None:
        text += f" and {beyond}"
        values = (*values, *((after.id,) if order == "arrived" else after))
    rows = store.rows(
        f"select {_ARTICLE}{_CONTENT[content]} from "
        "(select e.id, e.feed, e.article, e.at, e.seen_at, e.is_read, e.is_starred, e.changed_at "
        f"from feed_entries e where {text} order by {sort.format('e')} limit ? offset ?) e "
        f"join feed_articles a on a.id = e.article order by {sort.format('e')}",
        (*values, size, offset),
    )
    return [Article._make(row) for row in rows]


def counted(store: Store, tenant: str, wanted: Wanted) -> int:
    text, values = _where(store, tenant, wanted)
    ((count,),) = store.rows(f"select count(*) from feed_entries e where {text}", values)
    return int(count)


def one(store: Store, tenant: str, id: int, *, content: bool = True) -> Article | None:
    rows = store.rows(
        f"select {_ARTICLE}{_CONTENT[content]} from feed_entries e "
        "join feed_articles a on a.id = e.article where e.id = ? and e.tenant = ?",
        (id, tenant),
    )
    return Article._make(rows[0]) if rows else None


class Counts(NamedTuple):
    total: int = 0
    unread: int = 0
    starred: int = 0
    today: int = 0


def stats(store: Store, tenant: str, midnight: float) -> dict[str, Counts]:
    """By feed; `today` is what appeared since this moment. Each is counted in an index of its own:
    without the `|| ''` SQLite would take one that has the feeds in order, and read everything; so
    it would for what is starred, if no time were named.
    """
    found: dict[str, Counts] = {}
    for name, feeds, condition, values in (
        ("total", "feed", "", ()),
        ("unread", "feed || ''", " and is_read = 0", ()),
        ("starred", "feed || ''", " and is_starred = 1 and at > ?", (LONG_AGO,)),
        ("today", "feed || ''", " and at >= ?", (midnight,)),
    ):
        for feed, count in store.rows(
            f"select {feeds} as name, count(*) from feed_entries where tenant = ?{condition} "
            "group by name",
            (tenant, *values),
        ):
            found[feed] = found.get(feed, Counts())._replace(**{name: int(count)})
    return found


def _where(store: Store, tenant: str, wanted: Wanted) -> Condition:
    parts = ["e.tenant = ?"]
    values: list[Any] = [tenant]

    def add(text: str, *more: Any) -> None:
        parts.append(text)
        values.extend(more)

    if wanted.feed is not None:
        add("e.feed = ?", wanted.feed)
    if wanted.folder is not None:
        inside = f"{wanted.folder}/"
        add("e.feed in (select s.id from feed_subscriptions s where s.tenant = ? "
            "and (s.folder = ? or substr(s.folder, 1, ?) = ?))",
            tenant, wanted.folder, len(inside), inside)  # fmt: skip
    if wanted.unread is not None:  # as it stands in the index
        add(f"e.is_read = {int(not wanted.unread)}")
    if wanted.starred is not None:
        add(f"e.is_starred = {int(wanted.starred)}")
    if wanted.since_id is not None:
        add("e.id > ?", wanted.since_id)
    if wanted.before_id is not None:
        add("e.id <= ?", wanted.before_id)
    if wanted.before_at is not None:
        add("e.seen_at <= ?", wanted.before_at + SHOWN_S)
    if wanted.search.strip():
        found = condition_of(wanted.search, store.dialect)
        add(found.text, *found.values)
    return Condition(" and ".join(parts), tuple(values))


# ---------------------------------------------------------------------- marking


class Marked(NamedTuple):
    changed: int
    unchanged: int
    not_found: int


def mark_some(store: Store, tenant: str, ids: Sequence[int], marks: Marks, now: float) -> Marked:
    """What is somebody else's is not found."""
    asked = list(dict.fromkeys(ids))
    found = 0
    wrong: list[int] = []
    for some in in_parts(asked, AT_ONCE):
        names = ", ".join("?" * len(some))
        rows = store.rows(
            "select id, is_read, is_starred from feed_entries "
            f"where tenant = ? and id in ({names})",
            (tenant, *some),
        )
        found += len(rows)
        wrong += [id for id, *has in rows if _differ(marks, has)]
    mark(store, tenant, wrong, marks, now)
    return Marked(len(wrong), found - len(wrong), len(asked) - found)


def mark_read(store: Store, tenant: str, wanted: Wanted, now: float) -> int:
    """All that is there now and unread; what comes meanwhile stays so. How many that were."""
    text, values = _where(store, tenant, wanted._replace(unread=True))
    ids = [id for (id,) in store.rows(f"select e.id from feed_entries e where {text}", values)]
    mark(store, tenant, ids, Marks(is_read=True), now)
    return len(ids)


def _differ(marks: Marks, has: Sequence[int]) -> bool:
    pairs = zip(marks, has, strict=True)
    return any(wanted is not None and int(wanted) != there for wanted, there in pairs)


# ---------------------------------------------------------------------- dropping


def drop_read(
    store: Store, before: float, tenant: str | None = None,
    note: Callable[[int], None] = lambda _: None,
) -> int:  # fmt: skip
    """What is read and not starred, and both came and appeared before this. How many that were."""
    count = 0
    whose, names = ("", ()) if tenant is None else (" and tenant = ?", (tenant,))
    query = (
        "select id from feed_entries where id > ? and is_read = 1 and is_starred = 0 "
        f"and at < ? and seen_at < ?{whose} order by id limit ?"
    )
    for some in pages(store, query, (before, before, *names)):
        store.write([(DROP_READ, some)])
        count += len(some)
        note(count)
    return count


def pages(store: Store, query: str, values: tuple[Any, ...]) -> Iterator[list[tuple[Any, ...]]]:
    """All rows of a query about what has a number above the first value, in the order of these."""
    last = 0
    while rows := store.rows(query, (last, *values, AT_ONCE)):
        yield rows
        last = rows[-1][0]
