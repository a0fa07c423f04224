"""What would follow from other settings of a gate: which values change, how many could start at
once, how many run above the new limit, how long those who wait would take. Worked out in the
brain's turn, on copies; nothing here changes anything.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headway.core.gate import Gate, Limit
from headway.core.kinds import UPSTREAM
from headway.core.learning import Learning, LearnRule
from headway.core.limits import Pace
from headway.core.lines import SharedGate, Upstream
from headway.core.policy import OPEN, GatePolicy
from headway.engine.inspection import gate_of, tokens, waiting_at
from headway.engine.preview_words import notes_on
from headway.engine.settings import Settings, Value, policy_of
from headway.engine.tenants_at import waiting_by_tenant

if TYPE_CHECKING:
    from headway.engine.brain import Brain

INF = float("inf")
MOST = 500  # gates under one pattern that are looked at


class Outlook:
    """What a gate, or several, would do next."""

    def __init__(self) -> None:
        self.running = 0
        self.waiting: int | None = None  # None: nobody is counted here
        self.starts: float = 0  # of those who wait, or (if nobody is counted) places that are free
        self.over = 0
        self.drains_in_s: float | None = 0.0  # None: not known, or never

    def add(self, other: Outlook) -> None:
        self.running += other.running
        if other.waiting is not None:
            self.waiting = (self.waiting or 0) + other.waiting
        self.starts += other.starts
        self.over += other.over
        known = None not in (self.drains_in_s, other.drains_in_s)
        longest_s = max(self.drains_in_s or 0.0, other.drains_in_s or 0.0)
        self.drains_in_s = longest_s if known else None

    @property
    def seconds(self) -> float | None:
        unknown = self.waiting is None or self.drains_in_s is None
        return None if unknown else round(self.drains_in_s or 0.0, 3)


def preview(
    brain: Brain,
    kind: str,
    name: str,
    value: Value | None,
    now: float,
    *,
    waiting: int | None = None,
) -> dict[str, Any]:
    """If an operator set this, or reset it with None. ValueError: it would be refused. `waiting`:
    how many wait, where the gate itself cannot tell.
    """
    settings = brain.settings.copy()
    settings.put(kind, name, value)
    if kind == UPSTREAM:
        brain.policies.hosts.check(settings)
    was, would = Outlook(), Outlook()
    gates = _touched(brain, settings, kind, name)
    for gate in gates:
        crowd = Crowd(brain, gate, waiting)
        then = _changed(brain, gate, _policy(brain, settings, gate), now)
        was.add(crowd.outlook(gate, now))
        would.add(crowd.outlook(then, now))
    before, after = brain.settings.behind(kind, name), settings.behind(kind, name)
    changes = differences(_value(before), _value(after))
    return {
        "dry_run": True,
        "kind": kind,
        "name": name,
        "before": _value(before),
        "after": _value(after),
        "changes": changes,
        "running": would.running,
        "waiting": would.waiting,
        "starts_now": int(would.starts) if would.starts < INF else None,
        "over": would.over,
        "drains_in_s": {"before": was.seconds, "after": would.seconds},
        "notes": notes_on(name, gates, before, after, changes, would, now),
    }


def differences(before: Value, after: Value, within: str = "") -> list[dict[str, Any]]:
    """By name; of tables (`learn`, `tenant`, `breaker`) each value that they hold."""
    found: list[dict[str, Any]] = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            found += differences(old, new, f"{within}{name}.")
        elif old != new or type(old) is not type(new):
            found.append({"name": within + name, "before": old, "after": new})
    return found


def _value(behind: dict[str, Any] | None) -> Value:
    return {} if behind is None else dict(behind["value"])


# ---------------------------------------------------------------------- which gates, and how


def _touched(brain: Brain, settings: Settings, kind: str, name: str) -> list[Gate]:
    """The gate itself; of a pattern those that are there and that it decides, now or then."""
    if not name.startswith("*"):
        return [gate_of(brain, kind, name)]
    found: list[Gate] = []
    for (each, other), gate in brain.core.admission.atlas.gates.items():
        if each == kind and other.endswith(name[1:]) and len(found) < MOST:
            deciders = (brain.settings.behind(kind, other), settings.behind(kind, other))
            if any(by is not None and by["declared_as"] == name for by in deciders):
                found.append(gate)
    return found


def _policy(brain: Brain, settings: Settings, gate: Gate) -> GatePolicy:
    kind, name = gate.kind, gate.name
    if kind == UPSTREAM and name in brain.policies.hosts.profiles:
        return policy_of(kind, brain.policies.hosts.value(name, settings), name)
    behind = settings.behind(kind, name)
    return OPEN if behind is None else policy_of(kind, behind["value"], name)


def _changed(brain: Brain, gate: Gate, policy: GatePolicy, now: float) -> Gate:
    """A gate under other settings, with the leases and the memory of this one."""
    policy = replace(policy, more=gate.policy.more)  # what nobody sets, such as workers elsewhere
    limits = policy.build_limits(brain.core.admission.atlas.rng)
    for limit in limits:
        old = next((each for each in gate.limits if type(each) is type(limit)), None)
        if isinstance(limit, Learning):
            if isinstance(old, Learning):  # what it knows may not be shared with another one
                limit.cap, limit.opens_at = _learned_cap(old, limit.rule), old.opens_at
        elif old is not None:
            limit.adopt(old)
        if limit.changes_at <= now:
            limit.elapse(now)
    changed = Gate(gate.kind, gate.name, policy, limits)
    changed.leases, changed.door = gate.leases, gate.door
    changed.refresh()
    return changed


def _learned_cap(old: Learning, rule: LearnRule) -> float:
    if rule == old.rule:
        return old.cap
    if rule.pin_concurrency is not None:
        return rule.pin_concurrency
    known = INF if old.rule.pin_concurrency is not None else old.cap
    return max(rule.min_concurrency, min(known, rule.max_concurrency or INF))


def _learned_rpm(old: Learning | None, rule: LearnRule) -> float | None:
    if rule.pin_rpm is not None:
        return rule.pin_rpm
    known = rule.hint_rpm if old is None or old.rule.pin_rpm is not None else old.beliefs.rpm
    if known is None:
        return rule.max_rpm
    return max(rule.min_rpm, min(known, rule.max_rpm or INF))


# ---------------------------------------------------------------------- what would follow


class Crowd:
    """Those who hold a gate and those who wait at it, whatever its settings are."""

    def __init__(self, brain: Brain, gate: Gate, waiting: int | None) -> None:
        live = brain.core.leases.permits
        self.gate = gate
        self.running = sum(1 for fence in gate.leases if fence in live)
        counted = waiting_at(gate)
        self.waiting = waiting if counted is None else counted
        self.by_tenant = waiting_by_tenant(gate) if isinstance(gate, Upstream) else {}
        self.hold_s = _usual_hold_s(gate)
        self.learner = next((each for each in gate.limits if isinstance(each, Learning)), None)

    def outlook(self, gate: Gate, now: float) -> Outlook:
        """What this gate, the same one under some settings, would do with them."""
        free = max(0.0, gate.room - len(gate.leases))
        for limit in gate.limits:
            if isinstance(limit, Pace) and _gap_s(limit):
                free = min(free, max(1.0, tokens(limit, now) // 1))
        if self.waiting is not None:
            free = min(free, self._wanted(gate.policy))
        found = Outlook()
        found.running, found.waiting = self.running, self.waiting
        found.over = int(max(0, self.running - gate.room)) if gate.room < INF else 0
        found.starts = free if gate.opens_at <= now else 0
        found.drains_in_s = self._drains_in_s(gate, free, now)
        return found

    def _wanted(self, policy: GatePolicy) -> float:
        """How many of those who wait may go as far as their tenants' own limits say."""
        if not self.by_tenant or not isinstance(self.gate, Upstream):
            return self.waiting or 0
        wanted = 0.0
        for tenant, waiting in self.by_tenant.items():
            account = self.gate.shares.accounts.get(tenant)
            held = 0 if account is None else len(account.leases)
            wanted += min(waiting, max(0.0, policy.for_tenant(tenant).places - held))
        return wanted

    def _drains_in_s(self, gate: Gate, first: float, now: float) -> float | None:
        """Until all who wait now have started, if nobody comes: by the pace, by what was learned,
        and by how long a place is usually held.
        """
        if not self.waiting:
            return None if self.waiting is None else 0.0
        if gate.opens_at == INF or gate.room <= 0:
            return None
        opens_in_s = max(0.0, gate.opens_at - now)
        left = self.waiting - first
        if left <= 0:
            return opens_in_s
        rates = [1.0 / gap_s for gap_s in (self._gap_s(limit) for limit in gate.limits) if gap_s]
        if gate.room < INF and not self.hold_s:
            return None
        if gate.room < INF:
            rates.append(gate.room / self.hold_s)
        return opens_in_s + left / min(rates) if rates else None

    def _gap_s(self, limit: Limit) -> float:
        if isinstance(limit, Learning):
            rpm = _learned_rpm(self.learner, limit.rule)
            return 60.0 / rpm if rpm else 0.0
        return _gap_s(limit)


def _gap_s(limit: Limit) -> float:
    """Between two starts on average; 0: it does not space them, or not by their number."""
    if not isinstance(limit, Pace) or limit.rule.by_cost:
        return 0.0
    return limit.rule.interval_s * (1 + limit.rule.jitter / 2)


def _usual_hold_s(gate: Gate) -> float:
    """How long a place is held: the mean of the tenants that are known here; 0: not known."""
    if not isinstance(gate, SharedGate):
        return 0.0
    known = [each.hold_s for each in gate.shares.accounts.values() if each.hold_s]
    known = known or [hold_s for _, hold_s in gate.shares.debts.values() if hold_s]
    return sum(known) / len(known) if known else 0.0
