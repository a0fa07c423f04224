"""Nodes at gates: how lines and tracks stand, in which order, and how they are woken.

A node (a track or a line) competes inside the one above it, stands at the gate that holds it back,
or is idle. Nothing here knows of single tickets.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush, heapreplace
from typing import Any

from headway.core.atlas import Atlas
from headway.core.gate import NOBODY, Gate, Holds
from headway.core.lines import Flow, Line, Track
from headway.core.order import Group

INF = float("inf")
ALONE = -1


class Places:
    def __init__(self, atlas: Atlas) -> None:
        self.atlas = atlas
        self.opened: dict[Gate, None] = {}  # gates whose tracks are to be looked at
        self.opened_upstreams: dict[Gate, None] = {}  # the same for lines
        self.alarms: list[tuple[float, int, Gate]] = []
        self.count = 0  # lets equal times tie in the heaps of the clock

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
        line.won = False
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
        heappush(waiters, entry)
        if len(waiters) >= 64 and len(waiters) & (len(waiters) - 1) == 0:  # at each doubling
            waiters[:] = sorted(each for each in waiters if each[4].wait is each)
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

    def _wake_group(self, group: Group, now: float) -> None:
        if group.size:
            head = group.head()
            group.queue.enter(group, head[0], head[1], now)
            self.line_changed(group.queue.owner, now)

    def _wake_flow(self, flow: Flow, now: float) -> None:
        head = flow.head()
        queue = flow.group.queue
        queue.put(flow.group, flow, head[0], head[1], now)
        if flow.group.stands_at is not None:
            self._look_again(flow.group, now)
        else:
            self.line_changed(queue.owner, now)

    def _look_again(self, group: Group, now: float) -> None:
        """The group stands aside, but its place may be kept for the one who has just joined."""
        if group.stands_at is not None and group.stands_at.reserved_for is not None:
            self.gate_changed(group.stands_at, now)

    def gather(self, gates: Iterable[Gate], at: Gate, now: float) -> None:
        """These gates open together. Let the tracks that stand there stand at one that all of them
        need, so that the best goes first whichever gate it stood at. It is looked at last: others
        that are on their way to it are compared, too.
        """
        for gate in gates:
            waiters, gate.waiters = gate.waiters, NOBODY
            for entry in waiters:
                track = entry[4]
                if track.wait is entry:
                    self.stand(track, at if at in track.gates else track.home, now)
                    if track.wait[5] is not at:
                        self.opened[track.home] = None
        if at.waiters:
            self.opened.pop(at, None)
            self.gate_changed(at, now)

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
