"""The trail of a turn: what was done that is no transition of a job, in the order it was done."""

from __future__ import annotations

from collections import deque
from typing import Any

from headway.core.learning import Learning
from headway.engine.departures import Departures
from headway.engine.ledger import clean
from headway.store.tables import Write


class Trail(Departures):
    def __init__(self) -> None:
        super().__init__()
        self.who: str | None = None  # in whose name something is being done
        self.written = 0  # rows of the trail that are no transitions
        self.acts = 0  # those of them that somebody has asked for
        self.records: deque[tuple[int, tuple[Any, ...]]] = deque()  # after how many changes, what

    def write(self, write: Write, *rows: tuple[Any, ...]) -> None:
        """Rows of an application's table, with the commit of this turn. What no store would take
        is refused here, since nothing may keep a turn from being committed.
        """
        write.check(rows)
        self.batch.writes.append((write, rows))

    def record(
        self, now: float, event: str, *, job: int | None = None, fence: int = 0,
        detail: str = "", subject: str | None = None,
    ) -> None:  # fmt: skip
        """A row of the audit trail that is no transition."""
        self.written += 1
        self.acts += self.who is not None
        row = (now, job, event, None, None, fence, clean(detail), subject, self.who)
        self.records.append((len(self.core.changes), row))

    def record_learned(self) -> None:
        """Each change of what is believed of an upstream, and its cause."""
        for gate in self.core.admission.touched:
            for limit in gate.limits:
                if type(limit) is Learning:
                    for change in limit.take_changes():
                        self.record(change.at, "learned", subject=gate.label, detail=str(change))

    def write_records(self, done: int) -> None:
        """What was said when so many changes had happened, so that the trail is in order."""
        while self.records and self.records[0][0] <= done:
            self.batch.events.append(self.records.popleft()[1])
