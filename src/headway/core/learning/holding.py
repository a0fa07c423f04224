"""Silence after a refusal, and the way back.

Hold as long as told, and at least a time that grows with the refusals of the last minute: who
insists is banned. Then one call tests at a time (half-open), or none while online calls test for
us. A full window is waited out by our own count of what is in it.
"""

from __future__ import annotations

from collections import deque
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from headway.core.learning.counting import WINDOW_S

if TYPE_CHECKING:
    from headway.core.learning.counting import Ring

FLOOR_S = (0.0, 0.0, 2.0, 15.0, 30.0, 60.0)  # by the number of refusals in the last minute
DRAINED_TO = (0.8, 0.5, 0.1)  # of a full window, by how often it was still found full
LONGEST_WINDOW_S = 75.0  # closed for longer than this is a ban
OUTAGE_ROW = 5
OUTAGE_S = (2.0, 4.0, 8.0, 16.0, 30.0)
BAN_S = 60.0
QUIET_ONLINE = 0.2  # calls per second; with more of them they test for us
LEAVES_TO_ONLINE_S = 3.0
LEAVES_LONGER_S = 60.0
NEVER = -1e9


class Why(StrEnum):
    RATE = "rate"
    BLOCKED = "blocked"
    BAN = "ban"
    OUTAGE = "outage"


class Hold:
    __slots__ = (
        "_blocked_since",
        "_drain_to",
        "_online_well",
        "_outages",
        "_refusals",
        "_row",
        "blocks",
        "cut_at",
        "test_out",
        "testing",
        "until",
        "why",
    )

    def __init__(self) -> None:
        self.until = NEVER
        self.cut_at = NEVER  # refusals of calls sent before this are known already
        self.why = Why.RATE
        self.testing = False  # half-open: not known yet to be open again
        self.test_out = False  # the one call that tests is on its way
        self.blocks = 0  # tests refused in a row
        self._blocked_since = NEVER
        self._drain_to = float("inf")
        self._online_well = 0
        self._refusals: deque[float] = deque(maxlen=len(FLOOR_S))
        self._row = 0  # faults in a row
        self._outages = 0

    # ------------------------------------------------------------------ what came back

    def refused(self, now: float) -> None:
        self._refusals.append(now)

    def refusals(self, now: float) -> int:
        return sum(1 for at in self._refusals if at >= now - WINDOW_S)

    def last_refusal(self) -> float:
        return self._refusals[-1] if self._refusals else NEVER

    def floor_s(self, now: float) -> float:
        return FLOOR_S[min(len(FLOOR_S) - 1, self.refusals(now))]

    def same_event(self, sent_at: float, *, tested: bool) -> bool:
        """A refusal that says nothing new: of the same burst, or while we are silent anyway."""
        return not tested and (sent_at < self.cut_at or self.testing)

    def at_least(self, until: float) -> None:
        self.until = max(self.until, until)

    def close(self, now: float, seconds: float, why: Why) -> None:
        self.until, self.cut_at, self.why = now + seconds, now, why
        self.testing, self._online_well = True, 0

    def close_softly(self, now: float, seconds: float) -> None:
        """After a refusal that fixed the ceiling: a pause, then one test."""
        self.at_least(now + seconds)
        self.testing, self.why, self._online_well = True, Why.RATE, 0

    def block(self, now: float, count: float, last_at: float) -> None:
        """One more refusal with nothing in between."""
        self.blocks += 1
        if self.blocks == 1:
            self._blocked_since = last_at if now - last_at <= WINDOW_S else now
        level = self.blocks - 1
        inf = float("inf")
        self._drain_to = DRAINED_TO[level] * max(count, 3.0) if level < len(DRAINED_TO) else inf

    def block_s(self, told_s: float | None, usual_s: float, now: float) -> float:
        if told_s is not None:
            return max(told_s, self.floor_s(now))
        if self.blocks > len(DRAINED_TO):
            seconds = BAN_S * 2.0 ** min(3, self.blocks - len(DRAINED_TO) - 1)
        else:
            seconds = max(usual_s, 20.0 if self.blocks == len(DRAINED_TO) else 2.0)
        return max(seconds, self.floor_s(now))

    def fault(self, now: float, told_s: float | None, *, tested: bool) -> None:
        """One is nothing; five in a row are an outage, which says nothing about the limit."""
        self._row += 1
        if told_s:
            self.at_least(now + told_s)
        elif self._row >= OUTAGE_ROW and (tested or not self.testing):
            self.close(now, OUTAGE_S[min(self._outages, len(OUTAGE_S) - 1)], Why.OUTAGE)
            self._outages += 1

    def well(self) -> None:
        self._row = 0

    def online_refused(self) -> None:
        self._online_well = 0

    def first_online_well(self) -> bool:
        return self._online_well == 0 and self.why in (Why.RATE, Why.BLOCKED)

    def online_well(self) -> None:
        self._online_well += 1

    # ------------------------------------------------------------------ the way back

    def drained_at(self, ring: Ring) -> float:
        """When our own count says that the window has room."""
        return min(ring.falls_to(self._drain_to), self.cut_at + WINDOW_S + 1.0)

    @property
    def drain_to(self) -> float:
        return self._drain_to

    def test_at(self, drained_at: float, online_per_s: float) -> float:
        """When the next call may test."""
        at = max(self.until, drained_at)
        if online_per_s >= QUIET_ONLINE:
            at = max(at, self.until + self._leaves_s())
        return at

    def _leaves_s(self) -> float:
        return LEAVES_TO_ONLINE_S if self.why is Why.RATE else LEAVES_LONGER_S

    def passed(self, now: float, drained_at: float, *, tested: bool) -> bool:
        """Whether an answer that went well ends the silence."""
        if not self.testing:
            return False
        enough = self._online_well >= (1 if self.why is Why.RATE else 3)
        return tested or (now >= max(self.until, drained_at) and enough)

    def was_ban(self, now: float) -> bool:
        """Closed for longer than any window is."""
        since = self._blocked_since if self.why is Why.BLOCKED else self.cut_at
        if self.why is Why.OUTAGE:
            return False
        return self.why is Why.BAN or self.blocks > 3 or now - since > LONGEST_WINDOW_S

    def dump(self) -> dict[str, Any] | None:
        """A long silence outlives a restart; a short one is over by then."""
        if not self.testing or self.why not in (Why.BLOCKED, Why.BAN):
            return None
        return {"until": round(self.until, 3), "why": self.why, "blocks": self.blocks,
                "cut_at": round(self.cut_at, 3)}  # fmt: skip

    def load(self, state: dict[str, Any]) -> None:
        self.until, self.why = float(state["until"]), Why(state["why"])
        self.blocks, self.cut_at = int(state["blocks"]), float(state["cut_at"])
        self._blocked_since, self.testing = self.cut_at, True

    def reopen(self) -> None:
        self.testing = False
        self._outages = 0
        self._drain_to = float("inf")
        if self.why is not Why.BAN:
            self.blocks = 0
