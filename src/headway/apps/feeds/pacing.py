"""When a feed is asked again. Pure: moments in, a moment out.

Each feed has its own place in its interval, by a hash of its name: ten thousand of them stand
spread out, today and after every restart. A run is due one interval after the last one was *due*,
so that lateness is never added up; a feed that stands elsewhere (it was just added, or refreshed by
hand) is moved towards its place a little each time. What a site asks for only ever makes us wait
longer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from headway.core.recurrence import spread_anchor

HOUR_S = 3_600.0
DAY_S = 86_400.0
MIN_INTERVAL_S = 60.0
MAX_INTERVAL_S = 7 * DAY_S

JITTER = 0.01  # of the interval, so that a feed does not tick
DRIFT = 0.02  # of the interval: how far one run moves towards its place; more than the jitter
NEAREST = 0.5  # of the interval: after a run that came late, the next one is no closer
LATE = 0.05  # of the interval: who has waited longer than that is spread out after a restart
CATCH_UP_S = (
    HOUR_S  # in which those who missed their turn are all asked, unless they are due sooner
)

LONGEST_HINT_S = DAY_S  # a feed that wants to be left alone for longer is asked each day
HINT_SLACK = 0.1  # of the interval; a life as long as the interval must not make it drift
LONGEST_BACKOFF_S = DAY_S
MAX_DOUBLINGS = 60  # beyond which a float has no more to say
PUSHBACK_SPREAD_S = 300.0  # after a Retry-After, which may have come to many feeds at once

CHECKS_PER_CHANGE = 4  # how often a feed is asked between two changes, if it adapts
FASTEST_SHARE = 4  # an adaptive interval is no shorter than this part of the one that was set
CHANGES_LOOKED_AT = 20
LARGEST_STEP = 2.0  # by which an adaptive interval changes at once
STILL_THE_SAME = 1.25  # by less than this it does not change at all


# ---------------------------------------------------------------------- how long


def interval_within_bounds_s(interval_s: float) -> float:
    """From a minute to seven days."""
    return min(max(interval_s, MIN_INTERVAL_S), MAX_INTERVAL_S)


def adapted_interval_s(
    base_s: float, current_s: float, changed_at: Iterable[float], now: float
) -> float:
    """An interval that follows how often the feed really changes.

    `changed_at` are the publication or first-seen times of its newest entries, in any order.
    `current_s` is what this gave the last time (`base_s` at first): small differences are left
    alone, and large ones are gone towards in steps, so that one busy day does not throw it about.
    """
    fastest_s = max(interval_within_bounds_s(base_s) / FASTEST_SHARE, MIN_INTERVAL_S)
    current_s = min(max(current_s, fastest_s), MAX_INTERVAL_S)
    gap_s = _mean_gap_s(changed_at, now, at_least_s=fastest_s)
    wanted_s = base_s if gap_s is None else gap_s / CHECKS_PER_CHANGE
    wanted_s = min(max(wanted_s, fastest_s), MAX_INTERVAL_S)
    if current_s / STILL_THE_SAME < wanted_s < current_s * STILL_THE_SAME:
        return current_s
    return min(max(wanted_s, current_s / LARGEST_STEP), current_s * LARGEST_STEP)


def _mean_gap_s(changed_at: Iterable[float], now: float, at_least_s: float) -> float | None:
    """The silence since the last change counts too: it may have gone to sleep. None: no evidence.

    Entries that came together are one change, since one visit finds them all.
    """
    changes: list[float] = []
    for at in sorted((at for at in changed_at if at <= now), reverse=True):
        if not changes or changes[-1] - at >= at_least_s:
            changes.append(at)
        if len(changes) > CHANGES_LOOKED_AT:
            break
    if len(changes) < 2:
        return None
    return (now - changes[-1]) / (len(changes) - 1)


def backoff_s(interval_s: float, failures: int) -> float:
    """The wait after so many failures in a row: the usual one after the first, then twice as long
    each time, up to a day. It never ends: a site may come back after a year.
    """
    interval_s = interval_within_bounds_s(interval_s)
    grown_s = interval_s * 2.0 ** min(max(failures - 1, 0), MAX_DOUBLINGS)
    return max(interval_s, min(grown_s, LONGEST_BACKOFF_S))


# ---------------------------------------------------------------------- when


class Because(StrEnum):
    """Why it is due then and not before."""

    INTERVAL = "interval"
    BACKOFF = "backoff"
    HINT = "hint"  # its time to live, or how long its answer is fresh
    RETRY_AFTER = "retry_after"
    SKIPPED_HOURS = "skipped_hours"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What a feed and its server have asked for. Hours and days are in UTC, Monday is 0."""

    ttl_s: float | None = None
    fresh_until: float | None = None
    retry_at: float | None = None  # never before; the others are wishes
    skip_hours: frozenset[int] = frozenset()
    skip_days: frozenset[int] = frozenset()


NO_HINTS = Hints()


@dataclass(frozen=True, slots=True)
class Next:
    due_at: float
    because: Because


def next_refresh(
    feed: str,
    interval_s: float,
    *,
    due_at: float,
    now: float,
    failures: int = 0,
    hints: Hints = NO_HINTS,
) -> Next:
    """After a run that was due at `due_at` and ended `now`.

    For a run that somebody asked for, `due_at` is when they asked. `failures` are those in a row,
    this run included.
    """
    wait_s = backoff_s(interval_s, failures)
    at = _own_place(feed, wait_s, min(due_at, now), now)
    because = Because.BACKOFF if failures > 1 else Because.INTERVAL
    wished_at = _wished_at(hints, now) - HINT_SLACK * wait_s
    if at < wished_at:
        at, because = _place_from(feed, wait_s, wished_at), Because.HINT
    if hints.retry_at is not None and at < hints.retry_at:
        at = hints.retry_at + spread_anchor(feed, min(wait_s, PUSHBACK_SPREAD_S))
        because = Because.RETRY_AFTER
    opens_at = _opens_at(feed, at, hints)
    return Next(at, because) if opens_at == at else Next(opens_at, Because.SKIPPED_HOURS)


def due_after_restart(feed: str, interval_s: float, due_at: float, now: float) -> float:
    """When a feed is asked whose next run was due at `due_at`, though perhaps nobody was there.

    Whoever is a little late goes at once; all others take their places again, within the hour.
    """
    interval_s = interval_within_bounds_s(interval_s)
    if now - due_at <= LATE * interval_s:
        return due_at
    return _place_from(feed, min(interval_s, CATCH_UP_S), now)


# ---------------------------------------------------------------------- places


def _own_place(feed: str, wait_s: float, due_at: float, now: float) -> float:
    """One wait after it was due, or up to `DRIFT` nearer to its own place; but not so soon after a
    late run that it would look like two at once.
    """
    usual_at = due_at + wait_s
    anchor_s = spread_anchor(feed, wait_s)
    turn = math.floor((usual_at - anchor_s) / wait_s + 0.5)
    off_s = anchor_s + turn * wait_s - usual_at
    if abs(off_s) > DRIFT * wait_s:
        at = usual_at + math.copysign(DRIFT * wait_s, off_s)
    else:
        at = anchor_s + turn * wait_s  # exactly, so that nothing is ever added up
    if at < now + NEAREST * wait_s:
        return _place_from(feed, wait_s, now + NEAREST * wait_s)
    return at + _jitter_s(feed, wait_s, turn)


def _place_from(feed: str, wait_s: float, moment: float) -> float:
    """The feed's first place that is not before the moment."""
    anchor_s = spread_anchor(feed, wait_s)
    turn = math.ceil((moment - anchor_s) / wait_s)
    return max(anchor_s + turn * wait_s, moment) + _jitter_s(feed, wait_s, turn)


def _jitter_s(feed: str, wait_s: float, turn: int) -> float:
    return spread_anchor(f"{feed}\0{turn}", JITTER * wait_s)


# ---------------------------------------------------------------------- what was asked for


def _wished_at(hints: Hints, now: float) -> float:
    latest = now + LONGEST_HINT_S
    by_ttl = now if hints.ttl_s is None else now + max(hints.ttl_s, 0.0)
    by_server = now if hints.fresh_until is None else hints.fresh_until
    return min(max(by_ttl, by_server), latest)


def _opens_at(feed: str, at: float, hints: Hints) -> float:
    """The same moment, or one in the first hour that is not to be skipped: somewhere in it, since
    many feeds name the same hours. A feed that closes all of them is not taken at its word.
    """
    first = math.floor(at / HOUR_S)
    if not _is_skipped(first, hints):
        return at
    for hour in range(first + 1, first + 7 * 24 + 1):
        if not _is_skipped(hour, hints):
            return hour * HOUR_S + spread_anchor(feed, HOUR_S)
    return at


def _is_skipped(hour: int, hints: Hints) -> bool:
    day = (hour // 24 + 3) % 7  # the first of all days was a Thursday
    return hour % 24 in hints.skip_hours or day in hints.skip_days
