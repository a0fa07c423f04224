"""What gates remember over a restart, as plain data: doors, limits, places that come free later.

The core collects in `Admission.touched` which gates have changed; the engine stores their dumps in
the commit that stores what changed them, and loads them into a new core before any ticket.
"""

from __future__ import annotations

from heapq import heappush
from typing import TYPE_CHECKING, Any

from headway.core import kinds
from headway.core.gate import UNTOUCHED, Door, Gate
from headway.core.lines import SharedGate
from headway.core.order import Account
from headway.core.permit import Permit
from headway.core.ticket import Ticket

if TYPE_CHECKING:
    from headway.core.core import Core

INF = float("inf")
Address = tuple[str, str, str]  # kind, name, tenant ("" for the gate itself)
NAMELESS = "account"  # the kind of the account at an upstream whose tenant has no name


def address_of(gate: Gate) -> Address:
    if isinstance(gate, Account):
        return kinds.UPSTREAM if gate.name else NAMELESS, gate.shares.name, gate.name
    return gate.kind, gate.name, ""


def gate_at(core: Core, address: Address) -> Gate:
    """Made if it is not there."""
    kind, name, tenant = address
    if kind == NAMELESS:
        return core.gates.get(kinds.UPSTREAM, name, tenant="")
    return core.gates.get(kind, name, tenant=tenant or None)


def remembers(core: Core, address: Address) -> bool:
    """Whether this gate exists now. One that does not has nothing to remember any more."""
    kind, name, tenant = address
    atlas = core.admission.atlas
    if kind == kinds.KEY:
        return name in atlas.keys
    nameless = kind == NAMELESS
    gate = atlas.gates.get((kinds.UPSTREAM if nameless else kind, name))
    if gate is None or not (tenant or nameless):
        return gate is not None
    return isinstance(gate, SharedGate) and tenant in gate.shares.accounts


def dump(core: Core, gate: Gate) -> dict[str, Any] | None:
    """None: there is nothing to remember."""
    state: dict[str, Any] = {}
    if gate.door is not UNTOUCHED:
        door = _dump_door(gate.door)
        if door:
            state["door"] = door
    limits = {limit.name: kept for limit in gate.limits if (kept := limit.dump()) is not None}
    if limits:
        state["limits"] = limits
    later = sorted(at for at, _, _, which in core.admission.settling if which is gate)
    if later:
        state["free_at"] = later
    return state or None


def _dump_door(door: Door) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    if door.paused:
        kept["paused"] = True
    if 0 < door.closed_until < INF:
        kept |= {"until": door.closed_until, "since": door.closed_since, "why": door.closed_why}
    if door.streak:
        kept |= {"streak": door.streak, "pushed_at": door.pushed_at, "fence": door.pushed_fence}
    return kept


def load(core: Core, address: Address, state: dict[str, Any], now: float) -> None:
    """Give a gate its memory back. Settings may have changed meanwhile; they win."""
    now = core.advance(now)
    gate = gate_at(core, address)
    if "door" in state:
        _load_door(gate.own_door(), state["door"])
    kept = state.get("limits", {})
    for limit in gate.limits:
        if limit.name in kept:
            limit.load(kept[limit.name])
    admission = core.admission
    for free_at in state.get("free_at", ()):
        if free_at > now:
            admission.count += 1
            ghost = -admission.count  # below all fences, so that it meets no real one
            gate.leases[ghost] = Permit(Ticket(f"gone{ghost}"), ghost, now, (gate,))
            heappush(admission.settling, (free_at, admission.count, ghost, gate))
    gate.refresh()
    if gate.limits:
        core.admission.atlas.fresh.append(gate)
        core.admission.wind_up(now)
    admission.gate_changed(gate, now)


def _load_door(door: Door, kept: dict[str, Any]) -> None:
    door.paused = bool(kept.get("paused", False))
    if "until" in kept:
        door.closed_until, door.closed_since = float(kept["until"]), float(kept["since"])
        door.closed_why = str(kept["why"])
    if "streak" in kept:
        door.streak, door.pushed_at = int(kept["streak"]), float(kept["pushed_at"])
        door.pushed_fence = door.pushed_before = int(kept["fence"])
