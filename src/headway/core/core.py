"""The core: tickets in, permits and changes out. It has no clock, no I/O and no randomness of its
own: `now` comes with every call, the random generator with the constructor.

Calls change state and collect what follows in `changes` and `stops`; `admit` then grants whatever
can be granted. A batch is any number of calls followed by one `admit`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from headway.core.change import Change, Refusal, Refused, StopOrder
from headway.core.explain import Explanation, explain
from headway.core.gate import Gate
from headway.core.lifecycle import Event, IllegalTransition, State, after
from headway.core.lifetimes import Lifetimes
from headway.core.lines import Line
from headway.core.order import PINNED
from headway.core.outcome import Outcome
from headway.core.permit import Permit
from headway.core.ticket import INF, Stop, Ticket, check


class Core(Lifetimes):
    """What the engine calls. `gates` has what operators and upstreams do to gates."""

    # ------------------------------------------------------------------ asking

    def submit(self, ticket: Ticket, now: float) -> None:
        """Take a ticket in. Raises before anything has changed."""
        check(ticket)
        now = self.advance(now)
        if ticket.id in self.tickets:
            raise ValueError(f"ticket {ticket.id!r} is open already; ids must be unique")
        if now >= ticket.deadline:
            raise ValueError(f"the deadline of ticket {ticket.id!r} is over")
        if self.policies.limits_waiters and ticket.not_before <= now and ticket.upstreams:
            self._room_to_wait(ticket)
        if ticket.seq == 0:
            ticket.seq = self._seq + 1
        self._seq = max(self._seq, ticket.seq)
        self.tickets[ticket.id] = ticket
        self._set_deadline(ticket, now)
        self._enter(ticket, None, None, now, "")

    def _room_to_wait(self, ticket: Ticket) -> None:
        """Refuse a ticket at an upstream, or a tenant at it, that has too many waiters."""
        for name in ticket.upstreams:
            policy = self.admission.atlas.gate("upstream", name).policy
            tenant_max = policy.for_tenant(ticket.tenant).max_waiters
            if policy.max_waiters is None and tenant_max is None:
                return
            all_waiting, of_tenant = self.gates.waiting(name, ticket.tenant)
            if policy.max_waiters is not None and all_waiting >= policy.max_waiters:
                continue
            if tenant_max is None or of_tenant < tenant_max:
                return
        raise Refused(f"too many wait at {' and '.join(ticket.upstreams)} already")

    def admit(self, now: float) -> list[Permit]:
        """Grant all that may go now, best first."""
        now = self.advance(now)
        permits = self.admission.admit(now)
        for permit in permits:
            ticket = permit.ticket
            ticket.permit = permit
            permit.waited_s = now - ticket.since
            ticket.since = now
            self._lend(permit, now)
            self.changes.append(
                Change(ticket, State.QUEUED, Event.GRANT, State.RUNNING, now, "", permit.fence)
            )
        return permits

    def call(self, ticket: Ticket, now: float) -> Permit | Refusal:
        """An online call: goes at once and is counted, or is refused; it never waits."""
        check(ticket)
        now = self.advance(now)
        if ticket.id in self.tickets:
            raise ValueError(f"ticket {ticket.id!r} is open already; ids must be unique")
        refusals: list[Refusal] = []
        for line in self.admission.atlas.route(ticket):
            refusal = self.gates.refuses_online(line, ticket, now)
            if refusal is None:
                return self._call_through(ticket, line, now)
            refusals.append(refusal)
        return min(refusals, key=lambda refusal: refusal.until)

    def _call_through(self, ticket: Ticket, line: Line, now: float) -> Permit:
        ticket.retries = False
        self._seq = ticket.seq = self._seq + 1
        self.tickets[ticket.id] = ticket
        return self._run(ticket, line, now)

    def _run(self, ticket: Ticket, line: Line, now: float) -> Permit:
        """Start a ticket without asking any gate."""
        permit = self.admission.take(ticket, line, now)
        ticket.state, ticket.since, ticket.permit = State.RUNNING, now, permit
        self._lend(permit, now)
        self.changes.append(Change(ticket, None, Event.GRANT, State.RUNNING, now, "", permit.fence))
        return permit

    def replay(self, ticket: Ticket, state: State, now: float, *, since: float) -> None:
        """Take back a ticket that waited before a restart, where and since when it stood."""
        check(ticket)
        now = self.advance(now)
        if ticket.id in self.tickets:
            raise ValueError(f"ticket {ticket.id!r} is open already; ids must be unique")
        self._seq = max(self._seq, ticket.seq)
        self.tickets[ticket.id] = ticket
        ticket.state, ticket.since = state, since
        self._set_deadline(ticket, since)
        if state is State.PENDING:
            self._set_due(ticket)
        elif state is State.QUEUED:
            ticket.rank = self._rank(ticket, since)
            self.admission.join(ticket, now)
        if ticket.ordered is not None:
            self._reorder(ticket, now)

    def replay_pin(self, ticket: Ticket, pin: int) -> None:
        """A ticket that is about to be replayed had this pin; the highest goes first."""
        self._pins = max(self._pins, pin)
        ticket.rank = PINNED - pin

    def restore(
        self,
        ticket: Ticket,
        now: float,
        *,
        fence: int,
        upstream: str | None,
        granted_at: float,
        expires_at: float,
    ) -> Permit:
        """Replay a live lease after a restart: it holds its gates whatever their caps are now."""
        check(ticket)
        now = self.advance(now)
        if ticket.id in self.tickets or fence in self.leases.permits:
            raise ValueError(f"ticket {ticket.id!r} or fence {fence} is there already")
        self._seq = max(self._seq, ticket.seq)
        line = self.admission.atlas.line_to(ticket, upstream)
        newest = self.admission.fence
        self.admission.fence = fence - 1
        self.tickets[ticket.id] = ticket
        permit = self._run(ticket, line, now)
        self.admission.fence = max(newest, fence)
        self.leases.remove(permit)
        permit.granted_at = ticket.since = granted_at
        permit.hard_end_at += granted_at - now
        permit.expires_at = min(expires_at, permit.hard_end_at)
        self.leases.add(permit)
        self.changes.pop()
        self._set_deadline(ticket, granted_at)
        return permit

    # ------------------------------------------------------------------ reporting

    def finish(self, id: Hashable, fence: int, outcome: Outcome, now: float) -> Change | None:
        """An attempt ended. None: the fence is stale, and nothing has changed."""
        now = self.advance(now)
        permit = self._held(id, fence, now)
        return None if permit is None else self._end(permit, outcome, now)

    def holds(self, id: Hashable, fence: int, now: float) -> bool:
        """Whether this fence is the ticket's, and its lease not over."""
        return self._held(id, fence, self.advance(now)) is not None

    def heartbeat(self, id: Hashable, fence: int, now: float) -> float | None:
        """Prolong a lease. Returns its new end; None: it is over, stop working."""
        now = self.advance(now)
        permit = self._held(id, fence, now)
        if permit is None:
            return None
        permit.expires_at = min(now + permit.lease_s, permit.hard_end_at)
        self.leases.renewed(permit)
        return permit.expires_at

    def renew(self, fences: Iterable[int], now: float) -> None:
        """Prolong the leases of holders that are alive for certain, before time passes: whoever
        calls may have stood still for longer than a lease, and that is not their fault.
        """
        for fence in fences:
            permit = self.leases.permits.get(fence)
            if permit is not None:
                permit.expires_at = min(now + permit.lease_s, permit.hard_end_at)
                self.leases.renewed(permit)

    # ------------------------------------------------------------------ operators

    def cancel(self, id: Hashable, now: float, why: str = "") -> State:
        """Cancel what waits at once; ask what runs to stop, and wait for its word."""
        return self._ask(id, Stop.CANCEL, Event.CANCEL, now, why)

    def pause(self, id: Hashable, now: float) -> State:
        """Set aside what waits at once; ask what runs to stop at its next checkpoint."""
        return self._ask(id, Stop.PAUSE, Event.PAUSE, now)

    def _ask(self, id: Hashable, stop: Stop, event: Event, now: float, why: str = "") -> State:
        now = self.advance(now)
        ticket = self.ticket(id)
        if ticket.state is not State.RUNNING:
            self._step(ticket, event, now, why)
        elif ticket.permit is not None and ticket.asked not in (stop, Stop.CANCEL):
            ticket.asked = stop
            self.stops.append(StopOrder(ticket.permit, stop))
        return ticket.state

    def resume(self, id: Hashable, now: float) -> State:
        now = self.advance(now)
        ticket = self.ticket(id)
        if ticket.state is State.RUNNING and ticket.asked is Stop.PAUSE:
            ticket.asked = None  # it may have stopped already; then it just comes back
        else:
            self._step(ticket, Event.RESUME, now)
        return ticket.state

    def prioritise(self, id: Hashable, priority: int, now: float) -> None:
        """Give another priority; also takes a pin off."""
        now = self.advance(now)
        ticket = self.ticket(id)
        if not -1e9 < priority < 1e9:
            raise ValueError(f"priority must be a plain number, not {priority!r}")
        ticket.priority = priority
        since = ticket.since if ticket.state is State.QUEUED else now
        self._move(ticket, self._unpinned_rank(ticket, since), now)

    def pin(self, id: Hashable, now: float) -> int:
        """To the front, before everybody; the last pin goes first. Returns its number."""
        now = self.advance(now)
        ticket = self.ticket(id)
        self._pins += 1
        self._move(ticket, PINNED - self._pins, now)
        return self._pins

    def unpin(self, id: Hashable, now: float) -> bool:
        """Back to the place that it would have without its pin. False: it has none."""
        now = self.advance(now)
        ticket = self.ticket(id)
        # One for which openings are kept has another rank meanwhile, whether it is pinned or not.
        if self.admission.rank_before.get(ticket, ticket.rank) > PINNED:
            return False
        since = ticket.since if ticket.state is State.QUEUED else now
        self._move(ticket, self._unpinned_rank(ticket, since), now)
        return True

    def _move(self, ticket: Ticket, rank: float, now: float) -> None:
        self.admission.unreserve(ticket, now)
        self.admission.move(ticket, rank, now)

    def retry(self, ticket: Ticket, now: float) -> None:
        """An operator gives an ended ticket a new round of attempts."""
        now = self.advance(now)
        if ticket.id in self.tickets:
            raise IllegalTransition(ticket.state, Event.RETRY_BY_OPERATOR)
        after(ticket.state, Event.RETRY_BY_OPERATOR)
        if now >= ticket.deadline:
            raise ValueError(f"the deadline of ticket {ticket.id!r} is over; give it a new one")
        ticket.tries = None
        ticket.not_before = now
        self.tickets[ticket.id] = ticket
        self._set_deadline(ticket, now)
        self._step(ticket, Event.RETRY_BY_OPERATOR, now)

    def reroute(self, id: Hashable, upstreams: tuple[str, ...], now: float) -> None:
        """Other upstreams for a ticket, in the place that it has; one that runs ends where it
        is.
        """
        now = self.advance(now)
        ticket = self.ticket(id)
        if ticket.upstreams == upstreams:
            ticket.upstreams = upstreams
            return
        if ticket.state is State.QUEUED:
            self.admission.unreserve(ticket, now)
            self.admission.reroute(ticket, upstreams, now)
        else:
            ticket.upstreams = upstreams

    def reschedule(self, id: Hashable, not_before: float, now: float) -> State:
        """Another time for a ticket that is not running."""
        now = self.advance(now)
        if not not_before < INF:
            raise ValueError(f"not_before must be a plain number, not {not_before!r}")
        ticket = self.ticket(id)
        if ticket.state is State.PENDING:
            ticket.not_before = not_before
            if not_before < ticket.deadline <= ticket.rises_at:  # it waited for others until now
                self._set_deadline(ticket, now)
            if not_before <= now:
                self._step(ticket, Event.DUE, now)
            else:
                self._set_due(ticket)
        elif ticket.state is State.PAUSED:
            ticket.not_before = not_before
        elif not_before > now:
            after(ticket.state, Event.POSTPONE)
            ticket.not_before = not_before
            self._step(ticket, Event.POSTPONE, now)
        return ticket.state

    # ------------------------------------------------------------------ looking

    def explain(self, id: Hashable, now: float) -> Explanation:
        """Why this ticket waits, since when, in which place, and when it should start."""
        return explain(self, self.ticket(id), self.advance(now))

    def gate(self, kind: str, name: str) -> Gate:
        return self.admission.atlas.gate(kind, name)

    def sweep(self, now: float) -> None:
        """Forget gates and lines that nobody would miss. Call it once in a while."""
        self.admission.atlas.sweep(self.advance(now))
