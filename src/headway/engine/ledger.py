"""The ledger of one turn: what the core has changed, as rows for the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from headway.core import Change, Core, Event, State
from headway.core.lifecycle import TERMINAL
from headway.core.memory import Address, address_of, dump, remembers
from headway.core.ticket import Ticket
from headway.engine.tickets import grant, standing, tries_text
from headway.net.redaction import redact
from headway.store.batch import Batch
from headway.store.records import UniqueScope

_encode = msgspec.json.encode

SUBMIT = "submit"
MAX_DETAIL = 4_000  # characters of an error that are worth keeping
MAX_RAW = 100_000  # of one that are looked at

# What stands as the error of a job that ended without anybody giving a reason.
WHY: dict[Event | None, str] = {
    Event.DEADLINE: "its deadline is over",
    Event.CANCEL: "it was cancelled",
}


class Extra:
    """What the engine remembers of the few jobs that need it."""

    __slots__ = ("batch", "keep_result_s", "not_before", "schedule", "unique")

    def __init__(self) -> None:
        self.batch: int | None = None  # for a type that wants to hear of the ends of its jobs
        self.unique: str | None = None
        self.schedule: str | None = None
        self.keep_result_s: float | None = None
        self.not_before: float | None = None  # when it is due once no other job holds it back


class Ledger:
    def __init__(self, core: Core, extras: dict[int, Extra]) -> None:
        self._core = core
        self._extras = extras
        self.kept: dict[Address, str] = {}  # the memory of gates, as it is in the store
        # The last word on each job: its ticket, an error, its fence, whether all that happened is
        # that it was granted, and why it ended if nobody said so.
        self._moved: dict[int, tuple[Ticket, str | None, int, bool, str | None]] = {}

    def enter(self, change: Change, batch: Batch, stored: bool = False) -> None:
        """One transition. `stored`: the job stands in the store like this already."""
        ticket, event, detail = change.ticket, change.event, change.detail
        number: Any = ticket.id
        if detail:
            detail = clean(detail)
        # States and events go in as they are: they are text, and encoded as such.
        row = (change.at, number, event or SUBMIT, change.before, change.after, change.fence,
               detail, None)  # fmt: skip
        batch.events.append(row)
        if event is Event.RETRY_BY_OPERATOR:
            batch.reopened.append(number)
        if not stored:
            just_granted = event is Event.GRANT and number not in self._moved
            why = WHY.get(event)
            self._moved[number] = (ticket, detail or None, change.fence, just_granted, why)
        extra = self._extras.get(number) if self._extras else None
        if extra is not None and extra.unique is not None:
            leaves = event is Event.GRANT and extra.unique == UniqueScope.QUEUED.value
            if leaves or change.after in TERMINAL:
                extra.unique = None
                batch.freed.append(number)

    def touch(self, ticket: Ticket) -> None:
        """Something else about an open job has changed: its priority, its pin, a stop asked for."""
        fence = ticket.permit.fence if ticket.permit else 0
        number: Any = ticket.id
        known = self._moved.get(number)
        if known is None:
            self._moved[number] = (ticket, None, fence, False, None)
        else:
            self._moved[number] = (ticket, known[1], known[2], False, known[4])

    def close(self, batch: Batch) -> None:
        """The last word on each job that moved, and on each gate."""
        for number, (ticket, detail, fence, just_granted, why) in self._moved.items():
            state = ticket.state
            if just_granted and ticket.permit is not None:
                batch.granted.append(grant(number, ticket.permit))
                continue
            if state is State.COMPLETED:
                batch.completed.append((number, ticket.since))
                continue
            if state in TERMINAL:
                tries = None if ticket.tries is None else tries_text(ticket.tries)
                batch.ended.append((number, state.value, ticket.since, tries, detail or why))
                continue
            extra = self._extras.get(number) if self._extras else None
            not_before = ticket.not_before
            if extra is not None and extra.not_before is not None:
                not_before = extra.not_before
            batch.moved.append(standing(ticket, not_before, detail, fence))
        self._moved.clear()
        touched = self._core.admission.touched
        if touched:
            for gate in touched:
                self._keep(address_of(gate), dump(self._core, gate), batch)
            touched.clear()

    def _keep(self, address: Address, state: dict[str, Any] | None, batch: Batch) -> None:
        if state is not None:
            text = _encode(state).decode()
            if self.kept.get(address) != text:  # most calls teach nothing new
                self.kept[address] = text
                batch.gates.append((*address, text))
        elif self.kept.pop(address, None) is not None:
            batch.gates.append((*address, None))

    def forget_gates(self, batch: Batch, waits: Callable[[Address], bool]) -> None:
        """What the core has forgotten goes from the store, too, unless it waits for somebody who
        comes to that upstream.
        """
        for address in [each for each in self.kept if not remembers(self._core, each)]:
            if not waits(address):
                self._keep(address, None, batch)


def clean(text: str) -> str:
    """An error as it may be stored: bounded, without secrets or what no database takes."""
    if not text:
        return text
    if len(text) > MAX_RAW:
        text = text[: MAX_RAW // 2] + " … " + text[-MAX_RAW // 2 :]
    text = redact(text)
    if len(text) > MAX_DETAIL:
        text = text[: MAX_DETAIL // 2] + " … " + text[-MAX_DETAIL // 2 :]
    return text.replace("\x00", "\\0").encode("utf-8", "replace").decode("utf-8")
