"""Which part of the archive a look at the disk is about: one subscription, one tenant, or all; and
what the store says about it. Blocking, from any thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import msgspec

from headway.apps.media.items import chunks
from headway.apps.media.library.naming import TENANTS
from headway.apps.media.library.root import Library
from headway.apps.media.model import State
from headway.store import Store

AT_ONCE = 500  # rows in one question
ON_DISK = (State.DONE, State.MISSING)  # states of items that have files, or had them
FACT = "reconciled"  # the name of the last report about all; behind a colon that of one tenant

_KEPT = (
    "select id, tenant, subscription, key, state, files, size_bytes from media_items "
    "where state in (?, ?) and files is not null and id > ? order by id limit ?"
)


class Kept(NamedTuple):
    """An item that has files, as the store says."""

    id: int
    tenant: str
    subscription: int
    key: str
    state: str
    files: str  # JSON
    size_bytes: int | None

    @property
    def video(self) -> str:
        return str(msgspec.json.decode(self.files).get("video", ""))


class Part(NamedTuple):
    """What is looked at. None: all of them."""

    tenant: str | None = None
    subscription: int | None = None

    def has(self, row: Kept) -> bool:
        return self.tenant in (None, row.tenant) and self.subscription in (None, row.subscription)

    def has_path(self, path: str) -> bool:
        """Whether a file that nobody knows may be shown to who asks."""
        return self.tenant is None or is_of_tenant(path, self.tenant)

    def where(self) -> tuple[str, tuple[Any, ...]]:
        """For a question about items."""
        asked = [(f"{name} = ?", value) for name, value in
                 (("tenant", self.tenant), ("subscription", self.subscription))
                 if value is not None]  # fmt: skip
        return " and ".join(["true", *(text for text, _ in asked)]), tuple(v for _, v in asked)

    @property
    def fact(self) -> str:
        return FACT if self.tenant is None else f"{FACT}:{self.tenant}"


def is_of_tenant(path: str, tenant: str) -> bool:
    """Whether a file lies where this tenant's do. Who has no name has all but the tenants'."""
    parts = PurePosixPath(path).parts
    place = Library.of(tenant).parts
    return parts[: len(place)] == place if place else parts[:1] != (TENANTS,)


def kept_items(store: Store) -> Iterator[Kept]:
    """Of everybody, since whose a file is can only be told by all."""
    after = 0
    while rows := store.rows(_KEPT, (*(each.value for each in ON_DISK), after, 4 * AT_ONCE)):
        yield from (Kept(*row) for row in rows)
        after = rows[-1][0]


def kept_again(store: Store, ids: Iterable[int]) -> dict[int, Kept]:
    """The same items as they are now."""
    columns = ", ".join(Kept._fields)
    found: dict[int, Kept] = {}
    for some in chunks(list(ids), AT_ONCE):
        marks = ", ".join("?" * len(some))
        rows = store.rows(f"select {columns} from media_items where id in ({marks})", tuple(some))
        found.update({row[0]: Kept(*row) for row in rows})
    return found


def numbers(store: Store, part: Part) -> tuple[dict[str, int], int]:
    """How many items are in each state, and the bytes of those on disk."""
    text, values = part.where()
    rows = store.rows(
        f"select state, count(*), coalesce(sum(size_bytes), 0) from media_items where {text} "
        "group by state",
        values,
    )
    states = {state: int(count) for state, count, _ in rows}
    return states, sum(int(size) for state, _, size in rows if state == State.DONE)


def with_work(store: Store, part: Part, names: Iterable[str]) -> list[int]:
    """Of items with unfinished files, those that this is about."""
    ids = [int(name) for name in names if name.isdecimal() and len(name) <= 18]
    if part == Part():
        return ids
    text, values = part.where()
    found: list[int] = []
    for some in chunks(ids, AT_ONCE):
        marks = ", ".join("?" * len(some))
        question = f"select id from media_items where {text} and id in ({marks}) order by id"
        found += [row[0] for row in store.rows(question, (*values, *some))]
    return found
