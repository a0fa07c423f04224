"""Articles of a source: which are new, which have changed, and what is kept of them.

They are written before the run that found them ends, in transactions of their own: a long text has
no business in the brain's turn. Nobody sees them before that end gives their readers entries. What
a crash leaves between the two is found again by the next run, as `announced` says.

Of each source it is kept which articles its last document had, and which it has lost of late. Those
must stay known, also when nobody reads them any more, or they would come back as new.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from headway.apps.feeds.identity import distinct
from headway.apps.feeds.parsing.model import ParsedEntry
from headway.apps.feeds.parsing.sanitising import html_as_text
from headway.apps.feeds.rules import Readable, readable
from headway.apps.feeds.searching import spaced
from headway.apps.feeds.tables import ADD_ARTICLE, CHANGE_ARTICLE, PUT_DOCUMENT, PUT_SEARCH
from headway.store import Store
from headway.store.tables import Rows, Write, Writes

SHARED = ""  # the owner of what a site has published
POSTED_BY = "by:"  # else it is this with the tenant that has posted it, and that alone sees it
AT_ONCE = 500  # identities in one question
CHUNK_CHARACTERS = 500_000  # of articles in one transaction, so that nobody waits long
EARLIEST = -62_135_596_800.0  # the year 1: what lies before it is no date
DAY_S = 86_400.0
LONG_DAYS = 3  # that an article was in the document
BACK_WITHIN_DAYS = 14  # after it was lost; later it is a new one

_encode = msgspec.json.encode


class Known(NamedTuple):
    id: int
    hash: str
    announced: int
    first_seen_at: float
    changed_at: float
    is_own: bool  # of a tenant, and not of the site


class Arrival(NamedTuple):
    """An article that readers are to see for the first time."""

    article: int
    at: float  # what it is sorted by: never in the future, and never changed
    seen_at: float  # when it came here; another run may have found it, and died
    text: Readable


class Stored(NamedTuple):
    entries: int  # of the document
    arrivals: tuple[Arrival, ...] = ()  # the oldest first
    changed: int = 0
    # Articles that tenants had posted before the site said the same: (tenant, theirs, ours).
    twins: tuple[tuple[str, int, int], ...] = ()
    articles: tuple[int, ...] = ()  # all of the document


def known(
    store: Store, source: int, identities: Sequence[str], owner: str = SHARED
) -> dict[str, Known]:
    found: dict[str, Known] = {}
    for some in _some(identities):
        marks = ", ".join("?" * len(some))
        rows = store.rows(
            "select identity, id, hash, announced, first_seen_at, changed_at from feed_articles "
            f"where source = ? and owner = ? and identity in ({marks})",
            (source, owner, *some),
        )
        is_own = owner != SHARED
        found.update((name, Known._make((*facts, is_own))) for name, *facts in rows)
    return found


def keep(
    store: Store, source: int, entries: Iterable[ParsedEntry], now: float, owner: str = SHARED
) -> Stored:
    """Write what is new or has changed. Doing it again changes nothing."""
    # A document has its newest entry first, also when it does not say so.
    oldest_first = reversed(distinct(entries).items())
    wanted = {identity: _Entry(each) for identity, each in oldest_first}
    there = known(store, source, list(wanted), owner)
    new = [identity for identity in wanted if identity not in there]
    changed = [name for name, each in there.items() if each.hash != wanted[name].hash]
    last = document_writes(store, source, wanted, now) if owner == SHARED else []
    for chunk in _chunks([(name, wanted[name]) for name in (*new, *changed)]):
        store.write([*_writes(source, owner, chunk, there, now), *last])
        last = []
    if last:
        store.write(last)
    if new:
        there.update(known(store, source, new, owner))
    unseen = [name for name in wanted if name in there and not there[name].announced]
    arrivals = [
        Arrival(
            there[name].id, sorted_at(wanted[name].entry, now), there[name].first_seen_at,
            wanted[name].readable(),
        )
        for name in unseen
    ]  # fmt: skip
    arrivals.sort(key=lambda each: each.at)
    twins = _twins(store, source, there, unseen) if owner == SHARED and unseen else ()
    articles = tuple(there[name].id for name in wanted if name in there)
    return Stored(len(wanted), tuple(arrivals), len(changed), twins, articles)


def sorted_at(entry: ParsedEntry, now: float) -> float:
    """When it appeared: as it says, but not in the future; now, if it does not say."""
    dated = _moment(entry.dated)
    return now if dated is None else min(dated, now)


def owner_name(tenant: str) -> str:
    """Of what a tenant posts. Whoever is bound to no tenant shares nothing by that."""
    return f"{POSTED_BY}{tenant}"


# ---------------------------------------------------------------------- documents


class Document(msgspec.Struct, array_like=True):
    """Articles by a short form of their identity, with days. What is lost after hours, as all is
    in a busy feed, does not come back; what stood there for long may, when the site is well again.
    """

    there: dict[str, int]  # in the last one that was read, since this day
    lost: dict[str, int] = {}  # there for long, and not any more since this day

    def has(self, identity: str, now: float) -> bool:
        """Also one that it has lost of late."""
        name = short(identity)
        lost_at = self.lost.get(name, 0)
        return name in self.there or now // DAY_S - lost_at <= BACK_WITHIN_DAYS

    def then(self, identities: Iterable[str], now: float) -> Document:
        """After the next one was read."""
        day = int(now // DAY_S)
        there = {
            name: self.there.get(name, 0 if name in self.lost else day)
            for name in map(short, identities)
        }
        gone = {name: day for name, since in self.there.items() if day - since >= LONG_DAYS}
        lost = {
            name: at
            for name, at in {**gone, **self.lost}.items()
            if name not in there and day - at <= BACK_WITHIN_DAYS
        }
        return Document(there, lost)


_document = msgspec.json.Decoder(Document)


def short(identity: str) -> str:
    return blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def documents(store: Store, sources: Sequence[int]) -> dict[int, Document]:
    """Of those sources that were ever read."""
    marks = ", ".join("?" * len(sources))
    rows = store.rows(
        f"select source, articles from feed_documents where source in ({marks})", sources
    )
    return {source: _document.decode(articles) for source, articles in rows}


def document_writes(
    store: Store, source: int, identities: Iterable[str], now: float
) -> list[tuple[Write, Rows]]:
    """Nothing, if it has the same articles as before."""
    before = documents(store, [source]).get(source)
    after = (before or Document({})).then(identities, now)
    return [] if after == before else [(PUT_DOCUMENT, [(source, _encode(after).decode())])]


# ---------------------------------------------------------------------- how


class _Entry:
    """An entry, and what is worked out from it once."""

    def __init__(self, entry: ParsedEntry) -> None:
        self.entry = entry
        self.hash = blake2b(_encode(entry), digest_size=16).hexdigest()
        self._text: str | None = None

    @property
    def text(self) -> str:
        if self._text is None:  # `cached_property` would let all threads wait for one lock
            self._text = html_as_text(self.entry.content or self.entry.summary or "")
        return self._text

    def readable(self) -> Readable:
        entry = self.entry
        return readable(
            title=entry.title, author=entry.author, link=entry.link,
            categories=entry.categories, text=self.text,
        )  # fmt: skip

    def facts(self) -> tuple[Any, ...]:
        entry = self.entry
        return (
            entry.link, entry.title, entry.author, entry.summary, entry.content,
            _moment(entry.published), _moment(entry.updated),
        )  # fmt: skip

    def marks(self) -> tuple[str, str, str]:
        enclosures = _encode(self.entry.enclosures).decode()
        return self.hash, enclosures, _encode(self.entry.categories).decode()


def _chunks(entries: list[tuple[str, _Entry]]) -> Iterator[list[tuple[str, _Entry]]]:
    """Of about the same size."""
    chunk: list[tuple[str, _Entry]] = []
    size = 0
    for name, each in entries:
        chunk.append((name, each))
        size += len(each.text) + len(each.entry.content or "") + len(each.entry.summary or "")
        if size >= CHUNK_CHARACTERS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _writes(
    source: int, owner: str, chunk: list[tuple[str, _Entry]], there: dict[str, Known], now: float
) -> Writes:
    added: list[tuple[Any, ...]] = []
    altered: list[tuple[Any, ...]] = []
    searched: list[tuple[Any, ...]] = []
    for name, each in chunk:
        key = (source, owner, name)
        if name in there:
            altered.append((*key, *each.facts(), now, *each.marks()))
        else:
            added.append((*key, *each.facts(), now, now, *each.marks(), 0))
        searched.append((*key, spaced(each.entry.title or ""), spaced(each.text)))
    return [
        (write, rows)
        for write, rows in (
            (ADD_ARTICLE, added), (CHANGE_ARTICLE, altered), (PUT_SEARCH, searched),
        )
        if rows
    ]  # fmt: skip


def _twins(
    store: Store, source: int, there: dict[str, Known], unseen: list[str]
) -> tuple[tuple[str, int, int], ...]:
    found: list[tuple[str, int, int]] = []
    for some in _some(unseen):
        marks = ", ".join("?" * len(some))
        rows = store.rows(
            "select owner, identity, id from feed_articles "
            f"where source = ? and owner <> '' and identity in ({marks})",
            (source, *some),
        )
        found += [
            (owner.removeprefix(POSTED_BY), id, there[identity].id) for owner, identity, id in rows
        ]
    return tuple(found)


def _some(identities: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(identities), AT_ONCE):
        yield identities[start : start + AT_ONCE]


def _moment(at: datetime | None) -> float | None:
    if at is None:
        return None
    try:
        return max(at.timestamp(), EARLIEST)
    except (OverflowError, ValueError):
        return None
