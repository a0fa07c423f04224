"""Lifetimes: what time brings to tickets, and the one place where a ticket changes its state."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from heapq import heappop, heappush
from random import Random

from headway.core.admission import Admission
from headway.core.atlas import Atlas
from headway.core.change import Change, StopOrder, UnknownTicket
from headway.core.gatekeeper import Gatekeeper
from headway.core.kinds import KINDS, GateKind
from headway.core.leases import Leases
from headway.core.lifecycle import TERMINAL, Event, State, after
from headway.core.order import PINNED
from headway.core.outcome import Kind, Outcome
from headway.core.permit import Permit
from headway.core.policy import Policies
from headway.core.retry import DEFAULT_POLICIES, DEFAULT_POLICY, RetryPolicy, judge
from headway.core.ticket import INF, Ticket

FOREMOST = 1  # the priority of what a person waits for
RISES_AFTER = 0.75  # of the time that a ticket has until its deadline
RISE_AT_ONCE = 500  # tickets, so that nobody waits long while a whole batch rises

Dated = tuple[float, int, Ticket, float]  # when to look, a number, whom at, for which deadline


class Lifetimes:
    def __init__(
        self,
        policies: Policies | None = None,
        *,
        rng: Random,
        retry: Mapping[str, RetryPolicy] = DEFAULT_POLICIES,
        kinds: tuple[GateKind, ...] = KINDS,
        lease_s: float = 90.0,
        max_key_hold_s: float = 7200.0,
        age_s: float = 3600.0,
        patience_s: float = 30.0,
    ) -> None:
        self.policies = policies or Policies()
        self.retry_policies = retry
        self.lease_s = lease_s
        self.max_key_hold_s = max_key_hold_s  # no key is locked longer than this
        self.age_s = age_s  # a waiting ticket gains one priority level in this time
        self.now = -INF
        self.tickets: dict[Hashable, Ticket] = {}  # all that have not ended
        self.changes: list[Change] = []
        self.stops: list[StopOrder] = []
        self.leases = Leases()
        self.admission = Admission(Atlas(self.policies, rng, kinds), patience_s=patience_s)
        self.gates = Gatekeeper(self)
        self._due: list[tuple[float, int, Ticket]] = []
        self._deadlines: list[Dated] = []
        self._seq = 0
        self._pins = 0

    def ticket(self, id: Hashable) -> Ticket:
        try:
            return self.tickets[id]
        except KeyError:
            raise UnknownTicket(id) from None

    # ------------------------------------------------------------------ time

    def advance(self, now: float) -> float:
        """Let everything happen that time alone brings. Time never runs backwards here."""
        if not now > self.now:
            if now != now:
                raise ValueError("now is not a number")
            if self.admission.atlas.fresh:
                self.admission.wind_up(self.now)
            return self.now
        self.now = now
        self.admission.wind_up(now)
        self.admission.advance(now)
        for permit in self.leases.expired(now):
            self._end(permit, Outcome.lost(), now)
        self._look_at_deadlines(now)
        due = self._due
        while due and due[0][0] <= now:
            entry = heappop(due)
            if entry[2].entry is entry:
                self._step(entry[2], Event.DUE, now)
        return now

    def _look_at_deadlines(self, now: float) -> None:
        deadlines, risen = self._deadlines, 0
        while deadlines and deadlines[0][0] <= now and risen < RISE_AT_ONCE:
            entry = heappop(deadlines)
            ticket = entry[2]
            if self._outlived(entry):
                continue
            if now < ticket.deadline:
                risen += 1
                self._rise(ticket, now)
                self._note_deadline(ticket, ticket.deadline)
            elif ticket.state is not State.RUNNING:
                self._step(ticket, Event.DEADLINE, now)

    def _rise(self, ticket: Ticket, now: float) -> None:
        """Its deadline is near: it goes before what else its tenant has waiting."""
        if ticket.state is State.QUEUED and ticket.rank > PINNED:
            rank = FOREMOST + ticket.rises_at / self.age_s
            if rank < ticket.rank:
                self.admission.unreserve(ticket, now)
                self.admission.move(ticket, rank, now)

    def next_wakeup(self) -> float:
        """When the core must be asked again if nothing happens before. Infinity: never."""
        due = self._due
        while due and due[0][2].entry is not due[0]:
            heappop(due)
        deadlines = self._deadlines
        while deadlines and self._outlived(deadlines[0]):
            heappop(deadlines)
        return min(
            due[0][0] if due else INF,
            deadlines[0][0] if deadlines else INF,
            self.leases.next_at(),
            self.admission.next_alarm(self.now),
        )

    def _set_due(self, ticket: Ticket) -> None:
        ticket.entry = entry = (ticket.not_before, ticket.seq, ticket)
        heappush(self._due, entry)
        if len(self._due) > 2 * len(self.tickets) + 64:
            self._due = sorted(each for each in self._due if each[2].entry is each)

    def _set_deadline(self, ticket: Ticket, since: float) -> None:
        if ticket.deadline < INF:
            since = max(ticket.not_before, since)
            ticket.rises_at = since + RISES_AFTER * max(0.0, ticket.deadline - since)
            self._note_deadline(ticket, min(ticket.rises_at, ticket.deadline))
            if len(self._deadlines) > 2 * len(self.tickets) + 64:
                live = [each for each in self._deadlines if not self._outlived(each)]
                self._deadlines = sorted(live)

    def _note_deadline(self, ticket: Ticket, at: float) -> None:
        self.admission.count += 1
        heappush(self._deadlines, (at, self.admission.count, ticket, ticket.deadline))

    def _outlived(self, entry: Dated) -> bool:
        """Whether an entry of the calendar speaks of a ticket that has ended, or of an old date."""
        ticket = entry[2]
        return self.tickets.get(ticket.id) is not ticket or ticket.deadline != entry[3]

    # ------------------------------------------------------------------ leases

    def _lend(self, permit: Permit, now: float) -> None:
        permit.lease_s = permit.ticket.lease_s or self.lease_s
        permit.hard_end_at = INF if permit.ticket.key is None else now + self.max_key_hold_s
        permit.expires_at = min(now + permit.lease_s, permit.hard_end_at)
        self.leases.add(permit)

    def _held(self, id: Hashable, fence: int, now: float) -> Permit | None:
        """The permit of this ticket and fence if its lease is not over yet."""
        permit = self.leases.permits.get(fence)
        if permit is None or permit.ticket.id != id:
            return None
        if permit.expires_at <= now:  # the calendar looks ten times a second; this is exact
            self._end(permit, Outcome.lost(), now)
            return None
        return permit

    def _end(self, permit: Permit, outcome: Outcome, now: float) -> Change:
        ticket = permit.ticket
        policy = self.retry_policies.get(ticket.type, DEFAULT_POLICY)
        verdict = judge(ticket, outcome, policy, now)
        not_before = verdict.not_before
        if outcome.kind is Kind.PUSHBACK:
            # Close before the place is given back, so that nobody slips in.
            not_before = max(not_before, self.gates.push_back(permit, outcome, now))
        elif outcome.kind is Kind.OK:
            self.gates.answered(permit)
        self.leases.remove(permit)
        ticket.permit = None
        self.admission.give(permit, outcome, now)
        ticket.not_before = not_before
        change = self._step(ticket, verdict.event, now, outcome.error, permit.fence)
        change.permit = permit
        return change

    # ------------------------------------------------------------------ transitions

    def _step(
        self, ticket: Ticket, event: Event, now: float, detail: str = "", fence: int = 0
    ) -> Change:
        """The one place where a ticket changes its state."""
        before = ticket.state
        state = after(before, event)
        if before is State.QUEUED:
            ticket.state = state  # before leaving, so that its key's order passes it over
            self._withdraw(ticket, now)
        ticket.entry = None
        if state is State.PENDING:
            return self._enter(ticket, before, event, now, detail, fence)
        ticket.state = state
        ticket.since = now
        change = Change(ticket, before, event, state, now, detail, fence)
        self.changes.append(change)
        if state is State.QUEUED:
            ticket.rank = self._rank(ticket, now)
            self.admission.join(ticket, now)
        elif state in TERMINAL:
            del self.tickets[ticket.id]
        ticket.asked = None
        if ticket.ordered is not None:
            self._reorder(ticket, now)
        return change

    def _enter(
        self,
        ticket: Ticket,
        before: State | None,
        event: Event | None,
        now: float,
        detail: str,
        fence: int = 0,
    ) -> Change:
        """Into `pending`, or straight into `queued` when it is due."""
        ticket.asked = None
        ticket.since = now
        if ticket.not_before > now:
            ticket.state = State.PENDING
            self._set_due(ticket)
        else:
            ticket.state = State.QUEUED
            ticket.rank = self._rank(ticket, now)
            self.admission.join(ticket, now)
        change = Change(ticket, before, event, ticket.state, now, detail, fence)
        self.changes.append(change)
        if ticket.ordered is not None:
            self._reorder(ticket, now)
        return change

    def _withdraw(self, ticket: Ticket, now: float) -> None:
        self.admission.unreserve(ticket, now)
        self.admission.withdraw(ticket, now)

    def _reorder(self, ticket: Ticket, now: float) -> None:
        """An ordered key looks again who is first whenever one of its tickets has moved."""
        if ticket.ordered == "hold" and ticket.state in (State.PENDING, State.PAUSED):
            self.admission.blocks(ticket)
        key = self.admission.atlas.key(str(ticket.key))
        self.admission.next_in_order(key, now)
        if ticket.state in TERMINAL:
            self.admission.atlas.release_key(key.name)

    def _rank(self, ticket: Ticket, now: float) -> float:
        if ticket.rank <= PINNED:
            return ticket.rank  # a pin outlives retries
        return self._unpinned_rank(ticket, now)

    def _unpinned_rank(self, ticket: Ticket, since: float) -> float:
        """By priority, and by how long it has waited. One whose deadline is near is as good as a
        foremost one that came when it began to rise.
        """
        rank = ticket.priority + since / self.age_s
        if ticket.rises_at > self.now:
            return rank
        return min(rank, FOREMOST + ticket.rises_at / self.age_s)
