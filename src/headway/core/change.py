"""What the core has decided, for the engine to store and to act on."""

from __future__ import annotations

from dataclasses import dataclass

from headway.core.lifecycle import Event, State
from headway.core.permit import Permit
from headway.core.ticket import Stop, Ticket


class Change:
    """One transition of one ticket: one row in the audit trail."""

    __slots__ = ("after", "at", "before", "detail", "event", "fence", "permit", "ticket")

    def __init__(
        self,
        ticket: Ticket,
        before: State | None,
        event: Event | None,
        after: State,
        at: float,
        detail: str = "",
        fence: int = 0,
    ) -> None:
        self.ticket = ticket
        self.before = before  # None: it was just submitted
        self.event = event
        self.after = after
        self.at = at
        self.detail = detail
        self.fence = fence
        self.permit: Permit | None = None  # that ended with it

    def __repr__(self) -> str:
        before = "-" if self.before is None else self.before.value
        event = "submit" if self.event is None else self.event.value
        return f"Change({self.ticket.id!r}: {before} --{event}--> {self.after.value} at {self.at})"


@dataclass(frozen=True, slots=True)
class StopOrder:
    """The holder of this permit is asked to stop its work."""

    permit: Permit
    why: Stop


@dataclass(frozen=True, slots=True)
class Refusal:
    """An online call that may not go: the upstream is closed. It never waits."""

    gate: str
    why: str
    until: float  # infinity while it is paused


class Refused(Exception):
    """The ticket was not taken; nothing has changed. Try again later, or raise the limit."""


class UnknownTicket(KeyError):
    """No open ticket has this id: it was never submitted, or it has ended."""
