"""What is seen of the engine that needs attention: gates, types without a worker, schedules. It is
looked at in the brain's turn, a portion at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from headway.api.attention import Attention, Level, bundled, on_the_clock, several
from headway.core import State
from headway.core.gate import Gate
from headway.core.kinds import EVERYTHING, UPSTREAM
from headway.core.learning import Learning
from headway.core.limits import Breaker
from headway.core.lines import Upstream
from headway.engine.brain import Brain
from headway.engine.hands.worker_gates import Workers
from headway.engine.registry import WORK
from headway.engine.schedules import ScheduleOptions
from headway.store.records import Schedule

INF = float("inf")
LATE_S = 300.0  # an occurrence that waits for longer than this
STRIKES = 3  # failures in a row of a schedule
LONG_S = 600.0  # a closure that takes longer than this is no cool-down
BY_OPERATOR = "closed by an operator"

_PUSHBACK = re.compile(r"(\d{3}|None) (ban|pushback)\b")
_options = msgspec.json.Decoder(ScheduleOptions)


class Sight(NamedTuple):
    """The engine as it was a moment ago."""

    gates: list[Attention]
    unknown: dict[str, dict[str, int]]  # by type: how many wait, by tenant
    schedules: list[tuple[str, Attention]]  # with their tenants
    outlived: dict[str, int]  # by upstream, since ever


# ---------------------------------------------------------------------- in the brain's turn


def outlived(brain: Brain) -> dict[str, int]:
    return {name: each.outlived for name, each in brain.slots.overshoot.items() if each.outlived}


def look_at_gates(sight: Sight, gates: Sequence[Gate], now: float) -> None:
    for gate in gates:
        if gate.opens_at <= now:
            continue
        door = gate.door
        if door.paused:
            sight.gates.append(_paused(gate))
        elif door.closed_until > now:
            # A name that leads nowhere is no news until somebody waits there.
            if door.closed_until < INF or ":" not in gate.name or _waiting(gate):
                sight.gates.append(_closed(gate, now))
        elif gate.kind == UPSTREAM:
            sight.gates.extend(_held_back(gate, now))
        elif any(isinstance(each, Workers) and each.opens_at == INF for each in gate.limits):
            sight.unknown[gate.name.removeprefix(WORK)] = {}


def _waiting(gate: Gate) -> int:
    return sum(line.waiting for line in gate.lines) if isinstance(gate, Upstream) else 0


def _paused(gate: Gate) -> Attention:
    if gate.kind == EVERYTHING:
        return Attention("queue_paused", Level.WARN, ("queue", ""),
                         "the queue is paused: nothing starts until it is resumed")  # fmt: skip
    return Attention(
        "paused", Level.INFO, (gate.kind, gate.name), f"{gate.kind} {gate.name} is paused",
        {"kind": gate.kind, "name": gate.name, "waiting": _waiting(gate)},
    )  # fmt: skip


def _closed(gate: Gate, now: float) -> Attention:
    door = gate.door
    until = door.closed_until if door.closed_until < INF else None
    said = _PUSHBACK.match(door.closed_why)
    status = int(said[1]) if said and said[1] != "None" else None
    short = until is not None and until - now <= LONG_S
    if said is not None:
        cause = said[2]
        level = Level.INFO if cause == "pushback" and short else Level.WARN
    else:
        cause = "operator" if door.closed_why in ("", BY_OPERATOR) else "other"
        blocks = cause == "other" and not short and _waiting(gate) > 0
        level = Level.WARN if blocks else Level.INFO
    what = gate.name if gate.kind == UPSTREAM else f"{gate.kind} {gate.name}"
    why = f": {door.closed_why}" if door.closed_why else ""
    return Attention(
        "upstream_closed" if gate.kind == UPSTREAM else "closed", level, (gate.kind, gate.name),
        f"{what} is closed {on_the_clock(until)}{why}",
        {"kind": gate.kind, "name": gate.name, "cause": cause, "status": status,
         "why": door.closed_why, "waiting": _waiting(gate)},
        since=door.closed_since, until=until,
    )  # fmt: skip


def _held_back(gate: Gate, now: float) -> Iterator[Attention]:
    """By what it has answered."""
    for limit in gate.limits:
        if limit.opens_at <= now:
            continue
        until = limit.opens_at if limit.opens_at < INF else None
        values = {"kind": UPSTREAM, "name": gate.name, "waiting": _waiting(gate)}
        if isinstance(limit, Breaker):
            why = f"{limit.bad} of {limit.heard_of} answers were bad" + (
                "" if limit.status is None else f", the last one {limit.status}")  # fmt: skip
            yield Attention(
                "upstream_closed", Level.WARN, (UPSTREAM, gate.name),
                f"{gate.name} is closed {on_the_clock(until)} by its breaker: {why}",
                values | {"cause": "breaker", "status": limit.status, "why": why},
                since=limit.bad_at if limit.bad_at > 0 else None, until=until,
            )  # fmt: skip
        elif isinstance(limit, Learning) and limit.phase(now) == "holding":
            cause = limit.learner.hold.why.value
            level = Level.INFO if cause == "rate" else Level.WARN
            yield Attention(
                "upstream_holding", level, (UPSTREAM, gate.name),
                f"{gate.name} is left alone after it has refused calls ({cause})",
                values | {"cause": cause}, until=until,
            )  # fmt: skip


def count_unknown(brain: Brain, unknown: dict[str, dict[str, int]]) -> None:
    """How many wait for a worker of each type. Who stands in several lines is counted in one."""
    seen: set[int] = set()
    for signature, route in brain.core.admission.atlas.routes.items():
        counts = unknown.get(signature[0])
        if counts is not None and id(route[0]) not in seen:
            seen.add(id(route[0]))
            for tenant, group in route[0].queue.groups.items():
                if group.waiting:
                    counts[tenant] = counts.get(tenant, 0) + group.waiting


def look_at_schedules(brain: Brain, sight: Sight, rows: Sequence[Schedule], now: float) -> None:
    for row in rows:
        about = ("schedule", row.name)
        item = None
        if row.paused:
            item = Attention("schedule_paused", Level.INFO, about,
                             f"schedule {row.name} is paused", {"name": row.name})  # fmt: skip
        elif row.next_due_at is not None and row.next_due_at < now - LATE_S:
            job = brain.schedules.jobs.get(row.name)
            ticket = None if job is None else brain.core.tickets.get(job)
            if ticket is not None and ticket.state is State.QUEUED:
                item = Attention(
                    "schedule_late", Level.WARN, about,
                    f"schedule {row.name} is late: job {job} waits since it was due",
                    {"name": row.name, "job": job}, since=row.next_due_at,
                )  # fmt: skip
        if item is None and row.strikes >= STRIKES:
            item = Attention(
                "schedule_failing", Level.WARN, about,
                f"schedule {row.name} has failed {row.strikes} times in a row",
                {"name": row.name, "count": row.strikes},
            )  # fmt: skip
        if item is not None:
            sight.schedules.append((_options.decode(row.options).tenant, item))


# ---------------------------------------------------------------------- in sentences


def of_gates(items: list[Attention]) -> list[Attention]:
    found: list[Attention] = [item for item in items if item.kind in ("queue_paused", "closed")]
    for kind, many_kind, what in (
        ("paused", "paused_widely", "paused"),
        ("upstream_closed", "upstreams_closed", "closed"),
        ("upstream_holding", "upstreams_holding", "left alone after they have refused calls"),
    ):
        some = [item for item in items if item.kind == kind]
        some.sort(key=lambda item: -item.values["waiting"])
        noun = "gates" if kind == "paused" else "upstreams"

        def say(many: int, names: str, noun: str = noun, what: str = what) -> str:
            return f"{many} {noun} are {what}: {names}"

        found += bundled(many_kind, some, say)
    return found


def of_unknown_types(unknown: dict[str, dict[str, int]], tenant: str | None) -> Sequence[Attention]:
    """Of all, or those that a tenant waits for."""
    waiting = {
        type: sum(count for whose, count in counts.items() if tenant in (None, whose))
        for type, counts in unknown.items()
    }
    items = [
        Attention(
            "unknown_type", Level.WARN, ("type", type),
            f"{several(count, 'job')} of type {type} cannot start: no worker knows this type",
            {"type": type, "waiting": count},
        )
        for type, count in sorted(waiting.items(), key=lambda each: -each[1]) if count
    ]  # fmt: skip
    total = sum(waiting.values())
    return bundled("unknown_types", items, lambda many, names: f"{total} jobs of {many} types "
                   f"cannot start, which no worker knows: {names}")  # fmt: skip


def of_schedules(items: list[Attention]) -> list[Attention]:
    found: list[Attention] = []
    for kind, what in (
        ("schedule_late", "are late"), ("schedule_failing", "fail again and again"),
        ("schedule_paused", "are paused"),
    ):  # fmt: skip
        some = [item for item in items if item.kind == kind]
        many_kind = kind.replace("schedule_", "schedules_")

        def say(many: int, names: str, what: str = what) -> str:
            return f"{many} schedules {what}: {names}"

        found += bundled(many_kind, some, say)
    return found
