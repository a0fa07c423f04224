"""A million upstreams and one brain: an hour of it in the real core, on virtual time.

    python -m bench.million [--upstreams 1000000] [--every 3600] [--seconds 3600]

Each upstream is asked once in `every` seconds, at a phase of its own, one call at a time and never
twice in a second, as feeds are; a call takes half a second on average, and one in a hundred is
pushed back for a minute. Every job is in the core from the beginning, waiting for its time. The
figures are what a brain needs for that: time of its one core, memory, and how late jobs start
beyond the millisecond in which a turn begins. What the store and the network cost is in
`make bench`. Then the same upstreams on 2, 3, 4 and 8 brains, by rendezvous hashing: how evenly
they are spread, and how many move when one brain is added. The last line is JSON.
"""

from __future__ import annotations

import argparse
import gc
import heapq
import json
import resource
import time
from hashlib import blake2b
from random import Random

from headway.core import Core, GatePolicy, Outcome, PaceRule, Policies, Ticket

TURN_S = 0.01  # virtual: what happens within it is one turn
SWEEP_S = 60.0
PUSHED_BACK = 0.01
SPREAD = 100_000  # upstreams, for the spreading


class Hour:
    def __init__(self, upstreams: int, every_s: float) -> None:
        self._every_s = every_s
        self._random = Random(7)
        policies = Policies()
        policies.declare("upstream", "*", GatePolicy(cap=1, pace=PaceRule(1.0)))
        self.core = Core(policies, rng=Random(1), lease_s=3600.0)
        self._ends: list[tuple[float, int, int]] = []  # when a call ends, its job and fence
        self._due: dict[int, float] = {}
        self.calls = self.pushed_back = self.late = 0
        self.latest_s = self.late_s = 0.0
        self._next = upstreams
        self._upstream: dict[int, str] = {}
        for number in range(upstreams):
            self._put(number, f"host-{number}.example", self._random.uniform(0.0, every_s), 0.0)

    def _put(self, number: int, upstream: str, due_at: float, now: float) -> None:
        self._due[number] = due_at
        self._upstream[number] = upstream
        self.core.submit(Ticket(number, upstreams=(upstream,), not_before=due_at), now)

    def run(self, seconds: float) -> None:
        now, sweep_at = 0.0, SWEEP_S
        while now < seconds:
            self._turn(now)
            if now >= sweep_at:
                sweep_at += SWEEP_S
                self.core.sweep(now)
            ahead = min(self.core.next_wakeup(), self._ends[0][0] if self._ends else seconds)
            now = max(now + TURN_S, ahead)

    def _turn(self, now: float) -> None:
        core, random = self.core, self._random
        core.advance(now)
        while self._ends and self._ends[0][0] <= now:
            _, number, fence = heapq.heappop(self._ends)
            refused = random.random() < PUSHED_BACK
            self.pushed_back += refused
            outcome = Outcome.pushback(retry_after_s=60.0) if refused else Outcome.ok()
            core.finish(number, fence, outcome, now)
            if refused:
                self._due[number] = now + 60.0
            else:  # the next occurrence, as a schedule writes it
                upstream, due_at = self._upstream.pop(number), self._due.pop(number)
                self._put(self._next, upstream, due_at + self._every_s, now)
                self._next += 1
        for permit in core.admit(now):
            number = int(permit.ticket.id)  # type: ignore[call-overload]
            late_s = now - self._due[number]
            self.calls += 1
            self.late_s += late_s
            self.latest_s = max(self.latest_s, late_s)
            ends_at = now + random.expovariate(2.0)
            heapq.heappush(self._ends, (ends_at, number, permit.fence))
        core.changes.clear()


def brain_of(upstream: str, brains: int) -> int:
    """Rendezvous hashing: the brain with the highest mark for this name."""

    def mark(brain: int) -> bytes:
        return blake2b(f"{brain} {upstream}".encode(), digest_size=8).digest()

    return max(range(brains), key=mark)


def spread(brains: int) -> tuple[float, float]:
    """The fullest brain against the mean, and the share that moves when one more comes."""
    names = [f"host-{number}.example" for number in range(SPREAD)]
    places = [brain_of(name, brains) for name in names]
    fullest = max(places.count(brain) for brain in range(brains)) * brains / SPREAD
    moved = sum(brain_of(name, brains + 1) != place
                for name, place in zip(names, places, strict=True))  # fmt: skip
    return fullest, moved / SPREAD


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--upstreams", type=int, default=1_000_000)
    parser.add_argument("--every", type=float, default=3_600.0, metavar="SECONDS")
    parser.add_argument("--seconds", type=float, default=3_600.0)
    told = parser.parse_args()
    gc.disable()  # the core makes no cyclic garbage (tests/core/test_garbage.py)
    began = time.process_time()
    hour = Hour(told.upstreams, told.every)
    loaded_s = time.process_time() - began
    began = time.process_time()
    hour.run(told.seconds)
    busy_s = time.process_time() - began
    rss_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    figures = {
        "upstreams": told.upstreams, "every_s": told.every, "seconds": told.seconds,
        "calls": hour.calls, "per_s": round(hour.calls / told.seconds, 1),
        "pushed_back": hour.pushed_back, "loaded_s": round(loaded_s, 1),
        "busy_share": round(busy_s / told.seconds, 4), "us_per_call":
        round(busy_s / max(1, hour.calls) * 1e6, 1), "rss_gib": round(rss_gib, 2),
        "late_mean_ms": round(hour.late_s / max(1, hour.calls) * 1e3, 2),
        "late_most_s": round(hour.latest_s, 3),
    }  # fmt: skip
    for name, value in figures.items():
        print(f"{name:>14} {value:>14,}")
    print(f"{'brains':>14} {'fullest / mean':>16} {'move to one more':>18}")
    for brains in (2, 3, 4, 8):
        fullest, moved = spread(brains)
        figures[f"fullest_of_{brains}"] = round(fullest, 3)
        figures[f"moved_from_{brains}"] = round(moved, 3)
        print(f"{brains:>14} {fullest:>16.3f} {moved:>18.1%}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
