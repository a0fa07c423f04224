"""A Celery fleet whose leading server is killed: the next one goes on with it."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

from headway import App
from headway.store.records import NewJob
from tests.celery.kit import places, redis_in, until, upstream, worker_of
from tests.together.conftest import NewGroup

DOMAINS = 4
JOBS = 60
PACE_S = 0.1
TOLERANCE_S = 0.005


def test_a_fleet_goes_on_when_another_server_leads(new_group: NewGroup, tmp_path: Path) -> None:
    with redis_in(tmp_path) as redis, upstream() as site:
        group = new_group(2, celery_broker=redis.url, lease_s=4, leader_lease_s=1)
        urls = ",".join(group.urls)
        told = {"BROKER": redis.url, "SERVER": urls, "UPSTREAM": str(site.port),
                "PACE_S": str(PACE_S)}  # fmt: skip
        log = tmp_path / "fleet.log"
        with worker_of("tests.celery.fleet:celery", told, log, queues="headway", places=8):
            until(lambda: places(group.servers[1]) == 8)
            app = App(urls, executor="celery")
            handles = app.enqueue_many([
                NewJob("visit", json.dumps({"domain": f"d{n % DOMAINS}.example", "number": n}),
                       created_at=time.time(), upstreams=json.dumps([f"d{n % DOMAINS}.example"]))
                for n in range(JOBS)
            ])  # fmt: skip
            until(lambda: len(site.visits) > JOBS // 4)
            group.as_if_elsewhere()
            group.the_leader().kill()
            assert [each.result(timeout=60) for each in handles] == list(range(JOBS))
            app.close()
    arrived = defaultdict(list)
    for visit in sorted(site.visits, key=lambda each: each.arrived):
        arrived[visit.domain].append(visit)
    for visits in arrived.values():
        for before, after in pairwise(visits):
            gap_s = after.arrived - before.began  # its way may have taken long
            assert gap_s > PACE_S - TOLERANCE_S - before.held_up_s, (before, after)
    assert {int(visit.job) for visit in site.visits} == set(range(JOBS))
