"""A world whose server dies once: just before or just after the commit with a number."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from headway.store.batch import Batch
from headway.store.tables import Writes
from headway.testing import World


class PowerCut(BaseException):
    """The process is gone."""


class Fragile(World):
    """To be mixed into a world, in front of it. Commits are those of an engine or of a run."""

    forgives: tuple[type[BaseException], ...] = ()  # what is heard if it was done already

    def __init__(self, commit: int, after: bool, **more: Any) -> None:
        super().__init__(**more)
        self._left = commit
        self._after = after
        self.died = False
        self._is_dead = False  # nothing is written any more, until it starts again

    def _start(self) -> Any:
        engine = super()._start()
        store: Any = self.app.store
        if not hasattr(store, "is_fragile"):
            store.is_fragile = True
            store.send = self._cut(store.send, store)
            store.write = self._cut(store.write, None)
        return engine

    def _cut(self, do: Callable[..., None], store: Any) -> Callable[..., None]:
        def cut(what: Batch | Writes) -> None:
            if self._is_dead:
                raise PowerCut
            self._left -= 1
            if self._left == 0:
                self.died = self._is_dead = True
                if self._after:
                    do(what)
                    if store is not None:
                        store.settle()
                raise PowerCut
            do(what)

        return cut

    def alive(self, do: Callable[[], object]) -> None:
        """Whoever asks has no answer if it dies, and asks again. Perhaps it is done by then."""
        try:
            do()
        except PowerCut:
            self.crash()
            self._is_dead = False
            self.restart()
            with suppress(*self.forgives):
                do()
