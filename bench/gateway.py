"""What the gateway adds to a call: the same requests to a provider directly and through Headway.

    python -m bench.gateway [--calls 1000] [--streams 100] [--clients 1] [--dsn postgresql://...]

Both are asked in turns, in one run, over connections that are kept; who is first changes with each
turn. The provider is a process of its own on loopback, without TLS, and answers at once. The server
writes to the disk, and what a call cost is committed before its last byte is passed on. Of streams
the time to the first chunk is measured, and the gaps between chunks, which the provider sends every
10 ms. The target is 5 ms for what is added at p50.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import uvloop

from bench.http import ON_THE_DISK
from bench.peers.figures import percentile
from headway.testing import LlmUpstream

CALLS, STREAMS, CLIENTS = 1_000, 100, 1
CHUNKS, CHUNK_MS = 20, 10.0
WARM_UP = 50
P50_MS = 5.0
KEY, MODEL = "bench-key", "bench"
DIRECT, GATEWAY = "direct", "gateway"
PATH = "/chat/completions"
TEXT = "What is the answer to this question, which is about as long as a short one usually is?"


class Refused(Exception):
    """An answer that is no success, so there is nothing to be measured."""


@dataclass(slots=True)
class Timing:
    """Of one call, in ms: until the first byte of what was said, then between the chunks."""

    first_ms: float
    whole_ms: float
    gaps_ms: list[float]


@dataclass(slots=True)
class Figures:
    """Of all calls that went one way."""

    whole_ms: list[float] = field(default_factory=list)
    first_ms: list[float] = field(default_factory=list)
    gaps_ms: list[float] = field(default_factory=list)

    def add(self, timing: Timing) -> None:
        self.whole_ms.append(timing.whole_ms)
        self.first_ms.append(timing.first_ms)
        self.gaps_ms += timing.gaps_ms


Ways = dict[str, Figures]


class Connection:
    """Asks one thing after the other."""

    def __init__(self, base_url: str) -> None:
        place = urlsplit(base_url)
        self._place = (place.hostname, place.port)
        self._head = (
            f"POST {place.path}{PATH} HTTP/1.1\r\nHost: {place.netloc}\r\n"
            f"Authorization: Bearer {KEY}\r\nContent-Type: application/json\r\n"
        ).encode()
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, *, stream: bool) -> Timing:
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(*self._place)
        reader = self._reader
        said = {"model": MODEL, "messages": [{"role": "user", "content": TEXT}], "stream": stream}
        content = json.dumps(said).encode()
        began = time.perf_counter()
        self._writer.write(b"%bContent-Length: %d\r\n\r\n%b" % (self._head, len(content), content))
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if b" 200 " not in head.partition(b"\r\n")[0]:
            raise Refused(head.partition(b"\r\n")[0].decode("latin-1"))
        arrivals = await (_chunks(reader) if stream else _body(reader, head))
        gaps = [(after - before) * 1000 for before, after in pairwise(arrivals[:CHUNKS])]
        ended = time.perf_counter()
        return Timing((arrivals[0] - began) * 1000, (ended - began) * 1000, gaps)

    async def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            await self._writer.wait_closed()


async def _body(reader: asyncio.StreamReader, head: bytes) -> list[float]:
    length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
    await reader.readexactly(int(length))
    return [time.perf_counter()]


async def _chunks(reader: asyncio.StreamReader) -> list[float]:
    """When each came, up to the end of the answer."""
    arrivals: list[float] = []
    while size := int(await reader.readuntil(b"\r\n"), 16):
        data = await reader.readexactly(size + 2)
        arrivals += [time.perf_counter()] * data.count(b"data: {")
    await reader.readexactly(2)
    return arrivals


# ---------------------------------------------------------------------- measuring


async def measure(direct: str, gateway: str, calls: int, clients: int, *, stream: bool) -> Ways:
    ways = {DIRECT: Figures(), GATEWAY: Figures()}
    share = -(-calls // clients)
    turns = (_in_turns(direct, gateway, share, ways, stream=stream) for _ in range(clients))
    await asyncio.gather(*turns)
    return ways


async def _in_turns(direct: str, gateway: str, calls: int, ways: Ways, *, stream: bool) -> None:
    connections = {DIRECT: Connection(direct), GATEWAY: Connection(gateway)}
    try:
        for number in range(calls):
            order = (DIRECT, GATEWAY) if number % 2 else (GATEWAY, DIRECT)
            for way in order:
                ways[way].add(await connections[way].ask(stream=stream))
    finally:
        for each in connections.values():
            await each.close()


@contextmanager
def served(directory: Path, provider: str, dsn: str | None) -> Iterator[str]:
    """A server with one channel; where its gateway is."""
    settings = directory / "headway.toml"
    settings.write_text(
        f'[channel.bench]\nmodel = "{MODEL}"\nbase_url = "{provider}"\napi_key = "{KEY}"\n'
        "price = {input_per_1k = 0.5, output_per_1k = 1.5}\n",
        "utf-8",
    )
    command = [sys.executable, "-m", "headway", "serve", "--port", "0", "--log-level", "warning",
               "--config", str(settings), "--data", str(directory / "data")]  # fmt: skip
    command += [] if dsn is None else ["--dsn", dsn]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1] + "/v1"
        finally:
            process.terminate()


async def measure_all(
    calls: int, streams: int, clients: int, provider: LlmUpstream, gateway: str
) -> tuple[Ways, Ways]:
    await measure(provider.url, gateway, WARM_UP, clients, stream=False)
    plain = await measure(provider.url, gateway, calls, clients, stream=False)
    return plain, await measure(provider.url, gateway, streams, clients, stream=True)


# ---------------------------------------------------------------------- reporting


def ranks(values: Sequence[float]) -> dict[str, float]:
    return {"p50": percentile(values, 0.5), "p99": percentile(values, 0.99)}


def compared(direct: Sequence[float], gateway: Sequence[float]) -> dict[str, dict[str, float]]:
    found = {DIRECT: ranks(direct), GATEWAY: ranks(gateway)}
    found["added"] = {name: found[GATEWAY][name] - found[DIRECT][name] for name in found[DIRECT]}
    return found


def report(plain: Ways, streamed: Ways) -> dict[str, dict[str, dict[str, float]]]:
    return {
        "plain_ms": compared(plain[DIRECT].whole_ms, plain[GATEWAY].whole_ms),
        "first_chunk_ms": compared(streamed[DIRECT].first_ms, streamed[GATEWAY].first_ms),
        "chunk_gap_ms": compared(streamed[DIRECT].gaps_ms, streamed[GATEWAY].gaps_ms),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--streams", type=int, default=STREAMS)
    parser.add_argument("--clients", type=int, default=CLIENTS, help="that ask at the same time")
    parser.add_argument("--dsn", help="a PostgreSQL database instead of SQLite")
    given = parser.parse_args()
    said = {"latency_ms": 0, "jitter_ms": 0, "chunks": CHUNKS, "chunk_ms": CHUNK_MS}
    with (
        tempfile.TemporaryDirectory(dir=ON_THE_DISK) as directory,
        LlmUpstream(keys=(KEY,), **said) as provider,
        served(Path(directory), provider.url, given.dsn) as gateway,
    ):
        measured = measure_all(given.calls, given.streams, given.clients, provider, gateway)
        found = report(*uvloop.run(measured))
    for name, figures in found.items():
        for way, values in figures.items():
            print(f"{name:16} {way:8} p50 {values['p50']:7.2f}   p99 {values['p99']:7.2f}")
    added = max(found[name]["added"]["p50"] for name in ("plain_ms", "first_chunk_ms"))
    verdict = "reached" if added < P50_MS else "missed"
    print(f"added at p50: {added:.2f} ms, of at most {P50_MS:g} ms: {verdict}")
    print(json.dumps({"clients": given.clients, **found}))


if __name__ == "__main__":
    main()
