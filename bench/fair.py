"""Fairness of the core's order, beside first come, an older formula and the brute-force reference.

    python -m bench.fair            the table, then one JSON object as the last line

Jain's index is over slot-seconds received / fair share; the waits are the polite tenants'; `idle`
is the share of slot time that stood idle while somebody eligible waited; the error of the estimate
is |estimated - real wait| / real wait at the moment of arrival, median over all that had to wait.
"""

from __future__ import annotations

import heapq
import json
import statistics
from dataclasses import dataclass, field

from bench.schedulers import SCHEDULERS, Headway, Scheduler
from bench.workloads import WORKLOADS, Arrival, Workload

SEEDS = (1, 2)


@dataclass
class Observer:
    """Sees only arrivals, starts and ends, and judges by them."""

    work: Workload
    waiting: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    held: dict[tuple[int, int], int] = field(default_factory=dict)
    cooling: dict[tuple[int, int], float] = field(default_factory=dict)
    busy: list[int] = field(default_factory=list)
    served: list[float] = field(default_factory=list)
    waits: dict[int, list[float]] = field(default_factory=dict)
    idle_s: float = 0.0
    most_busy: int = 0

    def __post_init__(self) -> None:
        self.busy = [0] * self.work.hosts
        self.served = [0.0] * self.work.tenants

    def pass_time(self, last: float, now: float) -> None:
        for host in range(self.work.hosts):
            free = self.work.slots - self.busy[host]
            if free > 0:
                able = sum(self._able(host, tenant, last) for tenant in range(self.work.tenants))
                self.idle_s += min(free, able) * (now - last)

    def _able(self, host: int, tenant: int, now: float) -> int:
        waiting = len(self.waiting.get((host, tenant), ()))
        if not waiting or self.cooling.get((host, tenant), 0.0) > now:
            return 0
        cap = self.work.tenant_cap
        return waiting if cap is None else min(waiting, cap - self.held.get((host, tenant), 0))

    def arrived(self, number: int, arrival: Arrival) -> None:
        self.waiting.setdefault((arrival.host, arrival.tenant), []).append(number)

    def started(self, number: int, arrival: Arrival, now: float) -> None:
        place = (arrival.host, arrival.tenant)
        self.waiting[place].remove(number)
        self.held[place] = self.held.get(place, 0) + 1
        self.busy[arrival.host] += 1
        self.most_busy = max(self.most_busy, self.busy[arrival.host])
        self.waits.setdefault(arrival.tenant, []).append(now - arrival.at)

    def ended(self, arrival: Arrival, held_s: float, now: float) -> None:
        place = (arrival.host, arrival.tenant)
        self.held[place] -= 1
        self.busy[arrival.host] -= 1
        self.served[arrival.tenant] += held_s
        self.cooling[place] = now + self.work.cooldown_s


@dataclass(frozen=True)
class Result:
    jain: float
    p50_s: float
    p99_s: float
    idle: float
    busy: float
    estimate_errors: list[float]


def run(work: Workload, scheduler: Scheduler, seed: int) -> Result:
    trace = work.trace(seed)
    observer = Observer(work)
    ends: list[tuple[float, int]] = []
    starts: dict[int, float] = {}
    estimates: dict[int, float] = {}
    real: dict[int, float] = {}
    last, index = 0.0, 0
    while True:
        arrival_at = trace[index].at if index < len(trace) else float("inf")
        end_at = ends[0][0] if ends else float("inf")
        now = min(arrival_at, end_at, max(last, scheduler.wakeup(last)))
        if now > work.length_s:
            break
        observer.pass_time(last, now)
        last = now
        number = -1
        if end_at <= now:
            _, ended = heapq.heappop(ends)
            observer.ended(trace[ended], now - starts.pop(ended), now)
            scheduler.release(ended, now)
        elif arrival_at <= now:
            number, index = index, index + 1
            if scheduler.offer(number, trace[number], now):
                observer.arrived(number, trace[number])
        for granted in scheduler.grants(now):
            observer.started(granted, trace[granted], now)
            starts[granted] = now
            real[granted] = now - trace[granted].at
            heapq.heappush(ends, (now + trace[granted].hold_s, granted))
        if number >= 0 and isinstance(scheduler, Headway):
            estimate = scheduler.estimate(number, now)
            if estimate is not None:
                estimates[number] = estimate - now
    return _judge(work, trace, observer, starts, estimates, real)


def _judge(
    work: Workload,
    trace: list[Arrival],
    observer: Observer,
    starts: dict[int, float],
    estimates: dict[int, float],
    real: dict[int, float],
) -> Result:
    served = list(observer.served)
    for number, start in starts.items():
        served[trace[number].tenant] += work.length_s - start
    for (_, tenant), numbers in observer.waiting.items():
        for number in numbers:  # still waiting at the end: at least so long
            observer.waits.setdefault(tenant, []).append(work.length_s - trace[number].at)
    ratios = [got / fair for got, fair in zip(served, work.fair_shares(trace), strict=True) if fair]
    polite = sorted(wait for tenant in work.polite for wait in observer.waits.get(tenant, ()))
    capacity = work.hosts * work.slots * work.length_s
    errors = [
        abs(estimates[number] - real[number]) / real[number]
        for number in estimates
        if real.get(number, 0.0) > 0
    ]
    return Result(
        jain=sum(ratios) ** 2 / (len(ratios) * sum(ratio**2 for ratio in ratios)),
        p50_s=polite[len(polite) // 2],
        p99_s=polite[min(len(polite) - 1, int(0.99 * len(polite)))],
        idle=observer.idle_s / capacity,
        busy=sum(served) / capacity,
        estimate_errors=errors,
    )


def main() -> None:
    figures: dict[str, dict[str, float]] = {}
    all_errors: list[float] = []
    print(f"{'':22}{'order':12}{'Jain':>7}{'p50 s':>9}{'p99 s':>9}", end="")
    print(f"{'busy':>8}{'idle':>8}{'ETA error':>11}")
    for work in WORKLOADS:
        for name, make in SCHEDULERS.items():
            results = [run(work, make(work), seed) for seed in SEEDS]
            jain = statistics.mean(result.jain for result in results)
            p50_s = statistics.mean(result.p50_s for result in results)
            p99_s = statistics.mean(result.p99_s for result in results)
            idle = statistics.mean(result.idle for result in results)
            busy = statistics.mean(result.busy for result in results)
            errors = [error for result in results for error in result.estimate_errors]
            all_errors += errors
            error = f"{statistics.median(errors):11.1%}" if errors else ""
            print(
                f"{work.name:22}{name:12}{jain:7.3f}{p50_s:9.2f}{p99_s:9.2f}"
                f"{busy:8.1%}{idle:8.2%}{error}"
            )
            figures[f"{work.name}/{name}"] = {
                "jain": round(jain, 4),
                "p99_s": round(p99_s, 2),
                "idle": round(idle, 6),
            }
            if errors:
                figures[f"{work.name}/{name}"]["eta_error"] = round(statistics.median(errors), 3)
    figures["all"] = {"eta_error": round(statistics.median(all_errors), 3)}
    print(f"the estimate over all: {statistics.median(all_errors):.1%}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
