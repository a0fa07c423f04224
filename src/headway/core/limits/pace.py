"""Spacing: a rate with a burst, or a minimum interval, and jitter that only ever lengthens it.

The generic cell rate algorithm: one number, the theoretical arrival time of the next call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headway.core.gate import Limit

if TYPE_CHECKING:
    from random import Random

    from headway.core.permit import Permit

INF = float("inf")


@dataclass(frozen=True, slots=True)
class PaceRule:
    """One call every `interval_s` on average, `burst` of them at once after a rest."""

    interval_s: float
    burst: int = 1
    jitter: float = 0.0  # each gap is longer by up to this share, so that calls do not tick
    by_cost: bool = False  # charge the ticket's cost (tokens) instead of 1 per call

    def __post_init__(self) -> None:
        if not 0 <= self.interval_s < INF:
            raise ValueError(f"interval_s must be 0 or more seconds, not {self.interval_s!r}")
        if self.burst < 1:
            raise ValueError(f"burst must be at least 1, not {self.burst!r}")
        if not 0 <= self.jitter <= 10:
            raise ValueError(f"jitter is a share of the interval from 0 to 10, not {self.jitter!r}")

    @classmethod
    def per_minute(cls, calls: float, *, burst: int = 1, jitter: float = 0.0) -> PaceRule:
        if not calls > 0:
            raise ValueError("a rate must be above 0; to stop everything, pause the upstream")
        return cls(60.0 / calls, burst, jitter)


class Pace(Limit):
    __slots__ = ("due_at", "rng", "rule")

    name = "pace"

    def __init__(self, rule: PaceRule, rng: Random) -> None:
        super().__init__()
        self.rule = rule
        self.rng = rng
        self.due_at = -INF

    def taken(self, now: float, permit: Permit) -> None:
        rule = self.rule
        gap_s = rule.interval_s
        if rule.jitter:
            gap_s *= 1.0 + rule.jitter * self.rng.random()
        if rule.by_cost:
            gap_s *= permit.ticket.cost
        self.due_at = max(self.due_at, now) + gap_s
        self.opens_at = self.due_at - rule.interval_s * (rule.burst - 1)

    def adopt(self, other: Any) -> None:
        if isinstance(other, Pace):
            self._resume(other.due_at)

    def dump(self) -> Any:
        return self.due_at if self.due_at > -INF else None

    def load(self, state: Any) -> None:
        self._resume(float(state))

    def _resume(self, due_at: float) -> None:
        self.due_at = due_at
        self.opens_at = due_at - self.rule.interval_s * (self.rule.burst - 1)

    def idle(self, now: float) -> bool:
        return self.due_at <= now
