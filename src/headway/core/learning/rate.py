"""One unit of rate, requests or tokens: what is believed, and when the next call may go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.core.learning import refusal as refusals
from headway.core.learning.bucket import Bucket
from headway.core.learning.ceiling import Ceiling, Phase, Shape, Sight
from headway.core.learning.counting import WINDOW_S, Peak, Ring
from headway.core.learning.refusal import Cause, Last, Refusal
from headway.core.learning.told import Told

if TYPE_CHECKING:
    from headway.core.learning.online import Online
    from headway.core.rate_headers import Quota

SHUT_S = (1.5, 30.0)  # shorter is a bucket, longer may be anything
INF = float("inf")
SIZES = 0.05  # weight of one call in what is usual
SHORTEST_S = 0.001  # between two looks
LOOK_AGAIN_S = 1.0  # while headers set the rate


class Rate:
    __slots__ = (
        "_born_at",
        "bucket",
        "ceiling",
        "free_at",
        "last",
        "least",
        "most",
        "pinned",
        "ring",
        "spared",
        "told",
        "top_before_blocks",
        "well_minute",
        "well_quick",
    )

    def __init__(
        self,
        piece: float = 1.0,
        *,
        pinned: float | None = None,
        least: float = 0.0,
        most: float = INF,
        spared: float = 0.0,
    ) -> None:
        """`pinned`, `least` and `most` in units per second; `spared`: a share left unused."""
        self.ring = Ring()
        self.ceiling = Ceiling(piece)
        self.bucket = Bucket(piece)
        self.told = Told()
        self.last = Last(low=self.ceiling.rate)
        self.well_minute = Peak()  # the counts with which calls were accepted
        self.well_quick = Peak()
        self.top_before_blocks = 0.0  # what the first one said; later ones may be a ban
        self.pinned = pinned
        self.least = least
        self.most = most
        self.spared = spared
        self.free_at = -INF  # when the next call may go by this unit, as far as known
        self._born_at: float | None = None

    @property
    def piece(self) -> float:
        return self.ceiling.piece

    @property
    def rate(self) -> float:
        return self.ceiling.rate

    @property
    def believed(self) -> float | None:
        """Units per second that the upstream bears, as far as known."""
        return self.ceiling.top if self.pinned is None else self.pinned

    def size(self, amount: float) -> None:
        """Calls of a unit such as tokens differ; a usual one is the mean of the last."""
        self.ceiling.piece += SIZES * (amount - self.ceiling.piece)

    # ------------------------------------------------------------------ time

    def pass_time(self, now: float, since: float, online: Online, *, silent: bool) -> None:
        """Move the curve and fill the bucket. `silent`: something else kept everybody back."""
        passed_s = now - since
        limited_s = 0.0 if silent else max(0.0, min(now, self.free_at) - since)
        if self._born_at is None:
            self._born_at = since
        ring, ceiling = self.ring, self.ceiling
        ring.advance(now)
        self.told.pass_time(passed_s)
        per_s = online.rate(now)
        if self.pinned is not None:
            ceiling.rate = self.pinned
        elif self.told.fresh(now):
            ceiling.rate = self.told.rate(now, ring, per_s * self.piece)
        else:
            young_s = min(WINDOW_S, max(5.0, now - self._born_at))
            mean = ring.minute / young_s if ceiling.phase is Phase.START else ring.mean
            ceiling.pass_time(
                Sight(
                    now=now,
                    limited_s=limited_s,
                    mean=mean,
                    quick=ring.quick_mean,
                    online=per_s * self.piece,
                    online_mean=online.ring.mean * self.piece,
                    online_calls=per_s,
                    online_quick=online.quick_rate(now),
                    kept=self._kept(online) / WINDOW_S,
                ),
                passed_s,
            )
            if ceiling.phase is Phase.CRUISE and now - self.last.at > WINDOW_S + 1:
                ceiling.proved(ring.mean)
        ceiling.rate = max(self.least, min(self.most, ceiling.rate))
        self.bucket.fill(passed_s, ceiling.rate, self.brim(online))

    def brim(self, online: Online) -> float:
        return (1.0 + online.tokens()) * self.piece

    def opens_at(self, now: float, online: Online) -> float:
        """When the next queued call may go by this unit; not after `now`: at once."""
        self.free_at = self._opens_at(now, online)
        return self.free_at

    def _opens_at(self, now: float, online: Online) -> float:
        full_in_s = self.bucket.full_in_s(self.ceiling.rate, self.brim(online))
        if full_in_s and self.told.fresh(now):
            full_in_s = min(full_in_s, LOOK_AGAIN_S)  # a new window changes the rate at once
        at = now + max(SHORTEST_S, full_in_s) if full_in_s else now
        ring, ceiling, told = self.ring, self.ceiling, self.told
        believed = self.believed
        if self.spared and believed is not None:
            room = max(0.0, (1 - self.spared) * believed * WINDOW_S - self.piece)
            if ring.minute > room:
                at = max(at, ring.falls_to(room))
        if self.pinned is not None:
            return at
        if told.fresh(now):
            return max(at, told.opens_at(now, ring, self.brim(online), self._places(online)))
        if ceiling.top is not None and self._careful(online):
            most = WINDOW_S * max(ceiling.top, ceiling.rate)
            room = max(most - self.piece - self._kept(online), 0.0)
            if ring.minute > room:
                at = max(at, ring.falls_to(room))
        return at

    def _careful(self, online: Online) -> bool:
        """Whether it is a window, or may be one that online calls depend on."""
        shape = self.ceiling.shape
        return shape is Shape.WINDOW or (shape is Shape.UNKNOWN and online.seen)

    def _kept(self, online: Online) -> float:
        """What is left free for online calls in a window."""
        return self._places(online) if self._careful(online) else 0.0

    def _places(self, online: Online) -> float:
        queued_per_s = (self.ring.minute / self.piece - online.ring.minute) / WINDOW_S
        return online.places(queued_per_s) * self.piece

    # ------------------------------------------------------------------ calls

    def sent(self, now: float, amount: float) -> None:
        self.ring.add(now, amount)
        self.bucket.take(amount)

    def forgotten(self, sent_at: float, amount: float) -> None:
        self.ring.forget(sent_at, amount)

    def corrected(self, sent_at: float, saved: float) -> None:
        """A call took so much less than was expected, or more, if this is below 0."""
        self.ring.forget(sent_at, saved)
        self.bucket.take(-saved)

    def went_well(self, now: float) -> None:
        ring, ceiling, last = self.ring, self.ceiling, self.last
        self.well_minute.add(now, ring.minute)
        self.well_quick.add(now, ring.quick)
        more = last.count * 1.06 + 2 * self.piece < ring.minute
        if ceiling.shape is not Shape.BUCKET and last.count > 0 and more and now - last.at < 90.0:
            ceiling.shape = Shape.BUCKET  # more went through than the window was said to hold

    def opened_again(self, at: float, closed_at: float) -> None:
        """An online call got through again. If a window was full, it began a minute before: what
        was counted since then until it closed is what it holds.
        """
        ceiling, ring = self.ceiling, self.ring
        if ceiling.top is None or not SHUT_S[0] <= at - closed_at <= SHUT_S[1]:
            return
        held = (ring.since(at - WINDOW_S) - ring.since(closed_at)) / WINDOW_S
        if held < 0.9 * ceiling.top:
            ceiling.shape = Shape.WINDOW
            ceiling.top = max(0.5 * ceiling.top, held)
            ceiling.low = min(ceiling.low, 0.97 * ceiling.top)

    def at_peak(self) -> bool:
        """As many calls as were ever accepted lately: a refusal may be this rate's."""
        ring = self.ring
        minute, quick = self.well_minute.value, self.well_quick.value
        return ring.minute >= 0.97 * minute or ring.quick >= 0.97 * quick

    def hear(self, quota: Quota, sent_at: float) -> None:
        self.told.hear(quota, sent_at, self.ring)
        self.ceiling.believe(quota.per_s)

    def refused(self, now: float, *, half_open: bool, beside_online: bool, blocks: int) -> Cause:
        """Learn from it. `blocks`: refusals in a row before this one with nothing in between."""
        ring, ceiling, last = self.ring, self.ceiling, self.last
        refusal = Refusal(now, ring.minute, ring.quick_mean, ring.total, half_open, beside_online)
        phase = ceiling.phase
        cause = refusals.learn(refusal, last, ceiling, blocks)
        if cause is Cause.BLOCKED and not blocks:
            self.top_before_blocks = ceiling.top or 0.0
        elif cause is Cause.BLOCKED:
            self.well_minute.clear()
            self.well_quick.clear()
        last.at, last.count, last.total = refusal.now, refusal.count, refusal.total
        if cause is not Cause.BLOCKED:
            last.phase, last.low = phase, ceiling.low
        self.bucket.empty()
        return cause

    def forget_ceiling(self) -> None:
        """Something else explains what was taken for it."""
        self.ceiling.unlearn()
        self.last.count = 0.0

    def reopen(self) -> None:
        self.bucket.empty()
        self.ceiling.age_s = 0.0
