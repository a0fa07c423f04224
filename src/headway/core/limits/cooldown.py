"""A rest after each release, whatever the cap: also with one slot per tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headway.core.gate import Limit

if TYPE_CHECKING:
    from headway.core.outcome import Outcome
    from headway.core.permit import Permit

INF = float("inf")


class Cooldown(Limit):
    __slots__ = ("cooldown_s",)

    name = "cooldown"

    def __init__(self, cooldown_s: float) -> None:
        super().__init__()
        self.cooldown_s = cooldown_s

    def given(self, now: float, permit: Permit, outcome: Outcome) -> None:
        if not permit.unused:
            self.opens_at = max(self.opens_at, now + self.cooldown_s)

    def adopt(self, other: Any) -> None:
        if isinstance(other, Cooldown):
            self.opens_at = other.opens_at

    def dump(self) -> Any:
        return self.opens_at if self.opens_at > -INF else None

    def load(self, state: Any) -> None:
        self.opens_at = float(state)
