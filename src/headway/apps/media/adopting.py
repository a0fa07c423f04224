"""Taking over files that are there already: what nobody has to download any more.

A file is known by the information beside it, or by the id in its name. It stays where it is, under
the name that it has. Files of a tenant's directory are that tenant's and nobody else's.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from headway.api.turns import in_turn
from headway.apps.media import items
from headway.apps.media.covering import Part, is_of_tenant, kept_items
from headway.apps.media.library.kinds import IMAGES, INFO, NFO
from headway.apps.media.library.surveying import Found, found_files, plain_path
from headway.apps.media.listing import InThread
from headway.apps.media.model import Item, State, Subscription
from headway.apps.media.presets import site_of
from headway.apps.media.register import Register
from headway.apps.media.shelf import Shelf
from headway.apps.media.tables import ADD_ITEM, KEEP_ITEM
from headway.engine.brain import Brain
from headway.engine.hands.context import job
from headway.net.urls import plain_url
from headway.store import Store

AT_ONCE = 200  # files in one turn
MOST_LEFT = 1_000  # that are named
GENERIC = "generic"  # the extractor that knows no ids
BESIDE = {INFO: "info", NFO: "nfo", **dict.fromkeys(sorted(IMAGES), "thumbnail")}


@dataclass(slots=True)
class Adopted:
    """What became of files that nobody knew."""

    matched: int = 0  # items that were known, and have a file now
    added: int = 0  # items that are new
    left: list[str] = field(default_factory=list)  # files of which nobody could say what they are
    left_count: int = 0

    def leave(self, path: str) -> None:
        self.left_count += 1
        if len(self.left) < MOST_LEFT:
            self.left.append(path.encode("utf-8", "replace").decode())

    def view(self, most: int) -> dict[str, Any]:
        left = {"count": self.left_count, "items": self.left[:most]}
        return {"matched": self.matched, "added": self.added, "left": left}


class Wanted:
    """Items that are not on disk, by all that a file can be known by."""

    def __init__(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self._by: dict[tuple[str, str], int] = {}  # tenant and key, or address
        self._by_id: dict[tuple[str, str], int | None] = {}  # None: it could be several
        self._taken: set[int] = set()
        for id, tenant, key, url in rows:
            self._by.setdefault((tenant, key), id)
            self._by.setdefault((tenant, url), id)
            extractor, _, own = key.partition(":")
            if own and extractor != "url":
                name = (tenant, own)
                self._by_id[name] = None if name in self._by_id else id

    def take(self, found: Found, tenant: str) -> int | None:
        """The item that a file is of, which is nobody else's then."""
        names = [name for name in (*keys_of(found), found.url) if name]
        ids = [self._by.get((tenant, name)) for name in names]
        if found.identity is None and found.extractor is None and found.id:
            ids.append(self._by_id.get((tenant, found.id)))
        for id in ids:
            if id is not None and id not in self._taken:
                self._taken.add(id)
                return id
        return None


class Match(NamedTuple):
    """A file, and the item that has it from now on; None: a new one."""

    found: Found
    tenant: str
    item: int | None
    files: dict[str, str]


class Adopter:
    def __init__(
        self, store: Store, register: Register, library: Shelf, in_thread: InThread
    ) -> None:
        self._store = store
        self._register = register
        self._library = library
        self.in_thread = in_thread
        self.brain: Brain  # from the moment that an engine is about to start

    async def adopt(
        self, part: Part, into: Subscription | None, *, foreign: bool, dry_run: bool
    ) -> Adopted:
        """`into`: what is known to nobody becomes a new item of this one. Raises LibraryError."""
        adopted = Adopted()
        wanted, files = await self.in_thread(self._begin, part)
        while True:
            matches = await self.in_thread(self._some, files, wanted, part, into, foreign, adopted)
            if matches is None:
                return adopted
            if dry_run or not matches:
                continue
            known = await self.in_thread(self._known, matches)
            await in_turn(self.brain, partial(self._take_over, matches, known, into))

    # ------------------------------------------------------------------ in a thread

    def _begin(self, part: Part) -> tuple[Wanted, Iterator[Found]]:
        text, values = part.where()
        rows = self._store.rows(
            f"select id, tenant, key, url from media_items where {text} and state <> ? order by id",
            (*values, State.DONE.value),
        )
        known = {
            plain_path(row.video)
            for row in kept_items(self._store)
            if row.state == State.DONE
        }  # fmt: skip
        return Wanted(rows), found_files(self._library.root, known)

    def _some(
        self, files: Iterator[Found], wanted: Wanted, part: Part, into: Subscription | None,
        foreign: bool, adopted: Adopted,
    ) -> list[Match] | None:  # fmt: skip
        """The next files, and whose they are. None: there are no more."""
        some = list(islice(files, AT_ONCE))
        if not some:
            return None
        matches: list[Match] = []
        fresh: list[Match] = []
        for found in some:
            tenants = self._tenants(found.path, part, into, foreign)
            match = self._match(found, tenants, wanted, into)
            if match is None:
                if tenants:
                    adopted.leave(found.path)
            elif match.item is None:
                fresh.append(match)
            else:
                matches.append(match)
        new = self._new_only(fresh, into, adopted)
        adopted.matched += len(matches)
        adopted.added += len(new)
        job.progress(adopted.matched + adopted.added, note="files taken over")
        return [*matches, *new]

    def _tenants(
        self, path: str, part: Part, into: Subscription | None, foreign: bool
    ) -> list[str]:
        """Whose items this file may be of."""
        found = [part.tenant] if part.tenant is not None else self._all_tenants()
        found = [each for each in found if is_of_tenant(path, each)]
        if foreign and into is not None and is_of_tenant(path, "") and into.tenant not in found:
            found.append(into.tenant)
        return found

    def _all_tenants(self) -> list[str]:
        return sorted({"", *(row.tenant for row in list(self._register.subscriptions.values()))})

    def _match(
        self, found: Found, tenants: Sequence[str], wanted: Wanted, into: Subscription | None
    ) -> Match | None:
        if not is_text(found.path):
            return None
        files = files_beside(self._library.root, found.path)
        for tenant in tenants:
            item = wanted.take(found, tenant)
            if item is not None:
                return Match(found, tenant, item, files)
        if into is None or into.tenant not in tenants or new_entry(found, into) is None:
            return None
        return Match(found, into.tenant, None, files)

    def _new_only(
        self, fresh: Sequence[Match], into: Subscription | None, adopted: Adopted
    ) -> list[Match]:
        """Without those that the subscription has already, under another name."""
        if into is None or not fresh:
            return []
        entries = [new_entry(each.found, into) or {} for each in fresh]
        there = set(items.known(self._store, into, [entry["key"] for entry in entries]))
        new: list[Match] = []
        for entry, each in zip(entries, fresh, strict=True):
            if entry["key"] in there:
                adopted.leave(each.found.path)
            else:
                there.add(entry["key"])
                new.append(each)
        return new

    def _known(self, matches: Sequence[Match]) -> dict[int, Item]:
        ids = [each.item for each in matches if each.item is not None]
        if not ids:
            return {}
        marks = ", ".join("?" * len(ids))
        rows = self._store.rows(
            f"select {items.COLUMNS} from media_items where id in ({marks}) and state <> ?",
            (*ids, State.DONE.value),
        )
        return {row[0]: Item(*row) for row in rows}

    # ------------------------------------------------------------------ in the brain's turn

    def _take_over(
        self, matches: Sequence[Match], known: dict[int, Item], into: Subscription | None,
        now: float,
    ) -> None:  # fmt: skip
        kept = []
        for each in matches:
            row = known.get(each.item or 0)
            if row is not None:
                kept.append(
                    (row.id, State.DONE.value, None, None, 0, row.title or each.found.title,
                     row.uploader, row.published_at or each.found.published_at, row.duration_s,
                     row.views, _encoded(each.files), each.found.size_bytes, now, now)
                )  # fmt: skip
        added = [] if into is None else self._made(into, matches, now)
        if kept:
            self.brain.write(KEEP_ITEM, *kept)
        if added:
            self.brain.write(ADD_ITEM, *added)

    def _made(self, into: Subscription, matches: Sequence[Match], now: float) -> list[Item]:
        if into.id not in self._register.subscriptions:
            return []
        found = [(each, new_entry(each.found, into)) for each in matches if each.item is None]
        told = [(each, entry) for each, entry in found if entry is not None]
        numbers = self._register.item_numbers(len(told))
        return [
            items.new_item(number, into.tenant, into.id, entry, now)._replace(
                state=State.DONE.value, files=_encoded(each.files), done_at=now,
                size_bytes=each.found.size_bytes,
            )
            for number, (each, entry) in zip(numbers, told, strict=True)
        ]  # fmt: skip


def _encoded(files: dict[str, str]) -> str:
    return msgspec.json.encode(files).decode()


def keys_of(found: Found) -> list[str]:
    """What the item of this file may be known by; the surest first."""
    keys = [found.identity] if found.identity else []
    if found.extractor and found.id and found.extractor.lower() != GENERIC:
        keys.append(f"{found.extractor.lower()}:{found.id}")
    if found.url:
        keys.append(f"url:{hashlib.sha256(found.url.encode()).hexdigest()[:32]}")
    return keys


def new_entry(found: Found, into: Subscription) -> dict[str, Any] | None:
    """As a list would have it. None: it cannot be said where it comes from, or it comes from
    another site.
    """
    keys = keys_of(found)
    try:
        url = plain_url(found.url or "")
    except ValueError:
        return None
    if not keys or site_of(url) != into.site:
        return None
    return {"key": keys[0], "url": url, "title": found.title, "published_at": found.published_at}


def files_beside(root: Path, video: str) -> dict[str, str]:
    """All that belongs to a video, by what it is."""
    files = {"video": video}
    stem = video.rpartition(".")[0]
    for suffix, kind in BESIDE.items():
        path = root / (stem + suffix)
        if kind not in files and path.is_file() and not path.is_symlink():
            files[kind] = stem + suffix
    return files


def is_text(path: str) -> bool:
    """No store takes the name of a file that is none."""
    try:
        os.fsdecode(path).encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in path
