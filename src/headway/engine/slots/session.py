"""Somebody outside who wants a slot, waits for one, or holds one."""

from __future__ import annotations

from enum import StrEnum
from hmac import compare_digest
from secrets import token_urlsafe
from typing import Any, Literal, NamedTuple, Protocol

import msgspec
from msgspec import structs

from headway.core import Permit, Ticket
from headway.core.explain import Explanation
from headway.core.ticket import Traffic
from headway.engine.slots.terms import Terms

INF = float("inf")
TYPE = "slot"

Kind = Literal["own", "lease", "fairqueue"]
OWN: Kind = "own"  # held by this process
LEASE: Kind = "lease"  # held over HTTP, and renewed
FAIRQUEUE: Kind = "fairqueue"  # held by a client that never renews


class Phase(StrEnum):
    WAITING = "waiting"
    GRANTED = "granted"
    RECLAIMED = "reclaimed"  # its lease is over, and nothing was heard of its holder
    ENDED = "ended"


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for. It is stored as it is, so that a restart forgets nobody."""

    kind: Kind
    upstreams: tuple[str, ...] = ()
    tenant: str = ""
    terms: Terms = Terms()
    lane: str = "default"
    tools: tuple[str, ...] = ()
    key: str | None = None
    weight: float = 1.0
    priority: int = 5
    cost: float = 1.0
    traffic: Traffic = Traffic.NORMAL
    holder: str = ""  # what people call whoever asks
    secret: str = ""  # who knows it may speak for the session; empty: its number is enough

    @property
    def throttles(self) -> bool:
        """Whoever waits is sent away while the breaker is open, instead of waiting for it."""
        return self.kind == FAIRQUEUE

    def ticket(self, id: Session) -> Ticket:
        return Ticket(
            id, type=TYPE, lane=self.lane, tools=self.tools, upstreams=self.upstreams,
            key=self.key, tenant=self.tenant, weight=self.weight, priority=self.priority,
            cost=self.cost, traffic=self.traffic, retries=False,
            lease_s=0.0 if self.kind == OWN else self.terms.lease_s,
        )  # fmt: skip


class Answer(NamedTuple):
    """What somebody who waits is told."""

    what: str  # granted, pending, throttled, timeout, overloaded, unknown, cancelled
    session: Session | None = None
    permit: Permit | None = None  # with `granted`
    place: Explanation | None = None  # with `pending`, for those who want to know
    until: float = 0.0  # with `throttled`
    status: int | None = None
    why: str = ""


class Waiter(Protocol):
    """A request that waits for an answer: a `concurrent.futures.Future`, or something lighter."""

    def cancelled(self) -> bool: ...

    def set_running_or_notify_cancel(self) -> bool: ...

    def set_result(self, result: Any) -> None: ...

    def set_exception(self, exception: BaseException | None) -> None: ...


class Session:
    """One wish from its first word to its last. Its ticket stands in line only while somebody is
    there to take what is granted: whoever comes back stands where it stood.
    """

    __slots__ = (
        "armed_at",
        "claimed",
        "created_at",
        "ended_at",
        "fence",
        "granted_at",
        "heard",
        "host",
        "late",
        "lease_end",
        "lined_up",
        "number",
        "overdue",
        "permit",
        "phase",
        "seen_at",
        "seq",
        "stored",
        "ticket",
        "until",
        "upstream",
        "waiter",
        "wish",
    )

    def __init__(self, number: int, wish: Wish, now: float) -> None:
        self.number = number
        self.wish = wish
        self.phase = Phase.WAITING
        self.created_at = now
        self.seen_at = now  # the last word from the client
        self.waiter: Waiter | None = None  # its request, while there is one
        self.until = INF  # when that is to be answered in any case
        self.ticket: Ticket | None = None  # what stands in line for it
        self.lined_up = False  # it stands in line, or in the lobby before it
        self.seq = 0
        self.host: Any = None  # a Host, for those that have one
        self.permit: Permit | None = None
        self.fence = 0  # of that; also when it is over
        self.claimed = False  # the client has heard of its grant
        self.upstream: str | None = None  # where it was granted
        self.granted_at = self.lease_end = self.ended_at = 0.0
        self.heard: Waiter | None = None  # the request that was told of it
        self.late = ""  # what its holder did in the turn in which the lease ended
        self.overdue = False  # it was heard of after its lease, and is counted
        self.stored = False
        self.armed_at = INF

    def __repr__(self) -> str:
        return f"slot-{self.number}"

    @property
    def query_token(self) -> str:
        return f"{self.number:x}.{self.wish.secret}"

    @property
    def slot_token(self) -> str:
        return f"{self.number:x}.{self.fence:x}.{self.wish.secret}"

    def knows(self, secret: str) -> bool:
        return bool(secret) and compare_digest(
            secret.encode(errors="replace"), self.wish.secret.encode()
        )

    def lend(self, lease_s: float) -> None:
        """From now on its leases last so long."""
        if lease_s != self.wish.terms.lease_s:
            terms = structs.replace(self.wish.terms, lease_s=lease_s)
            self.wish = structs.replace(self.wish, terms=terms)

    @property
    def deadline(self) -> float:
        longest = self.wish.terms.max_wait_s
        return INF if longest is None else self.created_at + longest

    def look_at(self) -> float:
        """When the clock must look at this again while it waits."""
        terms = self.wish.terms
        if self.waiter is not None:
            return min(self.until, self.deadline)
        gone_s = terms.claim_s if self.lined_up else terms.idle_s
        return min(self.seen_at + gone_s, self.deadline)


def new_secret() -> str:
    return token_urlsafe(16)


def number_and_rest(token: str) -> tuple[int, str]:
    """A token's number and the rest of it; 0 if it is none."""
    head, _, rest = token.partition(".")
    try:
        return (int(head, 16), rest) if len(head) <= 15 else (0, "")
    except ValueError:
        return 0, ""
