"""Hands: what does the work. The brain hands them works, and orders to stop."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from headway.core import Permit, RetryPolicy
from headway.core.ticket import Stop
from headway.engine.registry import JobType
from headway.store.records import Errand


class Work:
    """A job that was granted, with all that is needed to run it."""

    __slots__ = ("args", "attempt", "checkpoint", "fence", "id", "key", "lane", "tenant",
                 "timeout_s", "type", "upstream")  # fmt: skip

    def __init__(
        self, id: int, fence: int, type: JobType, args: str, *, timeout_s: float, attempt: int = 1,
        checkpoint: str | None = None, upstream: str | None = None, tenant: str = "",
        key: str | None = None, lane: str = "default",
    ) -> None:  # fmt: skip
        self.id = id
        self.fence = fence
        self.type = type
        self.args = args
        self.checkpoint = checkpoint
        self.attempt = attempt
        self.timeout_s = timeout_s
        self.upstream = upstream
        self.tenant = tenant
        self.key = key
        self.lane = lane

    @classmethod
    def permitted(cls, permit: Permit, job_type: JobType, errand: Errand) -> Work:
        """For the hands of this process."""
        ticket = permit.ticket
        return cls(
            errand.id, permit.fence, job_type, errand.args, timeout_s=job_type.policy.timeout_s,
            attempt=_attempt(permit), checkpoint=errand.checkpoint, upstream=_upstream(permit),
            tenant=ticket.tenant, key=ticket.key, lane=ticket.lane,
        )  # fmt: skip

    @classmethod
    def sent(cls, work: RemoteWork, job_type: JobType) -> Work:
        """For the hands of a worker elsewhere, from what it was sent."""
        return cls(
            work.id, work.fence, job_type, work.args, timeout_s=work.timeout_s,
            attempt=work.attempt, checkpoint=work.checkpoint, upstream=work.upstream,
            tenant=work.tenant, key=work.key, lane=work.lane,
        )  # fmt: skip


class RemoteWork(NamedTuple):
    """The same for a worker outside of this process: nothing but data."""

    id: int
    fence: int
    type: str
    args: str  # JSON text
    attempt: int
    upstream: str | None
    tenant: str
    key: str | None
    lane: str
    timeout_s: float
    lease_s: float  # how long the lease lasts from now on
    checkpoint: str | None  # JSON text

    @classmethod
    def permitted(
        cls, permit: Permit, policy: RetryPolicy, errand: Errand, now: float
    ) -> RemoteWork:
        ticket = permit.ticket
        return cls(
            errand.id, permit.fence, ticket.type, errand.args, _attempt(permit), _upstream(permit),
            ticket.tenant, ticket.key, ticket.lane, policy.timeout_s, permit.expires_at - now,
            errand.checkpoint,
        )  # fmt: skip


class RemoteStop(NamedTuple):
    """A worker outside of this process is to stop a work that it holds."""

    id: int
    fence: int
    why: str  # cancel or pause


def _attempt(permit: Permit) -> int:
    tries = permit.ticket.tries
    return 1 if tries is None else 1 + tries.burnt + tries.lost


def _upstream(permit: Permit) -> str | None:
    return None if permit.upstream is None else permit.upstream.name


class Hands(Protocol):
    payload_limit: int  # characters of a result or a checkpoint

    def start(self, works: list[Work]) -> None:
        """Begin; does not wait. The brain hears the end through `Brain.finished`."""

    def stop(self, fence: int, why: Stop) -> None:
        """Ask a work to stop. It says so when it has."""
