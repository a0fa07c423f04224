"""How many lines of a batch have ended, and how. Counted in the brain's turn; after a start it is
found out from what is stored.
"""

from __future__ import annotations

from headway.apps.channels.queue.jobs import LINE
from headway.core import State
from headway.store import Store

ANSWERED = "select count(*) from llm_answers where batch = ? and status < 300"
OPEN = f"select count(*) from jobs where batch = ? and type = '{LINE}' and finished_at is null"


class Tally:
    """Of the lines that were planned: those that ended well, those that did not, and the rest."""

    __slots__ = ("completed", "failed", "planned")

    def __init__(self, planned: int = 0, completed: int = 0, failed: int = 0) -> None:
        self.planned = planned
        self.completed = completed
        self.failed = failed  # for whatever reason: it was refused, cancelled, or too late

    @property
    def left(self) -> int:
        return self.planned - self.completed - self.failed

    def count(self, state: State) -> None:
        """One line has ended."""
        if state is State.COMPLETED:
            self.completed += 1
        else:
            self.failed += 1


def open_lines(store: Store, number: int) -> int:
    """How many lines of the engine's batch of this number have not ended."""
    return int(store.rows(OPEN, (number,))[0][0])


def counted(store: Store, batch: str, number: int, planned: int) -> Tally:
    """From what is stored. Whoever ended without a good answer has failed."""
    completed = int(store.rows(ANSWERED, (batch,))[0][0])
    return Tally(planned, completed, planned - completed - open_lines(store, number))
