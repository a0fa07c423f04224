"""Workers that are killed at random, and a server that is restarted: nothing is lost, and no job
runs under two valid leases.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import urllib.request
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.forked import Forked
from tests.servers import NewServer, Server

WORKERS = 4
LEASE_S = 4.0


def call(server: Server, method: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, data, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


class Fleet:
    """Worker processes, and when each of them was killed."""

    def __init__(self, server: Server, log: Path) -> None:
        self._server = server
        self._log = log
        self.alive: list[Forked] = []
        self.died: dict[int, float] = {}

    def start_one(self) -> None:
        arguments = ["-m", "headway", "worker", "--server", self._server.url,
                     "--app", "tests.live.fleet_app:app", "--concurrency", "8"]  # fmt: skip
        with open(self._log, "ab") as log, open(os.devnull) as nothing:
            self.alive.append(
                Forked(
                    arguments, stdin=nothing.fileno(), stdout=log.fileno(), stderr=log.fileno(),
                    environment=os.environ, cwd=Path(__file__).parents[2],
                )
            )  # fmt: skip

    def kill_one(self, random: Random) -> None:
        victim = self.alive.pop(random.randrange(len(self.alive)))
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        self.died[victim.pid] = time.monotonic()

    def stop(self) -> list[int]:
        """As an operator stops them; their exit codes."""
        for each in self.alive:
            each.send_signal(signal.SIGTERM)
        return [each.wait(60) for each in self.alive]

    def end(self) -> None:
        for each in self.alive:
            if each.poll() is None:
                each.kill()
                each.wait()


def runs(journal: Path, died: dict[int, float]) -> dict[int, list[tuple[float, float, int]]]:
    """For each job, when it ran and under which fence. A run ends when it says so, or with its
    process.
    """
    begun: dict[tuple[int, int], tuple[float, int]] = {}
    found: dict[int, list[tuple[float, float, int]]] = defaultdict(list)
    for line in journal.read_text().splitlines():
        what, id, fence, pid, at = line.split()
        run = (int(id), int(fence))
        if what == "start":
            assert run not in begun, f"job {id} was begun twice under fence {fence}"
            begun[run] = (float(at), int(pid))
        else:
            found[run[0]].append((begun[run][0], float(at), run[1]))
    ended = {(id, fence) for id, each in found.items() for _, _, fence in each}
    for (id, fence), (at, pid) in begun.items():
        if (id, fence) not in ended:
            found[id].append((at, died[pid], fence))
    return {id: sorted(each) for id, each in found.items()}


def duration_s(random: Random) -> float:
    """Some take longer than a lease or a restart, and nobody else may begin them meanwhile."""
    longest = 1.5 * LEASE_S if random.random() < 0.08 else 1.0
    return round(random.uniform(longest / 2, longest), 3)


def campaign(server: Server, tmp_path: Path, seconds: float, jobs: int, seed: int) -> None:
    random = Random(seed)
    journal = tmp_path / "journal"
    fleet = Fleet(server, tmp_path / "workers.log")
    restarts_at = [seconds / 3, 2 * seconds / 3]
    batch = call(server, "POST", "/api/batches", {"label": "fleet"})["id"]
    wanted = [
        {"type": random.choice(["wait", "block"]), "batch": batch,
         "args": {"journal": str(journal), "seconds": duration_s(random)}}
        for _ in range(jobs)
    ]  # fmt: skip
    try:
        for _ in range(WORKERS):
            fleet.start_one()
        ids = [
            each["id"] for each in call(server, "POST", "/api/work/put", {"jobs": wanted})["jobs"]
        ]
        pause = threading.Event()  # never set: a campaign is made of waits
        began = time.monotonic()
        while (passed := time.monotonic() - began) < seconds:
            if restarts_at and passed > restarts_at[0]:
                restarts_at.pop(0)
                if len(restarts_at) % 2:
                    server.restart()
                else:
                    server.kill()
                    server.start()
            pause.wait(random.uniform(0.3, 1.0) * seconds / 15)
            fleet.kill_one(random)
            fleet.start_one()
        for id in ids:
            while call(server, "GET", f"/api/jobs/{id}?wait_s=30")["finished_at"] is None:
                pass  # the time it may take is the timeout of this test
        counts = call(server, "GET", f"/api/batches/{batch}")["counts"]
        assert counts == {"completed": jobs}, (tmp_path / "workers.log").read_text()[-4_000:]
        assert fleet.stop() == [0] * WORKERS
    finally:
        fleet.end()
    check(server, ids, runs(journal, fleet.died))
    assert len(fleet.died) > 5


def check(server: Server, ids: list[int], ran: dict[int, list[tuple[float, float, int]]]) -> None:
    again = 0
    for id in ids:
        each = ran[id]
        again += len(each) > 1
        for (_, end, fence), (start, _, later) in pairwise(each):
            assert fence < later
            assert end <= start, f"job {id} ran under {fence} and {later} at the same time"
        # What counts is the last run, and it is counted once.
        assert call(server, "GET", f"/api/jobs/{id}/result")["value"] == each[-1][2]
    assert again, "nobody was killed at work: the campaign shows nothing"


@pytest.mark.timeout(300)
def test_killed_workers_and_a_restarted_server_lose_nothing(
    new_sqlite_server: NewServer, tmp_path: Path
) -> None:
    campaign(new_sqlite_server(lease_s=LEASE_S), tmp_path, seconds=6.0, jobs=120, seed=7)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(3))
def test_killed_workers_and_a_restarted_server_lose_nothing_for_a_minute(
    new_server: NewServer, tmp_path: Path, seed: int
) -> None:
    campaign(new_server(lease_s=LEASE_S), tmp_path, seconds=60.0, jobs=2_000, seed=seed)
