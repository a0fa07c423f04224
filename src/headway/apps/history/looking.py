"""What is to be seen of gates, in the brain's turn: no more than a few numbers of a few of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from headway.apps.history.bucket import IDLE, Gauges
from headway.apps.history.recorder import Look
from headway.core.gate import Gate
from headway.core.kinds import LANE, UPSTREAM
from headway.core.learning import Learning
from headway.core.limits import Pace
from headway.core.lines import Upstream
from headway.engine.tallies import Tallied

if TYPE_CHECKING:
    from headway.engine.brain import Brain

STRETCH = 500  # gates that one look goes through, in search of upstreams where somebody is
MOST_FOUND = 50  # of them in one look


class Watcher:
    """Looks at those who are named, and finds others bit by bit."""

    def __init__(self, brain: Brain) -> None:
        self._brain = brain
        self._next = 0  # of all gates, where the search goes on

    def look(self, lanes: Iterable[str], upstreams: Iterable[str], now: float) -> Look:
        gates = self._brain.core.admission.atlas.gates
        seen = {name: _upstream(gates.get((UPSTREAM, name)), now) for name in upstreams}
        for gate in self._found():
            if gate.name not in seen:
                seen[gate.name] = _upstream(gate, now)
        return Look(
            len(self._brain.core.leases.permits),
            {name: _running(gates.get((LANE, name))) for name in lanes},
            seen,
        )

    def _found(self) -> list[Upstream]:
        gates = self._brain.core.admission.atlas.gates
        begin = self._next if self._next < len(gates) else 0
        self._next = begin + STRETCH
        found: list[Upstream] = []
        for gate in islice(gates.values(), begin, self._next):
            if isinstance(gate, Upstream) and (gate.leases or _waiting(gate)):
                found.append(gate)
                if len(found) >= MOST_FOUND:
                    break
        return found

    def forget(self, stale: Mapping[str, Tallied]) -> list[str]:
        return self._brain.meters.places.forget(stale) if stale else []


def _upstream(gate: Gate | None, now: float) -> Gauges:
    if not isinstance(gate, Upstream):
        return IDLE
    rpm = concurrency = None
    for limit in gate.limits:
        if isinstance(limit, Learning):
            believed = limit.beliefs
            rpm, concurrency = believed.rpm, believed.concurrency
    return Gauges(_running(gate), _waiting(gate), float(_closed(gate, now)), rpm, concurrency)


def _running(gate: Gate | None) -> int:
    if gate is None:
        return 0
    if not gate.limits:
        return len(gate.leases)
    return sum(1 for fence in gate.leases if fence > 0)  # the others only keep their place


def _waiting(gate: Upstream) -> int:
    return sum(line.waiting for line in gate.lines)


def _closed(gate: Gate, now: float) -> bool:
    """For a reason of its own: a pace that ticks and places that are taken are its daily life."""
    if gate.door.paused or gate.door.closed_until > now:
        return True
    for limit in gate.limits:
        if isinstance(limit, Learning):
            if limit.phase(now) == "holding":
                return True
        elif limit.opens_at > now and not isinstance(limit, Pace):
            return True
    return False
