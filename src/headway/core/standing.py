"""Joining and leaving: puts tickets where they wait and takes them out again.

What changes on the way up is told to the line and the track, so that afterwards each of them is
filed under its true head, stands at a gate, or is idle.
"""

from __future__ import annotations

from heapq import heappop, heappush, heapreplace
from typing import Any

from headway.core.atlas import Atlas
from headway.core.gate import NOBODY, Gate, Holds
from headway.core.lifecycle import State
from headway.core.lines import (
    Flow,
    KeyGate,
    Line,
    Stand,
    Track,
)
from headway.core.order import Group
from headway.core.ticket import Ticket

INF = float("inf")
ALONE = -1


class Standing:
    """Base of `Admission`: everything about waiting, nothing about going."""

    def __init__(self, atlas: Atlas, patience_s: float) -> None:
        self.atlas = atlas
        self.patience_s = patience_s  # how long a ticket is passed over before places are kept
        self.opened: dict[Gate, None] = {}  # gates whose tracks are to be looked at
        self.opened_upstreams: dict[Gate, None] = {}  # the same for lines
        self.alarms: list[tuple[float, int, Gate]] = []
        self.count = 0  # lets equal times tie in the heaps of the clock
        self.reservations: dict[Ticket, tuple[Line, tuple[Gate, ...]]] = {}
        self.rank_before: dict[Ticket, float] = {}  # of those that have a reservation

    # ------------------------------------------------------------------ joining

    def join(self, ticket: Ticket, now: float) -> None:
        """The ticket is due: let it wait its turn."""
        if ticket.ordered is None:
            self._place(ticket, now)
        else:
            for line in self.atlas.route(ticket):  # it counts as waiting, wherever it stands
                line.waiting += 1
                line.queue.group(ticket.tenant).waiting += 1
            key = self.atlas.key(str(ticket.key), now)
            heappush(key.ready, (ticket.seq, ticket))
            self.next_in_order(key, now)

    def _place(self, ticket: Ticket, now: float) -> None:
        route = self.atlas.route(ticket)
        if len(route) == 1:
            self._put(route[0], ticket, ticket, now)
            return
        ticket.place = stands = [Stand(ticket, line) for line in route]
        for stand in stands:
            self._put(stand.line, stand, ticket, now)

    def _put(self, line: Line, item: Any, ticket: Ticket, now: float) -> None:
        queue = line.queue
        group = queue.group(ticket.tenant)
        if ticket.ordered is None:
            group.waiting += 1
            line.waiting += 1
        if ticket.key is None:
            item.place = group
            changed = queue.put(group, item, ticket.rank, ticket.seq, now)
        else:
            changed = self._put_in_flow(line, group, item, ticket, now)
        # Most tickets queue up behind others of their line: then nothing above changes.
        if group.stands_at is not None:
            self._look_again(group, now)
        elif changed:
            top = queue.heap[0]
            if line.entry is None or top[3] is group or top[3].entry is not top:
                self.line_changed(line, now)

    def _put_in_flow(self, line: Line, group: Group, item: Any, ticket: Ticket, now: float) -> bool:
        address = (ticket.tenant, str(ticket.key))
        flow = line.flows.get(address)
        if flow is None:
            line.flows[address] = flow = Flow(line, group, address[1])
        item.place = flow
        if not flow.add(item, ticket.rank, ticket.seq) or flow.stands_at is not None:
            return False
        return line.queue.put(group, flow, ticket.rank, ticket.seq, now)

    # ------------------------------------------------------------------ leaving

    def withdraw(self, ticket: Ticket, now: float) -> None:
        """Take a waiting ticket out for good; who stood behind it moves up."""
        place = ticket.place
        self.leave(ticket, now)
        for each in [stand.place for stand in place] if type(place) is list else [place]:
            if each is not None:
                group = each.group if type(each) is Flow else each
                self.line_changed(group.queue.owner, now)

    def leave(self, ticket: Ticket, now: float, *, final: bool = True) -> None:
        """Take a waiting ticket out of every line it stands in."""
        place = ticket.place
        ticket.place = None
        if type(place) is list:
            for stand in place:
                self._take_out(stand, stand.place, now)
        elif place is not None:
            self._take_out(ticket, place, now)
        if ticket.ordered is not None:
            if final:
                for line in self.atlas.route(ticket):
                    self._one_less(line.queue.groups[ticket.tenant])
            key = self.atlas.keys.get(str(ticket.key))
            if key is not None and key.candidate is ticket:
                key.candidate = None
                self.next_in_order(key, now)

    def _take_out(self, item: Any, place: Flow | Group, now: float) -> None:
        if isinstance(place, Flow):
            group = place.group
            self._take_from_flow(place, item, now)
        else:
            group = place
            group.queue.drop(group, item)
        if item.ticket.ordered is None:
            self._one_less(group)

    def _one_less(self, group: Group) -> None:
        queue = group.queue
        queue.owner.waiting -= 1
        group.waiting -= 1
        if not group.waiting:
            queue.discard(group)
            if group.stands_at is not None:
                group.stands_at.waiters.remove(group)
                group.stands_at = None

    def _take_from_flow(self, flow: Flow, item: Any, now: float) -> None:
        item.entry = None
        flow.size -= 1
        queue = flow.line.queue
        if not flow.size:
            if flow.stands_at is not None:
                flow.stands_at.waiters.remove(flow)
                flow.stands_at = None
            queue.drop(flow.group, flow)
            del flow.line.flows[flow.group.tenant, flow.key]
        elif flow.stands_at is None:
            head = flow.head()
            if flow.entry is not None and head[1] != flow.entry[1]:
                queue.put(flow.group, flow, head[0], head[1], now)

    def move(self, ticket: Ticket, rank: float, now: float) -> None:
        """Give a waiting ticket another rank."""
        if ticket.place is None:
            ticket.rank = rank
            return
        ticket.rank = rank
        self.leave(ticket, now, final=False)
        if ticket.ordered is None:  # an ordered one was put back in its order by leaving
            self._place(ticket, now)

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

    # ------------------------------------------------------------------ strict order of a key

    def blocks(self, ticket: Ticket, now: float) -> None:
        """A retrying or paused ticket that asked to hold the ones behind it."""
        key = self.atlas.key(str(ticket.key), now)
        heappush(key.blocking, (ticket.seq, ticket))

    def next_in_order(self, key: KeyGate, now: float) -> None:
        """Let the first come of an ordered key, and nobody else of it, stand in line."""
        blocking, ready = key.blocking, key.ready
        while blocking and blocking[0][1].state not in (State.PENDING, State.PAUSED):
            heappop(blocking)
        while ready and ready[0][1].state is not State.QUEUED:
            heappop(ready)
        if not ready or (blocking and blocking[0][0] < ready[0][0]):
            first = None
        else:
            first = ready[0][1]
        current = key.candidate
        if first is current:
            return
        key.candidate = None
        if current is not None and current.place is not None:
            self.leave(current, now, final=False)
            self.unreserve(current, now)
        key.candidate = first
        if first is not None:
            self._place(first, now)

    # ------------------------------------------------------------------ what changes above

    def line_changed(self, line: Line, now: float) -> None:
        """A line has a new head: file it under that, or let it stand at its upstream."""
        upstream = line.upstream
        if line.wait is not None:
            self._move_up(line, now)
            return
        first = line.queue.first(now)
        if first is None:
            self.unfile(line)
            return
        if line.entry is None and upstream is not None:
            held = len(upstream.leases)
            if (
                upstream.waiters
                or held >= (upstream.spare if line.leftover else upstream.room)
                or upstream.opens_at > now
            ):
                self.stand(line, upstream, now)
                self.opened_upstreams[upstream] = None
                return
        self.file(line, first, now)

    def file(self, line: Line, first: Any, now: float) -> None:
        """Let a line compete in its track under the tenant and rank of its head."""
        track = line.track
        queue = track.queue
        tenant = first[3].tenant
        group = line.filed
        if group is None or group.tenant != tenant:
            if group is not None:
                queue.drop(group, line)
            line.filed = group = queue.group(tenant)
        entry = line.entry
        if entry is None or entry[0] != first[1] or entry[1] != first[2]:
            queue.put(group, line, first[1], first[2], now)
        self.track_changed(track, now)

    def unfile(self, line: Line) -> None:
        if line.filed is not None:
            line.track.queue.drop(line.filed, line)
            line.filed = None

    def track_changed(self, track: Track, now: float) -> None:
        wait = track.wait
        if track.running:
            return
        if wait is None:
            self.stand(track, track.home, now)
            self.opened[track.home] = None
        else:
            self._move_up(track, now)

    def _move_up(self, node: Track | Line, now: float) -> None:
        """A node that stands at a gate may have a better head than it stood up with."""
        entry = node.wait
        gate = entry[5]
        if len(gate.waiters) > 1 or entry[0] != ALONE:
            self.stand(node, gate, now)
        # It may pass where its old head could not: a place kept for it, or one that leftover
        # work, which is all that stood there, may not use.
        if gate.reserved_for is not None or len(gate.leases) < gate.room:
            self.gate_changed(gate, now)

    # ------------------------------------------------------------------ standing at gates

    def stand(self, node: Track | Line, gate: Gate, now: float) -> None:
        """Wait at a gate, in order. Also moves up a node whose head has become better."""
        if gate.opens_at > now or len(gate.leases) >= gate.room:
            node.lose()
        waiters = gate.waiters
        if waiters:
            key = self.key_of(node, now)
        else:
            key = (ALONE, 0.0, 0.0, 0)  # nobody to compare with yet
            if waiters is NOBODY:
                gate.waiters = waiters = []
        node.wait = entry = (*key, node, gate)
        if len(waiters) > 64 and len(waiters) > 4 * sum(e[4].wait is e for e in waiters):
            waiters[:] = sorted(e for e in waiters if e[4].wait is e)
        heappush(waiters, entry)
        if gate.opens_at > now:
            self.arm(gate, now)

    def key_of(self, node: Track | Line, now: float) -> tuple[int, float, float, int]:
        first = node.queue.first(now)
        if first is None:
            return (9, INF, INF, 0)
        return (node.traffic, first[0], first[1], first[2])

    def first_waiter(self, gate: Gate, now: float) -> Any:
        """The live entry of the best node that stands here, or None."""
        waiters = gate.waiters
        while waiters:
            entry = waiters[0]
            node = entry[4]
            if node.wait is not entry:
                heappop(waiters)
                continue
            if len(waiters) == 1:
                return entry
            key = self.key_of(node, now)
            if key != entry[:4]:
                node.wait = entry = (*key, node, gate)
                heapreplace(waiters, entry)
                continue
            return entry
        return None

    def beaten(self, node: Track | Line, gate: Gate, now: float) -> bool:
        """Whether somebody who stands at the gate goes before this node."""
        entry = self.first_waiter(gate, now)
        if entry is None:
            return False
        if len(gate.waiters) == 1:
            return self.key_of(entry[4], now) < self.key_of(node, now)
        return bool(entry[:4] < self.key_of(node, now))

    # ------------------------------------------------------------------ waking

    def gate_changed(self, gate: Gate, now: float) -> None:
        """The gate may be open now: wake whoever stands there, or set the clock."""
        if self.reservations and gate.opens_at > now + self.patience_s:
            self._give_up_reservations(gate, now)
        if not gate.waiters:
            return
        if gate.opens_at > now:
            self.arm(gate, now)
            return
        holds = gate.holds
        if holds is Holds.TRACKS:
            self.opened[gate] = None
        elif holds is Holds.LINES:
            self.opened_upstreams[gate] = None
        elif len(gate.leases) < gate.room or gate.reserved_for is not None:
            waiters, gate.waiters = gate.waiters, NOBODY
            for node in waiters:
                node.stands_at = None
                if holds is Holds.GROUPS:
                    self._wake_group(node, now)
                else:
                    self._wake_flow(node, now)

    def _give_up_reservations(self, gate: Gate, now: float) -> None:
        """Do not let kept places stand idle while their owner waits for the clock elsewhere."""
        for ticket, (line, kept) in list(self.reservations.items()):
            account = line.queue.shares.accounts.get(ticket.tenant)
            if gate is account or gate in kept or gate in line.gates:
                self.unreserve(ticket, now)

    def _wake_group(self, group: Group, now: float) -> None:
        if group.size:
            head = group.head()
            group.queue.enter(group, head[0], head[1], now)
            self.line_changed(group.queue.owner, now)

    def _wake_flow(self, flow: Flow, now: float) -> None:
        head = flow.head()
        flow.line.queue.put(flow.group, flow, head[0], head[1], now)
        if flow.group.stands_at is not None:
            self._look_again(flow.group, now)
        else:
            self.line_changed(flow.line, now)

    def _look_again(self, group: Group, now: float) -> None:
        """The group stands aside, but its place may be kept for the one who has just joined."""
        if group.stands_at is not None and group.stands_at.reserved_for is not None:
            self.gate_changed(group.stands_at, now)

    def arm(self, gate: Gate, now: float) -> None:
        """Have the clock look at this gate when it opens."""
        at = self.due_at(gate, now)
        if now < at < gate.armed_at:
            gate.armed_at = at
            self.count += 1
            heappush(self.alarms, (at, self.count, gate))

    def due_at(self, gate: Gate, now: float) -> float:
        """When time alone changes something about this gate that anybody waits for."""
        at = gate.opens_at if gate.waiters and gate.opens_at > now else INF
        for limit in gate.limits:
            if now < limit.changes_at < at:
                at = limit.changes_at
        return at
