"""Starting: what the last engine left is replayed into a new core. There is no other restart."""

from __future__ import annotations

import gc
import math
from typing import TYPE_CHECKING, Any

import msgspec

from headway.core import Outcome, State
from headway.core.kinds import TYPE, UPSTREAM
from headway.core.memory import NAMELESS
from headway.core.memory import load as load_gate
from headway.engine.hands.processes import kill_left_over
from headway.engine.hands.worker_gates import UNKNOWN_TYPE
from headway.engine.intake import announce, hold_back, holders, remember
from headway.engine.retention import KIND as RETENTION
from headway.store.records import OpenJob

if TYPE_CHECKING:
    from headway.engine.brain import Brain

MANY = 10_000
LOST = "the engine that ran it is gone"


def load(brain: Brain) -> None:
    """Everything that is open, then go on where the last engine stopped."""
    store, core = brain.store, brain.core
    # A moment ago, so that the first turn finds what has become due meanwhile.
    now = core.advance(math.nextafter(brain.clock.now(), 0.0))
    left_by = store.enter(brain.heard, brain.candidate)
    brain.term = brain.batch.term = left_by.term
    brain.mark = left_by.mark
    core.admission.fence = left_by.fence
    brain.version = store.version()
    for hear in brain.entered:
        hear(now)
    _load_settings(brain)
    for kind, name, tenant, state in store.gates():
        kept = _without_unknown(kind, msgspec.json.decode(state))
        load_gate(core, (kind, name, tenant), kept, now)
        if kind in (UPSTREAM, NAMELESS):
            brain.policies.hosts.remember((kind, name, tenant), kept)
        brain.ledger.kept[kind, name, tenant] = state
    for job, pid, started_at in store.processes():
        if left_by.was_here:
            kill_left_over(pid, started_at)
        brain.batch.processes.append((job, None, None))
    brain.schedules.load(store.schedules(), store.open_occurrences())
    core.admission.touched.clear()  # they are as they were stored
    _load_jobs(brain, now, hands_gone=left_by.is_gone)
    brain.slots.load(store.slots(), store.slot_totals(), now)
    for name in brain.schedules.orphans():
        brain.schedules.replan(name, brain.batch, now)
    for hear in brain.loaded:
        hear(now)
    if not left_by.is_gone:
        brain.record(now, "took_over", detail=f"{left_by.before} was not heard of any more")
    brain.start_clocks(brain.clock.now())
    if len(core.tickets) > MANY:
        gc.collect()
        gc.freeze()  # the core makes no cyclic garbage: there is no need to look at it again


def _without_unknown(kind: str, state: dict[str, Any]) -> dict[str, Any]:
    """An older version may have stored that nobody knows a type. That is for workers to say."""
    door = state.get("door", {})
    if kind != TYPE or door.get("why") != UNKNOWN_TYPE:
        return state
    door = {name: value for name, value in door.items() if name not in ("until", "since", "why")}
    return {**state, "door": door}


def _load_settings(brain: Brain) -> None:
    rows = brain.store.settings()
    brain.retention.load(rows)
    brain.settings.load((kind, name, value) for kind, name, value, _ in rows if kind != RETENTION)
    brain.settings.declare_all(brain.policies)


def _load_jobs(brain: Brain, now: float, *, hands_gone: bool) -> None:
    core, tickets, counts = brain.core, brain.tickets, brain.open_by_tenant
    waiting = holders(brain, [job for job, _ in brain.store.waits()])
    running: list[OpenJob] = []
    collecting = gc.isenabled()
    gc.disable()
    try:
        for row in brain.store.load_open(brain.mark):
            if row.unique_scope or row.schedule or row.spec or row.batch:
                remember(brain, row, known=True)
            counts[row.tenant] = counts.get(row.tenant, 0) + 1
            if row.state == State.RUNNING.value:
                running.append(row)
                continue
            others = waiting.get(row.id)
            not_before = hold_back(brain, row, others) if others else None
            ticket = tickets.again(row, not_before=not_before)
            if row.pin is not None:
                core.replay_pin(ticket, row.pin)
            core.replay(ticket, State(row.state), now, since=row.since)
            if ticket.state is State.QUEUED:
                brain.meters.lined_up(ticket.lane)
    finally:
        if collecting:
            gc.enable()
    open_tickets = list(core.tickets.values()) if _is_awaited(brain) else []
    for row in running:
        _take_back(brain, row, now, hands_gone=hands_gone)
    for ticket in open_tickets:
        announce(brain, ticket, now)


def _is_awaited(brain: Brain) -> bool:
    """Whether anybody wants to hear of jobs that are here."""
    return any(known.arrived is not None for known in brain.registry.types.values())


def _take_back(brain: Brain, row: OpenJob, now: float, *, hands_gone: bool) -> None:
    """An engine's own hands go with it, so a job that they ran has lost its lease; at once if that
    engine is surely gone, and else when a lease is over in which it must have noticed. What this
    process cannot run is held by a worker elsewhere, which has as long to find this engine.
    """
    ticket = brain.tickets.again(row)
    asked = ticket.asked
    if row.pin is not None:
        brain.core.replay_pin(ticket, row.pin)
    granted_at = now if row.granted_at is None else min(row.granted_at, now)
    permit = brain.core.restore(
        ticket, now, fence=row.fence, upstream=row.upstream, granted_at=granted_at,
        expires_at=now + brain.core.lease_s,
    )  # fmt: skip
    ticket.asked = asked
    announce(brain, ticket, now)
    if row.type in brain.registry.types:
        if hands_gone:
            brain.core.finish(row.id, row.fence, Outcome.lost(LOST), now)
    else:
        brain.remote.restore(permit)
