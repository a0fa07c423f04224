"""Where tickets wait. Tickets that need the same gates stand together, so that a closed gate holds
a whole line at once and never touches a ticket.

    Track   type, lane, tools   everything that tickets of many upstreams share
      Line    upstream            fair between tenants at the upstream
        Group   tenant there        by rank
          Flow    key                 by rank; only its head stands in the group
            Ticket

Each of them either competes inside the one above it or stands at the gate that holds it back.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from headway.core.gate import NOBODY, Gate, Holds, Limit
from headway.core.order import FairQueue, Group, Peer, Shares
from headway.core.policy import GatePolicy
from headway.core.ticket import Ticket, Traffic


class SharedGate(Gate):
    """A lane or an upstream: a gate that tenants share fairly."""

    __slots__ = ("lines", "shares")

    def __init__(self, kind: str, name: str, policy: GatePolicy, limits: tuple[Limit, ...]) -> None:
        super().__init__(kind, name, policy, limits)
        self.shares = Shares(name, keeps_idle=kind == "lane")
        self.lines: list[Line] = []


class Upstream(SharedGate):
    __slots__ = ()
    holds = Holds.LINES


class KeyGate(Gate):
    """The mutex of a key, and the strict order of those who asked for one."""

    __slots__ = ("blocking", "candidate", "ready")
    holds = Holds.FLOWS

    def __init__(self, kind: str, name: str, policy: GatePolicy, limits: tuple[Limit, ...]) -> None:
        super().__init__(kind, name, policy, limits)
        self.ready: list[tuple[int, Ticket]] = NOBODY  # ordered ones that are due, by arrival
        self.blocking: list[tuple[int, Ticket]] = NOBODY  # retrying or paused, holding the others
        self.candidate: Ticket | None = None  # the one ordered ticket that stands in line

    def empty(self) -> bool:
        return (
            self.candidate is None
            and not self.ready
            and not self.blocking
            and not self.waiters
            and self.reserved_for is None
        )


class Track(Peer):
    __slots__ = ("gates", "home", "leftover", "queue", "running", "traffic", "wait", "won")

    def __init__(self, traffic: Traffic, gates: tuple[Gate, ...], lane: SharedGate) -> None:
        self.traffic = traffic
        self.leftover = traffic is Traffic.LEFTOVER
        self.gates = gates
        self.home = lane
        self.queue = FairQueue(lane.shares, self)  # of lines, under the tenant at their head
        self.wait: Any = None  # its live entry among the waiters of the gate it stands at
        self.running = False  # it is being served just now
        self.won: tuple[Gate, ...] = ()  # open gates where its turn has come

    def lose(self) -> None:
        """The gates have closed again: its turns are over."""
        self.won = ()


class Line(Peer):
    __slots__ = (
        "entry",
        "filed",
        "flows",
        "gates",
        "leftover",
        "queue",
        "track",
        "traffic",
        "upstream",
        "wait",
        "waiting",
        "won",
    )

    def __init__(self, track: Track, upstream: Upstream | None) -> None:
        self.track = track
        self.traffic = track.traffic
        self.leftover = track.leftover
        self.upstream = upstream  # None: the tenants share the lane alone
        self.gates = track.gates if upstream is None else (*track.gates, upstream)
        shares = track.home.shares if upstream is None else upstream.shares
        self.queue = FairQueue(shares, self)
        self.flows: dict[tuple[str, str], Flow] = {}
        self.waiting = 0
        self.entry: Any = None  # its live entry in the track's queue
        self.filed: Group | None = None  # the group there that it is filed under
        self.wait: Any = None  # its live entry among the waiters of its upstream
        self.won = False  # its turn has come at its upstream

    def lose(self) -> None:
        self.won = False


class Flow(Peer):
    """The tickets of one tenant with one key in one line. Most flows have a single one, `solo`; the
    heap is made for the second.
    """

    __slots__ = ("entry", "group", "heap", "key", "size", "solo", "stands_at")

    def __init__(self, group: Group, key: str) -> None:
        self.group = group
        self.key = key
        self.solo: Any = None
        self.heap: list[Any] = NOBODY
        self.size = 0
        self.entry: Any = None  # its live entry in the group
        self.stands_at: Gate | None = None

    def add(self, item: Any, rank: float, seq: int) -> bool:
        """True if the item is now the head."""
        self.size += 1
        if self.size == 1:
            self.solo = item
            item.entry = self
            return True
        if self.solo is not None:
            self._push(self.solo, self.solo.ticket.rank, self.solo.ticket.seq)
            self.solo = None
        entry = self._push(item, rank, seq)
        return self.head() is entry

    def _push(self, item: Any, rank: float, seq: int) -> Any:
        if self.heap is NOBODY:
            self.heap = []
        item.entry = entry = (rank, seq, item)
        heappush(self.heap, entry)
        return entry

    def remove(self, item: Any) -> None:
        item.entry = None
        self.size -= 1
        if item is self.solo:
            self.solo = None
        elif len(self.heap) > 2 * self.size + 16:
            self.heap = sorted(entry for entry in self.heap if entry[2].entry is entry)

    def head(self) -> Any:
        """(rank, seq, item) of the first one. Only for flows that are not empty."""
        if self.solo is not None:
            return (self.solo.ticket.rank, self.solo.ticket.seq, self.solo)
        heap = self.heap
        entry = heap[0]
        while entry[2].entry is not entry:
            heappop(heap)
            entry = heap[0]
        return entry

    def first(self) -> Any:
        return self.solo or self.head()[2]


class Stand(Peer):
    """One of the several lines in which a ticket with candidate upstreams waits at once."""

    __slots__ = ("entry", "line", "place", "ticket")

    def __init__(self, ticket: Ticket, line: Line) -> None:
        self.ticket = ticket
        self.line = line
        self.entry: Any = None
        self.place: Any = None
