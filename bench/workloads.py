"""Five unfair days at a download service: hosts with few slots, tenants of very different manners.

Holding times are heavy-tailed. Tenant 0 is the aggressor, the last `whales` tenants hold their
slots very long, the others are polite. The traces depend on the name and the seed alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Arrival:
    at: float
    tenant: int
    hold_s: float
    host: int


@dataclass(frozen=True)
class Workload:
    name: str
    hosts: int = 4
    slots: int = 5
    tenants: int = 20
    length_s: float = 1800.0
    load: float = 0.5  # of the capacity, by the polite ones together
    mean_s: float = 2.0
    tail: float = 1.6
    longest_s: float = 60.0
    aggression: float = 100.0
    whales: int = 0
    whale_factor: float = 20.0
    whale_load: float = 1.0
    weights: tuple[float, ...] = ()
    tenant_cap: int | None = None
    cooldown_s: float = 0.0
    max_waiters: int = 400  # per tenant and host; what comes on top is turned away

    @property
    def polite(self) -> range:
        return range(1, self.tenants - self.whales)

    def weight(self, tenant: int) -> float:
        return self.weights[tenant] if self.weights else 1.0

    def trace(self, seed: int) -> list[Arrival]:
        rng = Random(f"{self.name}/{seed}")
        shortest_s = self.mean_s * (self.tail - 1) / self.tail
        capacity = self.hosts * self.slots / self.mean_s
        polite_rate = self.load * capacity / max(1, len(self.polite))
        arrivals: list[Arrival] = []
        for tenant in range(self.tenants):
            rate, factor = polite_rate, 1.0
            if tenant == 0:
                rate *= self.aggression
            elif tenant >= self.tenants - self.whales:
                rate = self.whale_load * capacity / self.whale_factor
                factor = self.whale_factor
            at = rng.expovariate(rate)
            while at < self.length_s:
                hold_s = factor * shortest_s / rng.random() ** (1 / self.tail)
                hold_s = min(self.longest_s * factor, hold_s)
                arrivals.append(Arrival(at, tenant, hold_s, rng.randrange(self.hosts)))
                at += rng.expovariate(rate)
        return sorted(arrivals, key=lambda a: (a.at, a.tenant, a.hold_s, a.host))

    def fair_shares(self, trace: list[Arrival]) -> list[float]:
        """Weighted max-min fair slot-seconds for each tenant."""
        demand = [0.0] * self.tenants
        for arrival in trace:
            demand[arrival.tenant] += arrival.hold_s
        if self.tenant_cap:
            most = self.hosts * self.tenant_cap * self.length_s
            demand = [min(each, most) for each in demand]
        capacity = self.hosts * self.slots * self.length_s
        return water_fill(demand, self.weight, min(capacity, sum(demand)))


def water_fill(demand: list[float], weight: Callable[[int], float], capacity: float) -> list[float]:
    share = [0.0] * len(demand)
    thirsty = set(range(len(demand)))
    left = capacity
    while thirsty and left > 1e-9:
        total = sum(weight(i) for i in thirsty)
        sated = [i for i in thirsty if demand[i] - share[i] <= left * weight(i) / total + 1e-12]
        if not sated:
            for i in thirsty:
                share[i] += left * weight(i) / total
            break
        for i in sated:
            left -= demand[i] - share[i]
            share[i] = demand[i]
            thirsty.discard(i)
    return share


WORKLOADS = (
    Workload("A_aggressor100x"),
    Workload("B_whale_long_slots", whales=1, aggression=1.0, load=0.4, whale_load=2.0),
    Workload("C_aggr_plus_whale", whales=2, load=0.4, whale_load=1.0),
    Workload("D_ipcap_cooldown", tenant_cap=1, cooldown_s=3.0, load=0.3, tenants=30),
    Workload(
        "E_weights124",
        tenants=3,
        load=6.0,
        aggression=1.0,
        weights=(1.0, 2.0, 4.0),
        hosts=1,
        slots=8,
    ),
)
