"""What operators and upstreams do to gates: pause, close, new settings, pushback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.core import kinds
from headway.core.change import Refusal
from headway.core.gate import Gate
from headway.core.limits import Breaker
from headway.core.lines import Line, SharedGate
from headway.core.order import Account
from headway.core.outcome import BAN_TOLD_S, Outcome, Scope
from headway.core.permit import Permit
from headway.core.policy import OPEN, GatePolicy
from headway.core.ticket import Ticket

if TYPE_CHECKING:
    from headway.core.lifetimes import Lifetimes

INF = float("inf")
# Where a gate learns, so many refusals in a row are the learner's business alone: it holds queued
# work back, and an online call may well be the next one that is served.
LEARNS_FROM = 2


class Gatekeeper:
    def __init__(self, core: Lifetimes) -> None:
        self._core = core
        self._admission = core.admission
        self._atlas = core.admission.atlas

    def get(self, kind: str, name: str, *, tenant: str | None = None) -> Gate:
        """A gate by its kind and name; with a tenant, that tenant at it."""
        if kind == kinds.KEY:
            return self._atlas.key(name)
        if tenant is not None:
            if kind != kinds.UPSTREAM:
                raise ValueError(f"a tenant can be stopped at an upstream, not at a {kind}")
            return self._atlas.account(self._atlas.shared(kind, name), tenant, self._core.now)
        return self._atlas.gate(kind, name)

    # ------------------------------------------------------------------ operators

    def pause(self, kind: str, name: str, now: float, *, tenant: str | None = None) -> None:
        now = self._core.advance(now)
        gate = self.get(kind, name, tenant=tenant)
        gate.pause(True)
        self._shut(gate, now)

    def resume(self, kind: str, name: str, now: float, *, tenant: str | None = None) -> None:
        now = self._core.advance(now)
        gate = self.get(kind, name, tenant=tenant)
        gate.pause(False)
        self._admission.touched.add(gate)
        self._admission.gate_changed(gate, now)

    def close(
        self,
        kind: str,
        name: str,
        now: float,
        *,
        until: float,
        why: str,
        tenant: str | None = None,
    ) -> None:
        now = self._core.advance(now)
        gate = self.get(kind, name, tenant=tenant)
        gate.close(now, until, why)
        self._shut(gate, now)

    def open(self, kind: str, name: str, now: float, *, tenant: str | None = None) -> None:
        """End a closure before its time."""
        now = self._core.advance(now)
        gate = self.get(kind, name, tenant=tenant)
        gate.reopen()
        self._admission.touched.add(gate)
        self._admission.gate_changed(gate, now)

    def declare(self, kind: str, name: str, policy: GatePolicy, now: float) -> None:
        """New settings for a gate or a pattern, at once. Holders above a lowered cap stay; nobody
        is admitted until they are below it.
        """
        now = self._core.advance(now)
        self._core.policies.declare(kind, name, policy)
        self._apply_all(kind, now)

    def withdraw(self, kind: str, name: str, now: float) -> None:
        """Forget what was declared under this name or pattern; what is behind it holds again."""
        now = self._core.advance(now)
        self._core.policies.withdraw(kind, name)
        self._apply_all(kind, now)

    def look_again(self, kind: str, name: str, now: float) -> None:
        """What holds for this gate has changed, though nobody declared anything."""
        now = self._core.advance(now)
        gate = self._atlas.gates.get((kind, name))
        if gate is not None:
            self._apply(gate, self._atlas.policy(kind, name), now)

    def _apply_all(self, kind: str, now: float) -> None:
        atlas = self._atlas
        gates = list(atlas.keys.values()) if kind == kinds.KEY else list(atlas.gates.values())
        for gate in gates:
            if gate.kind == kind:
                self._apply(gate, atlas.policy(kind, gate.name), now)

    def _apply(self, gate: Gate, policy: GatePolicy, now: float) -> None:
        if gate.policy == policy:
            return
        before = gate.policy.tenant
        self._adopt(gate, policy, now)
        if isinstance(gate, SharedGate) and before != policy.tenant:
            for account in list(gate.shares.accounts.values()):
                self._adopt(account, policy.for_tenant(account.name), now)

    def _adopt(self, gate: Gate, policy: GatePolicy, now: float) -> None:
        limits = policy.build_limits(self._atlas.rng)
        for limit in limits:
            for old in gate.limits:
                if type(old) is type(limit):
                    limit.adopt(old)
        gate.policy, gate.limits = policy, limits
        gate.cap = policy.places
        gate.refresh()
        if gate.reserved_for is not None:
            self._admission.unreserve(gate.reserved_for, now)
        if limits:
            self._atlas.fresh.append(gate)
            self._admission.wind_up(now)
        self._admission.gate_changed(gate, now)

    def _shut(self, gate: Gate, now: float) -> None:
        """A gate that was closed from outside keeps no openings for anybody."""
        self._admission.touched.add(gate)
        if gate.reserved_for is not None:
            self._admission.unreserve(gate.reserved_for, now)
        self._admission.gate_changed(gate, now)

    # ------------------------------------------------------------------ upstreams

    def push_back(self, permit: Permit, outcome: Outcome, now: float) -> float:
        """Close what pushed back, for everybody. Returns how long the job itself must wait."""
        gate = self._who_pushed_back(permit, outcome)
        if gate is None:
            tries = permit.ticket.tries
            streak = tries.pushed_back if tries else 1
            return now + hold_s(OPEN, outcome, streak)
        door = gate.own_door()
        if gate.forgets_pushback(now):
            door.streak = 0
        door.pushed_at = now
        if permit.fence > door.pushed_fence:  # calls sent before the last one are the same event
            door.streak += 1
            door.pushed_before, door.pushed_fence = door.pushed_fence, self._admission.fence
        learns = gate.policy.learn is not None and not _is_ban(outcome)
        spared = LEARNS_FROM if learns else 0
        if learns and door.streak <= spared:
            self._admission.touched.add(gate)
            return now
        seconds = hold_s(gate.policy, outcome, door.streak - spared)
        gate.close(now, now + seconds, reason_for(outcome, seconds))
        self._shut(gate, now)
        return now

    def _who_pushed_back(self, permit: Permit, outcome: Outcome) -> Gate | None:
        if permit.upstream is None:
            return None
        return permit.accounts[-1] if outcome.scope is Scope.TENANT else permit.upstream

    def answered(self, permit: Permit) -> None:
        """A call went well: the next pushback is the first one again. If it was sent between the
        last two of them, the upstream did open after the first: they were not in a row.
        """
        if permit.upstream is None:
            return
        for gate in (permit.upstream, permit.accounts[-1]):
            door = gate.door
            if door.streak and permit.fence > door.pushed_fence:
                door.streak = 0
                self._admission.touched.add(gate)
            elif door.streak > 1 and permit.fence > door.pushed_before:
                door.streak = 1
                self._admission.touched.add(gate)

    def report(self, upstream: str, outcome: Outcome, now: float) -> None:
        """An outcome from somebody who held no permit: the breaker and the learner hear it."""
        now = self._core.advance(now)
        gate = self._atlas.gate(kinds.UPSTREAM, upstream)
        for limit in gate.limits:
            limit.heard(now, outcome)
        gate.refresh()
        self._admission.touched.add(gate)
        self._admission.moved(gate, now)

    def breaker_of(self, upstream: str) -> Breaker | None:
        """What stands there against outcomes; None: nobody was there, or none is declared."""
        gate = self._atlas.gates.get((kinds.UPSTREAM, upstream))
        limits = () if gate is None else gate.limits
        return next((limit for limit in limits if isinstance(limit, Breaker)), None)

    def keep_breaker_open(self, upstream: str, open_s: float, now: float) -> None:
        """For so long after the last bad outcome: what a caller knows about its upstream."""
        now = self._core.advance(now)
        breaker = self.breaker_of(upstream)
        if breaker is not None and breaker.open_s != open_s:
            breaker.stay_open(open_s)
            gate = self._atlas.gate(kinds.UPSTREAM, upstream)
            gate.refresh()
            self._admission.touched.add(gate)
            self._admission.moved(gate, now)

    def weigh(self, permit: Permit, weight: float, now: float) -> None:
        """Another weight for the tenant that holds this, at its upstream, from now on."""
        account = permit.accounts[-1]
        account.count(now)
        account.weight = weight

    def refuses_online(self, line: Line, ticket: Ticket, now: float) -> Refusal | None:
        account: Account | None = None
        if line.upstream is not None:
            account = line.upstream.shares.accounts.get(ticket.tenant)
        key = None if ticket.key is None else self._atlas.keys.get(ticket.key)
        for gate in (*line.gates, account, key):
            if gate is not None:
                until = gate.refuses_online_until(now)
                if until > now:
                    closed = gate.why_closed(now, None, leftover=False)
                    why = "" if closed is None else f"{closed.reason} {closed.detail}".strip()
                    return Refusal(gate.label, why, until)
        return None

    # ------------------------------------------------------------------ counting

    def waiting(self, upstream: str, tenant: str) -> tuple[int, int]:
        """How many tickets wait at an upstream, and how many of them are the tenant's."""
        gate = self._atlas.gates.get((kinds.UPSTREAM, upstream))
        if not isinstance(gate, SharedGate):
            return 0, 0
        groups = (line.queue.groups.get(tenant) for line in gate.lines)
        mine = sum(group.waiting for group in groups if group is not None)
        return sum(line.waiting for line in gate.lines), mine

    def grants_seen(self, upstream: str) -> int:
        """How many grants the estimates at an upstream are based on."""
        gate = self._atlas.gates.get((kinds.UPSTREAM, upstream))
        return gate.shares.tempo.grants if isinstance(gate, SharedGate) else 0


def hold_s(policy: GatePolicy, outcome: Outcome, streak: int) -> float:
    """How long a pushback closes its gate: as told, or a short time that grows."""
    rule = policy.pushback
    seconds = outcome.retry_after_s
    if seconds is None:
        seconds = rule.hold_for(max(streak, 1))
    return max(seconds, rule.ban_s) if outcome.ban else seconds


def _is_ban(outcome: Outcome) -> bool:
    return outcome.ban or (outcome.retry_after_s or 0.0) > BAN_TOLD_S


def reason_for(outcome: Outcome, seconds: float) -> str:
    told = "Retry-After" if outcome.retry_after_s is not None else "backing off"
    what = "ban" if outcome.ban else "pushback"
    return f"{outcome.status} {what}, {told} {seconds:g} s"
