"""Who may go now. All gates or none: a ticket takes everything it needs in one step.

After `admit` nobody who may go is left waiting: each ticket stands behind a closed gate, or behind
somebody who goes first. What wakes a ticket is a gate that opens, by a release or by time; nothing
here looks at all tickets.
"""

from __future__ import annotations

from heapq import heappop, heappush, heapreplace
from typing import Any

from headway.core.atlas import Atlas
from headway.core.gate import Gate
from headway.core.lifecycle import State
from headway.core.lines import Flow, Line, SharedGate, Track
from headway.core.order import BOOSTED, Account, Tempo
from headway.core.outcome import Outcome
from headway.core.permit import Permit
from headway.core.reservation import Reserving
from headway.core.ticket import Ticket

INF = float("inf")


class Admission(Reserving):
    def __init__(self, atlas: Atlas, *, patience_s: float) -> None:
        super().__init__(atlas, patience_s)
        self.fence = 0
        self.granted: list[Permit] = []
        self.touched: set[Gate] = set()  # whose memory has changed since somebody stored it
        self.settling: list[tuple[float, int, int, Gate]] = []  # given back, still taking a place

    # ------------------------------------------------------------------ time

    def wind_up(self, now: float) -> None:
        """Let the limits of new gates look at the clock."""
        for gate in self.atlas.fresh:
            self._elapse(gate, now)
        self.atlas.fresh.clear()

    def advance(self, now: float) -> None:
        """Let time open what it opens."""
        alarms, settling = self.alarms, self.settling
        while settling and settling[0][0] <= now:
            _, _, fence, gate = heappop(settling)
            self._vacate(gate, fence, now)
        while alarms and alarms[0][0] <= now:
            at, _, gate = heappop(alarms)
            if at == gate.armed_at:  # otherwise another alarm was set in its place
                gate.armed_at = INF
                self._elapse(gate, now)
                self.gate_changed(gate, now)

    def _elapse(self, gate: Gate, now: float) -> None:
        for limit in gate.limits:
            if limit.changes_at <= now:
                limit.elapse(now)
        gate.refresh()
        self.arm(gate, now)

    def moved(self, gate: Gate, now: float) -> None:
        """The limits of a gate have moved: it may want the clock, or be open wider than before."""
        self.arm(gate, now)
        if gate.waiters or self.reservations:
            self.gate_changed(gate, now)

    def next_alarm(self, now: float) -> float:
        """When time will open something. Alarms that were set for too early are put right here."""
        alarms = self.alarms
        while alarms:
            at, number, gate = alarms[0]
            stale = at != gate.armed_at
            due_at = self.due_at(gate, now)
            if not stale and due_at <= at:
                break
            if not stale:
                gate.armed_at = due_at
            if stale or due_at == INF:
                heappop(alarms)
            else:
                heapreplace(alarms, (due_at, number, gate))
        at = self.settling[0][0] if self.settling else INF
        return min(at, alarms[0][0]) if alarms else at

    # ------------------------------------------------------------------ going

    def admit(self, now: float) -> list[Permit]:
        """Grant whatever can be granted, best first. Call `advance` before."""
        granted: list[Permit] = []
        self.granted = granted
        while self.opened or self.opened_upstreams:
            if self.opened_upstreams:
                self._bring_lines_forward(now)
            if self.opened:
                gates, self.opened = self.opened, {}
                for gate in gates:
                    self._drain(gate, now)
        return granted

    def _bring_lines_forward(self, now: float) -> None:
        """From each upstream that opened let its best line compete in its track. One at a time:
        a line that has gone once steps back if another one at its upstream is better by then.
        """
        upstreams, self.opened_upstreams = self.opened_upstreams, {}
        for upstream in upstreams:
            entry = self.first_waiter(upstream, now)
            if entry is None:
                continue
            line = self.turn(entry[4], upstream, now)
            if line is None:
                continue
            line.wait = None
            line.won = True
            first = line.queue.first(now)
            if first is not None:
                self.file(line, first, now)
            if upstream.waiters:
                self.opened_upstreams[upstream] = None

    def _drain(self, gate: Gate, now: float) -> None:
        """Let the tracks at this gate go, best first, until it closes or none is left."""
        while (entry := self.first_waiter(gate, now)) is not None:
            track = self.turn(entry[4], gate, now)
            if track is None:
                return
            track.wait = None
            if gate not in track.won:
                track.won += (gate,)
            track.running = True
            while self._go(track, now):
                track.won = (gate,)
                if gate.waiters or self.opened_upstreams:
                    track.won = ()
                    self.stand(track, gate, now)
                    break
            track.running = False
            if track.wait is None:
                track.lose()  # nothing left that could use its turns
            if self.opened_upstreams:
                self._bring_lines_forward(now)

    def _go(self, track: Track, now: float) -> bool:
        """Grant one ticket of the track. False if it had to stand somewhere, or has none."""
        leftover = track.leftover
        exempt: Gate | None = None
        for gate in track.gates:
            if len(gate.leases) >= (gate.spare if leftover else gate.room) or gate.opens_at > now:
                if not self.passable(track, gate, now):
                    if gate.opens_at <= now and track.won != (gate,) and not gate.unattended:
                        self.passed_over(self.head(track, now), now)
                    self.stand(track, gate, now)
                    return False
                exempt = gate
            if gate.waiters and gate not in track.won and self.beaten(track, gate, now):
                self.stand(track, gate, now)
                self.opened[gate] = None
                return False
        head = -1
        while True:
            first = track.queue.first(now)
            if first is None:
                return False
            if head < 0:
                head = first[2]
            line = first[3].heap[0][2]
            ticket = self._pick_from(line, now)
            if ticket is None:
                continue
            if ticket.seq != head and self._no_longer_best(track, line, now):
                return False
            if exempt is not None and exempt.reserved_for is not ticket:
                self.file(line, line.queue.first(now), now)
                if self.head(track, now) is exempt.reserved_for:
                    continue  # it stands in another line of this track too
                self.stand(track, exempt, now)
                return False
            self._grant(ticket, line, now)
            return True

    def _no_longer_best(self, track: Track, line: Line, now: float) -> bool:
        """The ticket that its turn came for had to stand aside. Others may go before the next."""
        self.file(line, line.queue.first(now), now)
        for gate in track.gates:
            if gate.waiters and self.beaten(track, gate, now):
                self.stand(track, gate, now)
                self.opened[gate] = None
                return True
        return False

    def _pick_from(self, line: Line, now: float) -> Ticket | None:
        """The ticket of this line that may go now. If there is none the line leaves its track."""
        upstream = line.upstream
        vip: Ticket | None = None
        if upstream is not None:
            held = len(upstream.leases)
            room = upstream.spare if line.leftover else upstream.room
            if held >= room or upstream.opens_at > now:
                if not self.passable(line, upstream, now):
                    if upstream.opens_at <= now:
                        self.passed_over(self.head(line, now), now)
                    self.unfile(line)
                    self.stand(line, upstream, now)
                    return None
                vip = upstream.reserved_for
            if upstream.waiters and not line.won and self.beaten(line, upstream, now):
                self.unfile(line)
                self.stand(line, upstream, now)
                self.opened_upstreams[upstream] = None
                return None
        ticket = self._pick(line, now)
        if ticket is None:
            self.unfile(line)
        elif vip is not None and ticket is not vip:
            self.unfile(line)
            self.stand(line, upstream, now)  # type: ignore[arg-type]
            return None
        return ticket

    def _pick(self, line: Line, now: float) -> Ticket | None:
        """The best ticket whose tenant and key let it pass. The others stand aside."""
        queue = line.queue
        keys = self.atlas.keys
        while (first := queue.first(now)) is not None:
            group = first[3]
            item = group.heap[0][2]  # live: `first` has just looked at it
            account = group.account
            if (
                account is not None
                and (len(account.leases) >= account.room or account.opens_at > now or line.leftover)
                and self._shut(account, item, line.leftover, now)
            ):
                queue.stand_aside(group, account)
                self.arm(account, now)
                continue
            if type(item) is Flow:
                key = keys.get(item.key)
                if (
                    key is not None
                    and (len(key.leases) >= key.room or key.opens_at > now)
                    and self._shut(key, item, False, now)
                ):
                    self._park(item, key, now)
                    continue
                item = item.first()
            ticket: Ticket = item.ticket
            return ticket
        return None

    def _shut(self, gate: Gate, item: Any, leftover: bool, now: float) -> bool:
        held = len(gate.leases)
        if held < (gate.spare if leftover else gate.room) and gate.opens_at <= now:
            return False
        if gate.reserved_for is None or gate.opens_at > now or held >= gate.room + 1:
            return True
        if type(item) is Flow:
            item = item.first()
        return gate.reserved_for is not item.ticket

    def _park(self, flow: Flow, key: Gate, now: float) -> None:
        flow.group.queue.drop(flow.group, flow)
        flow.stands_at = key
        key.hold_up(flow)
        self.arm(key, now)

    # ------------------------------------------------------------------ taking and giving

    def _grant(self, ticket: Ticket, line: Line, now: float) -> None:
        """Take every gate of the ticket in one step."""
        line.won = False
        ticket.passes, ticket.passed_at = 0, INF
        reserved = ticket in self.reservations
        if reserved:
            self.unreserve(ticket, now)
        flow = ticket.place
        group = line.queue.groups[ticket.tenant]
        ticket.state = State.RUNNING
        self.leave(ticket, now)
        permit = self.take(
            ticket, line, now, floor=group.floor, fair=not reserved and ticket.rank >= BOOSTED
        )
        if type(flow) is Flow and flow.size and flow.stands_at is None:
            key = self.atlas.keys[flow.key]
            if len(key.leases) >= key.room or key.opens_at > now:
                self._park(flow, key, now)
        self.granted.append(permit)
        self._beat(permit.accounts[-1], group.waiting, line.waiting, now)
        upstream = line.upstream
        if upstream is not None and (
            len(upstream.leases) >= (upstream.spare if line.leftover else upstream.room)
            or upstream.opens_at > now
        ):
            self.unfile(line)
            if line.waiting:
                self.stand(line, upstream, now)
        elif (first := line.queue.first(now)) is not None:
            self.file(line, first, now)
        else:
            self.unfile(line)

    def _beat(self, account: Account, left: int, left_of_all: int, now: float) -> None:
        """Remember the tempo of grants, here and of this tenant."""
        tempo = account.tempo
        if tempo is None and left > 3:  # for a short queue the holders say enough
            account.tempo = tempo = Tempo()
        if tempo is not None:
            tempo.beat(now, left)
        account.shares.tempo.beat(now, left_of_all)

    def take(
        self, ticket: Ticket, line: Line, now: float, *, floor: float = INF, fair: bool = False
    ) -> Permit:
        """Lease every gate of the ticket, asking none. Also for online calls and for restarts."""
        self.fence = fence = self.fence + 1
        gates = line.gates
        if ticket.key is not None:
            gates = (*gates, self.atlas.key(ticket.key))
        permit = Permit(ticket, fence, now, gates)
        for gate in gates:
            gate.leases[fence] = permit
            if gate.limits:
                self.touched.add(gate)
                gate.taken(now, permit)
                self.moved(gate, now)
        home, upstream = line.track.home, line.upstream
        if upstream is None:
            permit.accounts = (self._charge(permit, home, now, floor, fair),)
        else:
            permit.upstream = upstream
            permit.accounts = (
                self._charge(permit, home, now, INF, fair),
                self._charge(permit, upstream, now, floor, fair),
            )
        permit.gates = gates + permit.accounts
        return permit

    def _charge(
        self, permit: Permit, shared: SharedGate, now: float, floor: float, fair: bool
    ) -> Account:
        """From now on the tenant pays for a place here."""
        ticket = permit.ticket
        shares = shared.shares
        account = shares.accounts.get(ticket.tenant)
        if account is None:
            account = self.atlas.open_account(shared, ticket.tenant, now)
            if floor < INF:
                account.used = floor
        else:
            account.count(now)
        account.weight = ticket.weight
        if fair and account.used > shares.start:
            shares.start = account.used
        account.leases[permit.fence] = permit
        if account.limits:
            self.touched.add(account)
            account.taken(now, permit)
            self.moved(account, now)
        return account

    def give(self, permit: Permit, outcome: Outcome, now: float) -> None:
        """Give every gate back, and wake who waits for them."""
        fence = permit.fence
        held_s = now - permit.granted_at
        for account in permit.accounts:
            account.count(now)
            account.shares.served(account.name, held_s, account.weight)
        account = permit.accounts[-1]
        account.hold_s += (0.2 if account.hold_s else 1.0) * (held_s - account.hold_s)
        for gate in permit.gates:
            if gate.limits:
                self.touched.add(gate)
                free_at = gate.given(now, permit, outcome)
                self.arm(gate, now)
                if free_at > now:
                    self.count += 1
                    heappush(self.settling, (free_at, self.count, fence, gate))
                else:
                    del gate.leases[fence]
            else:
                del gate.leases[fence]
            if gate.waiters or self.reservations:
                self.gate_changed(gate, now)
        for account in permit.accounts:
            if not account.leases:
                account.shares.retire(account)
        if permit.ticket.key is not None:
            self.atlas.release_key(permit.ticket.key)

    def _vacate(self, gate: Gate, fence: int, now: float) -> None:
        """The minimum hold of a place that was given back earlier is over."""
        if type(gate) is Account:
            gate.count(now)
        del gate.leases[fence]
        self.gate_changed(gate, now)
        if type(gate) is Account and not gate.leases:
            gate.shares.retire(gate)
