"""Workers die, the broker starts anew, messages are lost or come twice: paces hold, nothing is
lost.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headway import App
from headway.store.records import NewJob, Query
from tests.celery.kit import (
    CeleryWorker,
    Redis,
    Upstream,
    Visit,
    fleet_server,
    look,
    places,
    redis_in,
    until,
    upstream,
    worker_of,
)
from tests.servers import Server

# Between the last look at the clock in a worker and the arrival of its call at the upstream lie a
# connection, and a machine that may do something else just then.
TOLERANCE_S = 0.005


class Town:
    """All of it."""

    def __init__(self, stack: ExitStack, directory: Path, *, pace_s: float, keeps: bool) -> None:
        enter = stack.enter_context
        self.pace_s = pace_s
        self.redis: Redis = enter(redis_in(directory, keeps=keeps))
        self.upstream: Upstream = enter(upstream())
        self.server: Server = enter(
            fleet_server(self.redis, lease_s=3, celery_claim_s=3, log_level="warning")
        )
        self.environment = {
            "BROKER": self.redis.url, "SERVER": self.server.url, "PACE_S": str(pace_s),
            "UPSTREAM": str(self.upstream.port), "QUEUE": "celery",
        }  # fmt: skip
        self.app = App(self.server.url)
        stack.callback(self.app.close)
        self._enter, self._directory = enter, directory

    def worker(self, name: str, **options: Any) -> CeleryWorker:
        log = self._directory / f"{name}.log"
        return self._enter(worker_of("tests.celery.fleet:celery", self.environment, log, **options))

    def put(self, count: int, domains: int) -> None:
        now = time.time()
        self.app.enqueue_many(
            NewJob(
                "visit", f'{{"domain": "d{n % domains}", "number": {n}}}', created_at=now,
                upstreams=f'["d{n % domains}.example"]',
            )
            for n in range(count)
        )  # fmt: skip

    def count(self, *states: str) -> int:
        return self.app.store.count(Query(type="visit", states=states))

    def wait_for(self, count: int, within_s: float) -> None:
        until(
            lambda: self.count("completed") >= count,
            f"only {self.count('completed')} of {count} were completed: {look(self.server)}",
            within_s,
        )


class Gap(NamedTuple):
    """Between two calls at a domain, and what the machine can be shown to have done to it: the
    first body was held up after it was told to begin, or its call was longer on its way.
    """

    gap_s: float
    held_up_s: float
    way_s: float

    def short_s(self, pace_s: float) -> float:
        return pace_s - self.gap_s - self.held_up_s - self.way_s


def gaps(visits: Sequence[Visit]) -> list[Gap]:
    """The shortest first."""
    last: dict[str, Visit] = {}
    found = []
    for each in sorted(visits, key=lambda visit: visit.arrived):
        before = last.get(each.domain)
        if before is not None:
            way_s = max((before.arrived - before.began) - (each.arrived - each.began), 0.0)
            found.append(Gap(each.arrived - before.arrived, before.held_up_s, way_s))
        last[each.domain] = each
    return sorted(found)


def check(town: Town, count: int) -> dict[str, object]:
    """What the upstream has seen, beside what the store says."""
    visits = list(town.upstream.visits)
    found = gaps(visits)
    early = [gap for gap in found if gap.short_s(town.pace_s) > TOLERANCE_S]
    assert not early, f"{len(early)} calls came too early: {early[:5]}"
    assert town.count("completed") == count
    assert town.count("failed", "cancelled", "running", "queued", "pending") == 0
    calls = Counter(visit.job for visit in visits)
    assert set(calls) == {str(number) for number in range(count)}, "somebody never came"
    below = [gap for gap in found if gap.gap_s < town.pace_s - TOLERANCE_S]
    return {
        "visits": len(visits), "gaps": len(found), "shortest": found[0],
        "short only by the machine": len(below), "worst": below[:5],
    }  # fmt: skip


@pytest.mark.parametrize(
    "keeps", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["forgets", "keeps"]
)
def test_workers_die_and_the_broker_starts_anew(tmp_path: Path, keeps: bool) -> None:
    rng = random.Random(28)
    with ExitStack() as stack:
        town = Town(stack, tmp_path, pace_s=0.05, keeps=keeps)
        town.put(150, 10)
        workers = [
            town.worker("first", pool="threads", places=4),
            town.worker("second", pool="prefork", places=2),
        ]
        until(lambda: places(town.server) == 6)
        for done in (30, 60):
            until(lambda done=done: len(town.upstream.visits) >= done)  # type: ignore[misc]
            dying = rng.choice(workers)
            dying.kill()
            dying.start()
        until(lambda: len(town.upstream.visits) >= 90)
        town.redis.restart()
        town.wait_for(150, 60)
        print(check(town, 150), look(town.server)["counts"])


@pytest.mark.soak
def test_five_thousand_jobs_over_fifty_domains(tmp_path: Path) -> None:
    rng = random.Random(5_000)
    count, killed = 5_000, 0
    with ExitStack() as stack:
        town = Town(stack, tmp_path, pace_s=0.5, keeps=False)
        town.put(count, 50)
        workers = [
            town.worker("first", pool="threads", places=16),
            town.worker("second", pool="prefork", places=8),
        ]
        until(lambda: places(town.server) == 24)
        began = time.monotonic()
        done = 0
        while (done := done + rng.randrange(300, 600)) < count - 300:
            until(lambda done=done: len(town.upstream.visits) >= done, within_s=600)  # type: ignore[misc]
            dying = rng.choice(workers)
            dying.kill()
            dying.start()
            killed += 1
            if killed == 4:
                town.redis.restart()
            if killed == 7:
                town.server.kill()
                town.server.start()
        town.wait_for(count, 900)
        seen = check(town, count)
        took_s = time.monotonic() - began
        print(f"{count / took_s:.0f} jobs a second, {killed} workers killed, {seen}, "
              f"{look(town.server)['counts']}")  # fmt: skip
