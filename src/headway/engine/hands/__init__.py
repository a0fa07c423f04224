"""Hands: what does the work. The brain hands them works, and orders to stop."""

from __future__ import annotations

from typing import Protocol

from headway.core import Permit
from headway.core.ticket import Stop
from headway.engine.registry import JobType
from headway.store.records import Errand


class Work:
    """A job that was granted, with all that is needed to run it."""

    __slots__ = ("args", "attempt", "checkpoint", "fence", "id", "key", "tenant", "timeout_s",
                 "type", "upstream")  # fmt: skip

    def __init__(self, permit: Permit, job_type: JobType, errand: Errand) -> None:
        ticket = permit.ticket
        tries = ticket.tries
        self.id = errand.id
        self.fence = permit.fence
        self.type = job_type
        self.args = errand.args
        self.checkpoint = errand.checkpoint
        self.attempt = 1 if tries is None else 1 + tries.burnt + tries.lost
        self.timeout_s = job_type.policy.timeout_s
        self.upstream = None if permit.upstream is None else permit.upstream.name
        self.tenant = ticket.tenant
        self.key = ticket.key


class Hands(Protocol):
    def start(self, works: list[Work]) -> None:
        """Begin; does not wait. The brain hears the end through `Brain.finished`."""

    def stop(self, fence: int, why: Stop) -> None:
        """Ask a work to stop. It says so when it has."""
