"""What a refusal (429) says about the ceiling.

First `cause` names the case, by what was going on; then the case's own function says what the
ceiling is now. All refusals of calls that were sent before the first of them came back are one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headway.core.learning.ceiling import MOST_CONFIRMED, Ceiling, Phase, Shape
from headway.core.learning.counting import WINDOW_S

NEVER = -1e9
LEAST_CALLS = 0.02  # per second; a ceiling of nothing could never be found wrong
LEAST_SHARE = 0.3  # of the ceiling, to come back from


class Cause(StrEnum):
    BLOCKED = "hardly anything got through since the last refusal"
    FOUND = "first refusal on the way up"
    CONFIRMED = "a probe was refused"
    WINDOW = "refused below a speed that was just accepted: a full window"
    DELIVERED = "saturated from one refusal to the next"
    LOWER = "refused where it was borne before"


@dataclass(frozen=True, slots=True)
class Refusal:
    """What was going on when it came."""

    now: float
    count: float  # units of the last minute that were not refused
    quick: float  # units per second over the last 5 s
    total: float  # units ever
    half_open: bool  # it was the one call that tested whether it is open again
    beside_online: bool  # online calls go there at the moment

    @property
    def mean(self) -> float:
        return self.count / WINDOW_S


@dataclass(slots=True)
class Last:
    """The refusal before this one."""

    at: float = NEVER
    count: float = 0.0
    total: float = 0.0
    phase: Phase = Phase.START
    low: float = 0.0


def cause(refusal: Refusal, last: Last, ceiling: Ceiling) -> Cause:
    since_s = refusal.now - last.at
    admitted = (refusal.total - last.total) / ceiling.piece
    phase, shape, top = ceiling.phase, ceiling.shape, ceiling.top
    if refusal.half_open or (since_s <= WINDOW_S and admitted < 5 and phase is not Phase.PROBE):
        return Cause.BLOCKED
    if phase is Phase.START or top is None:
        return Cause.FOUND
    if phase is Phase.PROBE:
        return Cause.CONFIRMED
    if since_s <= 20.0 and last.phase is Phase.START and shape is not Shape.BUCKET:
        return Cause.WINDOW
    saturated = last.low >= 0.8 * min(refusal.quick, top)
    if since_s <= 30.0 and shape is not Shape.WINDOW and saturated:
        return Cause.DELIVERED
    return Cause.LOWER


def learn(refusal: Refusal, last: Last, ceiling: Ceiling, blocks: int) -> Cause:
    """Name the case and apply it. `blocks`: refusals in a row before with nothing in between."""
    why = cause(refusal, last, ceiling)
    if why is Cause.BLOCKED:
        blocked(refusal, last, ceiling, blocks + 1)
    elif why is Cause.FOUND:
        found(refusal, ceiling)
    elif why is Cause.CONFIRMED:
        confirmed(refusal, ceiling)
    elif why is Cause.WINDOW:
        window(last, ceiling)
    elif why is Cause.DELIVERED:
        delivered(refusal, last, ceiling)
    else:
        lower(refusal, ceiling)
    assert ceiling.top is not None
    ceiling.top = max(ceiling.top, LEAST_CALLS * ceiling.piece)
    ceiling.low = max(ceiling.low, LEAST_SHARE * ceiling.top)
    return why


def found(refusal: Refusal, ceiling: Ceiling) -> None:
    mean, before = refusal.mean, ceiling.risen_from
    ceiling.risen_from = None
    bursts = ceiling.shape is not Shape.WINDOW
    if bursts and before is not None and mean < 1.1 * before:  # a burst, or a small rise at most
        ceiling.top = before + 0.5 * max(0.0, mean - before)
        _confirm(ceiling, refusal.now)
        return
    ceiling.confirmed = 0
    if refusal.beside_online:
        ceiling.top = mean
        ceiling.come_back_from(0.85)
    else:
        ceiling.top = max(mean, min(0.95 * refusal.quick, 2 * mean))
        ceiling.come_back_from(0.97 * mean / max(ceiling.top, 1e-9))


def confirmed(refusal: Refusal, ceiling: Ceiling) -> None:
    assert ceiling.top is not None
    mean = refusal.mean
    shown = mean
    if ceiling.shape is Shape.BUCKET:
        shown = max(mean, 0.97 * min(refusal.quick, 1.3 * mean))
    if shown < 0.93 * ceiling.top:
        ceiling.top = shown
    else:
        ceiling.top += 0.3 * (shown - ceiling.top)
    _confirm(ceiling, refusal.now)


def _confirm(ceiling: Ceiling, now: float) -> None:
    ceiling.confirmed = min(MOST_CONFIRMED, ceiling.confirmed + 1)
    ceiling.confirmed_at = now
    ceiling.come_back_from(0.97)


def window(last: Last, ceiling: Ceiling) -> None:
    assert ceiling.top is not None
    ceiling.shape = Shape.WINDOW
    ceiling.top = max(0.3 * ceiling.top, min(ceiling.top, last.count / WINDOW_S))
    ceiling.confirmed = 0
    ceiling.come_back_from(0.9)


def delivered(refusal: Refusal, last: Last, ceiling: Ceiling) -> None:
    assert ceiling.top is not None
    rate = (refusal.total - last.total) / max(refusal.now - last.at, 1e-3)
    ceiling.top = min(0.95 * ceiling.top, max(0.97 * rate, 0.45 * ceiling.top))
    ceiling.confirmed = 0
    ceiling.come_back_from(0.95)


def lower(refusal: Refusal, ceiling: Ceiling) -> None:
    assert ceiling.top is not None
    ceiling.top = 0.98 * min(ceiling.top, max(refusal.mean, 0.8 * ceiling.top))
    ceiling.confirmed = max(0, ceiling.confirmed - 1)
    ceiling.come_back_from(0.97)
    ceiling.keep_distance()


def blocked(refusal: Refusal, last: Last, ceiling: Ceiling, times: int) -> None:
    """`times` refusals in a row with nothing in between: the first says that a window is full,
    and how much was in it at the one before.
    """
    old = ceiling.top
    if old is None:
        ceiling.top = max(refusal.mean, 0.05 * ceiling.piece)
    elif times == 1:
        ceiling.shape = Shape.WINDOW
        ceiling.top = max(min(old, last.count / WINDOW_S), 0.3 * old)
    elif refusal.mean > 0.3 * old:
        ceiling.top = max(refusal.mean, 0.3 * old)
    ceiling.confirmed = 0
    ceiling.phase = Phase.CRUISE
