"""Tickets in lines: joining, leaving, another rank, and the strict order of a key."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from headway.core.lifecycle import State
from headway.core.lines import Flow, KeyGate, Line, Stand
from headway.core.order import Group
from headway.core.places import Places
from headway.core.ticket import Ticket


class Standing(Places):
    # ------------------------------------------------------------------ joining

    def join(self, ticket: Ticket, now: float) -> None:
        """The ticket is due: let it wait its turn."""
        if ticket.ordered is None:
            self._place(ticket, now)
        else:
            self._count_in(ticket)
            key = self.atlas.key(str(ticket.key))
            key.ready = _with(key.ready, ticket, {State.QUEUED})
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
            line.flows[address] = flow = Flow(group, address[1])
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
        self._step_out(ticket, now)
        if ticket.ordered is not None:
            if final:
                for line in self.atlas.route(ticket):
                    self._one_less(line.queue.groups[ticket.tenant])
            key = self.atlas.keys.get(str(ticket.key))
            if key is not None and key.candidate is ticket:
                key.candidate = None
                self.next_in_order(key, now)

    def reroute(self, ticket: Ticket, upstreams: tuple[str, ...], now: float) -> None:
        """Let a waiting ticket stand at other upstreams. In the order of its key it stays where it
        is.
        """
        stood = self._step_out(ticket, now)
        if ticket.ordered is not None:
            for line in self.atlas.route(ticket):
                self._one_less(line.queue.groups[ticket.tenant])
        ticket.upstreams = upstreams
        if ticket.ordered is not None:
            self._count_in(ticket)
        if stood:
            self._place(ticket, now)

    def _count_in(self, ticket: Ticket) -> None:
        """An ordered one counts as waiting, wherever it stands."""
        for line in self.atlas.route(ticket):
            line.waiting += 1
            line.queue.group(ticket.tenant).waiting += 1

    def _step_out(self, ticket: Ticket, now: float) -> bool:
        """False: it stood in no line, for others of its key are first."""
        place, ticket.place = ticket.place, None
        if type(place) is list:
            for stand in place:
                self._take_out(stand, stand.place, now)
        elif place is not None:
            self._take_out(ticket, place, now)
        return place is not None

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
            del queue.groups[group.tenant]
            if group.stands_at is not None:
                group.stands_at.waiters.remove(group)
                group.stands_at = None

    def _take_from_flow(self, flow: Flow, item: Any, now: float) -> None:
        flow.remove(item)
        queue = flow.group.queue
        if not flow.size:
            if flow.stands_at is not None:
                flow.stands_at.waiters.remove(flow)
                flow.stands_at = None
            queue.drop(flow.group, flow)
            del queue.owner.flows[flow.group.tenant, flow.key]
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

    # ------------------------------------------------------------------ strict order of a key

    def blocks(self, ticket: Ticket) -> None:
        """A retrying or paused ticket that asked to hold the ones behind it."""
        key = self.atlas.key(str(ticket.key))
        key.blocking = _with(key.blocking, ticket, {State.PENDING, State.PAUSED})

    def next_in_order(self, key: KeyGate, now: float) -> None:
        """Let the first come of an ordered key, and nobody else of it, stand in line."""
        blocking, ready = key.blocking, key.ready
        while blocking and blocking[0][1].state not in (State.PENDING, State.PAUSED):
            heappop(blocking)
        while ready and ready[0][1].state is not State.QUEUED:
            heappop(ready)
        held_up = not ready or (blocking and blocking[0][0] < ready[0][0])
        first = None if held_up else ready[0][1]
        current = key.candidate
        if first is current:
            return
        key.candidate = None
        if current is not None and current.place is not None:
            self.leave(current, now, final=False)
            self.displaced(current, now)
        key.candidate = first
        if first is not None:
            self._place(first, now)

    def displaced(self, ticket: Ticket, now: float) -> None:
        """An ordered ticket had to make way for an earlier one."""


def _with(
    heap: list[tuple[int, Ticket]], ticket: Ticket, states: set[State]
) -> list[tuple[int, Ticket]]:
    """The heap with one more ticket. At each doubling the stale and the double ones go."""
    if len(heap) >= 64 and len(heap) & (len(heap) - 1) == 0:
        live = {seq: each for seq, each in heap if each.state in states}
        heap = sorted(live.items())
    elif not heap:
        heap = []
    heappush(heap, (ticket.seq, ticket))
    return heap
