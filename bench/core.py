"""Grants per second of the core alone: a full cycle is offer, grant, release.

    python -m bench.core            the table, then one JSON object as the last line

Each size runs in a process of its own, so that its memory can be read. Five gates per ticket: lane,
tool, upstream, tenant at the upstream, key; over 1,000 upstreams and 10,000 tenants. `lane alone`
is the same without the other four. The figure is the fastest of several chunks of 2,048 cycles:
on a shared machine noise only ever slows a chunk down. The median is printed beside it.
"""

from __future__ import annotations

import gc
import json
import resource
import statistics
import subprocess
import sys
import time
from random import Random

from headway.core import Core, GatePolicy, Outcome, Permit, Policies, Ticket

UPSTREAMS, TENANTS, KEYS = 1_000, 10_000, 100_000
BATCH, CHUNK, CHUNKS = 64, 2_048, 15


class World:
    """Makes tickets of one shape, and a core that they are offered to."""

    def __init__(self, *, five: bool) -> None:
        self.five = five
        self.rng = Random(7)
        self.upstreams = [(f"host-{i}.example",) for i in range(UPSTREAMS)]
        self.tenants = [f"tenant-{i}" for i in range(TENANTS)]
        self.keys = [f"key-{i}" for i in range(KEYS)]
        policies = Policies()
        policies.declare("lane", "*", GatePolicy(cap=256))
        policies.declare("tool", "*", GatePolicy(cap=256))
        policies.declare("upstream", "*", GatePolicy(cap=4, tenant=GatePolicy(cap=2)))
        self.core = Core(policies, rng=Random(1))

    def ticket(self, number: int) -> Ticket:
        if not self.five:
            return Ticket(number, lane="work")
        tenant = self.rng.randrange(TENANTS)
        place = (tenant * 7 + self.rng.randrange(10) * 101) % UPSTREAMS  # ten upstreams each
        return Ticket(
            number,
            lane="work",
            tools=("fetcher",),
            upstreams=self.upstreams[place],
            tenant=self.tenants[tenant],
            key=self.keys[self.rng.randrange(KEYS)],
        )


def cycle(core: Core, live: list[Permit], fresh: list[Ticket], now: float) -> float:
    """Every batch: some holders finish, as many new tickets come, whoever may go goes."""
    done = Outcome.ok()
    for start in range(0, len(fresh), BATCH):
        now += 0.001
        finished, live[:BATCH] = live[:BATCH], []
        for permit in finished:
            core.finish(permit.ticket.id, permit.fence, done, now)
        for ticket in fresh[start : start + BATCH]:
            core.submit(ticket, now)
        live += core.admit(now)
        core.changes.clear()
    return now


def measure(waiting: int, *, five: bool) -> dict[str, float]:
    world = World(five=five)
    core = world.core
    gc.disable()  # the core makes no cyclic garbage (tests/core/test_garbage.py)
    for number in range(waiting):
        core.submit(world.ticket(number), 0.0)
    live = core.admit(0.0)
    core.changes.clear()
    rss_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rates: list[float] = []
    now, number = 0.0, waiting
    for _ in range(CHUNKS):
        fresh = [world.ticket(number + i) for i in range(CHUNK)]
        number += CHUNK
        start = time.perf_counter()
        now = cycle(core, live, fresh, now)
        rates.append(CHUNK / (time.perf_counter() - start))
    return {"best": max(rates), "median": statistics.median(rates), "rss_mib": rss_mib}


def in_own_process(waiting: int, *, five: bool) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.core", str(waiting), "five" if five else "lane"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(answer.stdout)
    return result


def main() -> None:
    sizes = {"1k": 1_000, "100k": 100_000, "1m": 1_000_000}
    figures: dict[str, float] = {}
    print(f"{'waiting':>10} {'five gates':>24} {'lane alone':>24} {'memory':>12}")
    for name, waiting in sizes.items():
        five = in_own_process(waiting, five=True)
        lane = in_own_process(waiting, five=False)
        figures[f"cycles_per_s_{name}"] = round(five["best"])
        figures[f"cycles_per_s_{name}_median"] = round(five["median"])
        figures[f"lane_cycles_per_s_{name}"] = round(lane["best"])
        figures[f"rss_mib_{name}"] = round(five["rss_mib"])
        print(
            f"{waiting:>10,} {five['best']:>9,.0f}/s ({five['median']:>6,.0f} median)"
            f" {lane['best']:>9,.0f}/s ({lane['median']:>6,.0f} median)"
            f" {five['rss_mib']:>6,.0f} MiB"
        )
    figures["cost_1m_over_1k"] = round(figures["cycles_per_s_1k"] / figures["cycles_per_s_1m"], 2)
    print(json.dumps(figures))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(measure(int(sys.argv[1]), five=sys.argv[2] == "five")))
    else:
        main()
