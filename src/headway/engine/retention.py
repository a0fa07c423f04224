"""Retention: finished jobs are kept for days, then purged at 02:00 local time, and on request. What
runs again and again may be kept for hours, and is looked for every hour. For how many days is
declared, and an operator may set something else at run time, which is durable and can be reset.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from headway.errors import StoreUnavailable
from headway.store import Store
from headway.store.records import Purged

DAY_S = 86_400.0
HOUR_S = 3_600.0
KIND, NAME = "retention", "jobs"  # of an operator's setting
FIELDS = ("completed_days", "failed_days")
MOST_DAYS = 100_000

logger = logging.getLogger("headway")


def checked(value: Mapping[str, Any]) -> dict[str, float]:
    """What an operator says, if it makes sense; ValueError says why not."""
    unknown = set(value) - set(FIELDS)
    if unknown or not value:
        raise ValueError(f"retention has {' and '.join(FIELDS)}, not "
                         f"{', '.join(sorted(unknown)) or 'nothing'}")  # fmt: skip
    for field, days in value.items():
        if isinstance(days, bool) or not isinstance(days, int | float):
            raise ValueError(f"{field} is a number of days, not {days!r}")
        if not 0 <= days <= MOST_DAYS:
            raise ValueError(f"{field} is from 0 to {MOST_DAYS} days, not {days!r}")
    return {field: float(days) for field, days in value.items()}


class Retention:
    def __init__(
        self, *, completed_days: float = 7.0, failed_days: float = 30.0, hour: int = 2,
        said_by: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """`said_by`: which layer has declared the days, if it was not the code."""
        if completed_days < 0 or failed_days < 0 or not 0 <= hour <= 23:
            raise ValueError("days must be 0 or more, the hour from 0 to 23")
        self._declared = {"completed_days": completed_days, "failed_days": failed_days}
        self._declared_by = dict.fromkeys(FIELDS, "code") | dict(said_by or {})
        self._by_operator: dict[str, float] = {}
        self.hour = hour
        self.sooner: dict[str, float] = {}  # type: seconds that completed jobs of it are kept
        self._next_at = self._sooner_at = float("inf")

    # ------------------------------------------------------------------ for how long

    @property
    def completed_days(self) -> float:
        return self._by_operator.get("completed_days", self._declared["completed_days"])

    @property
    def failed_days(self) -> float:
        return self._by_operator.get("failed_days", self._declared["failed_days"])

    def put(self, value: Mapping[str, Any] | None) -> None:
        """What an operator sets, or resets with None."""
        self._by_operator = {} if value is None else checked(value)

    def load(self, rows: Iterable[tuple[str, str, str, float]]) -> None:
        """What an operator has set, from the store. What makes no sense is left out: it must not
        keep an engine from starting.
        """
        self._by_operator = {}
        for kind, name, value, _ in rows:
            if (kind, name) == (KIND, NAME):
                try:
                    self.put(msgspec.json.decode(value))
                except (TypeError, ValueError) as error:
                    logger.warning("what was set for retention is left out: %s", error)

    def shown(self) -> dict[str, Any]:
        """What holds, and which layer said so."""
        return {
            **self._declared, **self._by_operator,
            "from": self._declared_by | dict.fromkeys(self._by_operator, "operator"),
            "overridden": bool(self._by_operator),
            "declared": dict(self._declared),
            "purge_at": f"{self.hour:02}:00",
        }  # fmt: skip

    # ------------------------------------------------------------------ when

    def plan(self, now: float) -> None:
        """The next time the local clock shows the hour."""
        local = datetime.fromtimestamp(now).astimezone()
        at = local.replace(hour=self.hour, minute=0, second=0, microsecond=0)
        if at <= local:
            at += timedelta(days=1)
        self._next_at = at.timestamp()
        self._sooner_at = now + HOUR_S if self.sooner else float("inf")

    @property
    def next_at(self) -> float | None:
        """When all that is old is removed. None: nobody looks after it here."""
        return self._next_at if self._next_at < float("inf") else None

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
