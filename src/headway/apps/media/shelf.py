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
        if not self.was_used():
            self._store.write([(PUT_FACT, [(self._name, self.begin())])])
        self.begin()

    def was_used(self) -> bool:
        """Whether there is one that should be there."""
        if self.identity is None:
            query = f"select value from {FACTS.name} where name = ?"
            for (known,) in self._store.rows(query, (self._name,)):
                self.identity = str(known)
        return self.identity is not None

    @property
    def _name(self) -> str:
        return f"library:{self.root}"
