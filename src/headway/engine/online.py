"""Online calls: they go at once and are counted at the same gates as all other work, or hear that
the upstream is closed. Nobody waits here, and nothing is stored: such a call lives and ends with
this process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.core import Outcome, Permit, Ticket, Traffic
from headway.core.change import Refusal
from headway.core.kinds import UPSTREAM
from headway.core.learning import Learning
from headway.core.outcome import Kind

if TYPE_CHECKING:
    from headway.engine.brain import Brain

LANE = "online"
TYPE = "online"
BUSY = 0.9  # of what an upstream bears: then another one is better


class OnlineCall:
    """One call on its way."""

    __slots__ = ("permit", "upstream")

    def __init__(self) -> None:
        self.permit: Permit | None = None
        self.upstream = ""


class OnlineDesk:
    def __init__(self, brain: Brain) -> None:
        self._brain = brain
        self.own: dict[int, OnlineCall] = {}  # by fence; renewed as long as this process lives

    def go(
        self, upstreams: tuple[str, ...], now: float, *, tenant: str = "", cost: float = 1.0
    ) -> OnlineCall | Refusal:
        """Go to the best of these that is open. They come in the order of preference: the first
        with room is best, and when all are busy the least busy one.
        """
        core = self._brain.core
        call = OnlineCall()
        ticket = Ticket(
            call, type=TYPE, lane=LANE, upstreams=self._best_first(upstreams, now), tenant=tenant,
            traffic=Traffic.ONLINE, cost=cost,
        )  # fmt: skip
        permit = core.call(ticket, now)
        if isinstance(permit, Refusal):
            first = upstreams[0] if upstreams else ""
            self._brain.meters.online_ended(first, "refused here")
            self._brain.meters.places.at(LANE, first).refused_online()
            return permit
        call.permit = permit
        call.upstream = "" if permit.upstream is None else permit.upstream.name
        self.own[permit.fence] = call
        return call

    def end(self, call: OnlineCall, outcome: Outcome, now: float) -> bool:
        """It was answered, or broke off. False: it had ended before."""
        permit, call.permit = call.permit, None
        if permit is None:
            return False
        self.own.pop(permit.fence, None)
        self._brain.core.finish(call, permit.fence, outcome, now)
        answer = outcome.kind.value if outcome.status is None else str(outcome.status)
        self._brain.meters.online_ended(call.upstream, answer)
        place = self._brain.meters.places.at(LANE, call.upstream)
        place.called_online()
        if outcome.kind is Kind.PUSHBACK:
            place.pushed_back()
        return True

    def _best_first(self, upstreams: tuple[str, ...], now: float) -> tuple[str, ...]:
        if len(upstreams) < 2:
            return upstreams
        return tuple(sorted(upstreams, key=lambda name: self._crowd(name, now)))

    def _crowd(self, name: str, now: float) -> float:
        busy = self.busy(name, now)
        return busy if busy >= BUSY else 0.0

    def busy(self, name: str, now: float) -> float:
        """The share that is in use of what an upstream bears; above 1 while it refuses."""
        gate = self._brain.core.admission.atlas.gates.get((UPSTREAM, name))
        if gate is None:
            return 0.0
        share = len(gate.leases) / gate.cap if gate.cap else 1.0
        if gate.door.streak:
            share = max(share, 1.0 + gate.door.streak)
        for limit in gate.limits:
            if isinstance(limit, Learning):
                share = max(share, limit.busy(now))
        return share
