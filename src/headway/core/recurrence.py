"""When a schedule is due: fixed intervals that keep their phase, and what was missed.

A rule answers one question: which moment comes next. Reading the clock, storing the answer and
starting the job belong to the engine; calendars and time zones belong to `headway.cron`.

All arithmetic is in whole milliseconds, so that phase, order and keys are exact for ever.
"""

from __future__ import annotations

import math
import re
from dataclasses import KW_ONLY, dataclass, replace
from hashlib import blake2b
from typing import Protocol, runtime_checkable

DAY_S = 86_400.0
LONGEST_INTERVAL_S = 366 * DAY_S
FARTHEST_S = 1e11  # a float still tells milliseconds apart here, about the year 5138
MISSED_CAP = 1000  # rules that must count one by one stop here

UNITS_S = {"w": 7 * DAY_S, "d": DAY_S, "h": 3600.0, "m": 60.0, "s": 1.0}
_DURATION = re.compile("".join(rf"(?:\s*([0-9]{{1,9}}(?:\.[0-9]{{1,3}})?){u})?" for u in UNITS_S))


class Recurrence(Protocol):
    def after(self, last_due_at: float, now: float) -> float:
        """The first due time strictly after both the last one and `now`.

        What was slept through is coalesced: it is not made up for, and the phase is kept.
        """
        ...


@runtime_checkable
class CountsMissed(Protocol):
    """A rule that can count what it skipped faster than by walking through it."""

    def missed(self, last_due_at: float, now: float) -> int:
        """How many occurrences lie after `last_due_at` and not after `now`."""
        ...


@dataclass(frozen=True, slots=True)
class Occurrence:
    """The next run, and how many due times before it were skipped."""

    due_at: float
    missed: int


@dataclass(frozen=True, slots=True)
class Every:
    """Occurrence k is at `anchor_at + k * interval_s` plus its jitter, however late a run ends.

    Seconds are kept to the millisecond. `seed` sets one schedule's jitter apart from another's,
    and `stride` is what `stretched` sets: only every stride-th occurrence after the last one.
    """

    interval_s: float
    _: KW_ONLY
    anchor_at: float = 0.0
    jitter_s: float = 0.0
    growth: float = 1.0
    min_s: float | None = None
    max_s: float | None = None
    seed: str = ""
    stride: int = 1

    def __post_init__(self) -> None:
        for name in ("interval_s", "anchor_at", "jitter_s", "min_s", "max_s"):
            value = getattr(self, name)
            if value is not None:
                # What the fields say must be what the arithmetic uses.
                object.__setattr__(self, name, _whole_ms(name, value) / 1000)
        self._check_interval()
        self._check_growth()

    def _check_interval(self) -> None:
        lowest_s = 0.001 if self.min_s is None else max(self.min_s, 0.001)
        highest_s = self._highest_s
        if not lowest_s <= self.interval_s <= highest_s:
            raise ValueError(
                f"interval_s must be from {lowest_s:g} to {highest_s:g} seconds, "
                f"not {self.interval_s:g}; change it, or min_s and max_s"
            )
        if not 0 <= self.jitter_s < self.interval_s:
            raise ValueError(
                f"jitter_s must be 0 or more and below interval_s ({self.interval_s:g}), "
                f"not {self.jitter_s:g}; otherwise one occurrence could overtake the next"
            )

    def _check_growth(self) -> None:
        if not 1.0 <= self.growth < math.inf:
            raise ValueError(
                f"growth must be 1 or more, not {self.growth!r}; 2.0 doubles the interval each time"
            )
        if self.stride < 1:
            raise ValueError(f"stride must be 1 or more, not {self.stride!r}; use stretched(n)")

    @classmethod
    def parse(cls, text: str) -> Every:
        """`Every.parse("1h30m")`. For more settings: `Every(duration_s("1h30m"), jitter_s=60)`."""
        return cls(duration_s(text))

    @property
    def step_s(self) -> float:
        """The distance from one run to the next, stretching included."""
        return self.stride * self._interval_ms / 1000

    def after(self, last_due_at: float, now: float) -> float:
        """The first due time strictly after both the last one and `now`."""
        steps = self.missed(last_due_at, now) + 1
        return self.due_at(self._latest(last_due_at) + steps * self.stride)

    def missed(self, last_due_at: float, now: float) -> int:
        """How many occurrences lie after `last_due_at` and not after `now`."""
        passed = self._latest(max(last_due_at, now)) - self._latest(last_due_at)
        return passed // self.stride

    def due_at(self, k: int, seed: str | None = None) -> float:
        """When occurrence k is due, by the schedule's own seed unless another is given."""
        return self._due_ms(k, self.seed if seed is None else seed) / 1000

    def stretched(self, n: int) -> Every:
        """The rule after `n` failures (or unchanged results) in a row; `stretched(0)` recovers.

        It waits the largest whole number of intervals within `interval_s * growth**n` and
        `max_s`, counted from the last run: so it backs off in full at once, and every run of it
        is an occurrence of the base rule, which it is in phase with when it recovers.
        """
        if n < 0:
            raise ValueError(f"n counts failures in a row: 0 or more, not {n!r}")
        highest = _whole_ms("max_s", self._highest_s) // self._interval_ms
        # Comparing logarithms first: growth**n itself overflows after a long outage.
        if n * math.log(self.growth) >= math.log(highest):
            return replace(self, stride=highest)
        return replace(self, stride=math.floor(self.growth**n))

    @property
    def _interval_ms(self) -> int:
        return round(self.interval_s * 1000)

    @property
    def _highest_s(self) -> float:
        return LONGEST_INTERVAL_S if self.max_s is None else min(self.max_s, LONGEST_INTERVAL_S)

    def _due_ms(self, k: int, seed: str) -> int:
        jitter_ms = round(self.jitter_s * 1000)
        offset_ms = _stable_below(jitter_ms, f"jitter\0{k}\0{seed}") if jitter_ms else 0
        return round(self.anchor_at * 1000) + k * self._interval_ms + offset_ms

    def _latest(self, at: float) -> int:
        """The last k that is due at or before `at`."""
        at_ms = _floor_ms(at)
        k = (at_ms - round(self.anchor_at * 1000)) // self._interval_ms
        # Jitter may put the occurrence of this very interval after `at`, but no earlier one.
        return k if self._due_ms(k, self.seed) <= at_ms else k - 1


def next_run(rule: Recurrence, last_due_at: float, now: float) -> Occurrence:
    """The next occurrence after a run ended at `now`, to be stored as that run is closed."""
    return Occurrence(rule.after(last_due_at, now), _count_missed(rule, last_due_at, now))


def _count_missed(rule: Recurrence, last_due_at: float, now: float) -> int:
    if isinstance(rule, CountsMissed):
        return rule.missed(last_due_at, now)
    count = 0
    due_at = rule.after(last_due_at, last_due_at)
    while due_at <= now and count < MISSED_CAP:
        count += 1
        due_at = rule.after(due_at, due_at)
    return count


def spread_anchor(name: str, interval_s: float) -> float:
    """A phase in [0, interval_s) that is always the same for this name.

    With one for each schedule, ten thousand of them do not all fire on the hour.
    """
    interval_ms = _whole_ms("interval_s", interval_s)
    if interval_ms < 1:
        raise ValueError(f"interval_s must be at least 0.001 seconds, not {interval_s!r}")
    return _stable_below(interval_ms, f"anchor\0{name}") / 1000


def occurrence_key(schedule_id: str, due_at: float) -> str:
    """One key for each occurrence of a schedule, so that claiming it twice is seen."""
    if not schedule_id:
        raise ValueError("an occurrence needs the id of its schedule; it is empty")
    # An integer, since the text of a float is not the same for the same moment reached two ways.
    return f"{schedule_id}@{_whole_ms('due_at', due_at)}"


def duration_s(text: str) -> float:
    """Seconds from text such as "45s", "30m" or "1h30m": w, d, h, m, s, largest first, once each.

    A number alone is refused: an interval in seconds was once read as minutes.
    """
    match = _DURATION.fullmatch(str(text).strip())
    if match is None or not any(match.groups()):
        raise ValueError(
            f"{text!r} is not a duration; name the unit of each number, largest unit first: "
            "'45s', '30m', '1h30m', '2d' or '1w'"
        )
    total_s = math.fsum(
        float(number) * unit_s
        for number, unit_s in zip(match.groups(default="0"), UNITS_S.values(), strict=True)
    )
    return _whole_ms("duration", total_s) / 1000


def _whole_ms(name: str, seconds: object) -> int:
    if not isinstance(seconds, int | float) or not abs(seconds) <= FARTHEST_S:
        raise ValueError(
            f"{name} must be a number of seconds within ±{FARTHEST_S:g}, not {seconds!r}; "
            "turn text such as '30m' into seconds with duration_s('30m')"
        )
    return round(seconds * 1000)


def _floor_ms(at: float) -> int:
    """The last whole millisecond that is not after `at`."""
    ms = _whole_ms("a time", at)
    return ms if ms / 1000 <= at else ms - 1


def _stable_below(bound: int, text: str) -> int:
    """A number in [0, bound) that only depends on the text.

    A cryptographic digest, because `hash()` of text changes with every process: after a restart
    each occurrence would move, and one that has run could be due again.
    """
    digest = blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % bound
