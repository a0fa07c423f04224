"""Two servers on one PostgreSQL: what it costs to ask the one that follows, and how soon it leads.

    python -m bench.together [--seconds 5] [--rounds 3] [--take-overs 5]

64 clients take and give back slots at 100 hosts (as in `bench.slots`), at the server that leads and
at the one that follows, in turns; and 64 clients put jobs, which the follower stores by itself.
Then the leader is killed again and again as if it were on another machine, where nobody can see
that it is gone, and stopped with SIGSTOP: the time runs until the other one says that it leads.
PostgreSQL syncs to disk. The last line is JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import tempfile
import time
from pathlib import Path

import uvloop

from bench.http import ON_THE_DISK
from bench.peers.leases import CLIENTS
from bench.peers.postgres_server import postgres_server
from bench.slots_http import CONFIG, Connection, drive
from tests.hands.kit import eventually
from tests.together.group import Group, group_on, role_of

HOSTS = 100
JOB = {"type": "nobody-knows", "args": {"number": 1}, "priority": 4}


async def put(address: str, seconds: float) -> float:
    """Jobs that were stored in a second."""
    host, _, port = address.removeprefix("http://").partition(":")
    loop = asyncio.get_running_loop()
    made = [
        (await loop.create_connection(lambda: Accepting(f"{host}:{port}"), host, int(port)))[1]
        for _ in range(CLIENTS)
    ]
    end, stored = time.perf_counter() + seconds, 0

    async def client(connection: Connection) -> None:
        nonlocal stored
        while time.perf_counter() < end:
            await connection.post("/api/jobs", JOB)
            stored += 1

    await asyncio.gather(*map(client, made))
    for each in made:
        each.close()
    return stored / seconds


class Accepting(Connection):
    """For answers that are 202."""

    def data_received(self, data: bytes) -> None:
        super().data_received(data.replace(b"HTTP/1.1 202", b"HTTP/1.1 200", 1))


def killed(group: Group) -> float:
    leader = group.the_leader()
    [other] = [each for each in group.servers if each is not leader]
    group.as_if_elsewhere()
    began = time.perf_counter()
    leader.kill()
    eventually(lambda: role_of(other.url) == "running", 30.0)
    took_s = time.perf_counter() - began
    leader.start()
    return took_s


def stopped(group: Group) -> float:
    leader = group.the_leader()
    [other] = [each for each in group.servers if each is not leader]
    began = time.perf_counter()
    os.kill(leader.pid, signal.SIGSTOP)
    eventually(lambda: role_of(other.url) == "running", 30.0)
    took_s = time.perf_counter() - began
    os.kill(leader.pid, signal.SIGCONT)
    eventually(lambda: role_of(leader.url) == "elsewhere", 30.0)
    return took_s


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--take-overs", type=int, default=5)
    told = parser.parse_args()
    figures: dict[str, object] = {}
    with (
        tempfile.TemporaryDirectory(dir=ON_THE_DISK) as own,
        postgres_server(Path(own)) as database,
    ):
        file = Path(own) / "config.json"
        file.write_text(json.dumps(CONFIG))
        dsn = f"{database.url}?schema=together"
        with group_on(dsn, database.url, "together", 2, fairqueue=file) as group:
            leader, [follower] = group.the_leader(), group.followers()
            places = {"leads": leader.url, "follows": follower.url}
            slots: dict[str, list[float]] = {name: [] for name in places}
            puts: dict[str, list[float]] = {name: [] for name in places}
            for _ in range(told.rounds):
                for name, url in places.items():
                    run = uvloop.run(drive(url, HOSTS, told.seconds))
                    slots[name].append(float(run["figure"]))
                    puts[name].append(uvloop.run(put(url, told.seconds)))
            for what, found in (("slot pairs", slots), ("jobs stored", puts)):
                ratio = statistics.median(
                    f / s for f, s in zip(found["follows"], found["leads"], strict=True)
                )
                mean = {name: round(statistics.median(each)) for name, each in found.items()}
                print(f"{what:>12} a second: {mean}, through the follower {ratio:.2f}×")  # noqa: RUF001
                figures[what.replace(" ", "_")] = {**mean, "ratio": round(ratio, 2)}
            for how in (killed, stopped):
                took = [round(how(group), 2) for _ in range(told.take_overs)]
                print(f"{how.__name__:>12}: another leads after {took} s")
                figures[f"{how.__name__}_s"] = took
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
