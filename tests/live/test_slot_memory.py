"""Any number of IP buckets may pass through the fair queue: nothing of them stays behind, in memory
or in the store.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest
import uvloop

from tests.hands.kit import eventually
from tests.live.slot_clients import Caller, SlotClient, config_file, flush, stats
from tests.servers import NewServer, Server

CONNECTIONS = 32
HOSTS = 10
FORGOTTEN_BYTES = 250.0  # an IP that is kept takes more than twice as much


async def pass_through(url: str, first: int, count: int) -> None:
    """Each IP takes one slot and gives it back."""
    numbers = iter(range(first, first + count))

    async def one_after_the_other() -> None:
        async with Caller(url) as caller:
            for number in numbers:
                client = SlotClient(url, f"h{number % HOSTS}.example.com", f"ip {number}")
                client.caller = caller
                await client.release((await client.acquire()).slot_token)

    async with asyncio.TaskGroup() as group:
        for _ in range(CONNECTIONS):
            group.create_task(one_after_the_other())


def rows_in(server: Server) -> dict[str, int]:
    with closing(sqlite3.connect(f"file:{server.data / 'headway.db'}?mode=ro", uri=True)) as db:
        return {
            table: db.execute(f"select count(*) from {table}").fetchone()[0]
            for table in ("slots", "gates")
        }


def upstreams_of(server: Server) -> list[Any]:
    with urllib.request.urlopen(f"{server.url}/api/upstreams", timeout=30) as answer:
        found: list[Any] = json.load(answer)["items"]
        return found


def all_is_forgotten(server: Server) -> bool:
    """After a sweep. The last of them cool down for a second, and are kept until then."""
    flush(server.url)
    return not any(rows_in(server).values()) and not upstreams_of(server)


def flood(server: Server, rounds: int, each_round: int) -> list[int]:
    """How much memory the server had after each round."""
    process = psutil.Process(server.pid)
    resident: list[int] = []
    for number in range(rounds):
        uvloop.run(pass_through(server.url, number * each_round, each_round))
        assert rows_in(server)["gates"] > 0, "there was nothing to forget"
        eventually(lambda: all_is_forgotten(server))
        assert set(stats(server.url)["sessions"].values()) == {0}
        resident.append(process.memory_info().rss)
    assert stats(server.url)["counts"]["released"] == rounds * each_round
    return resident


def new_queue(new_server: NewServer, directory: Path) -> Server:
    """With a rest for each IP, which has to be remembered for as long as it lasts."""
    config = config_file(directory, maxSlotPerHost=CONNECTIONS, ipCooldownSeconds=1)
    return new_server(fairqueue=config)


def test_thousands_of_ips_leave_nothing_behind(
    new_sqlite_server: NewServer, tmp_path: Path
) -> None:
    flood(new_queue(new_sqlite_server, tmp_path), rounds=2, each_round=2_000)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_100_000_ips_leave_nothing_behind(new_sqlite_server: NewServer, tmp_path: Path) -> None:
    resident = flood(new_queue(new_sqlite_server, tmp_path), rounds=4, each_round=25_000)
    # The first round takes what the others use again.
    assert (resident[-1] - resident[0]) / 75_000 < FORGOTTEN_BYTES, resident
