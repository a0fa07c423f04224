"""Cron expressions as a recurrence: the calendar and time zones, which the core does not know.

cronsim reads the expression and follows Debian's cron over clock changes. In short: a fixed time
that the spring change skips runs right after the gap, one that the autumn change repeats runs
once, and `*` minutes or hours follow real time. Nothing here reads the clock.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from itertools import islice, takewhile
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from headway.core.recurrence import MISSED_CAP

MAX_TEXT = 200  # characters; the longest sensible list of minutes fits

# Any date would do: cronsim looks 50 years ahead, and by then every date had every weekday.
_PROBE_AT = datetime(2000, 1, 1, tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True)
class Cron:
    """`Cron("0 3 * * MON-FRI", zone="Europe/Berlin")`. A sixth field in front means seconds."""

    expression: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        _zone(self.zone)
        if not isinstance(self.expression, str):
            raise ValueError(f"a cron expression is text, not {self.expression!r}")
        if len(self.expression) > MAX_TEXT:
            raise ValueError(f"a cron expression has at most {MAX_TEXT} characters; split it")
        try:
            first = next(self._due_times(_PROBE_AT), None)
        except CronSimError as error:
            raise ValueError(
                f"{self.expression!r} is not a cron expression ({error}); write "
                "'minute hour day-of-month month day-of-week', such as '30 2 * * MON-FRI'"
            ) from None
        if first is None:
            raise ValueError(
                f"{self.expression!r} never fires: no day satisfies all of its fields; "
                "check day-of-month, month and day-of-week against each other"
            )

    def after(self, last_due_at: float, now: float) -> float:
        """The first due time strictly after both the last one and `now`."""
        due_at = next(self._due_times(max(last_due_at, now)), None)
        if due_at is None:
            raise ValueError(f"{self.expression!r} does not fire within 50 years of {now!r}")
        return due_at

    def missed(self, last_due_at: float, now: float) -> int:
        """Counted one by one, so only up to a cap: after that the number helps nobody."""
        skipped = takewhile(lambda due_at: due_at <= now, self._due_times(last_due_at))
        return sum(1 for _ in islice(skipped, MISSED_CAP))

    def _due_times(self, after_at: float) -> Iterator[float]:
        # Floored by hand: fromtimestamp rounds, and could step onto an occurrence and past it.
        start = datetime.fromtimestamp(math.floor(after_at), _zone(self.zone))
        latest_at = after_at
        for moment in CronSim(self.expression, start):
            due_at = moment.timestamp()
            # In the repeated hour of autumn cronsim also names a moment that is already past.
            if due_at > latest_at:
                latest_at = due_at
                yield due_at


def _zone(name: str) -> tzinfo:
    if not isinstance(name, str):
        raise ValueError(f"a time zone is named by text, not {name!r}")
    if name == "UTC":
        return UTC  # cronsim takes a shorter way for this very object
    try:
        return ZoneInfo(name[:MAX_TEXT])
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f"{name[:MAX_TEXT]!r} is not a known time zone; use an IANA name such as "
            "'Europe/Berlin', and install the tzdata package if the system has no zones"
        ) from None
