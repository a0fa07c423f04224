"""A ticket asks to go. It names everything it needs; its payload stays outside the core.

The first block of fields is what was asked for, the second where the ticket stands. Only
`headway.core` writes the second block.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any, Literal

from headway.core.lifecycle import State

if TYPE_CHECKING:
    from collections.abc import Hashable

    from headway.core.permit import Permit

INF = float("inf")

Ordered = Literal["pass", "hold"] | None


class Traffic(IntEnum):
    """Lower goes first. ONLINE never waits; LEFTOVER runs on what the others leave."""

    __hash__ = int.__hash__  # Enum's own is written in Python, and routes are looked up by it

    ONLINE = 0
    NORMAL = 1
    LEFTOVER = 2


class Stop(StrEnum):
    """What a running ticket was asked to stop for."""

    CANCEL = "cancel"
    PAUSE = "pause"


class Tries:
    """What went wrong so far. Most tickets never need one, so it is made at the first trouble."""

    __slots__ = ("burnt", "lost", "pushed_back", "pushed_since")

    def __init__(self) -> None:
        self.burnt = 0
        self.lost = 0
        self.pushed_back = 0
        self.pushed_since = INF


class Ticket:
    __slots__ = (
        "asked",
        "cost",
        "deadline",
        "entry",
        "id",
        "key",
        "labels",
        "lane",
        "lease_s",
        "max_attempts",
        "not_before",
        "ordered",
        "passed_at",
        "passes",
        "permit",
        "place",
        "priority",
        "rank",
        "retries",
        "rises_at",
        "seq",
        "since",
        "state",
        "tenant",
        "tools",
        "traffic",
        "tries",
        "type",
        "upstreams",
        "weight",
    )

    def __init__(
        self,
        id: Hashable,
        *,
        type: str = "job",
        lane: str = "default",
        tools: tuple[str, ...] = (),
        upstreams: tuple[str, ...] = (),
        key: str | None = None,
        tenant: str = "",
        weight: float = 1.0,
        traffic: Traffic = Traffic.NORMAL,
        priority: int = 5,
        not_before: float = 0.0,
        deadline: float = INF,
        cost: float = 1.0,
        ordered: Ordered = None,
        labels: tuple[tuple[str, str], ...] = (),
        retries: bool = True,
        max_attempts: int = 0,
        lease_s: float = 0.0,
        seq: int = 0,
    ) -> None:
        self.id = id
        self.type = type
        self.lane = lane
        self.tools = tools
        self.upstreams = upstreams
        self.key = key
        self.tenant = tenant
        self.weight = weight
        self.traffic = traffic
        self.priority = priority
        self.not_before = not_before
        self.deadline = deadline
        self.cost = cost
        self.ordered = ordered
        self.labels = labels
        self.max_attempts = max_attempts  # 0: as its type says
        self.lease_s = lease_s  # how long its leases last; 0: as usual
        self.retries = retries  # False for slots and online calls: they end with their first permit

        self.seq = seq  # first come; kept through retries and restarts
        self.state = State.PENDING
        self.since = 0.0  # since when it has been in this state
        self.rank = 0.0  # its place within its tenant: lower goes first
        self.rises_at = INF  # when it goes before others of its tenant, for its deadline is near
        self.entry: Any = None  # the one live heap entry of this ticket; others are stale
        self.place: Any = None  # the Group, Flow or list of Stands that it waits in
        self.permit: Permit | None = None
        self.asked: Stop | None = None
        self.passes = 0  # how often its turn came while another of its gates was closed
        self.passed_at = INF  # when that first happened
        self.tries: Tries | None = None

    @property
    def ticket(self) -> Ticket:
        return self

    def __lt__(self, other: object) -> bool:
        return False  # equal times and numbers tie in heaps

    def __repr__(self) -> str:
        return f"Ticket({self.id!r}, {self.state.value})"


def check(ticket: Ticket) -> None:
    """Refuse what could never work, with a message that says what to change."""
    if type(ticket.tools) is not tuple or type(ticket.upstreams) is not tuple:
        raise TypeError("tools and upstreams must be tuples of names")
    if type(ticket.labels) is not tuple:
        raise TypeError("labels must be a tuple of (name, value) pairs")
    if type(ticket.tenant) is not str or not (ticket.key is None or type(ticket.key) is str):
        raise TypeError("tenant and key must be text")
    if not ticket.weight > 0 or ticket.weight == INF:
        raise ValueError(f"weight must be a positive number, not {ticket.weight!r}")
    if not ticket.cost >= 0 or ticket.cost == INF:
        raise ValueError(f"cost must be 0 or more, not {ticket.cost!r}")
    if ticket.ordered is not None:
        if ticket.key is None:
            raise ValueError("ordered needs a key: name what must stay in order, or drop `ordered`")
        if ticket.ordered not in ("pass", "hold"):
            raise ValueError(f"ordered must be 'pass' or 'hold', not {ticket.ordered!r}")
    if len(ticket.tools) > 1 and len(set(ticket.tools)) != len(ticket.tools):
        raise ValueError(f"a tool is named twice in {ticket.tools!r}")
    if len(ticket.upstreams) > 1 and len(set(ticket.upstreams)) != len(ticket.upstreams):
        raise ValueError(f"an upstream is named twice in {ticket.upstreams!r}")
    if not (ticket.not_before < INF and ticket.deadline > -INF and -1e9 < ticket.priority < 1e9):
        raise ValueError("not_before, deadline and priority must be plain numbers")
