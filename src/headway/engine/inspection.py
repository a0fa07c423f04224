"""What can be seen of gates: a picture of each as plain data, taken in the brain's turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.core.gate import Gate
from headway.core.learning import Learning
from headway.core.limits import Breaker, Cooldown, MinHold, Pace
from headway.core.lines import SharedGate, Upstream
from headway.core.permit import Permit
from headway.core.ticket import Traffic
from headway.engine.learned import picture_of
from headway.engine.online import OnlineCall
from headway.engine.slots.session import Session
from headway.engine.tenants_at import tenants_at

if TYPE_CHECKING:
    from headway.engine.brain import Brain

INF = float("inf")
MAX_LISTED = 200  # holders of one gate
MAX_COOLING = 20  # places of one gate that are shown with the time when they open

WORDS = tuple(each.name.lower() for each in sorted(Traffic))


def picture(brain: Brain, kind: str, name: str, now: float, *, whole: bool) -> dict[str, Any]:
    """A gate as it is now. `whole`: with who holds it and who waits at it."""
    return pictures(brain, kind, (name,), now, whole=whole)[0]


def pictures(
    brain: Brain, kind: str, names: Iterable[str], now: float, *, whole: bool
) -> list[dict[str, Any]]:
    gates = [gate_of(brain, kind, name) for name in names]
    found = [_picture(brain, gate, now) for gate in gates]
    if whole:
        cooling = _cooling(brain, [gate for gate, seen in zip(gates, found, strict=True)
                                   if seen["cooling"]])  # fmt: skip
        for gate, seen in zip(gates, found, strict=True):
            holding = islice(_running(brain, gate), MAX_LISTED)
            seen["holders"] = [_holder(permit, now) for permit in holding]
            seen["tenants"] = tenants_at(gate, brain.core.leases.permits, now)
            seen["cooling_until"] = cooling.get(gate, [])[:MAX_COOLING]
    return found


def gate_of(brain: Brain, kind: str, name: str) -> Gate:
    """If nobody is there: one that shows what would hold if somebody came."""
    atlas = brain.core.admission.atlas
    gate = atlas.gates.get((kind, name))
    if gate is None:
        policy = atlas.policy(kind, name)
        gate = Gate(kind, name, policy, policy.build_limits(atlas.rng))
    return gate


class Glance(NamedTuple):
    """As much of a gate as its place in a list depends on; it takes a few microseconds."""

    busy: int  # places that are taken, and tickets that wait at an upstream
    closed: bool
    pushed_at: float


def glance(brain: Brain, kind: str, name: str, now: float) -> Glance:
    gate = brain.core.admission.atlas.gates.get((kind, name))
    if gate is None:
        return Glance(0, False, -INF)
    closed = gate.refuses_online_until(now) > now
    return Glance(len(gate.leases) + (waiting_at(gate) or 0), closed, gate.door.pushed_at)


def known_names(brain: Brain, kind: str) -> set[str]:
    """Gates of this kind that are there now. Those that are only declared are not among them."""
    return {name for each, name in brain.core.admission.atlas.gates if each == kind}


def waiting_at(gate: Gate) -> int | None:
    """Tickets that stand at an upstream. None: who waits for other gates stands elsewhere."""
    return sum(line.waiting for line in gate.lines) if isinstance(gate, Upstream) else None


def _picture(brain: Brain, gate: Gate, now: float) -> dict[str, Any]:
    closed = gate.why_closed(now, None, leftover=False)
    door = gate.door
    running_by = dict.fromkeys(WORDS, 0)
    for permit in _running(brain, gate):
        running_by[WORDS[permit.ticket.traffic]] += 1
    running = sum(running_by.values())
    return {
        "kind": gate.kind,
        "name": gate.name,
        "limit": _number(gate.cap),
        "allowed_now": _number(gate.room),
        "reserve": gate.policy.reserve,
        "running": running,
        "running_by": running_by,
        "cooling": len(gate.leases) - running,
        "waiting": waiting_at(gate),
        "paused": door.paused,
        "closed_until": _number(door.closed_until) if door.closed_until > now else None,
        "closed_since": door.closed_since if door.closed_until > now else None,
        "closed_why": door.closed_why if door.closed_until > now else "",
        "open": gate.is_open(now),
        "reason": "" if closed is None else closed.reason,
        "detail": "" if closed is None else closed.detail,
        "opens_at": None if closed is None or closed.until is None else _number(closed.until),
        "pushbacks_in_a_row": door.streak,
        "pushed_back_at": _number(door.pushed_at),
        "limits": [_limit(gate, limit, now) for limit in gate.limits],
    }


def _number(value: float) -> float | None:
    """None: without limit."""
    return value if -INF < value < INF else None


def _running(brain: Brain, gate: Gate) -> Iterator[Permit]:
    """Those that hold a place. A place that was given back may be taken for a while yet."""
    live = brain.core.leases.permits
    return (permit for fence, permit in gate.leases.items() if fence in live)


def _cooling(brain: Brain, gates: list[Gate]) -> dict[Gate, list[float]]:
    """When the places open that were given back, the first ones first."""
    found: dict[Gate, list[float]] = {gate: [] for gate in gates}
    if found:
        for at, _, _, gate in brain.core.admission.settling:
            if gate in found:
                found[gate].append(at)
    return {gate: sorted(times) for gate, times in found.items()}


def _limit(gate: Gate, limit: Any, now: float) -> dict[str, Any]:
    seen: dict[str, Any] = {
        "name": limit.name,
        "allowed_now": _number(limit.cap),
        "opens_at": _number(limit.opens_at) if limit.opens_at > now else None,
    }
    match limit:
        case Pace():
            rule = limit.rule
            seen |= {"interval_s": rule.interval_s, "burst": rule.burst, "jitter": rule.jitter,
                     "by_cost": rule.by_cost, "tokens": round(tokens(limit, now), 3),
                     "next_at": seen["opens_at"], "last_at": _last_start(gate)}  # fmt: skip
        case Breaker():
            seen |= {"state": limit.state, "heard_of": limit.heard_of, "bad": limit.bad}
        case Cooldown():
            seen |= {"cooldown_s": limit.cooldown_s}
        case MinHold():
            seen |= {"min_hold_s": limit.min_hold_s}
        case Learning():
            seen |= picture_of(limit, now)
    return seen


def tokens(pace: Pace, now: float) -> float:
    """How many may start at once, from 0 to the burst; a part of one is on its way."""
    rule = pace.rule
    owed_s = pace.due_at - now
    if owed_s <= 0 or not rule.interval_s:
        return float(rule.burst)
    return max(0.0, rule.burst - owed_s / rule.interval_s)


def _last_start(gate: Gate) -> float | None:
    """Of those who hold a place, and at a lane or upstream of all that waited for one."""
    newest = next(reversed(gate.leases.values()), None)
    at = -INF if newest is None or newest.fence < 0 else newest.granted_at
    if isinstance(gate, SharedGate):
        at = max(at, gate.shares.tempo.last_at)
    return _number(at)


def _holder(permit: Permit, now: float) -> dict[str, Any]:
    ticket = permit.ticket
    id, kind, holder = str(ticket.id), "job", ""
    if isinstance(ticket.id, Session):
        kind, holder = ticket.id.wish.kind, ticket.id.wish.holder
    elif isinstance(ticket.id, OnlineCall):
        id, kind = f"online-{permit.fence}", "online"
    return {
        "id": ticket.id if isinstance(ticket.id, int) else id,
        "kind": kind,
        "type": ticket.type,
        "tenant": ticket.tenant,
        "traffic": WORDS[ticket.traffic],
        "key": ticket.key,
        "holder": holder,
        "labels": dict(ticket.labels),
        "fence": permit.fence,
        "granted_at": permit.granted_at,
        "held_s": max(0.0, now - permit.granted_at),
        "lease_ends_at": _number(permit.expires_at),
    }
