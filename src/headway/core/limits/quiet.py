"""Quiet hours: daily windows in which queued work leaves an upstream alone.

The core has no time zones. The edge passes in how many seconds local time is ahead of UTC at a
given moment, so that summer time is right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headway.core.gate import Limit

DAY_S = 86_400.0
INF = float("inf")


def utc(_now: float) -> float:
    return 0.0


@dataclass(frozen=True, slots=True)
class QuietRule:
    """`windows` are (start, end) in seconds after local midnight; a window may pass midnight."""

    windows: tuple[tuple[float, float], ...]
    utc_offset_s: Callable[[float], float] = utc

    def __post_init__(self) -> None:
        for start_s, end_s in self.windows:
            if not (0 <= start_s < DAY_S and 0 <= end_s <= DAY_S) or start_s == end_s:
                raise ValueError(
                    f"quiet hours ({start_s!r}, {end_s!r}) must be two different times of day "
                    "in seconds after midnight; to stop everything, pause the upstream"
                )

    def ends_at(self, now: float) -> float:
        """When the window around `now` ends; -INF outside of all windows."""
        local_s = (now + self.utc_offset_s(now)) % DAY_S
        ends = [
            now + (end_s - local_s) % DAY_S
            for start_s, end_s in self.windows
            if _inside(local_s, start_s, end_s)
        ]
        return max(ends, default=-INF)

    def starts_at(self, now: float) -> float:
        """When the next window starts."""
        local_s = (now + self.utc_offset_s(now)) % DAY_S
        waits = [(start_s - local_s) % DAY_S or DAY_S for start_s, _ in self.windows]
        return now + min(waits, default=INF)


def _inside(local_s: float, start_s: float, end_s: float) -> bool:
    if start_s < end_s:
        return start_s <= local_s < end_s
    return local_s >= start_s or local_s < end_s


class QuietHours(Limit):
    __slots__ = ("rule",)

    name = "quiet_hours"

    def __init__(self, rule: QuietRule) -> None:
        super().__init__()
        self.rule = rule
        self.changes_at = -INF  # look at the clock as soon as there is one

    def elapse(self, now: float) -> None:
        ends_at = self.rule.ends_at(now)
        # Back-to-back windows are left at the first end, looked at again there, and found closed.
        self.opens_at = ends_at
        # Local time may jump within the hour (summer time), so look at least once an hour.
        boundary = ends_at if ends_at > now else self.rule.starts_at(now)
        self.changes_at = min(boundary, now + 3600.0) if boundary > now else now + 60.0

    def idle(self, now: float) -> bool:
        return True
