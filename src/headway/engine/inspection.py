"""What can be seen of gates: a picture of each as plain data, taken in the brain's turn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from headway.core.gate import Gate
from headway.core.learning import Learning
from headway.core.limits import Breaker, Cooldown, MinHold, Pace
from headway.core.lines import SharedGate, Upstream
from headway.engine.learned import picture_of
from headway.engine.slots.session import Session

if TYPE_CHECKING:
    from headway.engine.brain import Brain

INF = float("inf")
MAX_LISTED = 200  # holders and tenants of one gate


def picture(brain: Brain, kind: str, name: str, now: float, *, whole: bool) -> dict[str, Any]:
    """A gate as it is now. `whole`: with who holds it and who waits at it."""
    gate = brain.core.admission.atlas.gates.get((kind, name))
    if gate is None:  # nobody is there: what would hold if somebody came
        policy = brain.core.admission.atlas.policy(kind, name)
        gate = Gate(kind, name, policy, policy.build_limits(brain.core.admission.atlas.rng))
    closed = gate.why_closed(now, None, leftover=False)
    door = gate.door
    seen: dict[str, Any] = {
        "kind": kind,
        "name": name,
        "limit": _number(gate.cap),
        "allowed_now": _number(gate.room),
        "reserve": gate.policy.reserve,
        "running": sum(1 for fence in gate.leases if fence > 0),
        "cooling": sum(1 for fence in gate.leases if fence <= 0),
        "waiting": _waiting(gate),
        "paused": door.paused,
        "closed_until": _number(door.closed_until) if door.closed_until > now else None,
        "closed_since": door.closed_since if door.closed_until > now else None,
        "closed_why": door.closed_why if door.closed_until > now else "",
        "open": gate.is_open(now),
        "reason": "" if closed is None else closed.reason,
        "detail": "" if closed is None else closed.detail,
        "opens_at": None if closed is None or closed.until is None else _number(closed.until),
        "pushbacks_in_a_row": door.streak,
        "limits": [_limit(limit, now) for limit in gate.limits],
    }
    if whole:
        seen["holders"] = [_holder(permit, now) for permit in _some(gate.leases.values())
                           if permit.fence > 0]  # fmt: skip
        seen["tenants"] = _tenants(gate, now)
    return seen


def known_names(brain: Brain, kind: str) -> set[str]:
    """Gates of this kind that are there now. Those that are only declared are not among them."""
    return {name for each, name in brain.core.admission.atlas.gates if each == kind}


def _number(value: float) -> float | None:
    """None: without limit."""
    return value if -INF < value < INF else None


def _some(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if len(found) >= MAX_LISTED:
            break
        found.append(value)
    return found


def _waiting(gate: Gate) -> int | None:
    """Tickets that stand at an upstream. None: who waits for other gates stands elsewhere."""
    return sum(line.waiting for line in gate.lines) if isinstance(gate, Upstream) else None


def _limit(limit: Any, now: float) -> dict[str, Any]:
    seen: dict[str, Any] = {
        "name": limit.name,
        "allowed_now": _number(limit.cap),
        "opens_at": _number(limit.opens_at) if limit.opens_at > now else None,
    }
    match limit:
        case Pace():
            rule = limit.rule
            seen |= {"interval_s": rule.interval_s, "burst": rule.burst, "jitter": rule.jitter,
                     "by_cost": rule.by_cost}  # fmt: skip
        case Breaker():
            seen |= {"state": limit.state, "heard_of": limit.heard_of, "bad": limit.bad}
        case Cooldown():
            seen |= {"cooldown_s": limit.cooldown_s}
        case MinHold():
            seen |= {"min_hold_s": limit.min_hold_s}
        case Learning():
            seen |= picture_of(limit, now)
    return seen


def _holder(permit: Any, now: float) -> dict[str, Any]:
    ticket = permit.ticket
    return {
        "id": ticket.id if isinstance(ticket.id, int) else str(ticket.id),
        "kind": ticket.id.wish.kind if isinstance(ticket.id, Session) else "job",
        "type": ticket.type,
        "tenant": ticket.tenant,
        "fence": permit.fence,
        "granted_at": permit.granted_at,
        "held_s": max(0.0, now - permit.granted_at),
        "lease_ends_at": _number(permit.expires_at),
    }


def _tenants(gate: Gate, now: float) -> list[dict[str, Any]]:
    """Who waits and who holds, the greediest first."""
    if not isinstance(gate, SharedGate):
        return []
    waiting: dict[str, int] = {}
    for line in gate.lines:
        for tenant, group in line.queue.groups.items():
            waiting[tenant] = waiting.get(tenant, 0) + group.waiting
    rows: list[dict[str, Any]] = []
    for tenant in {*waiting, *gate.shares.accounts}:
        account = gate.shares.accounts.get(tenant)
        held = 0 if account is None else len(account.leases)
        if held or waiting.get(tenant):
            rows.append({
                "tenant": tenant, "running": held, "waiting": waiting.get(tenant, 0),
                "weight": 1.0 if account is None else account.weight,
                "closed_until": None if account is None or account.opens_at <= now
                else _number(account.opens_at),
            })  # fmt: skip
    rows.sort(key=lambda row: (-row["running"], -row["waiting"], row["tenant"]))
    return rows[:MAX_LISTED]
