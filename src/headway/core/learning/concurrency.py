"""The cap on calls in flight, which is another unit than calls per minute.

A refusal blames the cap when more was in flight than anything that was accepted lately. While it
is the cap that holds queued work back, it is raised by one after a quiet time, then by more as
long as nothing pushes back. A soft cap comes from the latency guard instead of a refusal.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any

INF = float("inf")
QUIET_S = 60.0
MOST_QUIET_S = 180.0
MAYBE_QUIET_S = 5.0  # of a cap that may be none
MOST_CONFIRMED = 3


class Blame(StrEnum):
    NO = "no"
    MAYBE = "maybe"
    SURE = "sure"


class Cap:
    __slots__ = (
        "changed_at",
        "confirmed",
        "known",
        "least",
        "limit",
        "most",
        "pinned",
        "probing",
        "sane",
        "soft",
        "step",
    )

    def __init__(self, *, least: int = 1, most: float = INF, pinned: float | None = None) -> None:
        self.least = least
        self.most = most
        self.pinned = pinned
        self.limit = INF  # as many as may be in flight now
        self.known = INF  # where it was refused last
        self.confirmed: int | None = None  # None: it may be none
        self.changed_at: float | None = None  # None: before anything happened here
        self.step = 1
        self.probing = False
        self.soft = False
        self.sane = False  # the latency guard found nothing wrong since the last step

    @property
    def allowed(self) -> float:
        """As many as may be in flight, within the operator's bounds."""
        if self.pinned is not None:
            return self.pinned
        return max(self.least, min(self.limit, self.most))

    @property
    def believed(self) -> float | None:
        if self.pinned is not None:
            return float(self.pinned)
        return self.known if self.known < INF and self.confirmed is not None else None

    @property
    def firm(self) -> bool:
        """Learned from refusals, and more than a suspicion."""
        return self.known < INF and self.confirmed is not None and not self.soft

    def begin_at(self, limit: float) -> None:
        self.limit = self.known = limit
        self.confirmed = 0

    def dump(self) -> dict[str, Any] | None:
        if self.believed is None or self.pinned is not None:
            return None
        return {"known": self.known, "confirmed": self.confirmed, "soft": self.soft}

    def load(self, state: dict[str, Any]) -> None:
        self.begin_at(float(state["known"]))
        self.confirmed, self.soft = int(state["confirmed"]), bool(state["soft"])

    def blame(self, in_flight: int, accepted: float, *, rate_at_peak: bool, moving: bool) -> Blame:
        """Whether a refusal with so many others in flight is this cap's. `accepted`: the most that
        anything was accepted with. `moving`: the rate is finding its own ceiling just now.
        """
        again = in_flight >= self.known and not self.soft
        if in_flight < 2 or self.pinned is not None:
            return Blame.NO
        if not (in_flight > accepted or (again and (self.probing or self.confirmed is not None))):
            return Blame.NO
        if not rate_at_peak or (again and (self.probing or self.confirmed is not None)):
            return Blame.SURE
        if not moving and in_flight >= 4:
            return Blame.SURE
        return Blame.MAYBE if in_flight >= 3 else Blame.NO

    def refused_at(self, now: float, in_flight: int, *, sure: bool) -> None:
        near = self.known < INF and abs(in_flight - self.known) <= max(1.0, 0.1 * in_flight)
        if not sure:
            self.confirmed = None
        else:
            self.confirmed = min(MOST_CONFIRMED, (self.confirmed or 0) + 1) if near else 0
        self._set(now, float(in_flight), soft=False)

    def soften(self, now: float, limit: float) -> None:
        """Slower than with fewer in flight."""
        if limit < self.limit:
            self.confirmed = 0
            self._set(now, limit, soft=True)

    def _set(self, now: float, limit: float, *, soft: bool) -> None:
        self.limit = self.known = limit
        self.changed_at, self.step = now, 1
        self.probing, self.soft = False, soft

    def probes_at(self, now: float) -> float:
        """When a cap that binds may be raised. One that was only remembered has its quiet time."""
        if self.changed_at is None:
            self.changed_at = now
        if (self.soft and not self.sane) or self.limit >= self.most or self.pinned is not None:
            return INF
        return self.changed_at + self._quiet_s()

    def _quiet_s(self) -> float:
        if self.confirmed is None:
            return MAYBE_QUIET_S
        return QUIET_S if self.soft else min(MOST_QUIET_S, QUIET_S * 2.0**self.confirmed)

    def probe(self, now: float, latency_s: float) -> None:
        self.probing, self.sane = True, False
        self.limit = math.floor(self.limit) + self.step
        if self.soft:
            self.changed_at = now
        else:
            self.step = min(self.step * 2, max(1, int(self.limit / 4)))
            self.changed_at = now - self._quiet_s() + max(2.0, 2 * latency_s)
