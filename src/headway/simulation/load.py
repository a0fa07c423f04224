"""Who asks for what: tenants with weights, priorities and keys, and calls of people who wait."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random

from headway.core import Outcome, Ticket, Traffic
from headway.simulation.arrivals import HOUR_S, Process
from headway.simulation.upstream import Latency

USUAL_PRIORITY = 5


@dataclass(frozen=True, slots=True)
class TenantLoad:
    """What one tenant, or each of several, asks for."""

    name: str
    process: Process = field(default_factory=Process)
    count: int = 1
    weight: float = 1.0
    upstreams: tuple[str, ...] = ()  # each job calls one of them
    candidates: bool = False  # or any of them: whichever is free first
    lane: str = "default"
    type: str = "job"
    tools: tuple[str, ...] = ()
    priorities: tuple[tuple[int, float], ...] = ((USUAL_PRIORITY, 1.0),)  # (priority, share)
    keys: int = 0  # so many keys, of which each job has one; 0: no keys
    hold: Latency | None = None  # how long a job takes; None: as long as its upstream does
    cost: float = 1.0
    online: float = 0.0  # share of calls that never wait
    leftover: bool = False
    share: float | None = None  # of what the upstream bears, instead of the rate of the process

    def names(self) -> list[str]:
        if self.count == 1:
            return [self.name]
        width = len(str(self.count))
        return [f"{self.name}-{number:0{width}d}" for number in range(1, self.count + 1)]


@dataclass(frozen=True, slots=True)
class Load:
    name: str = ""
    tenants: tuple[TenantLoad, ...] = ()
    duration_s: float = 86_400.0
    about: str = ""

    @property
    def at_once(self) -> int:
        """How many come in heaps, and not one after the other."""
        heaps = [each for each in self.tenants if each.process.kind == "all-at-once"]
        return sum(each.count * each.process.size for each in heaps)

    def at_rate(self, per_minute: float) -> Load:
        """Shares of the limit as rates, now that the limit is known."""
        fitted = [
            each
            if each.share is None
            else replace(each, process=_fitted(each, per_minute * each.share, self.duration_s))
            for each in self.tenants
        ]
        return replace(self, tenants=tuple(fitted))


def _fitted(tenant: TenantLoad, per_minute: float, duration_s: float) -> Process:
    """`share` is what all tenants of the entry ask for together, over the whole time."""
    process = tenant.process
    each_hour = max(1e-6, per_minute * 60.0 / tenant.count)
    if process.kind == "all-at-once":
        return replace(process, size=max(1, round(each_hour * duration_s / HOUR_S)))
    return replace(process, per_hour=each_hour)


@dataclass(slots=True)
class Attempt:
    """How one attempt of a job that is replayed went."""

    hold_s: float
    outcome: Outcome


@dataclass(slots=True)
class Arrival:
    """One job or call that comes."""

    at: float  # seconds since the start
    tenant: str
    upstreams: tuple[str, ...] = ()
    weight: float = 1.0
    lane: str = "default"
    type: str = "job"
    tools: tuple[str, ...] = ()
    priority: int = USUAL_PRIORITY
    key: str | None = None
    cost: float = 1.0
    traffic: Traffic = Traffic.NORMAL
    hold_s: float | None = None  # None: as long as the upstream takes
    attempts: list[Attempt] = field(default_factory=list)  # of one that is replayed
    recorded_wait_s: float | None = None

    def ticket(self, number: int, tenant: str) -> Ticket:
        return Ticket(
            number,
            type=self.type,
            lane=self.lane,
            tools=self.tools,
            upstreams=self.upstreams,
            key=self.key,
            tenant=tenant,
            weight=self.weight,
            traffic=self.traffic,
            priority=self.priority,
            cost=self.cost,
        )


def arrivals(load: Load, seed: int) -> Iterator[Arrival]:
    """All that comes, in order. Each tenant has chance of its own, so that another tenant more
    changes nothing for the others.
    """
    streams = [
        _of_tenant(tenant, name, load.duration_s, Random(f"{seed}/{entry}/{name}"))
        for entry, tenant in enumerate(load.tenants)
        for name in tenant.names()
    ]
    return heapq.merge(*streams, key=lambda arrival: arrival.at)


def _of_tenant(tenant: TenantLoad, name: str, duration_s: float, rng: Random) -> Iterator[Arrival]:
    values = [priority for priority, _ in tenant.priorities]
    shares = [share for _, share in tenant.priorities]
    every = tuple((each,) for each in tenant.upstreams)
    usual = Traffic.LEFTOVER if tenant.leftover else Traffic.NORMAL
    for at in tenant.process.times(duration_s, rng):
        online = bool(tenant.online) and rng.random() < tenant.online
        chosen = tenant.upstreams if tenant.candidates or not every else rng.choice(every)
        yield Arrival(
            at,
            name,
            upstreams=chosen,
            weight=tenant.weight,
            lane=tenant.lane,
            type=tenant.type,
            tools=tenant.tools,
            priority=values[0] if len(values) == 1 else rng.choices(values, shares)[0],
            key=f"{name}/{rng.randrange(tenant.keys)}" if tenant.keys else None,
            cost=tenant.cost,
            traffic=Traffic.ONLINE if online else usual,
            hold_s=None if tenant.hold is None else tenant.hold.draw(rng),
        )
