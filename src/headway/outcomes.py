"""How a handler says what became of a job, when it did not simply return or fail.

Raise them, or return them: both mean the same. Any other exception is judged by its type and by
the HTTP status it carries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headway.core import Outcome, Scope
from headway.core.classify import (
    Meaning,
    classify_exception,
    classify_status,
    outcome_of,
    parse_retry_after,
)
from headway.core.recurrence import duration_s

Duration = float | int | str  # seconds, or text such as "1h30m"


def seconds(value: Duration) -> float:
    """Seconds from a number or from text such as "30m"."""
    if isinstance(value, str):
        return duration_s(value)
    if isinstance(value, bool) or not 0 <= value < 1e11:
        raise ValueError(f"{value!r} is no duration; write seconds as a number, or text like '30m'")
    return float(value)


class Verdict(Exception):
    """The base of all outcomes that a handler may name."""

    def outcome(self) -> Outcome:
        raise AssertionError("only its subclasses are raised")


class Pushback(Verdict):
    """The upstream said: not now. It closes for everybody; no attempt is burnt."""

    def __init__(
        self,
        reason: str = "",
        *,
        retry_after: Duration | None = None,
        status: int = 429,
        ban: bool = False,
        tenant_only: bool = False,
    ) -> None:
        super().__init__(reason or f"{status}")
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


class BadStatus(Verdict):
    """An HTTP status that is no success; what it means is decided by the table in DESIGN."""

    def __init__(self, status: int, retry_after_s: float | None = None) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.retry_after_s = retry_after_s

    def outcome(self) -> Outcome:
        answer = classify_status(self.status, retry_after_s=self.retry_after_s)
        return outcome_of(answer, error=str(self))


def check_status(status: int, headers: Mapping[str, str] | None = None, *, now: float = 0) -> None:
    """Raise what an HTTP answer means for the job; nothing for a success.

    `now` is only needed for a Retry-After that is a date.
    """
    if classify_status(status).meaning is Meaning.OK:
        return
    retry_after = None
    for name, value in (headers or {}).items():
        if name.lower() == "retry-after":
            retry_after = parse_retry_after(value, now)
    raise BadStatus(status, retry_after)


def outcome_of_block(error: BaseException | None) -> Outcome:
    """How the work under a slot ended."""
    if error is None:
        return Outcome.ok()
    if isinstance(error, Verdict):
        return error.outcome()
    if isinstance(error, Exception):
        return outcome_of(classify_exception(error), error=type(error).__name__)
    return Outcome.cancelled()
