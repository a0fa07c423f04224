"""Live leases and when they end. A heartbeat moves nothing: it only changes a permit's end, and
the calendar looks again when the old end has come.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import ceil

from headway.core.permit import Permit

INF = float("inf")
PAGES = 10  # a second: how exactly the end of a lease is noticed


class Leases:
    __slots__ = ("_pages", "_turns", "permits")

    def __init__(self) -> None:
        self.permits: dict[int, Permit] = {}
        self._pages: dict[int, set[int]] = {}  # tenth of a second -> fences to look at then
        self._turns: list[int] = []

    def add(self, permit: Permit) -> None:
        self.permits[permit.fence] = permit
        permit.slot_at = 0
        if permit.expires_at < INF:
            self._write(permit)

    def remove(self, permit: Permit) -> None:
        del self.permits[permit.fence]
        page = self._pages.get(permit.slot_at)
        if page is not None:
            page.discard(permit.fence)

    def _write(self, permit: Permit) -> None:
        turn = ceil(permit.expires_at * PAGES)
        if turn / PAGES < permit.expires_at:  # by its last digit; it would be looked at for ever
            turn += 1
        permit.slot_at = turn
        page = self._pages.get(turn)
        if page is None:
            self._pages[turn] = page = set()
            heappush(self._turns, turn)
        page.add(permit.fence)

    def renewed(self, permit: Permit) -> None:
        """A new end. Only one that is earlier than the old needs another place in the calendar."""
        if permit.expires_at < INF and not 0 < permit.slot_at < permit.expires_at * PAGES + 1:
            self._pages.get(permit.slot_at, set()).discard(permit.fence)
            self._write(permit)

    def expired(self, now: float) -> list[Permit]:
        """The permits whose lease is over, in the order of their fences."""
        over: list[Permit] = []
        while self._turns and self._turns[0] / PAGES <= now:
            for fence in sorted(self._pages.pop(heappop(self._turns))):
                permit = self.permits[fence]
                if permit.expires_at <= now:
                    over.append(permit)
                else:
                    self._write(permit)
        return over

    def next_at(self) -> float:
        while self._turns and not self._pages[self._turns[0]]:
            del self._pages[heappop(self._turns)]
        return self._turns[0] / PAGES if self._turns else INF
