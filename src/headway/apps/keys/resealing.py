"""Sealing again, with the first key, what another one has sealed. Some at a time, each portion in a
turn of the brain: what is in the store and what applications remember of it change together. A
crash leaves some secrets under the old key and some under the new one, and both open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from headway.engine.brain import Brain
from headway.errors import SealedElsewhere
from headway.net.sealing import Vault
from headway.store import Store
from headway.store.sealed import Sealed, keys_of

# What was in the store, and what is there now.
Renewed = Mapping[str, str]
# In the turn: whoever remembers a sealed secret.
Hears = Callable[[Renewed], None]
# Lets the brain do something, and waits until it is committed.
Turn = Callable[[Callable[[Brain], None]], None]


class Portion(NamedTuple):
    done: int
    unreadable: int  # that no key here opens


class Resealing:
    def __init__(self, store: Store, sealed: tuple[Sealed, ...]) -> None:
        self._store = store
        there = {str(row[0]) for row in store.rows("select app from app_schemas")}
        self._sealed = tuple(each for each in sealed if each.app in there)

    def counts(self) -> dict[str, int]:
        """By the id of a key: how many secrets it has sealed."""
        tables = [each.table for each in self._sealed]
        return keys_of(self._sealed, tables, self._store.rows)

    def portion(self, vault: Vault, most: int, turn: Turn, hears: list[Hears]) -> Portion:
        """Blocking, outside of the turn. Those that cannot be opened are passed by."""
        done = unreadable = 0
        current = vault.ids[0]
        for each in self._sealed:
            after: Any = each.before_all
            while done < most:
                rows = self._store.rows(each.old, (current, after, most - done))
                if not rows:
                    break
                after = rows[-1][0]
                renewed = _renewed(vault, each, rows)
                unreadable += len(rows) - len(renewed)
                done += len(renewed)
                if renewed:
                    turn(_putting(each, renewed, hears))
        return Portion(done, unreadable)


def _renewed(
    vault: Vault, sealed: Sealed, rows: list[tuple[Any, ...]]
) -> list[tuple[Any, str, str]]:
    found = []
    for key, before in rows:
        about = sealed.about(key)
        try:
            plain = vault.unseal(before, about)
        except SealedElsewhere:
            continue
        found.append((key, before, vault.seal(plain, about)))
    return found


def _putting(
    sealed: Sealed, rows: list[tuple[Any, str, str]], hears: list[Hears]
) -> Callable[[Brain], None]:
    renewed = {before: after for _, before, after in rows}

    def put(brain: Brain) -> None:
        for row in rows:
            brain.write(sealed.replaced, row)
        for hear in hears:
            hear(renewed)

    return put
