"""How soon a freed slot reaches somebody who waits for it, over HTTP.

    python -m bench.slot_latency [--waiters 200] [--releases 500] [--rounds 5] [--dsn postgresql://...]

All clients wait at one host with 4 slots, each at an IP bucket of its own and with a request that
is open. Slots are released one after the other; whoever had one waits again. The time runs until
the next holder has read its `granted`, from the moment that the release was sent, and from the
moment that it was answered (below 0: the grant came first). The server writes to the disk, and
commits a release and the grant that follows from it before anybody hears of them. The targets are
20 ms for p50 and 100 ms for p99; if clients asked every 500 ms, they would be 250 ms and 495 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import uvloop

from bench.http import ON_THE_DISK
from bench.peers.figures import percentile
from bench.peers.leases import CAP
from bench.peers.load import Watch
from bench.slots_http import (
    ACQUIRE,
    RELEASE,
    Answer,
    Connection,
    Refused,
    headway_server,
    hosts_named,
)

WAITERS, RELEASES, ROUNDS = 200, 500, 5
PATIENCE_S = 60.0  # for one round
P50_MS, P99_MS = 20.0, 100.0

_answer = msgspec.json.Decoder(Answer).decode


@dataclass(slots=True)
class Latencies:
    since_sent_ms: list[float] = field(default_factory=list)
    since_answered_ms: list[float] = field(default_factory=list)
    polled: int = 0  # grants that were heard of by a request that came after the release

    def add(self, more: Latencies) -> None:
        self.since_sent_ms += more.since_sent_ms
        self.since_answered_ms += more.since_answered_ms
        self.polled += more.polled


class Client:
    """Waits for a slot, and puts itself into `granted` when it has one."""

    def __init__(
        self, host: dict[str, str], number: int, connection: Connection,
        granted: asyncio.Queue[Client],
    ) -> None:  # fmt: skip
        self._about = {**host, "ipBucket": f"10.1.{number // 256}.{number % 256}/32"}
        self._connection = connection
        self._granted = granted
        self._slot = ""
        self.asked_at = self.heard_at = 0.0  # of the request that was answered with a grant

    async def wait(self) -> None:
        body: dict[str, Any] = self._about
        while True:
            self.asked_at = time.perf_counter()
            said = _answer(await self._connection.post(ACQUIRE, body))
            if said.result == "granted":
                break
            if said.result not in ("pending", "timeout"):
                raise Refused(f"acquire was answered with {said.result!r}")
            body = {"queryToken": said.query_token} if said.query_token else self._about
        self.heard_at = time.perf_counter()
        self._slot = said.slot_token
        self._granted.put_nowait(self)

    async def release(self) -> None:
        if _answer(await self._connection.post(RELEASE, {"slotToken": self._slot})).result != "ok":
            raise Refused("release was not answered with ok")

    def close(self) -> None:
        self._connection.close()


async def measure(
    address: str, host: dict[str, str], waiters: int, releases: int, slots: int = CAP
) -> Latencies:
    """At a host of a server where nobody else is, and that has so many slots."""
    place, loop = urlsplit(address), asyncio.get_running_loop()
    granted: asyncio.Queue[Client] = asyncio.Queue()
    clients: list[Client] = []
    try:
        for number in range(waiters + slots):
            _, connection = await loop.create_connection(
                lambda: Connection(place.netloc), place.hostname, place.port
            )
            clients.append(Client(host, number, connection, granted))
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            waits = {client: group.create_task(client.wait()) for client in clients}
            holders = [await granted.get() for _ in range(slots)]
            found = Latencies()
            for _ in range(releases):
                await _pass_on(holders, granted, found)
                last = holders.pop()
                waits[last] = group.create_task(last.wait())
            for each in waits.values():
                each.cancel()
        return found
    finally:
        for client in clients:
            client.close()


async def _pass_on(holders: list[Client], granted: asyncio.Queue[Client], found: Latencies) -> None:
    """The first gives its slot up, the next gets it; the first is the last then."""
    first = holders.pop(0)
    sent_at = time.perf_counter()
    await first.release()
    answered_at = time.perf_counter()
    following = await granted.get()
    holders += [following, first]
    found.since_sent_ms.append((following.heard_at - sent_at) * 1000)
    found.since_answered_ms.append((following.heard_at - answered_at) * 1000)
    found.polled += following.asked_at > sent_at


def line(name: str, values: Iterable[float]) -> str:
    ranked = sorted(values)
    shown = (f"p{round(share * 100)} {percentile(ranked, share):7.2f} ms" for share in (0.5, 0.99))
    return f"{name:28} {'   '.join(shown)}   most {ranked[-1]:7.2f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--waiters", type=int, default=WAITERS)
    parser.add_argument("--releases", type=int, default=RELEASES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--dsn", help="a PostgreSQL database instead of SQLite")
    given = parser.parse_args()
    found, hosts = Latencies(), hosts_named(given.rounds)
    with (
        tempfile.TemporaryDirectory(dir=ON_THE_DISK) as directory,
        headway_server(Path(directory), given.dsn) as served,
    ):
        for number, host in enumerate(hosts):
            watch = Watch((served.pid,))
            some = uvloop.run(measure(served.address, host, given.waiters, given.releases))
            others = watch.shares().get("foreign", 0.0)
            print(line(f"round {number + 1}, from its sending", some.since_sent_ms),
                  f"  others used {others:.0%} of the machine", flush=True)  # fmt: skip
            found.add(some)
    print(line("from the release's sending", found.since_sent_ms))
    print(line("from the release's answer", found.since_answered_ms))
    print(f"{found.polled} of {len(found.since_sent_ms)} grants were heard of by a later request")
    good = percentile(found.since_sent_ms, 0.5) <= P50_MS
    good = good and percentile(found.since_sent_ms, 0.99) <= P99_MS
    print(f"at most {P50_MS:g} ms for p50 and {P99_MS:g} ms for p99: {'yes' if good else 'NO'}")


if __name__ == "__main__":
    main()
