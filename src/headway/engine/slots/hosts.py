"""Hosts of slot clients: upstreams like all others, whose settings come from a profile where
nobody has declared anything else.

What is declared for a name or a pattern goes before the profile, field by field; the profile goes
before what is declared for all upstreams. A host that nobody uses any more is forgotten.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headway.core import GatePolicy
from headway.core.kinds import UPSTREAM
from headway.core.memory import Address, gate_at
from headway.core.memory import load as load_gate
from headway.core.recurrence import duration_s
from headway.engine.hands.worker_gates import WorkerPolicies
from headway.engine.settings import Settings, Value, policy_of
from headway.engine.slots.lobby import Lobby
from headway.engine.slots.terms import Weighting

if TYPE_CHECKING:
    from headway.engine.brain import Brain
    from headway.engine.slots.session import Session


logger = logging.getLogger("headway")

INF = float("inf")
KEPT_S = 86_400.0  # so long what a host knew waits for somebody to come


class SlotPolicies(WorkerPolicies):
    """Policies by name, and for the hosts of slot clients by their profile, too."""

    hosts: Hosts

    def of(self, kind: str, name: str) -> GatePolicy:
        if kind == UPSTREAM and name in self.hosts.profiles:
            return self.hosts.policy(name)
        return super().of(kind, name)

    def declare(self, kind: str, name: str, policy: GatePolicy) -> None:
        super().declare(kind, name, policy)
        if kind == UPSTREAM:
            self.hosts.policies.clear()

    def withdraw(self, kind: str, name: str) -> None:
        super().withdraw(kind, name)
        if kind == UPSTREAM:
            self.hosts.policies.clear()


class Host:
    """Those who wait at one host."""

    __slots__ = ("_counts", "_waits", "lobby", "name", "waiting")

    def __init__(self, name: str) -> None:
        self.name = name
        self.waiting: dict[Session, None] = {}
        self.lobby: Lobby[Session] | None = None  # who stands in line, if not all may
        self._counts: dict[str, int] = {}  # of those who wait, by tenant
        self._waits: dict[str, tuple[float, float]] = {}  # tenant: how often it waited, since when

    def enter(self, session: Session, now: float) -> list[Session]:
        """Somebody waits here, too. Its terms are the newest; who may stand in line by them and
        could not before is returned.
        """
        wish = session.wish
        tenant, terms = wish.tenant, wish.terms
        stepped_in = self._limit(terms.max_waiters, terms.max_waiters_per_tenant)
        self.waiting[session] = None
        count = self._counts.get(tenant, 0)
        self._counts[tenant] = count + 1
        if terms.weighting is not None and not count:
            times, _ = self._waits.get(tenant, (0.0, now))
            self._waits[tenant] = (times, now)
        return stepped_in

    def _limit(self, limit: int | None, per_tenant: int | None) -> list[Session]:
        lobby = self.lobby
        if lobby is not None:
            same = (lobby.limit, lobby.per_tenant) == (limit, per_tenant)
            return [] if same else lobby.resize(limit, per_tenant)
        if limit is not None or per_tenant is not None:
            self.lobby = lobby = Lobby(limit, per_tenant)
            for each in self.waiting:
                if each.ticket is not None:
                    lobby.seat(each, each.wish.tenant)
        return []

    def leave(self, session: Session) -> None:
        if session in self.waiting:
            del self.waiting[session]
            tenant = session.wish.tenant
            left = self._counts.pop(tenant) - 1
            if left:
                self._counts[tenant] = left

    def weight(self, tenant: str, rule: Weighting, now: float) -> float:
        """How much a grant of this tenant weighs; its waiting counts half from now on. What counts
        is how long the tenant had no turn, not how many ask for it.
        """
        times, since = self._waits.get(tenant, (0.0, now))
        if rule.wait_s > 0:
            times += max(0.0, now - since) // rule.wait_s
        self._waits[tenant] = (times / 2, now)
        return max(rule.base + rule.per_wait * times, 1e-6)

    def forget(self) -> None:
        """Who does not wait any more is the same as anybody else."""
        self._waits = {each: kept for each, kept in self._waits.items() if each in self._counts}


def together(given: dict[str, Value]) -> Value:
    """What several applications want of one host: the slowest says more than the others."""

    def every_s(profile: Value) -> float:
        return duration_s(profile["every"]) if "every" in profile else 0.0

    slowest_last = sorted(given.values(), key=every_s)
    return {field: each for profile in slowest_last for field, each in profile.items()}


class Hosts:
    """All hosts: their profiles, and what was left of them by the last engine."""

    def __init__(self, brain: Brain) -> None:
        self._brain = brain
        self.profile_of: Callable[[str], Value] = lambda name: {}  # noqa: ARG005
        self.profiles: dict[str, Value] = {}  # of those that are in use
        # By applications, for as long as they want: of a host, what each has given.
        self._given: dict[str, dict[str, Value]] = {}
        self.policies: dict[str, GatePolicy] = {}  # as worked out so far
        self.waiting: dict[str, Host] = {}  # where somebody waits
        # What gates knew before the restart: by name and address, and since when nobody asked.
        self._memories: dict[str, dict[Address, dict[str, Any]]] = {}
        self._kept_until = INF

    def use(self, name: str, now: float) -> None:
        """Somebody comes to this host."""
        profile = self.profile_of(name)
        if self.profiles.get(name) is profile:
            return
        given = self._given.get(name)
        self._take(name, profile if given is None else {**together(given), **profile}, now)

    def give(self, name: str, profile: Value, now: float, *, by: str) -> None:
        """What an application wants to hold for a host where nobody has said anything else. If
        several do, the slower pace holds.
        """
        self._given.setdefault(name, {})[by] = profile
        self._take(name, {**together(self._given[name]), **self.profile_of(name)}, now)

    def take_back(self, name: str, now: float, *, by: str) -> None:
        given = self._given.get(name, {})
        if given.pop(by, None) is None:
            return
        if not given:
            del self._given[name]
        self._take(name, {**together(given), **self.profile_of(name)}, now)

    def _take(self, name: str, profile: Value, now: float) -> None:
        changed = self.profiles.get(name) != profile
        self.profiles[name] = profile
        if changed:
            self.policies.pop(name, None)
            self._brain.core.gates.look_again(UPSTREAM, name, now)
            for address, state in self._memories.pop(name, {}).items():
                load_gate(self._brain.core, address, state, now)

    def look_again(self, now: float) -> None:
        """The profiles are others now."""
        for name in list(self.profiles):
            self.use(name, now)

    def policy(self, name: str) -> GatePolicy:
        found = self.policies.get(name)
        if found is None:
            self.policies[name] = found = self._worked_out(name)
        return found

    def _worked_out(self, name: str) -> GatePolicy:
        """A setting that does not go with the profile was refused when it was made; if the profile
        has changed since then, it goes first, for it has the limits.
        """
        try:
            return policy_of(UPSTREAM, self.value(name), name)
        except ValueError as error:
            logger.warning("what is set for %s does not go with its profile: %s", name, error)
            return policy_of(UPSTREAM, self.profiles[name], name)

    def check(self, settings: Settings | None = None) -> None:
        """ValueError: what is declared now, or in these settings, does not go with the profile of
        some host.
        """
        for name in self.profiles:
            policy_of(UPSTREAM, self.value(name, settings), name)

    def value(self, name: str, settings: Settings | None = None) -> Value:
        """What holds for a host, by the settings of now or by these."""
        behind = (settings or self._brain.settings).behind(UPSTREAM, name)
        declared = {} if behind is None else behind["value"]
        if behind is not None and behind["declared_as"] == "*":
            return {**declared, **self.profiles[name]}
        return {**self.profiles[name], **declared}

    def remember(self, address: Address, state: dict[str, Any]) -> None:
        """What a gate knew before the restart, for when somebody comes to it."""
        gate = gate_at(self._brain.core, address)
        known = {limit.name for limit in gate.limits}  # that have it back already
        kept = {of: each for of, each in state.get("limits", {}).items() if of not in known}
        if kept:
            self._memories.setdefault(address[1], {})[address] = {"limits": kept}
            self._kept_until = self._brain.clock.now() + KEPT_S

    def remembers(self, address: Address) -> bool:
        return address in self._memories.get(address[1], ())

    def at(self, name: str) -> Host:
        host = self.waiting.get(name)
        if host is None:
            self.waiting[name] = host = Host(name)
        return host

    def sweep(self, now: float) -> None:
        if now >= self._kept_until:
            self._memories.clear()
        gates = self._brain.core.admission.atlas.gates
        for name in [each for each in self.profiles if (UPSTREAM, each) not in gates]:
            if name not in self.waiting and name not in self._given:
                del self.profiles[name]
                self.policies.pop(name, None)
        for name, host in list(self.waiting.items()):
            if host.waiting:
                host.forget()
            else:
                del self.waiting[name]
