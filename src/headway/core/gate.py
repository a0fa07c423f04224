"""A gate: how many may be inside at once, and from when on the next may enter.

Whatever a gate is limited by comes down to three numbers, so that asking it costs nothing:
`room` (how many leases for normal work), `spare` (how many for leftover work) and `opens_at`.
Limits change them when something happens; nobody computes anything when a ticket asks.

A gate knows nothing of order. Who stands at it, and who is next, is `admission`'s business.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headway.core.outcome import Outcome
    from headway.core.permit import Permit
    from headway.core.policy import GatePolicy
    from headway.core.ticket import Ticket

INF = float("inf")


class Holds(IntEnum):
    """What may stand at a gate, and so how its waiters are woken."""

    TRACKS = 0
    LINES = 1
    GROUPS = 2
    FLOWS = 3


class Limit:
    """One thing that may close a gate or narrow it. This is the seam for the learner too:
    grants and outcomes come in through the methods, settings go out through the attributes.
    """

    __slots__ = ("cap", "changes_at", "opens_at")

    name = "limit"
    stops_online = False  # whether online calls are refused while this limit keeps the gate closed
    unattended = False  # nobody is there to be asked: who waits for that is not passed over

    def __init__(self) -> None:
        self.opens_at = -INF  # closed until then
        self.cap = INF  # at most so many leases
        self.changes_at = INF  # ask again (`elapse`) at this time even if nothing happens

    def taken(self, now: float, permit: Permit) -> None:
        """A lease was taken."""

    def given(self, now: float, permit: Permit, outcome: Outcome) -> None:
        """A lease was given back."""

    def heard(self, now: float, outcome: Outcome) -> None:
        """An outcome was reported by somebody who held no lease."""

    def elapse(self, now: float) -> None:
        """The time `changes_at` has come."""

    def keeps_until(self, now: float, permit: Permit, outcome: Outcome) -> float:
        """How long a lease that was just given back still occupies its place."""
        return now

    def idle(self, now: float) -> bool:
        """True when forgetting this limit changes nothing."""
        return self.opens_at <= now and self.cap == INF

    def says(self, until: float | None, detail: str = "") -> Closed:
        """How people are told that this limit holds somebody back."""
        return Closed(self.name, detail, until)

    def adopt(self, other: Any) -> None:
        """Take over the state of the limit that this one replaces (settings changed)."""

    def dump(self) -> Any:
        """What a restart may not forget, as plain data; None: nothing."""
        return None

    def load(self, state: Any) -> None:
        """Take up what `dump` gave, maybe under other settings than then."""


@dataclass(frozen=True, slots=True)
class Closed:
    """Why a gate does not let a ticket pass, and until when if that is known. `gate`: what people
    know it by, if that is not its own label.
    """

    reason: str
    detail: str = ""
    until: float | None = None
    gate: str = ""


class Door:
    """What was done to a gate from outside. Most gates never have one of their own."""

    __slots__ = (
        "closed_since",
        "closed_until",
        "closed_why",
        "paused",
        "pushed_at",
        "pushed_before",
        "pushed_fence",
        "streak",
    )

    def __init__(self) -> None:
        self.paused = False
        self.closed_until = -INF
        self.closed_since = -INF
        self.closed_why = ""
        self.streak = 0  # pushbacks in a row, each of a call sent after the one before
        self.pushed_at = -INF
        self.pushed_fence = 0  # the newest permit when that happened
        self.pushed_before = 0  # the same of the pushback before it


UNTOUCHED = Door()  # shared and never changed; `Gate.own_door` makes one to write on
NOBODY: Any = ()


class Gate:
    __slots__ = (
        "armed_at",
        "cap",
        "door",
        "kind",
        "leases",
        "limits",
        "name",
        "opens_at",
        "policy",
        "reserved_for",
        "room",
        "spare",
        "waiters",
    )

    holds = Holds.TRACKS

    def __init__(self, kind: str, name: str, policy: GatePolicy, limits: tuple[Limit, ...]) -> None:
        self.kind = kind
        self.name = name
        self.policy = policy
        self.limits = limits
        self.leases: dict[int, Permit] = {}
        self.waiters: list[Any] = NOBODY  # who stands here, best first where order matters
        self.reserved_for: Ticket | None = None
        self.door = UNTOUCHED
        self.armed_at = INF  # when the clock looks at this gate next
        self.cap: float = policy.places
        self.room: float = policy.places
        self.spare: float = policy.places - policy.reserve
        self.opens_at = -INF
        if limits:
            self.refresh()

    @property
    def label(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else self.kind

    def own_door(self) -> Door:
        if self.door is UNTOUCHED:
            self.door = Door()
        return self.door

    def hold_up(self, node: Any) -> None:
        """Somebody for whom order does not matter waits here."""
        if self.waiters is NOBODY:
            self.waiters = [node]
        else:
            self.waiters.append(node)

    def refresh(self) -> None:
        """Bring the three numbers up to date after any change."""
        cap = self.cap
        spare = cap - self.policy.reserve
        opens_at = self.door.closed_until
        for limit in self.limits:
            if limit.cap < cap:
                cap = limit.cap
            if limit.cap < spare:
                spare = limit.cap
            if limit.opens_at > opens_at:
                opens_at = limit.opens_at
        kept = 0 if self.reserved_for is None else 1
        self.room = cap - kept
        self.spare = spare - kept
        self.opens_at = INF if self.door.paused else opens_at

    @property
    def unattended(self) -> bool:
        """Nobody is there who could let a ticket in, which is no place that another ticket got."""
        return any(limit.unattended for limit in self.limits)

    def is_open(self, now: float) -> bool:
        return len(self.leases) < self.room and self.opens_at <= now

    def taken(self, now: float, permit: Permit) -> None:
        for limit in self.limits:
            limit.taken(now, permit)
        self.refresh()

    def given(self, now: float, permit: Permit, outcome: Outcome) -> float:
        """Tell the limits. Returns until when the lease still occupies its place."""
        until = now
        for limit in self.limits:
            limit.given(now, permit, outcome)
            until = max(until, limit.keeps_until(now, permit, outcome))
        self.refresh()
        return until

    def close(self, now: float, until: float, why: str) -> None:
        """Close for everybody. A shorter closure never ends a longer one."""
        door = self.own_door()
        if until > door.closed_until:
            if door.closed_until <= now:
                door.closed_since = now
            door.closed_until = until
            door.closed_why = why
            self.refresh()

    def pause(self, paused: bool) -> None:
        if paused != self.door.paused:
            self.own_door().paused = paused
            self.refresh()

    def reopen(self) -> None:
        """End a closure and what limits hold against online calls (operator's word)."""
        door = self.own_door()
        door.closed_until = -INF
        door.closed_why = ""
        door.streak = 0
        for limit in self.limits:
            if limit.stops_online:
                limit.opens_at = -INF
        self.refresh()

    def refuses_online_until(self, now: float) -> float:
        """Online calls ignore pools and paces, but not a closed door. -INF when it is open."""
        if self.door.paused:
            return INF
        until = self.door.closed_until
        for limit in self.limits:
            if limit.stops_online and limit.opens_at > until:
                until = limit.opens_at
        return until if until > now else -INF

    def why_closed(self, now: float, ticket: Ticket | None, *, leftover: bool) -> Closed | None:
        """The strongest reason why this ticket may not pass, or None."""
        door = self.door
        if door.paused:
            return Closed("paused", door.closed_why if door.closed_until > now else "")
        worst: Closed | None = None
        if door.closed_until > now:
            worst = Closed("closed", door.closed_why, door.closed_until)
        for limit in self.limits:
            if limit.opens_at > now and (worst is None or limit.opens_at > (worst.until or 0.0)):
                worst = limit.says(limit.opens_at)
        if worst is not None:
            return worst
        if len(self.leases) >= (self.spare if leftover else self.room):
            return self._why_full(ticket, leftover=leftover)
        return None

    def _why_full(self, ticket: Ticket | None, *, leftover: bool) -> Closed | None:
        held = len(self.leases)
        if self.reserved_for is not None and held < self.room + 1:
            return None if self.reserved_for is ticket else Closed("reserved")
        if leftover and held < self.room:
            return Closed("reserve", "kept free for online and normal work")
        narrowest = min(self.limits, key=lambda limit: limit.cap, default=None)
        if narrowest is not None and narrowest.cap < self.cap:
            return narrowest.says(None, f"{held} in use, {narrowest.cap:g} allowed now")
        return Closed("full", f"{held} in use of {self.cap:g}")

    def forgets_pushback(self, now: float) -> bool:
        """After a long quiet spell the next pushback is the first one again."""
        return now - self.door.pushed_at > 2 * self.policy.pushback.max_hold_s

    def idle(self, now: float) -> bool:
        """True when this gate can be forgotten without anybody noticing."""
        return (
            not self.leases
            and not self.waiters
            and not self.door.paused
            and self.door.closed_until <= now
            and self.reserved_for is None
            and (not self.door.streak or self.forgets_pushback(now))
            and (not self.limits or all(limit.idle(now) for limit in self.limits))
        )

    def __repr__(self) -> str:
        return f"Gate({self.label})"
