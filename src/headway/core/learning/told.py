"""What rate-limit headers say about one unit. While they are fresh, nothing needs to be learned.

A window says how many are left until it ends, so that rest is spread over the time that is left.
A bucket says how full it is and fills on its own, so queued work may go while it is half full.
Somebody whom we cannot see may use it too: what is missing and was not ours is theirs.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING

from headway.core.learning.counting import WINDOW_S

if TYPE_CHECKING:
    from headway.core.learning.counting import Ring
    from headway.core.rate_headers import Quota

FRESH_S = 120.0
SPREAD = 0.99
CATCHES_UP = 1.25  # times the even rate, to use what is left of a window
KEPT_OF_BUCKET = 0.5
TRUST_LOST = 0.97
LEAST_TRUST = 0.7
TRUST_BACK_PER_S = 0.03 / 60
SURE_AFTER = 5  # answers that speak for a rolling window
BUCKET_S = 8.0  # a fixed window looks like a bucket for a moment in its middle
NOISE = 2.0  # standard deviations of what others do


class Kind(StrEnum):
    """How the limit behind the headers works, as far as they show it."""

    FIXED = "fixed window"
    ROLLING = "rolling window"
    BUCKET = "bucket"


class Told:
    __slots__ = (
        "_at",
        "_fits_since",
        "_most_left",
        "_others",
        "_quota",
        "_rolls",
        "_total",
        "trust",
    )

    def __init__(self) -> None:
        self._quota: Quota | None = None
        self._at = -1e9  # when the call was sent that was answered so
        self._total = 0.0  # what had been sent by then
        self._others = 0.0  # units per second that are not ours
        self._most_left = 0.0
        self._fits_since: float | None = None
        self._rolls = 0
        self.trust = 1.0

    def fresh(self, now: float) -> bool:
        return self._quota is not None and now - self._at < FRESH_S

    @property
    def quota(self) -> Quota | None:
        return self._quota

    @property
    def others(self) -> float:
        """Units per second that somebody uses whom we cannot see."""
        return self._others

    @property
    def kind(self) -> Kind:
        if self._fits_since is not None and self._at - self._fits_since > BUCKET_S:
            return Kind.BUCKET
        return Kind.ROLLING if self._rolls >= SURE_AFTER else Kind.FIXED

    # ------------------------------------------------------------------ listening

    def hear(self, quota: Quota, sent_at: float, ring: Ring) -> None:
        if sent_at < self._at:
            return  # an older answer that took longer
        before, before_at = self._quota, self._at
        if before is not None and quota.limit != before.limit:
            self._most_left = 0.0
        self._quota, self._at = quota, sent_at
        self._total = ring.total - ring.since(sent_at)
        self._most_left = max(self._most_left, quota.remaining)
        if not self._fits_bucket(quota):
            self._fits_since = None
        elif self._fits_since is None:
            self._fits_since = sent_at
        if before is not None and sent_at > before_at + before.reset_s:
            # Its reset has passed. A fixed window is new then; a rolling one has hardly moved.
            since_s = sent_at - before_at - before.reset_s
            ours = ring.since(sent_at - since_s - 0.5) - ring.since(sent_at)
            used = quota.limit - quota.remaining
            self._rolls = _vote(self._rolls, used > ours + 0.1 * quota.limit + 3.0)
        self._infer_others(quota, sent_at, ring)

    def _fits_bucket(self, quota: Quota) -> bool:
        """A bucket's rest and what still has to flow in are always the same together."""
        whole = quota.remaining + quota.reset_s * quota.per_s
        return abs(whole - self._most_left) <= 2.0 + 0.02 * self._most_left

    def _infer_others(self, quota: Quota, sent_at: float, ring: Ring) -> None:
        kind = self.kind
        age_s = WINDOW_S
        if kind is Kind.FIXED:
            age_s = min(WINDOW_S, max(1.0, quota.window_s - quota.reset_s))
        if kind is Kind.BUCKET or age_s <= 5.0 or quota.window_s > WINDOW_S:
            return
        ours = ring.since(sent_at - age_s - 0.5) - ring.since(sent_at)
        theirs = max(0.0, quota.limit - quota.remaining - ours)
        rate = theirs / age_s if theirs > 3.0 else 0.0
        self._others += (0.3 if kind is Kind.ROLLING else 0.05) * (rate - self._others)

    def refused(self, quota: Quota | None) -> None:
        """Refused. If it says itself that something is left, the headers are not the limit."""
        if quota is not None and quota.remaining < 1:
            return
        self.trust = max(LEAST_TRUST, self.trust * TRUST_LOST)

    def pass_time(self, passed_s: float) -> None:
        self.trust = min(1.0, self.trust + passed_s * TRUST_BACK_PER_S)

    # ------------------------------------------------------------------ what follows from it

    def left(self, now: float, ring: Ring) -> float:
        """How many may still go, by what was said and what was sent since."""
        quota = self._quota
        assert quota is not None
        sent = ring.total - self._total
        kind = self.kind
        if kind is Kind.BUCKET:
            return min(self._most_left, quota.remaining + (now - self._at) * quota.per_s - sent)
        if kind is Kind.ROLLING:
            return quota.limit * self.trust - self._others * WINDOW_S - ring.minute
        if now >= self._at + quota.reset_s:
            return quota.limit
        return quota.remaining - sent

    def kept(self, places: float) -> float:
        """How many of them queued work leaves to others. `places`: for online calls that we see."""
        quota = self._quota
        assert quota is not None
        kind = self.kind
        if kind is Kind.BUCKET:
            return KEPT_OF_BUCKET * self._most_left
        if kind is Kind.ROLLING:
            return max(places, NOISE * math.sqrt(self._others * WINDOW_S))
        return 0.02 * quota.limit if self._others > 0.01 else 0.0

    def opens_at(self, now: float, ring: Ring, brim: float, places: float) -> float:
        """When what is left will be enough for the next queued call."""
        quota = self._quota
        assert quota is not None
        kind = self.kind
        needed = brim + self.kept(places)
        if kind is Kind.BUCKET:  # a small one can never hold all that
            needed = min(needed, max(1.0, self._most_left))
        missing = needed - self.left(now, ring)
        if missing <= 0:
            return now
        if kind is Kind.BUCKET:
            return now + max(0.01, missing / quota.per_s)
        if kind is Kind.ROLLING:
            return max(now + 0.01, ring.falls_to(max(0.0, ring.minute - missing)))
        return min(self._at + quota.reset_s, self._at + FRESH_S)

    def rate(self, now: float, ring: Ring, online: float) -> float:
        """Units per second for online calls and queued work together."""
        quota = self._quota
        assert quota is not None
        even = quota.per_s * self.trust
        kind = self.kind
        if kind is Kind.BUCKET:
            return 1.02 * even  # `left` is exact; the pace only keeps calls apart
        if kind is Kind.ROLLING:
            return max(0.01, even - self._others)
        rest_s = max(0.5, self._at + quota.reset_s - now)
        theirs = self._others
        if theirs > 0.01:
            needs = theirs * rest_s + 2 * math.sqrt(theirs * rest_s) + 0.02 * quota.limit
            spread = (self.left(now, ring) - needs) / rest_s
            return max(0.01, min(SPREAD * even, spread))
        spread = (self.left(now, ring) - math.sqrt(online * rest_s)) / rest_s
        return max(0.01, min(CATCHES_UP * even, spread))


def _vote(votes: int, yes: bool) -> int:
    return min(votes + 1, 2 * SURE_AFTER) if yes else max(votes - 2, 0)
