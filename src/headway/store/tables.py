"""Tables of applications, and what is written into them.

An application makes its tables with `install`, in the same file or schema as the rest, and says
once what it writes there. A `Write` is one statement, in the words of each store, that takes all
its rows as one JSON value; so it can go with the turn in which the engine completes a job. What is
wrong with a row is said before any store sees it, and never with what is in it, which may be
secret.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway.errors import StoreError
from headway.store.filtering import is_number

LONGEST_KEY = 2_000  # bytes of text; an index of PostgreSQL has no room for much more

_PLAIN = re.compile(r"[a-z_][a-z0-9_]{0,62}")

# How a store reads one value of a row. SQLite knows by itself what is in JSON.
_CASTS = {"text": "{}", "bigint": "({})::bigint", "double": "({})::double precision"}

Rows = Sequence[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Write:
    """One statement for any number of rows, each an array in a JSON array: `?1` for SQLite (read it
    with `jsonb_each`), `$1` for PostgreSQL (`jsonb_array_elements`). Made by a `Table`, or by hand
    for what a table cannot say: then it is best if doing it twice does no harm.
    """

    sqlite: str
    postgres: str
    types: tuple[str, ...] | None = None  # of the values of a row; None: any, and any number
    key: tuple[int, ...] = ()  # the places of values that name a row: none of them is None
    last: bool = False  # of rows with the same key only the last one is handed over
    name: str = "rows"  # for people
    table: str | None = None  # the only one that it reads or writes; None: who knows

    def __post_init__(self) -> None:
        if "?" not in self.sqlite or "$1" not in self.postgres:
            raise ValueError("a statement has its rows in ?1 for SQLite, and in $1 for PostgreSQL")
        if self.types is None and (self.key or self.last):
            raise ValueError("rows that have a key have types too")
        for kind in self.types or ():
            _check_type(kind)

    def check(self, rows: Rows) -> None:
        """StoreError if a row does not fit, before anything is stored."""
        for number, row in enumerate(rows):
            fault = self._fault(row)
            if fault is not None:
                raise StoreError(f"row {number} of {self.name} {fault}; nothing was stored")

    def _fault(self, row: Any) -> str | None:
        if not isinstance(row, tuple | list):
            return f"is a {type(row).__name__}; write a tuple"
        types = self.types
        if types is None:
            kinds: Iterable[str] = ("any",) * len(row)
        elif len(row) != len(types):
            return f"has {len(row)} values, and not {len(types)}"
        else:
            kinds = types
        for place, (kind, value) in enumerate(zip(kinds, row, strict=True)):
            if value is None:
                if place in self.key:
                    return f"has no value at place {place}, which is part of its key"
            elif not _FITS[kind](value):
                wanted = "text, a number of 64 bits or None" if kind == "any" else kind
                return (
                    f"has at place {place} a {type(value).__name__} that cannot be stored; "
                    f"it must be {wanted}"
                )
        if self.key and self._key_bytes(row) > LONGEST_KEY:
            return f"has a key of more than {LONGEST_KEY} bytes"
        return None

    def _key_bytes(self, row: Sequence[Any]) -> int:
        texts = [row[place] for place in self.key if type(row[place]) is str]
        return sum(len(text) if text.isascii() else len(text.encode()) for text in texts)

    def once(self, rows: Rows) -> Rows:
        """The rows that are handed over: a store does not say which one of a key would win."""
        if not self.last or len(rows) < 2:
            return rows
        key = self.key
        return list({tuple([row[place] for place in key]): row for row in rows}.values())


Writes = Sequence[tuple[Write, Rows]]


def together(writes: Writes) -> Writes:
    """The same with fewer statements: what many jobs of a turn write one by one is done at once, as
    long as nothing else happens to that table in between.
    """
    if len(writes) < 2:
        return writes
    fewer: list[tuple[Write, list[tuple[Any, ...]]]] = []
    latest: dict[str, int] = {}  # where the last write to a table is
    for write, rows in writes:
        if write.table is None:
            latest.clear()
        else:
            place = latest.get(write.table)
            if place is not None and fewer[place][0] == write:
                fewer[place][1].extend(rows)
                continue
            latest[write.table] = len(fewer)
        fewer.append((write, list(rows)))
    return fewer


@dataclass(frozen=True)
class Table:
    """A table as its application has made it, with a primary key or a unique index on `key`. Names
    begin best with that of the application. The rows of a write are in the order of the columns.
    """

    name: str
    columns: Mapping[str, str]  # name: "text", "bigint" or "double"
    key: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in (self.name, *self.columns):
            check_name(name)
        for kind in self.columns.values():
            _check_type(kind)
        if not self.key or len(set(self.key)) < len(self.key):
            raise ValueError(f"the key of {self.name} has at least one column, and each once")
        self._check_columns(self.key)

    def add(self) -> Write:
        """Insert. A row whose key is there is left alone."""
        return self._insert("add to", "nothing", last=False)

    def put(self) -> Write:
        """Insert, or take the place of the row with this key."""
        rest = [name for name in self.columns if name not in self.key]
        changes = ", ".join(f'"{name}" = excluded."{name}"' for name in rest)
        return self._insert("put into", f"update set {changes}" if rest else "nothing", last=True)

    def change(self, *columns: str) -> Write:
        """Change these columns of the row with this key, if there is one. A row has the values of
        the key, and then those of the columns.
        """
        self._check_columns(columns)
        if not columns or len(set(columns) - set(self.key)) < len(columns):
            raise ValueError(f"say which columns of {self.name} change, each once; a key does not")
        names = (*self.key, *columns)
        sets = [f'"{name}" = {{{place}}}' for place, name in enumerate(names)][len(self.key) :]
        text = (
            f'update "{self.name}" as kept set {", ".join(sets)} from {{rows}} where {self._same}'
        )
        return self._write(text, names, range(len(self.key)), "change in", last=True)

    def drop(self) -> Write:
        """Delete the row with this key, if there is one. A row has the values of the key."""
        keys = ", ".join(f'"{name}"' for name in self.key)
        values = ", ".join(f"{{{place}}}" for place in range(len(self.key)))
        text = f'delete from "{self.name}" where ({keys}) in (select {values} from {{rows}})'
        # In these words PostgreSQL needs no statistics to look for each row by its key.
        using = f'delete from "{self.name}" as kept using {{rows}} where {self._same}'
        return self._write(text, self.key, range(len(self.key)), "drop from", postgres=using)

    @property
    def _same(self) -> str:
        pairs = [f'kept."{name}" = {{{place}}}' for place, name in enumerate(self.key)]
        return " and ".join(pairs)

    def _insert(self, verb: str, conflict: str, *, last: bool) -> Write:
        names = tuple(self.columns)
        quoted = ", ".join(f'"{name}"' for name in names)
        keys = ", ".join(f'"{name}"' for name in self.key)
        values = ", ".join(f"{{{place}}}" for place in range(len(names)))
        # Without `where`, SQLite would take `on` for a part of the join.
        text = (
            f'insert into "{self.name}" ({quoted}) select {values} from {{rows}} where true '
            f"{{in_order}}on conflict ({keys}) do {conflict}"
        )
        places = [names.index(name) for name in self.key]
        return self._write(text, names, places, verb, last=last)

    def _write(
        self,
        text: str,
        names: Sequence[str],
        key: Iterable[int],
        verb: str,
        *,
        last: bool = False,
        postgres: str | None = None,
    ) -> Write:
        """The text in the words of each store, with `{0}` for the first value of a row."""
        types = tuple(self.columns[name] for name in names)
        return Write(
            sqlite=text.format(
                *(f"given.value ->> {place}" for place in range(len(types))),
                rows="jsonb_each(?1) as given",
                in_order="",  # they come so
            ),
            postgres=(postgres or text).format(
                *(_CASTS[kind].format(f"given.cells ->> {n}") for n, kind in enumerate(types)),
                rows="jsonb_array_elements($1) with ordinality as given (cells, place)",
                in_order="order by given.place ",
            ),
            types=types,
            key=tuple(key),
            last=last,
            name=f"{verb} {self.name}",
            table=self.name,
        )

    def _check_columns(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.columns:
                raise ValueError(f"{self.name} has no column {name!r}")


def check_name(name: str) -> None:
    if not _PLAIN.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot be a name; use small letters, digits and underscores, at most 63"
        )


def _check_type(kind: str) -> None:
    if kind not in _CASTS:
        raise ValueError(f"{kind!r} is no type of a column; use one of {', '.join(_CASTS)}")


def _is_text(value: Any) -> bool:
    if type(value) is not str:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half a character
        return False
    return True


def _is_bigint(value: Any) -> bool:
    return type(value) is int and is_number(value)


def _is_double(value: Any) -> bool:
    return math.isfinite(value) if type(value) is float else _is_bigint(value)


def _is_any(value: Any) -> bool:
    return _is_text(value) or _is_double(value)


_FITS: dict[str, Callable[[Any], bool]] = {
    "text": _is_text,
    "bigint": _is_bigint,
    "double": _is_double,
    "any": _is_any,
}
