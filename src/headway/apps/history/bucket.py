"""One stretch of time in numbers, and a ring of such stretches."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from operator import add
from typing import Any, NamedTuple

from headway.engine.meters import LONG_BOUNDS_S

UNKNOWN = math.nan
COUNTS = (
    "started", "completed", "failed", "pushbacks", "online", "refused_online", "submitted",
)  # fmt: skip
VALUES = (
    *COUNTS, "wait_p50_s", "wait_p95_s", "running", "waiting", "limit_rpm", "limit_concurrency",
    "closed",
)  # fmt: skip
WIDTH = len(VALUES)
NO_COUNTS = (0,) * len(COUNTS)
NO_WAITS = (0,) * (len(LONG_BOUNDS_S) + 1)


class Gauges(NamedTuple):
    """What was seen at one moment; None: nobody knows."""

    running: float | None = None
    waiting: float | None = None
    closed: float | None = None  # 1.0 or 0.0; of upstreams only
    limit_rpm: float | None = None
    limit_concurrency: float | None = None


IDLE = Gauges(0.0, 0.0, 0.0)


class Mean:
    __slots__ = ("sum", "weight")

    def __init__(self, sum: float = 0.0, weight: float = 0.0) -> None:
        self.sum = sum
        self.weight = weight

    def add(self, value: float | None, weight: float) -> None:
        if value is not None:
            self.sum += value * weight
            self.weight += weight

    @property
    def value(self) -> float:
        return self.sum / self.weight if self.weight else UNKNOWN


class Bucket:
    """What comes in is summed up; what it comes to is in `values`."""

    __slots__ = (
        "closed",
        "counts",
        "limit_concurrency",
        "limit_rpm",
        "number",
        "running",
        "waiting",
        "waits",
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.counts = list(NO_COUNTS)
        self.waits: list[int] | None = None  # of what started, by LONG_BOUNDS_S
        self.running, self.waiting, self.closed = Mean(), Mean(), Mean()
        self.limit_rpm: float | None = None
        self.limit_concurrency: float | None = None

    def add(self, counts: Sequence[int], waits: Sequence[int]) -> None:
        if self.waits is None:
            self.counts, self.waits = list(counts), list(waits)
        else:
            self.counts = list(map(add, self.counts, counts))
            self.waits = list(map(add, self.waits, waits))

    def see(self, gauges: Gauges, seconds: float) -> None:
        """What was seen holds for the time since the last look."""
        self.running.add(gauges.running, seconds)
        self.waiting.add(gauges.waiting, seconds)
        self.closed.add(gauges.closed, seconds)
        if gauges.running is not None:
            self.limit_rpm, self.limit_concurrency = gauges.limit_rpm, gauges.limit_concurrency

    def values(self) -> list[float]:
        """In the order of `VALUES`."""
        p50, p95 = quantiles(self.waits)
        rpm, concurrency = self.limit_rpm, self.limit_concurrency
        return [
            *self.counts, p50, p95, self.running.value, self.waiting.value,
            UNKNOWN if rpm is None else rpm, UNKNOWN if concurrency is None else concurrency,
            self.closed.value,
        ]  # fmt: skip

    # ------------------------------------------------------------------ memory

    def dump(self) -> Any:
        """As plain data; 0 for the many in which nothing happened."""
        if self._idle():
            return 0
        waits = [[place, many] for place, many in enumerate(self.waits or ()) if many]
        means = [[round(each.sum, 3), round(each.weight, 3)]
                 for each in (self.running, self.waiting, self.closed)]  # fmt: skip
        return [list(self.counts), waits, means, self.limit_rpm, self.limit_concurrency]

    def _idle(self) -> bool:
        means = (self.running, self.waiting, self.closed)
        return (
            self.limit_rpm is None
            and self.limit_concurrency is None
            and self.running.weight > 0
            and not any(each.sum for each in means)
            and not any(self.counts)
        )

    @classmethod
    def load(cls, number: int, dumped: Any) -> Bucket:
        if dumped == 0:
            bucket = cls(number)
            bucket.see(IDLE, 1.0)
            return bucket
        counts, waits, means, rpm, concurrency = dumped
        bucket = cls(number)
        bucket.waits = list(NO_WAITS)
        for place, many in waits:
            bucket.waits[place] = many
        bucket.counts = [int(each) for each in counts]
        bucket.running, bucket.waiting, bucket.closed = (Mean(*each) for each in means)
        bucket.limit_rpm, bucket.limit_concurrency = rpm, concurrency
        if len(bucket.counts) != len(COUNTS):
            raise ValueError("another version has written other counts")
        return bucket


class Ring:
    """The last so many buckets of one series. The newest is open, the others are only values."""

    __slots__ = ("_kept", "_numbers", "length", "open")

    def __init__(self, length: int) -> None:
        self.length = length
        self._numbers = array("q", [-1]) * length
        self._kept = array("f", [UNKNOWN]) * (length * WIDTH)
        self.open: Bucket | None = None

    def at(self, number: int, *, seen_all: bool) -> Bucket:
        """The bucket of this number, open. `seen_all`: it was looked at in the time between, too,
        and nothing happened there.
        """
        bucket = self.open
        if bucket is not None:
            if bucket.number == number:
                return bucket
            self._keep(bucket)
            if seen_all and number - bucket.number < self.length:
                self._fill(bucket, number)
        self.open = bucket = Bucket(number)
        return bucket

    def _keep(self, bucket: Bucket) -> None:
        self.put(bucket.number, bucket.values())

    def _fill(self, bucket: Bucket, until: int) -> None:
        values = bucket.values()
        values[: len(COUNTS)] = NO_COUNTS
        for name in ("wait_p50_s", "wait_p95_s"):
            values[VALUES.index(name)] = UNKNOWN
        for number in range(bucket.number + 1, until):
            self.put(number, values)

    def put(self, number: int, values: Sequence[float]) -> None:
        slot = number % self.length
        self._numbers[slot] = number
        self._kept[slot * WIDTH : (slot + 1) * WIDTH] = array("f", values)

    def read(self, first: int, last: int) -> list[Sequence[float] | None]:
        """Of each number the values, or None."""
        found: list[Sequence[float] | None] = []
        for number in range(first, last + 1):
            slot = number % self.length
            if self.open is not None and self.open.number == number:
                found.append(self.open.values())
            elif self._numbers[slot] == number:
                found.append(self._kept[slot * WIDTH : (slot + 1) * WIDTH])
            else:
                found.append(None)
        return found


def quantiles(waits: Sequence[int] | None) -> tuple[float, float]:
    """The median and the 95th percentile, as exactly as the bounds allow."""
    total = 0 if waits is None else sum(waits)
    if waits is None or not total:
        return UNKNOWN, UNKNOWN
    below = list(accumulate(waits))
    return _quantile(waits, below, 0.5 * total), _quantile(waits, below, 0.95 * total)


def _quantile(waits: Sequence[int], below: Sequence[int], rank: float) -> float:
    place = bisect_left(below, rank)
    if place >= len(LONG_BOUNDS_S):
        return LONG_BOUNDS_S[-1]
    lower = LONG_BOUNDS_S[place - 1] if place else 0.0
    share = 1.0 - (below[place] - rank) / waits[place]
    return lower + share * (LONG_BOUNDS_S[place] - lower)
