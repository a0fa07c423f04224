"""The clock that leases are counted on: it goes on while the machine is asleep."""

from __future__ import annotations

import time


def lease_clock() -> float:
    """Seconds, also those in which the machine was asleep, where it can tell."""
    return _clock()


def _slept_through() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


_clock = _slept_through if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
