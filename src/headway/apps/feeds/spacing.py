"""When each host was really asked.

A turn at a host is given at its pace, but some requests leave at once and others a moment later:
the next one would be at the heels of a late one. So each looks here before it leaves. Any thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

MOST_KEPT = 10_000  # hosts; the others were asked long ago


class Spacing:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._asked_at: dict[str, float] = {}  # who was asked last comes last

    def wait_s(self, host: str, apart_s: float) -> float:
        """How long the next request there has to wait. 0: not at all, and it counts as sent now."""
        with self._lock:
            now = self._clock()
            left_s = self._asked_at.get(host, now - apart_s) + apart_s - now
            if left_s > 0:
                return left_s
            self._asked_at.pop(host, None)
            self._asked_at[host] = now
            if len(self._asked_at) > MOST_KEPT:
                del self._asked_at[next(iter(self._asked_at))]
            return 0.0
