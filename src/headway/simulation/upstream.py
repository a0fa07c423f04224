"""An upstream as it is: what it bears, what it says when that is too much, how long it takes.

`UpstreamModel` describes one, `Upstream` answers calls. An answer is what the hands would make of
it, so the core hears exactly what it would hear of a real one.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field, replace
from random import Random

from headway.core import Outcome
from headway.core.classify import classify_status, outcome_of
from headway.core.outcome import Scope
from headway.core.rate_headers import Quota, RateHeaders
from headway.simulation.limiters import INF, Limiter, LimitModel

OK, BUSY, BANNED, UNWELL, AWAY = "ok", "refused", "banned", "failed", "away"


@dataclass(frozen=True, slots=True)
class Latency:
    """Lognormal: half of the calls take less than the median. `spread` 0: all take the same."""

    median_s: float = 1.0
    spread: float = 0.5

    def draw(self, rng: Random) -> float:
        if not self.spread:
            return self.median_s
        return self.median_s * math.exp(self.spread * rng.gauss(0.0, 1.0))

    @property
    def mean_s(self) -> float:
        return self.median_s * math.exp(self.spread * self.spread / 2)


@dataclass(frozen=True, slots=True)
class BanModel:
    """So many refusals within a time, and it answers nobody for a while."""

    after: int
    within_s: float
    lasts_s: float
    status: int = 412


@dataclass(frozen=True, slots=True)
class UpstreamModel:
    name: str = ""
    limits: tuple[LimitModel, ...] = ()
    latency: Latency = field(default_factory=Latency)
    refusal_s: float = 0.05  # how long it takes to say no
    refusal: int = 429
    retry_after: bool = False
    headers: bool = False
    ban: BanModel | None = None
    knee: float = INF  # calls at once from which on it is slower
    slower_by: float = 0.0  # for each call above that, as a share
    errors: float = 0.0  # share of calls that end with 500
    outages: tuple[tuple[float, float], ...] = ()  # (start, end), seconds since the start
    about: str = ""

    def per_minute(self, start: float, end: float, *, tenants: int, hold_s: float) -> float:
        """What it bears in a minute, on average over a span, when each call takes `hold_s`."""
        well = 1.0 - sum(
            max(0.0, min(end, over) - max(start, begin)) for begin, over in self.outages
        ) / (end - start)
        rates = [
            limit.per_minute(start, end, hold_s) * (tenants if limit.per_tenant else 1)
            for limit in self.limits
        ]
        return min(rates, default=INF) * max(0.0, well) if rates else INF


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a call, how long that takes, and what the core is told of it."""

    what: str
    lasts_s: float
    outcome: Outcome
    took: bool = False  # the upstream has taken it, and is told when it is over


class Upstream:
    """One upstream at work. `call` takes a call, `ended` gives its place back."""

    def __init__(self, model: UpstreamModel, rng: Random) -> None:
        self.model = model
        self._rng = rng
        self._shared = [each.build() for each in model.limits if not each.per_tenant]
        self._per_tenant = [each for each in model.limits if each.per_tenant]
        self._of_tenant: dict[str, list[Limiter]] = {}
        self._hits: deque[float] = deque()
        self._banned_until = -INF
        self._plain = Outcome.ok(status=200)
        self.busy = 0

    def call(self, now: float, tenant: str, hold_s: float | None) -> Answer:
        """`hold_s`: how long it would take, if the caller knows; the model draws it otherwise."""
        model = self.model
        if now < self._banned_until:
            return self._refused(now, BANNED, None)
        if any(start <= now < end for start, end in model.outages):
            return Answer(AWAY, model.refusal_s, _failed(503))
        own = self._own(tenant)
        for limiter in (*self._shared, *own):
            if not limiter.admits(now):
                return self._refused(now, BUSY, limiter, scoped=limiter in own)
        for limiter in (*self._shared, *own):
            limiter.take(now)
        self.busy += 1
        lasts_s = model.latency.draw(self._rng) if hold_s is None else hold_s
        if self.busy > model.knee:
            lasts_s *= 1.0 + model.slower_by * (self.busy - model.knee)
        if model.errors and self._rng.random() < model.errors:
            return Answer(UNWELL, lasts_s, _failed(500), took=True)
        return Answer(OK, lasts_s, self._well(now), took=True)

    def ended(self, tenant: str) -> None:
        """A call that was taken is over."""
        self.busy -= 1
        for limiter in (*self._shared, *self._own(tenant)):
            limiter.release()

    def _own(self, tenant: str) -> list[Limiter]:
        if not self._per_tenant:
            return []
        own = self._of_tenant.get(tenant)
        if own is None:
            own = self._of_tenant[tenant] = [each.build() for each in self._per_tenant]
        return own

    def _well(self, now: float) -> Outcome:
        if not self.model.headers:
            return self._plain
        return replace(self._plain, rates=RateHeaders(self._quota(now), None, None))

    def _quota(self, now: float) -> Quota | None:
        for limiter in self._shared:
            standing = limiter.standing(now)
            if standing is not None and standing[0] > 0:
                limit, rest, reset_s = standing
                return Quota(limit, rest, reset_s, limiter.window_s)
        return None

    def _refused(
        self, now: float, what: str, limiter: Limiter | None, *, scoped: bool = False
    ) -> Answer:
        model = self.model
        if what == BUSY and self._one_too_many(now):
            what = BANNED
        wait_s: float | None = None
        status = model.refusal
        if what == BANNED and model.ban is not None:
            status = model.ban.status
            wait_s = self._banned_until - now
        elif limiter is not None:
            wait_s = math.ceil(limiter.wait_s(now))
        told_s = wait_s if model.retry_after else None
        scope = Scope.TENANT if scoped and what == BUSY else Scope.UPSTREAM
        outcome = outcome_of(classify_status(status, retry_after_s=told_s), scope=scope)
        if model.headers and what == BUSY:
            outcome = replace(outcome, rates=RateHeaders(self._quota(now), None, told_s))
        return Answer(what, model.refusal_s, outcome)

    def _one_too_many(self, now: float) -> bool:
        """Whether this refusal is the one after which nobody is answered for a while."""
        ban = self.model.ban
        if ban is None:
            return False
        hits = self._hits
        hits.append(now)
        while hits[0] < now - ban.within_s:
            hits.popleft()
        if len(hits) < ban.after:
            return False
        hits.clear()
        self._banned_until = now + ban.lasts_s
        return True


def _failed(status: int) -> Outcome:
    return outcome_of(classify_status(status))
