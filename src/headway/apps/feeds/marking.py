"""Marks on what a tenant can see, and taking it out of sight. Whose it is stands in every row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from headway.apps.feeds.tables import REAL, TEXT, WHOLE
from headway.store import Store
from headway.store.tables import Write

T = TypeVar("T")
AT_ONCE = 500  # entries in one transaction, so that nobody waits long

# A row is (tenant, entry, is_read, is_starred, now). A mark that is None stays as it is, and so
# does the time of an entry that has its marks already.
MARK = Write(
    sqlite="update feed_entries as kept set "
    "is_read = coalesce(given.value ->> 2, kept.is_read), "
    "is_starred = coalesce(given.value ->> 3, kept.is_starred), changed_at = given.value ->> 4 "
    "from jsonb_each(?1) as given "
    "where kept.id = given.value ->> 1 and kept.tenant = given.value ->> 0 "
    "and (kept.is_read <> coalesce(given.value ->> 2, kept.is_read) "
    "or kept.is_starred <> coalesce(given.value ->> 3, kept.is_starred))",
    postgres="update feed_entries as kept set "
    "is_read = coalesce((given.cells ->> 2)::bigint, kept.is_read), "
    "is_starred = coalesce((given.cells ->> 3)::bigint, kept.is_starred), "
    "changed_at = (given.cells ->> 4)::double precision "
    "from jsonb_array_elements($1) as given (cells) "
    "where kept.id = (given.cells ->> 1)::bigint and kept.tenant = given.cells ->> 0 "
    "and (kept.is_read <> coalesce((given.cells ->> 2)::bigint, kept.is_read) "
    "or kept.is_starred <> coalesce((given.cells ->> 3)::bigint, kept.is_starred))",
    types=(TEXT, WHOLE, WHOLE, WHOLE, REAL),
    key=(0, 1),
    last=True,
    name="marks",
    table="feed_entries",
)
# A row is (tenant, entry). What somebody has starred stays.
DROP_UNSTARRED = Write(
    sqlite="delete from feed_entries where is_starred = 0 and (tenant, id) in "
    "(select given.value ->> 0, given.value ->> 1 from jsonb_each(?1) as given)",
    postgres="delete from feed_entries as kept using jsonb_array_elements($1) as given (cells) "
    "where kept.is_starred = 0 and kept.id = (given.cells ->> 1)::bigint "
    "and kept.tenant = given.cells ->> 0",
    types=(TEXT, WHOLE),
    name="entries that a rule drops",
    table="feed_entries",
)


class Marks(NamedTuple):
    """What is to be changed; None stays as it is."""

    is_read: bool | None = None
    is_starred: bool | None = None


def mark(store: Store, tenant: str, entries: Iterable[int], marks: Marks, now: float) -> None:
    """Entries that are somebody else's are left alone, like those that never were."""
    values = [None if each is None else int(each) for each in marks]
    for some in in_parts(list(entries), AT_ONCE):
        store.write([(MARK, [(tenant, entry, *values, now) for entry in some])])


def in_parts(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
