"""A crowd behind one IP gets what every other IP gets, as the upstream itself sees it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
import uvloop

from tests.live.slot_clients import Caller, SlotClient, config_file, pause
from tests.live.slot_upstream import Upstream
from tests.servers import NewServer

SLOTS, SLOTS_PER_IP = 8, 4
HOLD_S = 0.05
CROWD, OTHERS = 100, 20  # clients of the one IP; other IPs, with 2 clients each
WARM_UP_S, MOST_S = 2.0, 40.0
OFF = 0.1  # of an equal share


async def always_wants_more(client: SlotClient, at: Upstream, over: asyncio.Event) -> None:
    visit = {"ip": client.ip, "name": "", "hold_s": HOLD_S}
    async with client.caller, Caller(at.url) as upstream:
        while not over.is_set():
            grant = await client.acquire()
            await upstream.post("/", visit)
            await client.release(grant.slot_token)


async def compete(url: str, least_s: float) -> tuple[Upstream, list[float], float]:
    """What the upstream saw once all had settled: the slot-seconds of each IP as parts of an equal
    share, and how many places were taken on average.

    A slot is held from its grant to its release, and the upstream sees only what is between. On a
    busy machine the difference is as long as the visit itself, now for this IP and now for that; it
    is the same for all after a while, so this looks on for longer if need be.
    """
    ips = ["203.0.113.1/32"] * CROWD
    ips += [f"198.51.100.{number}/32" for number in range(OTHERS) for _ in range(2)]
    over = asyncio.Event()
    async with Upstream() as upstream, asyncio.TaskGroup() as group:
        for ip in ips:
            client = SlotClient(url, "files.example.com", ip)
            group.create_task(always_wants_more(client, upstream, over))
        await pause(WARM_UP_S)
        begin = time.monotonic()
        await pause(least_s)
        while True:
            seen_s = time.monotonic() - begin
            used = upstream.slot_seconds(begin, begin + seen_s)
            shares = sorted(each * len(used) / sum(used.values()) for each in used.values())
            if seen_s > MOST_S or (shares[0] >= 1 - OFF and shares[-1] <= 1 + OFF):
                break
            await pause(1.0)
        over.set()
    return upstream, shares, sum(used.values()) / seen_s


@pytest.mark.timeout(180)
@pytest.mark.parametrize("least_s", [3.0, pytest.param(10.0, marks=pytest.mark.soak)])
def test_every_ip_has_the_same_share_of_slot_seconds(
    new_sqlite_server: NewServer, tmp_path: Path, least_s: float
) -> None:
    config = config_file(tmp_path, maxSlotPerHost=SLOTS, maxSlotPerIp=SLOTS_PER_IP)
    server = new_sqlite_server(fairqueue=config)

    upstream, shares, taken = uvloop.run(compete(server.url, least_s))

    assert len(shares) == 1 + OTHERS
    assert shares[0] >= 1 - OFF, shares
    assert shares[-1] <= 1 + OFF, shares
    assert upstream.most() <= SLOTS
    assert upstream.most_of_an_ip() <= SLOTS_PER_IP
    assert taken > SLOTS / 4, "there was nothing to share: most of the time nobody was there"
