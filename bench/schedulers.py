"""Orders to compare with, each for one host: first come, the formula of an older slot service,
and plain start-time fair queueing by brute force. And the real core behind the same face.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Protocol

from bench.workloads import Arrival, Workload
from headway.core import Core, GatePolicy, Outcome, Permit, Policies, Refused, Ticket


class Scheduler(Protocol):
    def offer(self, number: int, arrival: Arrival, now: float) -> bool:
        """False: turned away, too many of this tenant wait here."""

    def release(self, number: int, now: float) -> None: ...

    def grants(self, now: float) -> list[int]:
        """The numbers of those who go now."""

    def wakeup(self, now: float) -> float: ...


class Host:
    """Slots, caps and cooldowns of one host; `choose` is the order."""

    def __init__(self, work: Workload) -> None:
        self.work = work
        self.queues: dict[int, deque[tuple[int, float]]] = {}
        self.running: dict[int, list[float]] = {}
        self.cooling: dict[int, float] = {}
        self.free = work.slots
        self.started: dict[int, tuple[int, float]] = {}

    def eligible(self, tenant: int, now: float) -> bool:
        cap = self.work.tenant_cap
        below = cap is None or len(self.running.get(tenant, ())) < cap
        return below and now >= self.cooling.get(tenant, 0.0)

    def push(self, number: int, tenant: int, now: float) -> None:
        self.queues.setdefault(tenant, deque()).append((number, now))

    def choose(self, tenants: list[int], now: float) -> int:
        raise LookupError

    def pop(self, now: float) -> int | None:
        tenants = [tenant for tenant in self.queues if self.eligible(tenant, now)]
        if not self.free or not tenants:
            return None
        tenant = self.choose(tenants, now)
        number, _ = self.queues[tenant].popleft()
        if not self.queues[tenant]:
            del self.queues[tenant]
        self.free -= 1
        self.running.setdefault(tenant, []).append(now)
        self.started[number] = (tenant, now)
        return number

    def done(self, number: int, now: float) -> None:
        tenant, start = self.started.pop(number)
        self.running[tenant].remove(start)
        self.free += 1
        if self.work.cooldown_s:
            self.cooling[tenant] = now + self.work.cooldown_s


class FirstCome(Host):
    def choose(self, tenants: list[int], now: float) -> int:
        return min(tenants, key=lambda tenant: self.queues[tenant][0][1])


class Formula(Host):
    """The smallest virtual time wins and grows by 1/(1 + waits); buckets die with their queue."""

    def __init__(self, work: Workload) -> None:
        super().__init__(work)
        self.virtual: dict[int, float] = {}
        self.waits: dict[int, int] = {}

    def push(self, number: int, tenant: int, now: float) -> None:
        if tenant not in self.queues:
            self.virtual[tenant] = min((self.virtual[t] for t in self.queues), default=0.0)
            self.waits[tenant] = 0
        super().push(number, tenant, now)

    def choose(self, tenants: list[int], now: float) -> int:
        best = min(tenants, key=self.virtual.__getitem__)
        self.virtual[best] += 1.0 / (1.0 + self.waits[best])
        for tenant in self.queues:
            if tenant != best:
                self.waits[tenant] += 1
        self.waits[best] //= 2
        return best


class Fair(Host):
    """The reference: slot-seconds / weight, charged while held, minimum by looking at everybody."""

    def __init__(self, work: Workload) -> None:
        super().__init__(work)
        self.used: dict[int, float] = {}
        self.start = 0.0

    def tag(self, tenant: int, now: float) -> float:
        held = sum(now - start for start in self.running.get(tenant, ()))
        return self.used.get(tenant, 0.0) + held / self.work.weight(tenant)

    def push(self, number: int, tenant: int, now: float) -> None:
        if tenant not in self.queues and not self.running.get(tenant):
            self.used[tenant] = max(self.used.get(tenant, 0.0), self.start)
        super().push(number, tenant, now)

    def choose(self, tenants: list[int], now: float) -> int:
        best = min(tenants, key=lambda tenant: self.tag(tenant, now))
        self.start = max(self.start, self.tag(best, now))
        return best

    def done(self, number: int, now: float) -> None:
        tenant, start = self.started[number]
        held = (now - start) / self.work.weight(tenant)
        self.used[tenant] = self.used.get(tenant, 0.0) + held
        super().done(number, now)


class Hosts:
    """Several hosts with the same order, as one scheduler."""

    def __init__(self, work: Workload, order: Callable[[Workload], Host]) -> None:
        self.work = work
        self.hosts = [order(work) for _ in range(work.hosts)]
        self.at: dict[int, int] = {}

    def offer(self, number: int, arrival: Arrival, now: float) -> bool:
        host = self.hosts[arrival.host]
        if len(host.queues.get(arrival.tenant, ())) >= self.work.max_waiters:
            return False
        self.at[number] = arrival.host
        host.push(number, arrival.tenant, now)
        return True

    def release(self, number: int, now: float) -> None:
        self.hosts[self.at.pop(number)].done(number, now)

    def grants(self, now: float) -> list[int]:
        numbers: list[int] = []
        for host in self.hosts:
            while (number := host.pop(now)) is not None:
                numbers.append(number)
        return numbers

    def wakeup(self, now: float) -> float:
        times = (
            until
            for host in self.hosts
            if host.free
            for tenant, until in host.cooling.items()
            if until > now and tenant in host.queues
        )
        return min(times, default=float("inf"))


class Headway:
    """The real core. Its estimates of when a ticket starts are kept for comparison."""

    def __init__(self, work: Workload) -> None:
        policies = Policies()
        tenant = GatePolicy(
            cap=work.tenant_cap, cooldown_s=work.cooldown_s, max_waiters=work.max_waiters
        )
        policies.declare("upstream", "*", GatePolicy(cap=work.slots, tenant=tenant))
        self.work = work
        self.core = Core(policies, rng=Random(1), lease_s=1e9)
        self.permits: dict[int, Permit] = {}
        self.estimates: dict[int, tuple[float, float]] = {}

    def offer(self, number: int, arrival: Arrival, now: float) -> bool:
        ticket = Ticket(
            number,
            upstreams=(f"host-{arrival.host}",),
            tenant=str(arrival.tenant),
            weight=self.work.weight(arrival.tenant),
        )
        try:
            self.core.submit(ticket, now)
        except Refused:
            return False
        return True

    def release(self, number: int, now: float) -> None:
        self.core.finish(number, self.permits.pop(number).fence, Outcome.ok(), now)

    def grants(self, now: float) -> list[int]:
        permits = self.core.admit(now)
        self.core.changes.clear()
        self.permits.update((int(str(permit.ticket.id)), permit) for permit in permits)
        return [int(str(permit.ticket.id)) for permit in permits]

    def wakeup(self, now: float) -> float:
        return self.core.next_wakeup()

    def estimate(self, number: int, now: float) -> float | None:
        if number not in self.core.tickets or number in self.permits:
            return None
        host = self.core.tickets[number].upstreams[0]
        if self.core.gates.grants_seen(host) < 20:
            return None
        return self.core.explain(number, now).starts_at


SCHEDULERS: dict[str, Callable[[Workload], Scheduler]] = {
    "first come": lambda work: Hosts(work, FirstCome),
    "formula": lambda work: Hosts(work, Formula),
    "fair": lambda work: Hosts(work, Fair),
    "headway": Headway,
}
