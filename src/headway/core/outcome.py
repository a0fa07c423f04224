"""How an attempt ended. Outcomes are values that the rest of the core matches on.

Nothing here decides what follows from an outcome: for the job that is `verdict`, for the
upstream the limits at its gate.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headway.core.rate_headers import RateHeaders


BAN_TOLD_S = 90.0  # who is told to wait longer than this is banned


class Kind(StrEnum):
    OK = "ok"
    FAILED = "failed"
    PUSHBACK = "pushback"
    CANCELLED = "cancelled"
    LOST = "lost"
    RETURNED = "returned"


class Scope(StrEnum):
    """Who pushed back: the whole upstream, or the upstream only at this tenant."""

    UPSTREAM = "upstream"
    TENANT = "tenant"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One answer. Build it with the class methods below, which allow only sensible mixes."""

    kind: Kind
    fatal: bool = False
    ban: bool = False
    scope: Scope = Scope.UPSTREAM
    status: int | None = None
    retry_after_s: float | None = None
    hit_at: float | None = (
        None  # when the upstream was really called; the minimum hold counts from it
    )
    upstream_fault: bool = (
        False  # a failure that says the upstream is unwell: counts for the breaker
    )
    error: str = ""
    rates: RateHeaders | None = None  # what its rate-limit headers said
    cost: float | None = None  # what it really took, such as tokens; None: as was expected

    @classmethod
    def ok(cls, *, status: int | None = None, hit_at: float | None = None) -> Outcome:
        """It went well."""
        if status is None and hit_at is None:
            return OK
        return cls(Kind.OK, status=status, hit_at=hit_at)

    @classmethod
    def failed(
        cls,
        error: str = "",
        *,
        fatal: bool = False,
        status: int | None = None,
        retry_after_s: float | None = None,
        upstream_fault: bool = False,
    ) -> Outcome:
        """It failed. `retry_after_s`: try again then, instead of after the back-off of its type."""
        return cls(
            Kind.FAILED,
            fatal=fatal,
            status=status,
            retry_after_s=retry_after_s,
            upstream_fault=upstream_fault,
            error=error,
        )

    @classmethod
    def pushback(
        cls,
        *,
        status: int = 429,
        retry_after_s: float | None = None,
        ban: bool = False,
        scope: Scope = Scope.UPSTREAM,
        upstream_fault: bool = True,
        error: str = "",
    ) -> Outcome:
        """The upstream said: not now. It closes for everybody, and no attempt is burnt."""
        if retry_after_s is not None and not retry_after_s >= 0:
            raise ValueError(f"retry_after_s must be 0 or more, not {retry_after_s!r}")
        return cls(
            Kind.PUSHBACK,
            ban=ban,
            scope=scope,
            status=status,
            retry_after_s=retry_after_s,
            upstream_fault=upstream_fault,
            error=error,
        )

    @classmethod
    def cancelled(cls) -> Outcome:
        """It was stopped because nobody wants it any more."""
        return cls(Kind.CANCELLED)

    @classmethod
    def lost(cls, error: str = "the lease ended without a word from its holder") -> Outcome:
        """Nobody knows what became of it; after some of these a job fails."""
        return cls(Kind.LOST, error=error)

    @classmethod
    def returned(cls, *, after_s: float = 0.0) -> Outcome:
        """Given back unharmed (shutdown, snooze): no attempt is burnt."""
        return cls(Kind.RETURNED, retry_after_s=after_s)


OK = Outcome(Kind.OK)
