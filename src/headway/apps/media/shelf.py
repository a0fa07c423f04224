"""The library of this server, and that it is the one that it was: its identity is in the store."""

from __future__ import annotations

from pathlib import Path

from headway.apps.media.library.root import Library
from headway.apps.media.tables import FACTS, PUT_FACT
from headway.store import Store


class Shelf(Library):
    """A library that is made when it is first needed, and never made again. Blocking."""

    def __init__(self, root: Path, store: Store, *, min_free_bytes: int) -> None:
        super().__init__(root, min_free_bytes=min_free_bytes)
        self._store = store

    def check(self) -> None:
        self.open()
        super().check()

    def open(self) -> None:
        """Raises LibraryGone: it is away, or another one is in its place."""
        if self.identity is None:
            name = f"library:{self.root}"
            known = self._store.rows(f"select value from {FACTS.name} where name = ?", (name,))
            if known:
                self.identity = str(known[0][0])
            else:
                self._store.write([(PUT_FACT, [(name, self.begin())])])
        self.begin()
