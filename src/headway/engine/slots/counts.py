"""What is counted at the desk for slots."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass


@dataclass(slots=True)
class Counts:
    """Since this process started."""

    created: int = 0
    granted: int = 0
    throttled: int = 0
    timed_out: int = 0
    released: int = 0
    reclaimed: int = 0
    outlived: int = 0


def total(several: Iterable[Counts]) -> Counts:
    return Counts(*map(sum, zip(*map(astuple, several), strict=True)))


@dataclass(slots=True)
class Overshoot:
    """Since ever, at one upstream: leases that ended without a word, and how many of their holders
    were heard of later, so that there was one more at the upstream than allowed.
    """

    reclaimed: int = 0
    outlived: int = 0
    outlived_s: float = 0.0
