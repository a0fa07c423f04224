"""Tenants at a lane or an upstream: who holds, who waits and since when, and what each of them used
of late. As plain data, taken in the brain's turn.
"""

from __future__ import annotations

from collections.abc import Container
from itertools import islice
from typing import Any

from headway.core.gate import Gate
from headway.core.lines import Flow, SharedGate
from headway.core.order import LATELY_S, Group, Shares

INF = float("inf")
MAX_LISTED = 200
LOOKED_AT = 20  # of the tickets of a tenant in one line, those that are next


def tenants_at(gate: Gate, live: Container[int], now: float) -> list[dict[str, Any]]:
    """Who waits and who holds, the greediest first. `live`: the fences of all that run."""
    if not isinstance(gate, SharedGate):
        return []
    waiting = waiting_by_tenant(gate)
    rows: list[dict[str, Any]] = []
    for tenant in {*waiting, *gate.shares.accounts}:
        account = gate.shares.accounts.get(tenant)
        leases = {} if account is None else account.leases
        held = sum(1 for fence in leases if fence in live)
        if held or waiting.get(tenant):
            rows.append({
                "tenant": tenant, "running": held, "waiting": waiting.get(tenant, 0),
                "weight": 1.0 if account is None else account.weight,
                "closed_until": None if account is None or not now < account.opens_at < INF
                else account.opens_at,
            })  # fmt: skip
    rows.sort(key=lambda row: (-row["running"], -row["waiting"], row["tenant"]))
    del rows[MAX_LISTED:]
    used = [_used_s(gate.shares, row["tenant"], now) for row in rows]
    if not any(used):  # nobody has held anything for any time yet
        used = [float(row["running"]) for row in rows]
    total = sum(used) or 1.0
    for row, mine in zip(rows, used, strict=True):
        row["share"] = round(mine / total, 4)
        row["waiting_since"] = _waiting_since(gate, row["tenant"]) if row["waiting"] else None
    return rows


def waiting_by_tenant(gate: SharedGate) -> dict[str, int]:
    waiting: dict[str, int] = {}
    for line in gate.lines:
        for tenant, group in line.queue.groups.items():
            waiting[tenant] = waiting.get(tenant, 0) + group.waiting
    return waiting


def _used_s(shares: Shares, tenant: str, now: float) -> float:
    """Slot-seconds of late: of what was given back, and of what is held now."""
    used_s = shares.lately.get(tenant, 0.0)
    account = shares.accounts.get(tenant)
    if account is not None:
        for permit in account.leases.values():
            used_s += min(max(0.0, now - permit.granted_at), LATELY_S)
    return used_s


def _waiting_since(gate: SharedGate, tenant: str) -> float | None:
    """None: all of its tickets stand behind others of the same key."""
    groups = (line.queue.groups.get(tenant) for line in gate.lines)
    since = min((_oldest(group) for group in groups if group is not None), default=INF)
    return since if since < INF else None


def _oldest(group: Group) -> float:
    """Of those at the head: they go in the order of their coming, priorities aside."""
    oldest = INF
    for entry in islice(group.heap, LOOKED_AT):
        item = entry[2]
        if item.entry is entry:  # otherwise it has gone
            first = item.first() if type(item) is Flow else item
            oldest = min(oldest, first.ticket.since)
    return oldest
