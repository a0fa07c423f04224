"""How a handler says what became of a job, when it did not simply return or fail.

Raise them, or return them: both mean the same. Any other exception is judged by its type and by
the HTTP status it carries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from time import time
from types import MappingProxyType

from headway.core import Kind, Outcome, Scope
from headway.core.classify import (
    Meaning,
    classify_exception,
    classify_status,
    outcome_of,
)
from headway.core.rate_headers import RateHeaders, parse_rate_headers
from headway.core.recurrence import duration_s

Duration = float | int | str  # seconds, or text such as "1h30m"
Headers = Mapping[str, str]

MOST_HEADERS = 40  # of one answer that are looked at
LONGEST = 300  # characters of one
NOTHING: Headers = MappingProxyType({})


def seconds(value: Duration) -> float:
    """Seconds from a number or from text such as "30m"."""
    if isinstance(value, str):
        return duration_s(value)
    if isinstance(value, bool) or not 0 <= value < 1e11:
        raise ValueError(f"{value!r} is no duration; write seconds as a number, or text like '30m'")
    return float(value)


def rate_headers(headers: Headers | None) -> dict[str, str]:
    """Those that speak about rates. All others may be secret, and are not kept."""
    found: dict[str, str] = {}
    for name, value in (headers or NOTHING).items():
        lower = str(name).lower()
        if len(lower) < LONGEST and ("ratelimit" in lower or lower == "retry-after"):
            found[lower] = str(value)[:LONGEST]
            if len(found) == MOST_HEADERS:
                break
    return found


def rates_in(headers: Headers | None, now: float | None = None) -> RateHeaders | None:
    """What the headers of an answer say about rates. `now`: of another clock than the system's."""
    known = rate_headers(headers)
    return parse_rate_headers(known, time() if now is None else now) if known else None


def headers_of(error: BaseException) -> dict[str, str]:
    """Of the answer that an HTTP client's exception carries."""
    try:
        response = getattr(error, "response", None)
        return rate_headers(getattr(error if response is None else response, "headers", None))
    except Exception:  # a foreign class; an error here must not hide the first one
        return {}


def with_rates(outcome: Outcome, rates: RateHeaders | None) -> Outcome:
    """What the answer said about rates teaches; a pushback waits as long as it was told."""
    if rates is None:
        return outcome
    after_s = outcome.retry_after_s
    if outcome.kind is Kind.PUSHBACK and after_s is None:
        after_s = rates.retry_after_s
    return replace(outcome, rates=rates, retry_after_s=after_s)


def outcome_of_status(
    status: int,
    retry_after_s: float | None = None,
    headers: Headers | None = None,
    *,
    now: float | None = None,
    error: str = "",
) -> Outcome:
    """What an HTTP answer means."""
    rates = rates_in(headers, now)
    if retry_after_s is None and rates is not None:
        retry_after_s = rates.retry_after_s
    answer = classify_status(status, retry_after_s=retry_after_s)
    return with_rates(outcome_of(answer, error=error), rates)


class Verdict(Exception):
    """The base of all outcomes that a handler may name."""

    headers: Headers = NOTHING  # of the answer behind it, as far as they speak about rates

    def outcome(self) -> Outcome:
        raise AssertionError("only its subclasses are raised")


class Pushback(Verdict):
    """The upstream said: not now. It closes for everybody; no attempt is burnt. `headers`: of its
    answer, to learn from.
    """

    def __init__(
        self,
        reason: str = "",
        *,
        retry_after: Duration | None = None,
        status: int = 429,
        ban: bool = False,
        tenant_only: bool = False,
        headers: Headers | None = None,
    ) -> None:
        super().__init__(reason or f"{status}")
        self.headers = rate_headers(headers)
        self.retry_after_s = None if retry_after is None else seconds(retry_after)
        self.status = status
        self.ban = ban
        self.scope = Scope.TENANT if tenant_only else Scope.UPSTREAM

    def outcome(self) -> Outcome:
        return Outcome.pushback(
            status=self.status,
            retry_after_s=self.retry_after_s,
            ban=self.ban,
            scope=self.scope,
            upstream_fault=self.status == 503,
            error=str(self),
        )


class Retry(Verdict):
    """It did not work this time. Burns an attempt; `after` replaces the usual back-off."""

    def __init__(self, reason: str = "", *, after: Duration | None = None) -> None:
        super().__init__(reason or "asked for another attempt")
        self.after_s = None if after is None else seconds(after)

    def outcome(self) -> Outcome:
        return Outcome.failed(str(self), retry_after_s=self.after_s)


class Fail(Verdict):
    """It will never work: no further attempt."""

    def outcome(self) -> Outcome:
        return Outcome.failed(str(self) or "failed for good", fatal=True)


class Cancel(Verdict):
    """The job is not wanted any more: it ends as cancelled."""

    def outcome(self) -> Outcome:
        return replace(Outcome.cancelled(), error=str(self))


class Snooze(Verdict):
    """Not yet: come again after this time. Burns no attempt and blames nobody."""

    def __init__(self, duration: Duration) -> None:
        super().__init__(f"snoozed for {duration}")
        self.after_s = seconds(duration)

    def outcome(self) -> Outcome:
        return Outcome.returned(after_s=self.after_s)


class Answered(Verdict):
    """An outcome as it is, for handlers of the applications."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.error)
        self._outcome = outcome

    def outcome(self) -> Outcome:
        return self._outcome


class BadStatus(Verdict):
    """An HTTP status that is no success; what it means is decided by the table in DESIGN."""

    def __init__(
        self, status: int, retry_after_s: float | None = None, headers: Headers | None = None
    ) -> None:
        super().__init__(f"HTTP {status}")
        self.headers = rate_headers(headers)
        self.status = status
        self.retry_after_s = retry_after_s

    def outcome(self) -> Outcome:
        answer = classify_status(self.status, retry_after_s=self.retry_after_s)
        return outcome_of(answer, error=str(self))


def check_status(status: int, headers: Headers | None = None, *, now: float | None = None) -> None:
    """Raise what an HTTP answer means for the job; nothing for a success, whose headers can be
    told with `job.heard(headers)`. `now`: of another clock than the system's.
    """
    if classify_status(status).meaning is Meaning.OK:
        return
    rates = rates_in(headers, now)
    raise BadStatus(status, None if rates is None else rates.retry_after_s, headers)


def outcome_of_block(error: BaseException | None, now: float | None = None) -> Outcome:
    """How the work under a slot ended."""
    if error is None:
        return Outcome.ok()
    if isinstance(error, Verdict):
        return with_rates(error.outcome(), rates_in(error.headers, now))
    if isinstance(error, Exception):
        outcome = outcome_of(classify_exception(error), error=type(error).__name__)
        return with_rates(outcome, rates_in(headers_of(error), now))
    return Outcome.cancelled()
