"""Reservations: a ticket that needs several gates cannot starve behind those that need one of them.

Its turn came at one gate while another was full. When that goes on for too long the next openings
are kept for it, at all of its gates at once or not at all, so that no two reservations wait for
each other.
"""

from __future__ import annotations

from heapq import heappop
from typing import Any

from headway.core.atlas import Atlas
from headway.core.gate import Gate
from headway.core.lines import Flow, Line, Track
from headway.core.order import RESERVED
from headway.core.standing import Standing
from headway.core.ticket import Ticket, Traffic

INF = float("inf")


class Reserving(Standing):
    def __init__(self, atlas: Atlas, patience_s: float) -> None:
        super().__init__(atlas)
        self.patience_s = patience_s  # how long a ticket is passed over before places are kept
        self.reservations: dict[Ticket, tuple[Line, tuple[Gate, ...]]] = {}
        self.rank_before: dict[Ticket, float] = {}  # of those that have a reservation

    # ------------------------------------------------------------------ making and ending them

    def passed_over(self, ticket: Ticket | None, now: float) -> None:
        """Its turn came at one gate while another was full."""
        if ticket is None or ticket in self.reservations or ticket.traffic is Traffic.LEFTOVER:
            return  # nothing is kept for leftover work: it lives on what is left
        if ticket.passes == 0:
            ticket.passed_at = now
        ticket.passes += 1
        if ticket.passes >= 2 and now - ticket.passed_at >= self.patience_s:
            self.reserve(ticket, now)

    def reserve(self, ticket: Ticket, now: float) -> None:
        place = ticket.place
        if type(place) is list:  # one of its upstreams will do: keep what all of them need
            line: Line = place[0].line
            needed = line.track.gates
            gates: list[Gate] = [gate for gate in needed if gate.room < INF]
        else:
            line = (place.group if type(place) is Flow else place).queue.owner
            account = line.queue.shares.accounts.get(ticket.tenant)
            needed = line.gates if account is None else (*line.gates, account)
            gates = [gate for gate in needed if gate.room < INF]
        if ticket.key is not None:
            gates.append(self.atlas.key(ticket.key))
        if any(gate.reserved_for is not None or gate.opens_at > now for gate in gates):
            return
        if any(gate.opens_at > now + self.patience_s for gate in needed):
            return
        for gate in gates:
            gate.reserved_for = ticket
            gate.refresh()
        self.reservations[ticket] = (line, tuple(gates))
        self.rank_before[ticket] = ticket.rank
        self.move(ticket, RESERVED + ticket.seq, now)
        for gate in gates:
            self.gate_changed(gate, now)

    def unreserve(self, ticket: Ticket, now: float) -> None:
        """Give the openings that were kept for a ticket to everybody again."""
        if ticket not in self.reservations:
            return
        for gate in self.reservations.pop(ticket)[1]:
            gate.reserved_for = None
            gate.refresh()
            self.gate_changed(gate, now)
        ticket.passes = 0
        ticket.passed_at = INF
        self.move(ticket, self.rank_before.pop(ticket), now)

    def displaced(self, ticket: Ticket, now: float) -> None:
        self.unreserve(ticket, now)

    def gate_changed(self, gate: Gate, now: float) -> None:
        if self.reservations and gate.opens_at > now + self.patience_s:
            self._give_up_reservations(gate, now)
        super().gate_changed(gate, now)

    def _give_up_reservations(self, gate: Gate, now: float) -> None:
        """Do not let kept places stand idle while their owner waits for the clock elsewhere."""
        for ticket, (line, kept) in list(self.reservations.items()):
            if gate in kept or gate in line.track.gates:
                self.unreserve(ticket, now)
            elif type(ticket.place) is not list:  # it has no other upstream to go to
                account = line.queue.shares.accounts.get(ticket.tenant)
                if gate is line.upstream or gate is account:
                    self.unreserve(ticket, now)

    # ------------------------------------------------------------------ honouring them

    def passable(self, node: Track | Line, gate: Gate, now: float) -> bool:
        """Whether the node's head may pass, its reservation included."""
        if gate.opens_at > now:
            return False
        held = len(gate.leases)
        if held < (gate.spare if node.leftover else gate.room):
            return True
        if gate.reserved_for is None or held >= gate.room + 1:
            return False
        return self.head(node, now) is gate.reserved_for

    def head(self, node: Track | Line, now: float) -> Ticket | None:
        first = node.queue.first(now)
        if first is None:
            return None
        item = first[3].head()[2]
        if type(item) is Line:
            return self.head(item, now)
        if type(item) is Flow:
            item = item.first()
        ticket: Ticket = item.ticket
        return ticket

    def turn(self, first: Any, gate: Gate, now: float) -> Any:
        """Whose turn it is at a gate: the first there, or whom an opening is kept for."""
        if self.passable(first, gate, now):
            heappop(gate.waiters)
            return first
        if gate.opens_at > now:
            self.arm(gate, now)
        elif gate.reserved_for is not None:
            line = self.reservations[gate.reserved_for][0]
            for node in (line, line.track):
                wait = node.wait
                if wait is not None and wait[5] is gate and self.passable(node, gate, now):
                    return node
        return None
