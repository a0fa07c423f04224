"""A permit is the answer to a ticket: a lease on every gate it needs, with a fence."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headway.core.gate import Gate
    from headway.core.lines import Upstream
    from headway.core.order import Account
    from headway.core.ticket import Ticket


class Permit:
    """Valid while the core lists it. Whoever writes on its behalf must show its fence."""

    __slots__ = (
        "accounts",
        "expires_at",
        "fence",
        "gates",
        "granted_at",
        "hard_end_at",
        "lease_s",
        "slot_at",
        "ticket",
        "unused",
        "upstream",
        "waited_s",
    )

    def __init__(
        self, ticket: Ticket, fence: int, granted_at: float, gates: tuple[Gate, ...]
    ) -> None:
        self.ticket = ticket
        self.fence = fence
        self.granted_at = granted_at
        self.gates = gates  # all that it holds, the accounts included
        self.accounts: tuple[Account, ...] = ()
        self.upstream: Upstream | None = None
        self.expires_at = granted_at
        self.hard_end_at = granted_at  # no heartbeat extends the lease beyond this
        self.lease_s = 0.0
        self.waited_s = 0.0  # how long the ticket was queued before
        self.unused = False  # nobody has heard of it yet, so nothing was called
        self.slot_at = 0  # the page of the lease calendar where this permit is looked at next

    def __repr__(self) -> str:
        return f"Permit({self.ticket.id!r}, fence={self.fence})"
