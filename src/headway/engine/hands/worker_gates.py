"""The gates in front of workers elsewhere: `tool:work:TYPE`, one for each type of job that this
process cannot run itself. Such a gate is open while a worker asks for jobs of its type, and shut
at once when it has got what it asked for. So remote jobs stand in the same order, at the same
gates, as all others; there is no second queue beside the core's.

They all meet at `tool:hands:remote`, which is open unless an operator says otherwise: when a worker
asks for several types, whoever waits for any of them is compared there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from random import Random

from headway.core import Core, GatePolicy, Permit, Policies
from headway.core.gate import Closed, Gate, Limit
from headway.core.kinds import TOOL, TYPE
from headway.engine.hands.demand import Demand, Taker
from headway.engine.registry import REMOTE, WORK

INF = float("inf")
KNOWN_S = 90.0  # so long after a worker has named a type it counts as known
UNKNOWN_TYPE = "no worker knows this type"
BUSY = "its workers are busy"


class Workers(Limit):
    """Lets jobs of one type pass while workers ask for them."""

    __slots__ = ("_gates", "_type", "unattended")

    name = "busy"

    def __init__(self, rng: Random, *, gates: WorkerGates, type: str) -> None:
        super().__init__()
        self._gates = gates
        self._type = type
        self.look(gates.now)

    def look(self, now: float) -> None:
        """Shut by the cap while workers are busy, like any pool that is full; by the clock while
        there are none, so that no places elsewhere are kept for a job that nobody may ever run.
        """
        known_until = self._gates.known_until(self._type)
        wanted = self._gates.demand.wants(self._type)
        known = wanted or known_until > now
        self.cap = INF if wanted else 0
        self.unattended = not wanted
        self.opens_at = -INF if known else INF
        self.changes_at = known_until if known and not wanted else INF

    def taken(self, now: float, permit: Permit) -> None:
        if permit.ticket.type == self._type:
            self._gates.taken(permit)
        self.look(now)

    def elapse(self, now: float) -> None:
        self.look(now)

    def idle(self, now: float) -> bool:
        return True  # all that it knows is known elsewhere

    def says(self, until: float | None, detail: str = "") -> Closed:
        gate = f"{TYPE}:{self._type}"
        reason = self._gates.reasons.get(self._type)
        if reason is not None:
            return Closed("closed" if until is not None else self.name, reason, until, gate)
        if until is not None:
            return Closed("closed", UNKNOWN_TYPE, until, gate)
        return Closed(self.name, BUSY, None, gate)


class WorkerPolicies(Policies):
    """Whatever is declared about a gate of workers, they are what opens it."""

    gates: WorkerGates

    def of(self, kind: str, name: str) -> GatePolicy:
        policy = super().of(kind, name)
        if kind != TOOL or not name.startswith(WORK):
            return policy
        limit: Callable[[Random], Limit] = partial(
            Workers, gates=self.gates, type=name.removeprefix(WORK)
        )
        return replace(policy, more=(*policy.more, limit))


class WorkerGates:
    def __init__(self, core: Core) -> None:
        self._core = core
        self.demand = Demand(self._changed)
        self.deals: dict[int, Taker] = {}  # who is to get what was granted, by fence
        self.reasons: dict[str, str] = {}  # why nobody asks for a type, where that is known better
        self._seen: dict[str, float] = {}  # when a worker has last named a type
        self._to_open: dict[str, None] = {}  # types whose gates may be open wider than they know

    @property
    def now(self) -> float:
        return self._core.now

    # ------------------------------------------------------------------ what workers say

    def known_until(self, type: str) -> float:
        return self._seen.get(type, -INF) + KNOWN_S

    def named(self, types: Iterable[str], now: float) -> None:
        """A worker can run these."""
        for name in types:
            if self.known_until(name) <= now:
                self._to_open[name] = None
            self._seen[name] = now

    def sweep(self, now: float) -> None:
        """What a worker waits for stays known; what nobody has named for long is forgotten."""
        for crowd in self.demand.crowds.values():
            self.named(crowd.types, now)
        self._seen = {name: at for name, at in self._seen.items() if at + KNOWN_S > now}

    # ------------------------------------------------------------------ opening and shutting

    def _changed(self, type: str) -> None:
        if self.demand.wants(type):
            self._to_open[type] = None
            return
        self._seen[type] = self.now  # its worker was there until now
        gate, limit = self._find(type)
        if gate is not None and limit is not None:
            limit.look(self.now)
            gate.refresh()
            self._core.admission.arm(gate, self.now)

    def open_up(self, now: float) -> None:
        """Call it before the core admits, after all that is new has come in."""
        if not self._to_open:
            return
        types, self._to_open = self._to_open, {}
        admission = self._core.admission
        opened: list[Gate] = []
        for name in types:
            gate, limit = self._find(name)
            if gate is not None and limit is not None:
                limit.look(now)
                gate.refresh()
                admission.arm(gate, now)
                if limit.cap and gate.waiters:
                    opened.append(gate)
        if opened:
            admission.gather(opened, self._core.gate(TOOL, REMOTE), now)

    def _find(self, type: str) -> tuple[Gate | None, Workers | None]:
        gate = self._core.admission.atlas.gates.get((TOOL, WORK + type))
        if gate is None:
            return None, None
        return gate, next((limit for limit in gate.limits if isinstance(limit, Workers)), None)

    # ------------------------------------------------------------------ granting

    def taken(self, permit: Permit) -> None:
        """A job was granted, or is known to be held since before a restart."""
        taker = self.demand.deal(permit.ticket.type)
        if taker is not None:
            self.deals[permit.fence] = taker
