"""What an outside observer knows: which permits were handed out and given back, and what was
declared. It shares no code with the core; the checkers compare the two after every step.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headway.core import Change, GatePolicy, Outcome, Permit, State, Ticket

INF = float("inf")

LEGAL = {
    None: {State.PENDING, State.QUEUED, State.RUNNING},
    State.PENDING: {State.QUEUED, State.PAUSED, State.CANCELLED, State.FAILED},
    State.QUEUED: {
        State.RUNNING,
        State.PENDING,
        State.PAUSED,
        State.CANCELLED,
        State.FAILED,
    },
    State.RUNNING: {
        State.COMPLETED,
        State.FAILED,
        State.CANCELLED,
        State.PENDING,
        State.QUEUED,
        State.PAUSED,
    },
    State.PAUSED: {State.PENDING, State.QUEUED, State.CANCELLED, State.FAILED},
    State.COMPLETED: set(),
    State.FAILED: {State.PENDING, State.QUEUED},
    State.CANCELLED: {State.PENDING, State.QUEUED},
}


FREE = GatePolicy()
MUTEX = GatePolicy(cap=1)


@dataclass
class Held:
    permit: Permit
    ticket: Ticket
    upstream: str | None
    granted_at: float
    names: tuple[tuple[str, str], ...]
    alive: bool = True  # False: the holder crashed and will never be heard of again


@dataclass
class Model:
    policies: dict[tuple[str, str], GatePolicy] = field(default_factory=dict)
    paused: set[tuple[str, str]] = field(default_factory=set)
    closed: dict[tuple[str, str], float] = field(default_factory=dict)
    held: dict[int, Held] = field(default_factory=dict)
    # a place that was given back but is still within its minimum hold: fence -> free at, per gate
    settling: dict[tuple[str, str], dict[int, float]] = field(default_factory=dict)
    inside: dict[tuple[str, str], set[int]] = field(default_factory=dict)
    grants: dict[str, list[float]] = field(default_factory=dict)  # the last few, per upstream
    spaced_until: dict[str, float] = field(default_factory=dict)  # the latest a pace can explain
    last_free: dict[tuple[str, str], float] = field(default_factory=dict)
    released: dict[tuple[str, str], float] = field(default_factory=dict)
    states: dict[object, State] = field(default_factory=dict)
    tickets: dict[object, Ticket] = field(default_factory=dict)
    ended: dict[object, Ticket] = field(default_factory=dict)
    by_key: dict[str, dict[int, Ticket]] = field(default_factory=dict)  # ordered, by arrival
    ways: dict[object, list[tuple[tuple[str, str], ...]]] = field(default_factory=dict)

    # ------------------------------------------------------------------ names

    def names(self, ticket: Ticket, upstream: str | None) -> tuple[tuple[str, str], ...]:
        """Every gate that this ticket passes on its way to this upstream, likely closed first."""
        names = [("everything", ""), ("type", ticket.type), ("lane", ticket.lane)]
        names += [("tool", tool) for tool in ticket.tools]
        if upstream is not None:
            names += [("upstream", upstream), ("tenant", f"{ticket.tenant}@{upstream}")]
        if ticket.key is not None:
            names.append(("key", ticket.key))
        return tuple(reversed(names))

    def ways_of(self, ticket: Ticket) -> list[tuple[tuple[str, str], ...]]:
        ways = self.ways.get(ticket.id)
        if ways is None:
            ways = [self.names(ticket, upstream) for upstream in ticket.upstreams or (None,)]
            self.ways[ticket.id] = ways
        return ways

    def policy(self, name: tuple[str, str]) -> GatePolicy:
        kind, which = name
        if kind == "tenant":
            upstream = self.policies.get(("upstream", which.partition("@")[2]))
            return (upstream.tenant if upstream else None) or FREE
        if kind == "key":
            return MUTEX
        return self.policies.get(name) or FREE

    # ------------------------------------------------------------------ what happened

    def granted(self, permit: Permit, now: float) -> Held:
        ticket = permit.ticket
        upstream = None if permit.upstream is None else permit.upstream.name
        held = Held(permit, ticket, upstream, now, self.names(ticket, upstream))
        self.held[permit.fence] = held
        for name in held.names:
            self.inside.setdefault(name, set()).add(permit.fence)
        if upstream is not None:
            grants = self.grants.setdefault(upstream, [])
            grants.append(now)
            del grants[:-8]
            pace = self.policy(("upstream", upstream)).pace
            if pace is not None:
                longest_s = pace.interval_s * (1 + pace.jitter)
                self.spaced_until[upstream] = (
                    max(self.spaced_until.get(upstream, 0), now) + longest_s
                )
        return held

    def given_back(self, fence: int, outcome: Outcome, now: float) -> None:
        held = self.held.pop(fence)
        for name in held.names:
            policy = self.policy(name)
            if policy.min_hold_s:
                hit_at = outcome.hit_at if outcome.hit_at is not None else held.granted_at
                hit_at = min(max(hit_at, held.granted_at), now)
                smooth = policy.min_hold_s / (policy.cap or 1)
                free_at = max(now, hit_at + policy.min_hold_s)
                free_at = max(free_at, self.last_free.get(name, -INF) + smooth)
                self.last_free[name] = free_at
                if free_at > now:
                    self.settling.setdefault(name, {})[fence] = free_at
                    continue
            self.inside[name].discard(fence)
            if policy.cooldown_s:
                self.released[name] = now
        for name in held.names:
            if self.policy(name).cooldown_s:
                self.released[name] = now

    def time_passes(self, now: float) -> None:
        for name, places in self.settling.items():
            for fence in [fence for fence, free_at in places.items() if free_at <= now]:
                del places[fence]
                self.inside[name].discard(fence)

    def changed(self, change: Change) -> None:
        ticket = change.ticket
        self.states[ticket.id] = change.after
        if change.after in (State.COMPLETED, State.FAILED, State.CANCELLED):
            self.tickets.pop(ticket.id, None)
            self.ways.pop(ticket.id, None)
            self.ended[ticket.id] = ticket
            if ticket.ordered and ticket.key:
                self.by_key.get(ticket.key, {}).pop(ticket.seq, None)
        else:
            self.tickets[ticket.id] = ticket
            self.ended.pop(ticket.id, None)
            if ticket.ordered and ticket.key:
                self.by_key.setdefault(ticket.key, {})[ticket.seq] = ticket

    # ------------------------------------------------------------------ what may happen

    def out_of_order(self, ticket: Ticket) -> bool:
        """Whether an earlier ticket of the same ordered key goes before this one."""
        if not ticket.ordered or ticket.key is None:
            return False
        for seq, other in self.by_key.get(ticket.key, {}).items():
            if seq < ticket.seq and other is not ticket:
                state = self.states[other.id]
                if state is State.QUEUED:
                    return True
                if state in (State.PENDING, State.PAUSED) and other.ordered == "hold":
                    return True
        return False

    def room(self, name: tuple[str, str], *, leftover: bool) -> float:
        policy = self.policy(name)
        if policy.cap is None:
            return INF
        return policy.cap - (policy.reserve if leftover else 0)

    def shut(self, name: tuple[str, str], now: float) -> bool:
        return name in self.paused or self.closed.get(name, -INF) > now
