"""Clients that crash, stay too long, hang up and lie, and a service that is killed: the upstream
never sees more than the slots there are, but for holders that outlived their lease, and those the
service counts as exactly as they can be counted from outside.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.hands.kit import eventually
from tests.live.slot_clients import SlotClient, config_file, pause, stats
from tests.live.slot_rogues import HOST, TURN_S, Rogue, Scene
from tests.live.slot_upstream import INF, Span, Upstream, most_at_once
from tests.servers import NewServer, Server

SLOTS, SLOTS_PER_IP = 8, 2
ROGUES = 40
LATER_S = 1.5  # for a busy machine


def told(directory: Path, lease_s: int) -> Path:
    return config_file(
        directory, maxSlotPerHost=SLOTS, maxSlotPerIp=SLOTS_PER_IP, zombieTimeoutSeconds=lease_s,
        pollWindowMs=400, claimWindowMs=500, sessionIdleSeconds=2, maxWaitMs=6_000,
        maxWaitersPerHost=20, maxWaitersPerIp=4, minSlotHoldMs=30,
    )  # fmt: skip


# ---------------------------------------------------------------------- the campaign


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done and seen, what the service said when all was over, and after how long all of
    its slots could be taken again.
    """

    scene: Scene
    said: dict[str, Any]
    full_after_s: float


async def campaign(
    server: Server, lease_s: float, seconds: float, kills: int, seed: int
) -> Outcome:
    async with Upstream() as upstream:
        scene = Scene(server.url, upstream, lease_s, asyncio.Event(), [], Counter())
        async with asyncio.TaskGroup() as group:
            for number in range(ROGUES):
                group.create_task(Rogue(scene, number, seed).live())
            await kill_again_and_again(server, seconds, kills, Random(seed))
            scene.over.set()  # whoever holds a slot now drops all, and is never heard of again
            ended_at = time.monotonic()
        said = await asyncio.to_thread(stats, server.url)
        await take_all(server.url)
        return Outcome(scene, said, time.monotonic() - ended_at)


async def kill_again_and_again(server: Server, seconds: float, kills: int, random: Random) -> None:
    ends_at = time.monotonic() + seconds
    for left in range(kills, 0, -1):
        share_s = (ends_at - time.monotonic()) / left
        await pause(random.uniform(0.4, 0.9) * share_s)
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
    await pause(ends_at - time.monotonic())


async def take_all(url: str) -> None:
    """As many clients as there are slots, until all of them hold one at the same time. Nobody holds
    one for long, so that no lease ends meanwhile.
    """
    held = 0
    full = asyncio.Event()

    async def hold(number: int) -> None:
        nonlocal held
        client = SlotClient(url, HOST, f"198.51.100.{number}/32")
        async with client.caller:
            while not full.is_set():
                grant = await client.acquire()
                held += 1
                if held == SLOTS:
                    full.set()
                await pause(0.3, full)
                held -= 1
                await client.release(grant.slot_token)

    async with asyncio.TaskGroup() as group:
        for number in range(SLOTS):
            group.create_task(hold(number))


# ---------------------------------------------------------------------- what came of it


def valid_spans(scene: Scene) -> dict[str, list[Span]]:
    """By IP, when each visit was there while its lease was surely not over."""
    ends = {each.name: each.ends_from - TURN_S for each in scene.holdings}
    found: dict[str, list[Span]] = defaultdict(list)
    for each in scene.upstream.visits:
        found[each.ip].append((each.began_at, min(each.ended_at, ends[each.name])))
    return found


def check_slots(scene: Scene) -> None:
    by_ip = valid_spans(scene)
    most = most_at_once(span for spans in by_ip.values() for span in spans)
    assert SLOTS / 2 < most <= SLOTS
    assert max(most_at_once(spans) for spans in by_ip.values()) <= SLOTS_PER_IP


def check_counts(outcome: Outcome) -> None:
    holdings = outcome.scene.holdings
    over = [each for each in holdings if each.surely_over]
    unsure = [each for each in holdings if not each.surely_over and not each.surely_in_time]
    overshoot = outcome.said["overshoot"]
    assert [each["upstream"] for each in overshoot] == [HOST]
    outlived, reclaimed = overshoot[0]["outlived"], overshoot[0]["reclaimed"]
    # Nobody is unsure, unless this machine stood still for as long as the clients keep clear.
    assert len(over) <= outlived <= len(over) + len(unsure), (len(over), unsure)
    assert over
    # Each lease that has ended without a word is remembered until its holder is heard of.
    assert outcome.said["sessions"]["reclaimed"] == reclaimed - outlived


def check_nothing_leaks(server: Server, outcome: Outcome) -> None:
    """Whoever waited or held a slot is forgotten; each lease that nobody gave back is counted."""

    def nobody_is_there() -> bool:
        said = stats(server.url)["sessions"]
        return not (said["waiting"] or said["granted"] or said["absent"])

    eventually(nobody_is_there)
    holdings = outcome.scene.holdings
    silent = sum(1 for each in holdings if each.said_from == INF)
    over = sum(1 for each in holdings if each.surely_over)
    assert stats(server.url)["overshoot"][0]["reclaimed"] >= silent + over


def run(server: Server, lease_s: float, seconds: float, kills: int, seed: int) -> Outcome:
    outcome = asyncio.run(campaign(server, lease_s, seconds, kills, seed))
    check_slots(outcome.scene)
    check_counts(outcome)
    check_nothing_leaks(server, outcome)
    assert outcome.full_after_s <= lease_s + LATER_S, "slots are lost, or come back too late"
    return outcome


def test_what_ends_when_another_begins_is_not_there_at_once() -> None:
    assert most_at_once([]) == 0
    assert most_at_once([(0.0, 1.0), (1.0, 2.0), (1.5, 1.5)]) == 1
    assert most_at_once([(0.0, 3.0), (1.0, 2.0), (1.5, 4.0), (3.0, 4.0)]) == 3


def test_rogues_and_kills_never_exceed_the_slots_nor_lose_one(
    new_sqlite_server: NewServer, tmp_path: Path
) -> None:
    server = new_sqlite_server(fairqueue=told(tmp_path, 2))
    run(server, lease_s=2.0, seconds=8.0, kills=2, seed=5)


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(2))
def test_rogues_and_kills_never_exceed_the_slots_nor_lose_one_for_a_minute(
    new_server: NewServer, tmp_path: Path, seed: int
) -> None:
    server = new_server(fairqueue=told(tmp_path, 3))
    outcome = run(server, lease_s=3.0, seconds=60.0, kills=8, seed=seed)
    assert outcome.scene.upstream.most() > SLOTS, "nobody was ever there beside the next holder"
