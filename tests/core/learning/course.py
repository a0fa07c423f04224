"""What the learner does at upstreams that hide their limits, second by second, as it was when
somebody last looked at it. `python -m tests.core.learning.course --write` looks again.

The bars of `make bench NAME=learner` say whether what it does is good. This says that it is still
the same: a change of a number that nobody meant to change is seen here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from bench.learning.headway import Headway
from bench.learning.headway import hinted as told
from bench.learning.limiters import (
    CellRate,
    ConcurrencyCap,
    FixedWindow,
    SlidingWindow,
    TokenBucket,
)
from bench.learning.scenarios import Latency, Online, Scenario
from bench.learning.simulation import Simulation, Upstream
from headway.core.learning import Learning, LearnRule
from headway.core.learning.learner import Said
from headway.core.rate_headers import Quota, RateHeaders
from tests.core.learning.kit import Driver

FILE = Path(__file__).with_name("course.json")
LENGTH_S = 400.0
EVERY_S = 40

NOTES_S = 10.0  # between two looks at all that it knows


class Watched(Headway):
    """Notes all that the learner knows every few seconds, and restarts it once in the middle."""

    def __init__(self, rule: LearnRule | None = None) -> None:
        super().__init__(rule)
        self.rule = rule
        self.notes = blake2b(digest_size=12)
        self.next_note = 0.0
        self.restart_at = LENGTH_S * 0.6

    def allow(self, now: float, inf_bg: int, inf_fg: int) -> bool:
        if now >= self.next_note:
            self.next_note = now + NOTES_S
            limit = self.limit
            said = (
                limit.dump(), limit.phase(now), limit.busy(now), limit.says(None).detail,
                limit.learner.capacity(now), limit.idle(now), limit.per_minute(now),
                limit.idle(now + 7_000.0), limit.idle(now + 40 * 86_400.0),
            )  # fmt: skip
            self.notes.update(repr(_even(said)).encode())
        if now >= self.restart_at and not self.in_flight:
            self.restart_at = float("inf")
            fresh = Learning(self.rule)
            fresh.load(json.loads(json.dumps(self.limit.dump())))
            fresh.elapse(now)
            self.limit = fresh
        return super().allow(now, inf_bg, inf_fg)


def _even(value: Any) -> Any:
    """The last digits of a number are the machine's own."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return {name: _even(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_even(each) for each in value]
    return _even(vars_of(value)) if is_dataclass(value) else value


def vars_of(value: Any) -> dict[str, Any]:
    return {each.name: getattr(value, each.name) for each in fields(value)}


Make = Callable[[Scenario, Upstream], Watched]


def cold(_scenario: Scenario, _upstream: Upstream) -> Watched:
    return Watched()


def hinted(scenario: Scenario, upstream: Upstream) -> Watched:
    return Watched(told(scenario, upstream).limit.rule)


def bounded(_scenario: Scenario, _upstream: Upstream) -> Watched:
    return Watched(LearnRule(hint_rpm=300, max_rpm=500, min_rpm=30, max_concurrency=12))


def pinned(_scenario: Scenario, _upstream: Upstream) -> Watched:
    return Watched(LearnRule(pin_rpm=240, pin_concurrency=6))


def sized(name: str, limiter: Callable[[], Any], **more: Any) -> Scenario:
    return Scenario(name, limiter, length_s=LENGTH_S, **more)


SCENARIOS: tuple[tuple[Scenario, Make], ...] = (
    (sized("fixed", lambda: FixedWindow(600), ban=(10, 60, 100)), cold),
    (sized("fixed, later less", lambda: FixedWindow([(0, 400), (150, 100)])), cold),
    (sized("fixed, later more", lambda: FixedWindow([(0, 100), (150, 900)], phase_s=17.0)), cold),
    (sized("sliding", lambda: SlidingWindow(120), online=Online.wave(20, 90, 200)), cold),
    (sized("bucket", lambda: TokenBucket(300, 30), retry_after=True, online=Online.steady(60)),
     cold),
    (sized("cells", lambda: CellRate([(0, 600), (200, 200)], 5), ban=(6, 60, 60)), cold),
    (sized("few at once", lambda: ConcurrencyCap(8), latency=Latency(2.0, 1.0)), cold),
    (sized("fewer at once", lambda: ConcurrencyCap([(0, 30), (200, 6)]), latency=Latency(1.0, 0.7)),
     cold),
    (sized("headers", lambda: FixedWindow([(0, 600), (200, 300)]), headers=True, retry_after=True,
           online=Online.wave(60, 200, 150)), cold),
    (sized("slow when busy", lambda: ConcurrencyCap(200), knee=10, latency=Latency(1.5, 0.5),
           online=Online.wave(30, 200, 200)), cold),
    (sized("unseen calls", lambda: FixedWindow(300), online=Online.steady(120), online_seen=False),
     cold),
    (sized("flaky", lambda: SlidingWindow(600), flaky=0.02), cold),
    (sized("away", lambda: FixedWindow(300), outages=((120.0, 180.0),)), cold),
    (sized("spikes", lambda: TokenBucket(400, 60),
           online=Online("spikes", 20.0, 350.0, spikes=((60.0, 90.0), (200.0, 260.0)))), cold),
    (sized("hinted", lambda: FixedWindow([(0, 300), (200, 150)])), hinted),
    (sized("hinted, at once", lambda: ConcurrencyCap(12), latency=Latency(2.0, 0.5)), hinted),
    (sized("bounded", lambda: FixedWindow(900)), bounded),
    (sized("pinned", lambda: FixedWindow(200)), pinned),
    (sized("slower when busier", lambda: ConcurrencyCap([(0, 60), (250, 20)]), knee=16,
           latency=Latency(0.4, 0.3), online=Online.steady(40)), cold),
    (sized("slow and full", lambda: TokenBucket(900, 200), knee=30, latency=Latency(3.0, 1.0)),
     cold),
    (sized("banned at once", lambda: FixedWindow(60), ban=(2, 60, 90), retry_after=True), cold),
    (sized("often away", lambda: SlidingWindow(400), flaky=0.01,
           outages=((60.0, 70.0), (100.0, 160.0), (300.0, 310.0))), cold),
    (sized("a handful", lambda: FixedWindow(12), online=Online.steady(3)), cold),
    (sized("headers that fall", lambda: SlidingWindow([(0, 500), (100, 60), (300, 800)]),
           headers=True, online=Online("spikes", 10.0, 200.0, spikes=((90.0, 130.0),))), hinted),
)  # fmt: skip


def course(scenario: Scenario, make: Make) -> dict[str, Any]:
    simulation = Simulation(scenario, make, 1)
    trace = simulation.run()
    sender = simulation.sender
    assert isinstance(sender, Watched)
    ends = range(EVERY_S, int(LENGTH_S) + 1, EVERY_S)
    return {
        "done": [sum(trace.done_at[end - EVERY_S : end]) for end in ends],
        "refused": [sum(trace.refused_at[end - EVERY_S : end]) for end in ends],
        "online": [trace.online, trace.online_refused],
        "beliefs": _rounded(sender.limit.learner, LENGTH_S),
        "shown": _shown(sender.limit),
        "notes": sender.notes.hexdigest(),
    }


def _shown(limit: Learning) -> list[str]:
    """What people see of it at the end, and why it changed its mind."""
    capacity, minute = limit.capacity(LENGTH_S), limit.per_minute(LENGTH_S)
    seen = [limit.phase(LENGTH_S), f"{limit.busy(LENGTH_S):.4g}", str(minute), str(limit.in_flight)]
    seen += [f"{capacity.load_rpm:.4g}", f"{capacity.remaining:.4g}"]
    causes = sorted({f"{each.what}: {each.cause}" for each in limit.take_changes()})
    return [*seen, *causes]


def tokens() -> dict[str, Any]:
    """Calls of different cost, at an upstream that counts tokens and says so now and then."""
    driver = Driver(LearnRule(hint_tpm=6_000))
    left, filled_at, done, refused = 4_000.0, 0.0, [], []
    for number in range(400):
        driver.until_open()
        cost = float(40 + number * 37 % 200)
        call = driver.send(cost=cost)
        driver.wait(0.05 + (number % 7) * 0.1)
        limit = 4_000.0 if number < 200 else 1_500.0
        left = min(limit, left + (driver.now - filled_at) * limit / 60.0)
        filled_at = driver.now
        said = Said.WELL if left >= cost else Said.REFUSED
        rates = None
        if number % 5 == 0 and number < 120:
            rates = RateHeaders(tokens=Quota(4_000.0, max(0.0, left), 30.0))
        left -= cost if said is Said.WELL else 0.0
        (done if said is Said.WELL else refused).append(round(driver.now, 3))
        driver.answer(call, said, rates=rates)
    return {
        "done": done[::40], "refused": refused[::5], "counts": [len(done), len(refused)],
        "beliefs": _rounded(driver.learner, driver.now),
    }  # fmt: skip


def _rounded(learner: Any, now: float) -> dict[str, Any]:
    found = learner.beliefs()
    said = {name: getattr(found, name) for name in ("rpm", "tpm", "concurrency", "limit_kind")}
    said |= {
        "places": learner.places,
        "opens_in": learner.opens_at - now,
        "phase": str(learner.requests.ceiling.phase),
    }
    return {
        name: float(f"{value:.4g}") if isinstance(value, float) else str(value)
        for name, value in said.items()
    }


def courses() -> dict[str, Callable[[], dict[str, Any]]]:
    found = {
        scenario.name: (lambda scenario=scenario, make=make: course(scenario, make))
        for scenario, make in SCENARIOS
    }
    return {**found, "tokens": tokens}


if __name__ == "__main__":
    made = {name: run() for name, run in courses().items()}
    text = "{\n" + ",\n".join(f'"{n}": {json.dumps(said)}' for n, said in made.items()) + "\n}\n"
    if "--write" in sys.argv:
        FILE.write_text(text, "utf-8")
    else:
        sys.stdout.write(text)
