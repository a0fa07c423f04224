"""The breaker: closes a gate when too many answers say that the upstream is unwell, then lets
one probe through at a time until one comes back well.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headway.core.gate import Limit
from headway.core.outcome import Kind

if TYPE_CHECKING:
    from headway.core.outcome import Outcome
    from headway.core.permit import Permit

INF = float("inf")


@dataclass(frozen=True, slots=True)
class BreakerRule:
    """Opens at `share` of at least `at_least` outcomes within the window, or at `burst_share` of
    at least `burst_at_least`, or after `in_a_row` bad ones. Stays open `open_s` from the last one.
    """

    window_s: float = 60.0
    share: float = 0.20
    at_least: int = 8
    burst_share: float = 0.60
    burst_at_least: int = 4
    in_a_row: int = 4
    open_s: float = 60.0


FORGOTTEN_S = 3600.0
GRAIN = 60  # good outcomes in such a part of the window count as one entry, however many there are


class Breaker(Limit):
    """What it has heard is a list of entries: when, how many, good or bad. Bad ones are alone."""

    __slots__ = ("bad", "bad_at", "heard_of", "open_s", "outcomes", "probe", "row", "rule",
                 "status", "tripped")  # fmt: skip

    name = "breaker"
    stops_online = True

    def __init__(self, rule: BreakerRule) -> None:
        super().__init__()
        self.rule = rule
        self.outcomes: deque[list[Any]] = deque()
        self.heard_of = 0  # the sum of the entries
        self.bad = 0
        self.row = 0
        self.tripped = False
        self.probe: int | None = None
        self.open_s = rule.open_s
        self.bad_at = -INF  # when the last bad one came,
        self.status: int | None = None  # and what it said

    @property
    def state(self) -> str:
        if not self.tripped:
            return "closed"
        return "open" if self.probe is None else "half_open"

    def taken(self, now: float, permit: Permit) -> None:
        if self.tripped:
            # This is the probe. Nobody else goes until it is back, or has been gone for too long.
            self.probe = permit.fence
            self.opens_at = max(self.opens_at, now + self.open_s)

    def given(self, now: float, permit: Permit, outcome: Outcome) -> None:
        if not self.tripped or permit.fence == self.probe:
            self.heard(now, outcome)
            if self.probe == permit.fence:  # the probe ended without saying anything: try again
                self.probe = None
                if not outcome.upstream_fault:
                    self.opens_at = now
        elif outcome.upstream_fault:
            self._note(now, outcome)
            self._open(now)  # sent before the breaker opened; only bad news counts from those

    def heard(self, now: float, outcome: Outcome) -> None:
        if outcome.upstream_fault:
            self._note(now, outcome)
            self._count(now, bad=True)
            if self.tripped or self._too_many():
                self._open(now)
        elif outcome.kind is Kind.OK:
            if self.tripped:
                self._close()
            self._count(now, bad=False)

    def stay_open(self, open_s: float) -> None:
        """Somebody who calls there knows for how long; counted from the last bad outcome."""
        if open_s != self.open_s:
            self.open_s = open_s
            if self.tripped and self.probe is None:
                self.opens_at = self.bad_at + open_s

    def _note(self, now: float, outcome: Outcome) -> None:
        self.bad_at = now
        self.status = outcome.status

    def _count(self, now: float, *, bad: bool) -> None:
        outcomes, window_s = self.outcomes, self.rule.window_s
        last = outcomes[-1] if outcomes else None
        if bad or last is None or last[2] or now - last[0] >= window_s / GRAIN:
            outcomes.append([now, 1, bad])
        else:
            last[1] += 1
        self.heard_of += 1
        self.bad += bad
        self.row = self.row + 1 if bad else 0
        while outcomes[0][0] <= now - window_s:
            _, count, was_bad = outcomes.popleft()
            self.heard_of -= count
            self.bad -= was_bad
        self.row = min(self.row, self.bad)  # what is forgotten is not in a row any more

    def _too_many(self) -> bool:
        rule, seen = self.rule, self.heard_of
        return (
            self.row >= rule.in_a_row
            or (seen >= rule.at_least and self.bad >= rule.share * seen)
            or (seen >= rule.burst_at_least and self.bad >= rule.burst_share * seen)
        )

    def _open(self, now: float) -> None:
        self.tripped = True
        self.opens_at = now + self.open_s
        self.probe = None

    def _close(self) -> None:
        self.tripped = False
        self.opens_at = -INF
        self.probe = None
        self.outcomes.clear()
        self.heard_of = self.bad = self.row = 0

    def adopt(self, other: Any) -> None:
        if isinstance(other, Breaker):
            self.outcomes, self.heard_of = other.outcomes, other.heard_of
            self.bad, self.row = other.bad, other.row
            self.tripped, self.probe, self.opens_at = other.tripped, other.probe, other.opens_at
            self.bad_at, self.status = other.bad_at, other.status
            if other.open_s != other.rule.open_s:
                self.open_s = other.open_s  # told by somebody, not by the rule that was

    def dump(self) -> Any:
        """The probe is not kept: whoever carried it may be gone, and the next one is another."""
        if not self.tripped and not self.outcomes:
            return None
        seen = list(self.outcomes)
        state = {"tripped": self.tripped, "opens_at": max(self.opens_at, 0.0), "seen": seen}
        if self.bad_at > -INF:
            state |= {"bad_at": self.bad_at, "status": self.status}
        if self.open_s != self.rule.open_s:
            state["open_s"] = self.open_s
        return state

    def load(self, state: Any) -> None:
        self.outcomes = deque(list(each) for each in state["seen"] if len(each) == 3)
        self.heard_of = sum(count for _, count, _ in self.outcomes)
        self.bad = sum(bad for _, _, bad in self.outcomes)
        self.row = 0
        for _, _, bad in self.outcomes:
            self.row = self.row + 1 if bad else 0
        self.tripped = bool(state["tripped"])
        self.opens_at = float(state["opens_at"]) if self.tripped else -INF
        self.bad_at, self.status = float(state.get("bad_at", -INF)), state.get("status")
        self.open_s = float(state.get("open_s", self.rule.open_s))

    def idle(self, now: float) -> bool:
        if self.tripped:  # an upstream that nobody has tried for so long is like any other
            return self.probe is None and self.opens_at + FORGOTTEN_S <= now
        return not self.outcomes or self.outcomes[-1][0] <= now - self.rule.window_s
