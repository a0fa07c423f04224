"""Every gate that exists now, and the way a ticket takes through them.

Gates, tracks and lines are made when they are first needed and forgotten when they are idle, so
a flood of names leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from headway.core import kinds
from headway.core.gate import UNTOUCHED, Gate
from headway.core.kinds import GateKind
from headway.core.lines import KeyGate, Line, SharedGate, Track, Upstream
from headway.core.order import Account, Shares
from headway.core.policy import OPEN, GatePolicy, Policies
from headway.core.ticket import Ticket, Traffic

Signature = tuple[str, str, tuple[str, ...], tuple[str, ...], Traffic, tuple[tuple[str, str], ...]]

INF = float("inf")
MUTEX = GatePolicy(cap=1)

CLASSES: dict[str, type[Gate]] = {kinds.LANE: SharedGate, kinds.UPSTREAM: Upstream}


class Atlas:
    def __init__(self, policies: Policies, rng: Random, gate_kinds: tuple[GateKind, ...]) -> None:
        self.policies = policies
        self.rng = rng
        self.kinds = gate_kinds
        self.gates: dict[tuple[str, str], Gate] = {}
        self.keys: dict[str, KeyGate] = {}
        self.tracks: dict[tuple[bool, tuple[Gate, ...]], Track] = {}
        self.routes: dict[Signature, tuple[Line, ...]] = {}
        self.fresh: list[Gate] = []  # new gates whose limits want to look at the clock

    # ------------------------------------------------------------------ gates

    def gate(self, kind: str, name: str) -> Gate:
        gate = self.gates.get((kind, name))
        if gate is None:
            policy = self.policy(kind, name)
            gate = CLASSES.get(kind, Gate)(kind, name, policy, policy.build_limits(self.rng))
            self.gates[kind, name] = gate
            if gate.limits:
                self.fresh.append(gate)
        return gate

    def shared(self, kind: str, name: str) -> SharedGate:
        gate = self.gate(kind, name)
        if not isinstance(gate, SharedGate):
            raise TypeError(f"{gate!r} is not shared between tenants")
        return gate

    def key(self, name: str) -> KeyGate:
        gate = self.keys.get(name)
        if gate is None:
            policy = self.policy(kinds.KEY, name)
            limits = () if policy.plain else policy.build_limits(self.rng)
            self.keys[name] = gate = KeyGate(kinds.KEY, name, policy, limits)
            if limits:
                self.fresh.append(gate)
        return gate

    def release_key(self, name: str) -> None:
        """Forget a key that nobody holds or waits for, unless it has limits to remember."""
        key = self.keys[name]
        if not key.leases and not key.limits and key.door is UNTOUCHED and key.empty():
            del self.keys[name]

    def account(self, shared: SharedGate, tenant: str, now: float) -> Account:
        """The tenant's account at a lane or upstream."""
        account = shared.shares.accounts.get(tenant)
        return self.open_account(shared, tenant, now) if account is None else account

    def open_account(self, shared: SharedGate, tenant: str, now: float) -> Account:
        policy = shared.policy.for_tenant(tenant)
        limits = () if policy.plain else policy.build_limits(self.rng)
        account = Account(shared.shares, tenant, policy, limits)
        shared.shares.open(account, now)
        if limits:
            self.fresh.append(account)
        return account

    def policy(self, kind: str, name: str) -> GatePolicy:
        if kind == kinds.KEY and kind not in self.policies.kinds:
            return MUTEX
        policy = self.policies.of(kind, name)
        return MUTEX if kind == kinds.KEY and policy is OPEN else policy

    def all_gates(self) -> Iterator[Gate]:
        yield from self.gates.values()
        yield from self.keys.values()
        for shared in list(self.gates.values()):
            if isinstance(shared, SharedGate):
                yield from shared.shares.accounts.values()

    # ------------------------------------------------------------------ ways

    def route(self, ticket: Ticket) -> tuple[Line, ...]:
        """The lines for this ticket: one, or one for each candidate upstream."""
        signature = (
            ticket.type,
            ticket.lane,
            ticket.tools,
            ticket.upstreams,
            ticket.traffic,
            ticket.labels,
        )
        route = self.routes.get(signature)
        if route is None:
            self.routes[signature] = route = self._survey(ticket)
        return route

    def line_to(self, ticket: Ticket, upstream: str | None) -> Line:
        """The ticket's line to one upstream, which need not be among its candidates any more."""
        return self._line(self.route(ticket)[0].track, upstream)

    def _survey(self, ticket: Ticket) -> tuple[Line, ...]:
        gates = tuple(self.gate(kind.name, n) for kind in self.kinds for n in kind.names(ticket))
        leftover = ticket.traffic is Traffic.LEFTOVER
        track = self.tracks.get((leftover, gates))
        if track is None:
            traffic = Traffic.LEFTOVER if leftover else Traffic.NORMAL
            track = Track(traffic, gates, self.shared(kinds.LANE, ticket.lane))
            self.tracks[leftover, gates] = track
        names = ticket.upstreams or (None,)
        return tuple(self._line(track, name) for name in names)

    def _line(self, track: Track, name: str | None) -> Line:
        upstream = None if name is None else self.gate(kinds.UPSTREAM, name)
        if upstream is not None and not isinstance(upstream, Upstream):
            raise TypeError(f"{upstream!r} is not an upstream")
        home = track.home if upstream is None else upstream
        for line in home.lines:
            if line.track is track and line.upstream is upstream:
                return line
        line = Line(track, upstream)
        home.lines.append(line)
        return line

    # ------------------------------------------------------------------ forgetting

    def sweep(self, now: float) -> None:
        """Forget lines without tickets, then gates that nobody would miss."""
        for signature, route in list(self.routes.items()):
            if not any(line.waiting or line.wait or line.entry for line in route):
                del self.routes[signature]
        used = {id(line) for route in self.routes.values() for line in route}
        self._forget_tracks({id(line.track) for route in self.routes.values() for line in route})
        shared = {id(gate) for track in self.tracks.values() for gate in track.gates}
        for address, gate in list(self.gates.items()):
            if isinstance(gate, SharedGate):
                self._forget_lines(gate, used)
                gate.shares.sweep(now)
            if id(gate) not in shared and self._forgettable(gate, now):
                gate.armed_at = -INF  # whatever the clock still has for it is void
                del self.gates[address]
        for name, key in list(self.keys.items()):
            if key.empty() and key.idle(now):
                del self.keys[name]

    def _forget_tracks(self, kept: set[int]) -> None:
        left: set[Gate] = set()  # gates where they still stood, with nobody in them
        for address, track in list(self.tracks.items()):
            if id(track) not in kept:
                _remove(track.home.shares, track)
                del self.tracks[address]
                if track.wait is not None:
                    left.add(track.wait[5])
                    track.wait = None
        for gate in left:
            gate.waiters = sorted(each for each in gate.waiters if each[4].wait is each)

    def _forget_lines(self, gate: SharedGate, kept: set[int]) -> None:
        for line in [line for line in gate.lines if id(line) not in kept]:
            gate.lines.remove(line)
            _remove(gate.shares, line)

    def _forgettable(self, gate: Gate, now: float) -> bool:
        if isinstance(gate, SharedGate) and (gate.lines or gate.shares.accounts):
            return False
        return gate.idle(now)


def _remove(shares: Shares, owner: object) -> None:
    shares.queues = [queue for queue in shares.queues if queue.owner is not owner]
