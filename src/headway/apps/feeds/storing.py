"""Articles of a source: which are new, which have changed, and what is kept of them.

They are written before the run that found them ends, in transactions of their own: a long text has
no business in the brain's turn. Nobody sees them before that end gives their readers entries. What
a crash leaves between the two is found again by the next run, as `announced` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from headway.apps.feeds.identity import distinct
from headway.apps.feeds.parsing.model import ParsedEntry
from headway.apps.feeds.parsing.sanitising import html_as_text
from headway.apps.feeds.rules import Readable, readable
from headway.apps.feeds.searching import spaced
from headway.apps.feeds.tables import ADD_ARTICLE, CHANGE_ARTICLE, PUT_SEARCH
from headway.store import Store
from headway.store.tables import Writes

SHARED = ""  # the owner of what a site has published; else it is who has posted it
AT_ONCE = 500  # identities in one question
CHUNK_CHARACTERS = 500_000  # of articles in one transaction, so that nobody waits long
EARLIEST = -62_135_596_800.0  # the year 1: what lies before it is no date

_encode = msgspec.json.encode


class Known(NamedTuple):
    id: int
    hash: str
    announced: int


class Arrival(NamedTuple):
    """An article that readers are to see for the first time."""

    article: int
    at: float  # what it is sorted by: never in the future, and never changed
    text: Readable


class Stored(NamedTuple):
    entries: int  # of the document
    arrivals: tuple[Arrival, ...] = ()  # the oldest first
    changed: int = 0
    # Articles that tenants had posted before the site said the same: (tenant, theirs, ours).
    twins: tuple[tuple[str, int, int], ...] = ()


def known(
    store: Store, source: int, identities: Sequence[str], owner: str = SHARED
) -> dict[str, Known]:
    found: dict[str, Known] = {}
    for some in _some(identities):
        marks = ", ".join("?" * len(some))
        rows = store.rows(
            "select identity, id, hash, announced from feed_articles "
            f"where source = ? and owner = ? and identity in ({marks})",
            (source, owner, *some),
        )
        found.update((row[0], Known._make(row[1:])) for row in rows)
    return found


def keep(
    store: Store, source: int, entries: Iterable[ParsedEntry], now: float, owner: str = SHARED
) -> Stored:
    """Write what is new or has changed. Doing it again changes nothing."""
    wanted = {identity: _Entry(each) for identity, each in distinct(entries).items()}
    there = known(store, source, list(wanted), owner)
    new = [identity for identity in wanted if identity not in there]
    changed = [name for name, each in there.items() if each.hash != wanted[name].hash]
    for chunk in _chunks([(name, wanted[name]) for name in (*new, *changed)]):
        store.write(_writes(source, owner, chunk, there, now))
    if new:
        there.update(known(store, source, new, owner))
    arrivals = [
        Arrival(there[name].id, sorted_at(each.entry, now), each.readable())
        for name, each in wanted.items()
        if name in there and not there[name].announced
    ]
    arrivals.sort(key=lambda each: each.at)
    twins = _twins(store, source, there, new) if owner == SHARED and new else ()
    return Stored(len(wanted), tuple(arrivals), len(changed), twins)


def sorted_at(entry: ParsedEntry, now: float) -> float:
    """When it appeared: as it says, but not in the future; now, if it does not say."""
    dated = _moment(entry.dated)
    return now if dated is None else min(dated, now)


# ---------------------------------------------------------------------- how


class _Entry:
    """An entry, and what is worked out from it once."""

    def __init__(self, entry: ParsedEntry) -> None:
        self.entry = entry
        self.hash = blake2b(_encode(entry), digest_size=16).hexdigest()

    @cached_property
    def text(self) -> str:
        return html_as_text(self.entry.content or self.entry.summary or "")

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
    store: Store, source: int, there: dict[str, Known], new: list[str]
) -> tuple[tuple[str, int, int], ...]:
    found: list[tuple[str, int, int]] = []
    for some in _some(new):
        marks = ", ".join("?" * len(some))
        rows = store.rows(
            "select owner, identity, id from feed_articles "
            f"where source = ? and owner <> '' and identity in ({marks})",
            (source, *some),
        )
        found += [(owner, id, there[identity].id) for owner, identity, id in rows]
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
