"""Where sealed secrets are in a store, which keys they need, and how one is put in the place of
another. Applications say which of their columns have any; nothing here opens one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from headway.store.tables import Write

MARK = "hw1."  # how every sealed secret begins; the id of its key follows
ID = 12  # characters of it

_CASTS = {"text": "{}", "bigint": "({})::bigint"}


class Sealed(NamedTuple):
    """A column with secrets, the column that names their rows, and what a secret is sealed for."""

    app: str  # whose it is
    table: str
    column: str
    key: str
    about: Callable[[Any], str]
    kind: str = "text"  # of the key

    @property
    def counts(self) -> str:
        """The ids of keys, and how many secrets each has sealed; in the words of every store."""
        return (
            f"select substr({self.column}, {len(MARK) + 1}, {ID}), count(*) from {self.table} "
            f"where {self.column} like '{MARK}%' group by 1"
        )

    @property
    def old(self) -> str:
        """(key, secret) of some that another key has sealed than that of the first value, behind
        the one of the second.
        """
        return (
            f"select {self.key}, {self.column} from {self.table} where {self.column} like "
            f"'{MARK}%' and substr({self.column}, {len(MARK) + 1}, {ID}) <> ? and {self.key} > ? "
            f"order by {self.key} limit ?"
        )

    @property
    def before_all(self) -> str | int:
        """Less than any key."""
        return "" if self.kind == "text" else -(1 << 62)

    @property
    def replaced(self) -> Write:
        """A row is (key, what is there, what shall be there). If it is not there any more, nothing
        happens: somebody has entered another one.
        """
        given = _CASTS[self.kind].format("given.cells ->> 0")
        return Write(
            sqlite=f"update {self.table} as kept set {self.column} = given.value ->> 2 from "
            f"jsonb_each(?1) as given where kept.{self.key} = given.value ->> 0 "
            f"and kept.{self.column} = given.value ->> 1",
            postgres=f"update {self.table} as kept set {self.column} = given.cells ->> 2 from "
            f"jsonb_array_elements($1) as given (cells) where kept.{self.key} = {given} "
            f"and kept.{self.column} = given.cells ->> 1",
            types=(self.kind, "text", "text"),
            name=f"secrets of {self.table}",
            table=self.table,
        )


def keys_of(
    sealed: Iterable[Sealed],
    tables: Sequence[str],
    ask: Callable[[str], Iterable[Sequence[Any]]],
) -> dict[str, int]:
    """By the id of a key: how many secrets it has sealed. Of tables that are there."""
    found: Counter[str] = Counter()
    for each in sealed:
        if each.table in tables:
            for key, many in ask(each.counts):
                found[key] += many
    return dict(sorted(found.items()))
