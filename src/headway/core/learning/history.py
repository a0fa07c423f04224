"""The plain estimate: what went there at each refusal, smoothed, for people who know it.

Three levels: the history of refusals, else seven tenths of the most that was ever borne, else
nothing is known. It advises people; what queued work may do is decided by the other parts.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

SMOOTHING = 0.3
GOOD_RESPONSE_MS = 10_000.0
OF_PEAK = 0.7
KEPT = 20
LEAST_RPM = 1.0  # an estimate of nothing would look like no limit at all


class Source(StrEnum):
    HEADERS = "headers"
    HISTORY = "history"
    PEAK = "peak"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Point:
    at: float
    rpm: float
    response_ms: float


@dataclass(frozen=True, slots=True)
class Capacity:
    """`remaining` is a share from 0 to 1; `rpm` is None while nothing is known."""

    rpm: float | None
    source: Source
    load_rpm: float
    remaining: float


class History:
    __slots__ = ("peak_rpm", "points")

    def __init__(self) -> None:
        self.points: deque[Point] = deque(maxlen=KEPT)
        self.peak_rpm = 0.0

    def refused(self, now: float, rpm: float, response_ms: float) -> None:
        self.points.append(Point(now, rpm, response_ms))

    def borne(self, rpm: float) -> None:
        self.peak_rpm = max(self.peak_rpm, rpm)

    def fitted_rpm(self) -> float:
        """Oldest first, so that the newest counts most; slow answers make it more careful."""
        fitted = self.points[0].rpm
        for point in list(self.points)[1:]:
            fitted += SMOOTHING * (point.rpm - fitted)
        slowness = min(1.0, GOOD_RESPONSE_MS / max(self.points[-1].response_ms, 1.0))
        return max(LEAST_RPM, fitted * slowness)

    def capacity(self, load_rpm: float, told_rpm: float | None) -> Capacity:
        """Requests per minute only: calls in flight are another unit."""
        if told_rpm is not None:
            return _of(max(LEAST_RPM, told_rpm), Source.HEADERS, load_rpm)
        if self.points:
            return _of(self.fitted_rpm(), Source.HISTORY, load_rpm)
        if self.peak_rpm > 0:
            return _of(max(LEAST_RPM, OF_PEAK * self.peak_rpm), Source.PEAK, load_rpm)
        return Capacity(None, Source.OPEN, load_rpm, 1.0)

    def dump(self) -> dict[str, Any] | None:
        """The peak is kept roughly, so that what is stored does not change with every call."""
        if not self.points and not self.peak_rpm:
            return None
        points = [[round(p.at, 1), round(p.rpm, 1), round(p.response_ms)] for p in self.points]
        return {"points": points, "peak": float(f"{self.peak_rpm:.1e}")}

    def load(self, state: dict[str, Any]) -> None:
        self.peak_rpm = float(state["peak"])
        self.points.clear()
        for at, rpm, response_ms in state["points"]:
            self.points.append(Point(float(at), float(rpm), float(response_ms)))


def _of(rpm: float, source: Source, load_rpm: float) -> Capacity:
    return Capacity(rpm, source, load_rpm, min(1.0, max(0.0, 1.0 - load_rpm / rpm)))
