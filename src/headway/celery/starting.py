"""The wait between a claim and the first step of a job.

The server says in how many seconds to begin. It has said so at some moment between the question and
its answer, so beginning that long after the answer is not too early. Whoever then finds that it may
have become later than promised asks again, since the next one counts on the promise.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headway.engine.registry import JobType
from headway.errors import HeadwayError
from headway.lease_clock import lease_clock
from headway.outcomes import Snooze

if TYPE_CHECKING:
    from headway.celery.claiming import Claim, Claims

TRIES = 20


@dataclass(frozen=True, slots=True)
class Start:
    """By the clock of leases: begin between these two."""

    at: float
    latest: float


def wait_for_start(claims: Claims, claim: Claim) -> None:
    """Returns at the right moment. Snooze: there was none, so the job goes back."""
    for _ in range(TRIES):
        start = claim.start
        if start is None:
            return
        time.sleep(max(start.at - lease_clock(), 0.0))
        if lease_clock() <= start.latest:
            return
        _ask_again(claims, claim)
    raise Snooze(1.0)


async def await_start(claims: Claims, claim: Claim) -> None:
    """The same in a loop, which others use meanwhile."""
    for _ in range(TRIES):
        start = claim.start
        if start is None:
            return
        await asyncio.sleep(max(start.at - lease_clock(), 0.0))
        if lease_clock() <= start.latest:
            return
        await asyncio.to_thread(_ask_again, claims, claim)
    raise Snooze(1.0)


def _ask_again(claims: Claims, claim: Claim) -> None:
    try:
        claims.ask(claim)
    except HeadwayError:
        raise Snooze(1.0) from None


def at_its_start(job_type: JobType, claims: Claims, claim: Claim) -> JobType:
    """The same type, whose handler begins when it may."""
    handler: Callable[..., Any] = job_type.handler

    def begin(**arguments: Any) -> Any:
        wait_for_start(claims, claim)
        return handler(**arguments)

    async def begin_async(**arguments: Any) -> Any:
        await await_start(claims, claim)
        awaitable: Awaitable[Any] = handler(**arguments)
        return await awaitable

    if claim.start is None:
        return job_type
    return replace(job_type, handler=begin_async if job_type.is_async else begin)
