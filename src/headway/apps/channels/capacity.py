"""What a channel bears, who uses it, and why queued work does not run there now.

Nobody polls: whatever makes a queued call possible wakes it. So what would be a back-off elsewhere
is a state here, and can be said in words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headway.api.routes.learning import shown
from headway.api.views import moment
from headway.apps.channels.channel import Channel
from headway.core.gate import Closed, Gate
from headway.core.kinds import UPSTREAM
from headway.core.lines import Upstream
from headway.engine.brain import Brain
from headway.engine.inspection import picture
from headway.engine.learned import look_at

NO_ENGINE = "nothing runs while no server does; start one with `headway serve`"
SHOWN = (
    "limit_rpm", "source", "remaining", "threshold", "online", "queued", "opens_at", "samples",
    "believed", "phase",
)  # fmt: skip


def capacity_of(brain: Brain, channel: Channel, now: float) -> dict[str, Any]:
    """In the brain's turn."""
    code = channel.code
    learned = shown(look_at(brain, code, now))
    gate = picture(brain, UPSTREAM, code, now, whole=True)
    return {
        "code": code,
        "model": channel.model,
        **{name: learned[name] for name in SHOWN},
        "tenants": [_tenant(brain, code, row, now) for row in gate["tenants"]],
        "closed_until": moment(gate["closed_until"]),
        "closed_why": gate["closed_why"],
        "waiting": gate["waiting"] or 0,
        "idle_because": idle_because(brain, channel, now),
    }


def _tenant(brain: Brain, code: str, row: dict[str, Any], now: float) -> dict[str, Any]:
    account = _account(brain, code, row["tenant"])
    door = None if account is None else account.door
    return {
        "tenant": row["tenant"],
        "concurrent": row["running"],
        "waiting": row["waiting"],
        "closed_until": moment(row["closed_until"]),
        "closed_why": door.closed_why if door is not None and door.closed_until > now else "",
    }


def _gate(brain: Brain, code: str) -> Upstream | None:
    gate = brain.core.admission.atlas.gates.get((UPSTREAM, code))
    return gate if isinstance(gate, Upstream) else None


def _account(brain: Brain, code: str, tenant: str) -> Gate | None:
    gate = _gate(brain, code)
    return None if gate is None else gate.shares.accounts.get(tenant)


def idle_because(brain: Brain, channel: Channel, now: float) -> str | None:
    """Why no queued call starts here now; None: nothing keeps them."""
    if not channel.enabled:
        return "the channel is switched off"
    if not channel.pulls:
        return f"it takes no queued work: its queue_mode is {channel.queue_mode.value}"
    if not brain.granting:
        return NO_ENGINE
    gate = _gate(brain, channel.code)
    if gate is None or not any(line.waiting for line in gate.lines):
        return f"nothing is queued for {channel.model}"
    found = list(_in_the_way(gate, now))
    if not found:
        return None
    return _in_words(*max(found, key=lambda each: each[1].until or 0.0))


def _in_the_way(gate: Upstream, now: float) -> Iterator[tuple[Gate, Closed]]:
    """What keeps queued calls: the channel itself, lanes, types, hands, or their tenants."""
    waiting = [line for line in gate.lines if line.waiting]
    passed = dict.fromkeys(each for line in waiting for each in line.gates)
    for each in (gate, *(other for other in passed if other is not gate)):
        closed = each.why_closed(now, None, leftover=True)
        if closed is not None:
            yield each, closed
    tenants = {name for line in waiting for name, each in line.queue.groups.items() if each.waiting}
    held = [_holds(gate, tenant, now) for tenant in sorted(tenants)]
    known = [each for each in held if each is not None]
    if known and len(known) == len(held):  # there is nobody who waits and may go
        yield min(known, key=lambda each: each[1].until or 0.0)


def _holds(gate: Upstream, tenant: str, now: float) -> tuple[Gate, Closed] | None:
    account = gate.shares.accounts.get(tenant)
    closed = None if account is None else account.why_closed(now, None, leftover=True)
    return None if account is None or closed is None else (account, closed)


def _in_words(gate: Gate, closed: Closed) -> str:
    """`held until 2026-11-16T12:00:00Z: closed (429 pushback, Retry-After 30 s)`."""
    why = f"{closed.reason} ({closed.detail})" if closed.detail else closed.reason
    until = moment(closed.until)
    held = "no capacity now" if until is None else f"held until {until}"
    return f"{held}: {why}" if gate.kind == UPSTREAM else f"{held}: {gate.label} is {why}"
