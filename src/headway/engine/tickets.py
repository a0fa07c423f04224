"""From stored jobs to tickets and back."""

from __future__ import annotations

from collections.abc import Callable
from sys import intern
from typing import Any

import msgspec

from headway.core import Permit, Ticket, Traffic
from headway.core.order import PINNED
from headway.core.ticket import Stop, Tries
from headway.engine.registry import REMOTE, WORK, Registry
from headway.store.records import OpenJob

INF = float("inf")
FAR = 1e11  # when a job is due that waits for other jobs
MANY = 100_000  # names, after which they are collected anew
MOST_DIGITS = 19  # of a number in a key; somebody else's key may have more


class Spec(msgspec.Struct, omit_defaults=True):
    """What only few jobs ask for; stored as JSON, nothing for all the others."""

    tools: tuple[str, ...] = ()
    weight: float = 1.0
    traffic: str = "normal"
    cost: float = 1.0
    ordered: str | None = None
    labels: dict[str, str] = {}
    about: dict[str, str] = {}  # for people; no gate looks at it
    keep_result_s: float | None = None
    max_attempts: int | None = None


_encode = msgspec.json.encode
_spec = msgspec.json.Decoder(Spec)
_names = msgspec.json.Decoder(tuple[str, ...])
PLAIN = Spec()


def spec_of(text: str | None) -> Spec:
    return PLAIN if text is None else _spec.decode(text)


def spec_text(spec: Spec) -> str | None:
    return None if spec == PLAIN else _encode(spec).decode()


def names_text(names: tuple[str, ...]) -> str | None:
    return _encode(names).decode() if names else None


def number_in_key(key: str | None, prefix: str) -> int:
    """What stands behind the prefix in the key of a job; 0 if that is no number."""
    text = (key or "").removeprefix(prefix)
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else 0


class Tickets:
    """Makes tickets of stored jobs. Names that many jobs share are kept once."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._upstreams: dict[str, tuple[str, ...]] = {}
        self.route: Callable[[str, tuple[str, ...]], tuple[str, ...] | None] = _as_it_is
        self._tools: dict[str, tuple[str, ...]] = {}

    def make(self, job: OpenJob, *, not_before: float | None = None) -> Ticket:
        name = intern(job.type)
        ticket = Ticket(
            job.id,
            type=name,
            lane=intern(job.lane),
            tools=self._tools_of(name),
            upstreams=() if job.upstreams is None else self._upstreams_of(job.upstreams),
            key=None if job.key is None else intern(job.key),
            tenant=intern(job.tenant),
            priority=job.priority,
            not_before=job.not_before if not_before is None else not_before,
            deadline=INF if job.deadline is None else job.deadline,
            seq=job.id,
        )
        if job.spec is not None:
            _apply(_spec.decode(job.spec), ticket)
        known = self._registry.types.get(name)
        if known is not None and known.filled_in is not None:
            known.filled_in(ticket)
        return ticket

    def again(self, job: OpenJob, *, not_before: float | None = None) -> Ticket:
        """The ticket of a job that was here before: with its past."""
        ticket = self.make(job, not_before=not_before)
        if job.tries is not None:
            burnt, lost, pushed_back, pushed_since = msgspec.json.decode(job.tries)
            ticket.tries = tries = Tries()
            tries.burnt, tries.lost, tries.pushed_back = burnt, lost, pushed_back
            tries.pushed_since = INF if pushed_since is None else pushed_since
        if job.asked is not None:
            ticket.asked = Stop(job.asked)
        return ticket

    def forget_names(self) -> None:
        """Some of them lead elsewhere from now on."""
        self._upstreams.clear()

    def _tools_of(self, name: str) -> tuple[str, ...]:
        tools = self._tools.get(name)
        if tools is None:
            known = self._registry.types.get(name)
            if len(self._tools) > MANY:
                self._tools.clear()
            remote = (REMOTE, WORK + name)  # what this process cannot run, workers elsewhere may
            tools = self._tools[name] = remote if known is None else known.all_tools
        return tools

    def _upstreams_of(self, text: str) -> tuple[str, ...]:
        names = self._upstreams.get(text)
        if names is None:
            if len(self._upstreams) > MANY:
                self._upstreams.clear()
            names = tuple(intern(name) for name in _names.decode(text))
            led = self.route(text, names)
            if led is not None:
                return led  # which may change, so it is not kept here
            self._upstreams[text] = names
        return names


def _as_it_is(text: str, names: tuple[str, ...]) -> tuple[str, ...] | None:  # noqa: ARG001
    return None


def _apply(spec: Spec, ticket: Ticket) -> None:
    if spec.tools:
        ticket.tools = tuple(dict.fromkeys((*spec.tools, *ticket.tools)))
    ticket.weight = spec.weight
    ticket.traffic = Traffic[spec.traffic.upper()]
    ticket.cost = spec.cost
    ticket.ordered = spec.ordered  # type: ignore[assignment]
    ticket.labels = tuple(sorted(spec.labels.items())) if spec.labels else ()
    ticket.max_attempts = spec.max_attempts or 0


def standing(ticket: Ticket, not_before: float, error: str | None, fence: int) -> tuple[Any, ...]:
    """The row of `Batch.moved` for a job that has not ended."""
    permit = ticket.permit
    tries = None if ticket.tries is None else tries_text(ticket.tries)
    pin = int(PINNED - ticket.rank) if ticket.rank <= PINNED else None
    asked = None if ticket.asked is None else ticket.asked.value
    state, since = ticket.state.value, ticket.since
    where: tuple[Any, ...]
    if permit is None:
        where = (pin, fence, None, None, None, None)
    else:
        upstream = None if permit.upstream is None else permit.upstream.name
        where = (pin, permit.fence, upstream, permit.granted_at, _finite(permit.expires_at),
                 permit.waited_s)  # fmt: skip
    return (ticket.id, state, since, not_before, ticket.priority, *where, tries, asked, error)


def grant(number: int, permit: Permit) -> tuple[Any, ...]:
    """The row of `Batch.granted`."""
    upstream = None if permit.upstream is None else permit.upstream.name
    lease_end = _finite(permit.expires_at)
    return (number, permit.granted_at, permit.fence, upstream, lease_end, permit.waited_s)


def tries_text(tries: Tries) -> str:
    since = None if tries.pushed_since == INF else tries.pushed_since
    return _encode((tries.burnt, tries.lost, tries.pushed_back, since)).decode()


def _finite(at: float) -> float | None:
    return at if at < INF else None
