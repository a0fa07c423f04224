"""The remembered ceiling, and the curve that the rate follows below it.

START   nothing is known, or more was borne than ever before: grow until something pushes back.
CRUISE  come back to just below the ceiling and stay there.
PROBE   seldom and slowly, see whether it has risen. A failed probe confirms the ceiling; only
        growth clearly above it without a refusal is news.

Time counts here only while the rate is what holds queued work back: an idle hour teaches nothing.
Online calls pay for each experiment, so its speed falls with their rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

NEVER = -1e9
START_PER_S = 1.0  # calls, when nothing is known
DOUBLES_S = 10.0  # the first time
DOUBLES_AGAIN_S = 40.0  # above a ceiling that was known
MOST_DOUBLED = 64.0  # times in a row; what was shown is less long before that
MARGIN = 0.02
MOST_MARGIN = 0.08
MORE_MARGIN = 0.015
WARY_MARGIN = 0.05  # after a ban
WARY_S = 900.0
CAUTION = 0.4  # times the usual growth, once banned
RECOVERS_S = 30.0
CATCHES_UP_S = 30.0  # the first moments beside online calls: be as fast as they are
QUIET_S = 30.0
QUIET_CALLS = 75.0
MOST_QUIET_S = 120.0
MOST_QUIET_ONLINE_S = 900.0
TRUSTED_S = 1800.0  # a confirmed ceiling is not probed beside heavy online traffic for so long
EXPLORES = 0.25  # failed online calls per second that an experiment may cost, roughly
MOST_CONFIRMED = 4
BUSY_ONLINE = 0.05  # calls per second
HEAVY = 0.5  # share of online calls beside which nothing is tried,
HEAVY_TRUSTED = 0.3  # or while the ceiling was confirmed lately
RISEN = 1.04  # times the ceiling for a minute; less may be a burst,
RISEN_WINDOW = 1.03  # which a window does not give


class Phase(StrEnum):
    START = "start"
    CRUISE = "cruise"
    PROBE = "probe"


class Shape(StrEnum):
    """What kind of limit it is. Windows remember a burst for a minute, buckets do not."""

    UNKNOWN = "unknown"
    WINDOW = "window"
    BUCKET = "bucket"


@dataclass(slots=True)
class Sight:
    """What the curve can see: units per second, and for how long the rate was the limit."""

    now: float
    limited_s: float
    mean: float  # of the last minute
    quick: float  # of the last 5 s
    online: float  # in units
    online_mean: float  # the same, of the last minute only
    online_calls: float
    online_quick: float  # calls per second of the last 5 s
    kept: float  # left free for them below the ceiling of a window


class Ceiling:
    __slots__ = (
        "age_s",
        "bans",
        "confirmed",
        "confirmed_at",
        "low",
        "margin",
        "phase",
        "piece",
        "rate",
        "risen_from",
        "shape",
        "top",
        "wary_s",
    )

    def __init__(self, piece: float = 1.0) -> None:
        self.piece = piece  # units of a usual call
        self.rate = START_PER_S * piece
        self.margin = MARGIN
        self.wary_s = 0.0  # no experiments for so long
        self.bans = 0
        self.unlearn()

    def unlearn(self) -> None:
        """There is no ceiling, as far as known. The speed of the moment stays."""
        self.phase = Phase.START
        self.top: float | None = None
        self.low = self.rate  # where the curve comes back from
        self.age_s = 0.0
        self.confirmed = 0
        self.confirmed_at = NEVER
        self.shape = Shape.UNKNOWN
        self.risen_from: float | None = None  # the ceiling before the last rise

    def begin_at(self, top: float) -> None:
        """Somebody knows the ceiling: a document, an operator, or we from an earlier life."""
        self.top = top
        self.confirmed = max(self.confirmed, 1)
        self.come_back_from(0.7)
        self.rate = self.low

    def believe(self, top: float) -> None:
        """The upstream says so itself."""
        if self.top is None or abs(top - self.top) > 0.001 * top:
            self.top = top
            self.confirmed = max(self.confirmed, 1)
            self.low = self.target
            self.settle()

    def dump(self) -> dict[str, Any] | None:
        if self.top is None:
            return None
        state = {"top": float(f"{self.top:.4g}"), "confirmed": self.confirmed, "shape": self.shape}
        return state | ({"wary": True} if self.wary_s else {})

    def load(self, state: dict[str, Any]) -> None:
        self.confirmed = int(state["confirmed"])
        self.shape = Shape(state["shape"])
        self.begin_at(float(state["top"]))
        if state.get("wary"):
            self.banned()

    @property
    def target(self) -> float:
        assert self.top is not None
        return self.top * (1 - self.margin)

    def speed(self, at_one: float, least: float, most: float, online_calls: float) -> float:
        """How fast to explore, as a share per minute. Going over a window by x % shuts online
        calls out for about 0.6 x seconds; over a bucket it costs less.
        """
        eager = 3.0 if self.shape is Shape.BUCKET else 1.0
        wanted = EXPLORES * at_one * eager / max(online_calls, BUSY_ONLINE)
        return max(EXPLORES * least, min(most, wanted))

    def come_back_from(self, share: float) -> None:
        """Cruise: start at this share of the ceiling, and approach it."""
        assert self.top is not None
        self.phase = Phase.CRUISE
        self.low = share * self.top
        self.age_s = 0.0

    def settle(self) -> None:
        """End an experiment that cannot be made now."""
        self.phase = Phase.CRUISE
        self.age_s = RECOVERS_S

    def keep_distance(self) -> None:
        """Refused where it was borne before: maybe by somebody whom we cannot see."""
        self.margin = min(MOST_MARGIN, self.margin + MORE_MARGIN)

    def banned(self) -> None:
        self.bans += 1
        self.wary_s = WARY_S * 2.0 ** min(2, self.bans - 1)
        self.margin = max(self.margin, WARY_MARGIN)

    def pass_time(self, sight: Sight, passed_s: float) -> None:
        if self.phase is Phase.START:
            self._start(sight)
        elif self.phase is Phase.CRUISE:
            self._cruise(sight)
        else:
            self._probe(sight)
        self.wary_s = max(0.0, self.wary_s - passed_s)
        least = WARY_MARGIN if self.wary_s else MARGIN
        self.margin = max(least, self.margin - passed_s * 0.01 / 600.0)

    def _start(self, sight: Sight) -> None:
        if not sight.limited_s:
            return
        self.age_s += sight.limited_s
        grown_s = sight.limited_s * (CAUTION if self.bans else 1.0)
        piece = self.piece
        if sight.online_calls > BUSY_ONLINE:
            if self.top is None and self.age_s < CATCHES_UP_S:
                self.rate = max(self.rate, (1.1 * sight.online_quick + 0.5) * piece)
            self.rate = max(self.rate, sight.mean)  # online calls have shown as much
            most = 0.3 if self.shape is Shape.WINDOW else 0.6
            self.rate *= 1 + self.speed(1.0, 0.4, most, sight.online_calls) * grown_s / 60.0
            self.rate = min(self.rate, 1.5 * max(sight.quick, sight.mean) + START_PER_S * piece)
        else:
            doubles_s, ahead = (DOUBLES_S, 1.8) if self.top is None else (DOUBLES_AGAIN_S, 1.5)
            shown = ahead * sight.mean + START_PER_S * piece
            grown = 2.0 ** min(MOST_DOUBLED, grown_s / doubles_s)
            self.rate = min(self.rate * grown, max(self.rate, shown))

    def _cruise(self, sight: Sight) -> None:
        assert self.top is not None
        self.age_s += sight.limited_s
        target = self.target
        at_stake = min(1.0, sight.online / (0.15 * self.top))
        if self.low < target and at_stake > 0.05:
            speed = self.speed(1.0, 0.24, 0.5, sight.online_calls) * (0.3 if self.wary_s else 1.0)
            self.rate = min(target, self.low + speed * target * self.age_s / 60.0)
        elif self.age_s < RECOVERS_S:
            self.rate = target - (target - self.low) * (1 - self.age_s / RECOVERS_S) ** 3
        else:
            self.rate = target
        quiet = self.age_s > self.quiet_s(sight) and self.rate >= 0.999 * target
        if quiet and not self._heavy(sight):
            self.phase, self.age_s = Phase.PROBE, 0.0

    def _heavy(self, sight: Sight) -> bool:
        """Too many online calls for experiments at their expense. After a ban there may be some
        that we cannot see.
        """
        assert self.top is not None
        trusted = self.confirmed and sight.now - self.confirmed_at < TRUSTED_S
        most = HEAVY_TRUSTED if trusted else HEAVY
        return self.wary_s > 0 or sight.online_mean > most * self.top

    def quiet_s(self, sight: Sight) -> float:
        """Time between probes: doubles with each confirmation, and is long enough for some calls
        at low rates. The more of the traffic is online, the longer it may become.
        """
        assert self.top is not None
        calls_per_s = max(self.top / self.piece, 0.05)
        quiet_s = max(QUIET_S, QUIET_CALLS / calls_per_s) * 2.0**self.confirmed
        share = min(1.0, sight.online_quick / (0.3 * calls_per_s))
        most_s = MOST_QUIET_S + (MOST_QUIET_ONLINE_S - MOST_QUIET_S) * share
        return min(quiet_s, max(most_s, 4 * QUIET_CALLS / calls_per_s))

    def _probe(self, sight: Sight) -> None:
        assert self.top is not None
        if self._heavy(sight):
            self.settle()
            return
        target = self.target
        self.age_s += sight.limited_s
        slope = self.speed(0.24, 0.032, 0.08, sight.online_calls)
        self.rate = max(self.rate, target) + slope * target * sight.limited_s / 60.0
        self.rate = min(self.rate, 1.05 * max(sight.mean + sight.kept, target))
        risen = RISEN_WINDOW if self.shape is Shape.WINDOW else RISEN
        if sight.mean > risen * self.top:
            self.phase, self.risen_from = Phase.START, self.top

    def proved(self, mean: float) -> None:
        """More than the ceiling was borne for a minute."""
        if self.top is not None and mean > self.top:
            self.top = mean
