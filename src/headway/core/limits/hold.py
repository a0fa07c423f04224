"""The minimum hold: a place that was given back early stays taken until its time is over,
and the places of one gate come free one after the other instead of all at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headway.core.gate import Limit

if TYPE_CHECKING:
    from headway.core.outcome import Outcome
    from headway.core.permit import Permit

INF = float("inf")


class MinHold(Limit):
    __slots__ = ("last_free_at", "min_hold_s", "smooth_s")

    name = "min_hold"

    def __init__(self, min_hold_s: float, smooth_s: float) -> None:
        super().__init__()
        self.min_hold_s = min_hold_s
        self.smooth_s = smooth_s
        self.last_free_at = -INF

    def keeps_until(self, now: float, permit: Permit, outcome: Outcome) -> float:
        if permit.unused:
            return now
        hit_at = outcome.hit_at
        if hit_at is None:
            hit_at = permit.granted_at
        # A client's clock may be wrong either way; it can only have called while it held the slot.
        hit_at = min(max(hit_at, permit.granted_at), now)
        free_at = max(now, hit_at + self.min_hold_s, self.last_free_at + self.smooth_s)
        self.last_free_at = free_at
        return free_at

    def forget(self) -> None:
        """The next place comes free when it would have if nobody had been here before."""
        self.last_free_at = -INF

    def adopt(self, other: Any) -> None:
        if isinstance(other, MinHold):
            self.last_free_at = other.last_free_at

    def dump(self) -> Any:
        return self.last_free_at if self.last_free_at > -INF else None

    def load(self, state: Any) -> None:
        self.last_free_at = float(state)

    def idle(self, now: float) -> bool:
        return self.last_free_at + self.smooth_s <= now
