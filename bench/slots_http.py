"""Slots over HTTP: what asks, and the bare exchange that stands beside the server.

    python -m bench.slots_http bare PORT                    two routes that answer the same at once
    python -m bench.slots_http drive ADDRESS HOSTS SECONDS  64 clients; prints one line of JSON

A pair is an acquire, polled again as long as it is pending, and a release. Each client has one
connection that it keeps and an IP bucket of its own. Both servers run on uvicorn with uvloop and
httptools in one process, and get the very same requests.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import sys
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import msgspec
import psutil
import uvicorn
import uvloop
from fastapi import FastAPI
from pydantic import BaseModel

from bench.http import free_port, serving
from bench.peers.leases import CAP, CLIENTS
from bench.slots_drive import PATIENCE_S, Run, Tally, all_of, failed, warm_up_s

ACQUIRE, RELEASE = "/api/v0/fairqueue/acquire", "/api/v0/fairqueue/release"
# As many may wait as there are clients: what is measured is slots, not how waiters are turned away.
CONFIG = {
    "auth": {"enabled": False},
    "fairQueue": {"maxSlotPerHost": CAP, "maxSlotPerIp": CAP, "maxWaitersPerHost": 0},
}
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)

_encode = msgspec.json.encode


class Answer(msgspec.Struct, rename="camel"):
    result: str
    slot_token: str = ""
    query_token: str = ""


_answer = msgspec.json.Decoder(Answer)


class Refused(Exception):
    """The server answered something that no client of it should ever see here."""


class Connection(asyncio.Protocol):
    """One request at a time on a connection that is kept."""

    def __init__(self, host: str) -> None:
        self._head = f" HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n".encode()
        self._loop = asyncio.get_running_loop()
        self._transport: Any = None
        self._received = b""
        self._waiting: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def post(self, path: str, body: dict[str, Any]) -> Awaitable[bytes]:
        content = _encode(body)
        self._waiting = self._loop.create_future()
        self._transport.write(
            b"POST %b%bContent-Length: %d\r\n\r\n%b"
            % (path.encode(), self._head, len(content), content)
        )
        return self._waiting

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        length = LENGTH.search(self._received, 0, end + 2) if end >= 0 else None
        if end >= 0 and length is None:
            self._fail(Refused("an answer without a length"))
        elif length is not None and len(self._received) >= end + 4 + int(length[1]):
            whole, self._received = self._received, b""
            if whole[9:12] == b"200":
                self._settle(whole[end + 4 :])
            else:
                self._fail(Refused(whole[:end].split(b"\r\n")[0].decode("latin-1")))

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(error or ConnectionResetError("the server has closed the connection"))

    def close(self) -> None:
        self._transport.close()

    def _settle(self, body: bytes) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(body)

    def _fail(self, error: Exception) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error)


class Client:
    """An IP bucket that wants slots."""

    def __init__(self, number: int, hosts: list[dict[str, str]], connection: Connection) -> None:
        self._bucket = f"10.0.{number // 256}.{number % 256}/32"
        self._hosts = hosts
        self._connection = connection
        self.asked = 0  # acquires, the polls included

    async def acquire(self, host: int) -> Answer:
        """Ends with a slot. Who is told to go away begins again, as a slot handler's clients do."""
        while True:
            body = {**self._hosts[host], "ipBucket": self._bucket, "now": _now_ms()}
            answer = await self._ask(body)
            while answer.result == "pending":
                answer = await self._ask({"queryToken": answer.query_token, "now": _now_ms()})
            if answer.result == "granted":
                return answer
            if answer.result != "timeout":
                raise Refused(f"acquire was answered with {answer.result!r}")

    async def _ask(self, body: dict[str, Any]) -> Answer:
        self.asked += 1
        return _answer.decode(await self._connection.post(ACQUIRE, body))

    async def release(self, host: int, slot: str) -> None:
        now = _now_ms()
        body = {**self._hosts[host], "ipBucket": self._bucket, "slotToken": slot}
        body |= {"hitUpstreamAtMs": now, "now": now}  # type: ignore[dict-item]
        said = _answer.decode(await self._connection.post(RELEASE, body))
        if said.result != "ok":
            raise Refused(f"release was answered with {said.result!r}")


def _now_ms() -> int:
    return int(time.time() * 1000)


def hosts_named(count: int) -> list[dict[str, str]]:
    names = [f"h{number}.slots.example" for number in range(count)]
    return [
        {"hostname": name, "hostnameHash": hashlib.sha256(name.encode()).hexdigest()}
        for name in names
    ]


async def drive(address: str, hosts: int, seconds: float, clients: int = CLIENTS) -> Run:
    place = urlsplit(address)
    loop, named = asyncio.get_running_loop(), hosts_named(hosts)
    connections = [
        (await loop.create_connection(lambda: Connection(place.netloc), place.hostname, place.port))
        for _ in range(clients)
    ]
    everybody = [
        Client(number, named, connection) for number, (_, connection) in enumerate(connections)
    ]
    try:
        await _loop_for(warm_up_s(seconds), hosts, everybody)
        return await _loop_for(seconds, hosts, everybody)
    finally:
        for _, connection in connections:
            connection.close()


async def _loop_for(seconds: float, hosts: int, everybody: list[Client]) -> Run:
    tally = Tally(hosts, len(everybody))
    asked = sum(client.asked for client in everybody)
    cpu_s, end = time.process_time(), time.perf_counter() + seconds

    async def loop(number: int) -> None:
        rng, client = Random(number), everybody[number]
        while (asked_at := time.perf_counter()) < end:
            host = rng.randrange(hosts)
            answer = await client.acquire(host)
            tally.taken(host, time.perf_counter() - asked_at)
            await asyncio.sleep(0)
            tally.given(host)
            await client.release(host, answer.slot_token)
            if time.perf_counter() < end:
                tally.pairs[number] += 1

    async with asyncio.timeout(seconds + PATIENCE_S):
        await all_of(loop, len(everybody))
    run = tally.run(seconds, time.process_time() - cpu_s)
    asked = sum(client.asked for client in everybody) - asked
    return run | {"asked": asked / max(1, len(tally.waits_s))}


# ---------------------------------------------------------------------- what answers


class AcquireBody(BaseModel):
    hostname: str = ""
    hostnameHash: str = ""  # noqa: N815 - as it is sent
    ipBucket: str = ""  # noqa: N815
    queryToken: str = ""  # noqa: N815
    now: int = 0


class ReleaseBody(AcquireBody):
    slotToken: str  # noqa: N815
    hitUpstreamAtMs: int = 0  # noqa: N815


bare = FastAPI()
SIGNED = "0123456789abcdefghijkl"  # with the numbers, as long as the real tokens are
GRANTED = {
    "result": "granted",
    "slotToken": f"100000.100001.{SIGNED}",
    "queryToken": f"100000.{SIGNED}",
}
OK = {"result": "ok"}


@bare.post(ACQUIRE)
async def acquire(body: AcquireBody) -> dict[str, str]:  # noqa: ARG001 - it is validated
    return GRANTED


@bare.post(RELEASE)
async def release(body: ReleaseBody) -> dict[str, str]:  # noqa: ARG001
    return OK


@dataclass(frozen=True, slots=True)
class Served:
    address: str
    process: psutil.Process

    @property
    def pid(self) -> int:
        return int(self.process.pid)

    def cpu_s(self) -> float:
        used = self.process.cpu_times()
        return float(used.user + used.system)


@contextmanager
def bare_server() -> Iterator[Served]:
    port = free_port()
    with serving([sys.executable, "-m", "bench.slots_http", "bare", str(port)], port) as address:
        yield Served(address, _process_at(port))


@contextmanager
def headway_server(directory: Path, dsn: str | None = None) -> Iterator[Served]:
    """A real `headway serve` on a store of its own."""
    port = free_port()
    config = directory / f"fairqueue-{port}.json"
    config.write_text(json.dumps(CONFIG), "utf-8")
    command = [sys.executable, "-m", "headway", "serve", "--port", str(port)]
    command += ["--fairqueue", str(config), "--log-level", "warning"]
    command += ["--data", str(directory / f"served-{port}")]
    if dsn is not None:
        command += ["--dsn", dsn]
    with serving(command, port) as address:
        yield Served(address, _process_at(port))


def _process_at(port: int) -> psutil.Process:
    """The child of ours that was told of this port."""
    return next(each for each in psutil.Process().children() if str(port) in each.cmdline())


def main() -> None:
    match sys.argv[1:]:
        case ["bare", port]:
            uvicorn.run(
                bare, port=int(port), loop="uvloop", http="httptools", access_log=False,
                log_level="error",
            )  # fmt: skip
        case ["drive", address, hosts, seconds]:
            try:
                run = uvloop.run(drive(address, int(hosts), float(seconds)))
            except Exception as error:
                run = failed(error)
            print(json.dumps(run))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
