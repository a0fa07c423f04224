"""Retention: finished jobs are kept for days, then purged at 02:00 local time, and on request. What
runs again and again may be kept for hours, and is looked for every hour.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from headway.errors import StoreUnavailable
from headway.store import Store
from headway.store.records import Purged

DAY_S = 86_400.0
HOUR_S = 3_600.0


class Retention:
    def __init__(
        self, *, completed_days: float = 7.0, failed_days: float = 30.0, hour: int = 2
    ) -> None:
        if completed_days < 0 or failed_days < 0 or not 0 <= hour <= 23:
            raise ValueError("days must be 0 or more, the hour from 0 to 23")
        self.completed_days = completed_days
        self.failed_days = failed_days
        self.hour = hour
        self.sooner: dict[str, float] = {}  # type: seconds that completed jobs of it are kept
        self._next_at = self._sooner_at = float("inf")

    def plan(self, now: float) -> None:
        """The next time the local clock shows the hour."""
        local = datetime.fromtimestamp(now).astimezone()
        at = local.replace(hour=self.hour, minute=0, second=0, microsecond=0)
        if at <= local:
            at += timedelta(days=1)
        self._next_at = at.timestamp()
        self._sooner_at = now + HOUR_S if self.sooner else float("inf")

    def look(self, store: Store, now: float) -> float:
        """Purge one chunk if it is time. Returns when to look again: at once until all is done,
        so that the engine's turns go on in between.
        """
        if now < self._next_at and now < self._sooner_at:
            return min(self._next_at, self._sooner_at)
        try:
            left = self._purge_sooner(store, now) if now >= self._sooner_at else False
            if now >= self._next_at and not left:
                left = any(self.purge_chunk(store, now))
                if not left:
                    self.plan(now)
        except StoreUnavailable:
            self._next_at = now + 60.0
            return self._next_at
        return now if left else min(self._next_at, self._sooner_at)

    def _purge_sooner(self, store: Store, now: float) -> bool:
        """One chunk. False: there is no more of it, for this hour."""
        for type, keep_s in self.sooner.items():
            if store.purge_type(type, now - keep_s).jobs:
                return True
        self._sooner_at = now + HOUR_S
        return False

    def purge_chunk(
        self, store: Store, now: float, *, completed_days: float | None = None,
        failed_days: float | None = None,
    ) -> Purged:  # fmt: skip
        completed = self.completed_days if completed_days is None else completed_days
        failed = self.failed_days if failed_days is None else failed_days
        return store.purge(now - completed * DAY_S, now - failed * DAY_S, now)
