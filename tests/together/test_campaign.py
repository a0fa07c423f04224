"""Three servers and four workers while leaders are killed and stopped, sessions cut, the database
crashes and answers to commits are lost: nothing that was acknowledged is lost, no pool is exceeded
as the upstream sees it, no job is held twice, and everything drains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

import pytest

from tests.faults.proxy import Proxy
from tests.hands.kit import eventually
from tests.postgres import in_memory, postgres
from tests.together.campaign import (
    FAULTS,
    LEADER_S,
    LEASE_S,
    POOL,
    WORKERS,
    Campaign,
    Fleet,
    Producers,
    check,
    count_events,
    open_jobs,
    pool_as_the_upstream_saw_it,
    some_faults,
)
from tests.together.group import group_on
from tests.together.upstream import Upstream, Visit

TOOL = f"[tool.pool]\nlimit = {POOL}\n"
Fault = Callable[[Campaign], None]


def run(tmp_path: Path, jobs: int, seed: int, faults: Iterable[Fault]) -> None:
    random = Random(seed)
    with (
        postgres(in_memory(1 << 30), max_wal_size="256MB") as database,
        Proxy(database.port) as proxy,
        Upstream() as upstream,
    ):
        direct = database.new_database()
        settings = {"lease_s": LEASE_S, "leader_lease_s": LEADER_S, "file": TOOL}
        with group_on(proxy.url(direct), direct, "headway", 3, **settings) as group:
            fleet = Fleet(group.urls, tmp_path / "workers.log")
            producers = Producers(group.urls, upstream.port, jobs, seed)
            campaign = Campaign(group, fleet, database, proxy, upstream, random)
            try:
                for _ in range(WORKERS):
                    fleet.start_one()
                producers.start()
                campaign.work_goes_on()
                done = []
                for fault in faults:
                    fault(campaign)
                    done.append(fault.__name__)
                    campaign.work_goes_on()
                producers.join()
                eventually(lambda: open_jobs(group) == 0, 120.0)
            finally:
                fleet.end()
                producers.join()
            overshoot = check(group, producers.journal, upstream.visits)
            print(
                f"seed {seed}: {producers.stored()} jobs, {len(upstream.visits)} calls, "
                f"{len(done)} faults, take-overs after "
                f"{', '.join(f'{each:.1f}' for each in campaign.took_over_s)} s, "
                f"{count_events(group, 'lost')} lost leases, {overshoot} calls of stopped holders"
            )


@pytest.mark.timeout(300)
def test_whatever_breaks_nothing_is_lost_and_nothing_is_exceeded(tmp_path: Path) -> None:
    run(tmp_path, 450, 11, FAULTS)


@pytest.mark.soak
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", range(3))
def test_whatever_breaks_for_minutes(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    run(tmp_path, 4_000, seed, some_faults(random, 240.0))


# The checker itself


def visit(job: int, began_at: float, ended_at: float, fence: int = 1) -> Visit:
    return Visit(job, fence, "p", began_at, ended_at)


def test_the_checker_sees_one_too_many() -> None:
    visits = [visit(number, 0.0, 1.0, number) for number in range(POOL + 1)]
    overshoot, complaints = pool_as_the_upstream_saw_it(visits, [])
    assert overshoot == 0
    assert len(complaints) == 1
