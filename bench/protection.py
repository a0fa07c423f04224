"""What a full queue does to online calls, over real HTTP: a server, a provider with a limiter in a
process of its own, a crowd of online callers, and a batch that never ends.

    python -m bench.protection [--scenario headers,documented,unknown] [--measure 240]

Each scenario has the same online calls twice: alone, and beside a full queue. Judged by the
provider's own log: the latency of online calls as their callers see it, how many of them were
refused, and how much of what they left over the queue has used.

- headers: the provider says what is left (`x-ratelimit-*`).
- documented: it says nothing, but the channel was told a limit (`rpm`).
- unknown: nobody knows the limit; it is learned from the first 429 on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from bench.http import free_port
from bench.peers.figures import percentile
from headway.testing import LlmUpstream

RPM = 900
ONLINE_RPM = 360.0
LATENCY_MS, JITTER_MS = 200.0, 60.0
KEY = "bench-key"
MODEL = "bench"
P99_RATIO, EXTRA_REFUSED = 1.1, 0.01
LEAST_USED = {"headers": 0.95, "documented": 0.85, "unknown": 0.85}
WARM_S = {"headers": 45.0, "documented": 150.0, "unknown": 900.0}
LINES = 40_000


@dataclass(slots=True)
class Online:
    latencies_ms: list[float]
    refused: int
    sent: int

    @property
    def refused_share(self) -> float:
        return self.refused / max(1, self.sent)


@contextmanager
def served(directory: Path, provider: str, *, documented: bool) -> Iterator[str]:
    port = free_port()
    settings = directory / "headway.toml"
    lines = ["[channel.bench]", f'model = "{MODEL}"', f'base_url = "{provider}"',
             f'api_key = "{KEY}"']  # fmt: skip
    if documented:
        lines.append(f"rpm = {RPM}")
    settings.write_text("\n".join(lines), "utf-8")
    command = [sys.executable, "-m", "headway", "serve", "--port", str(port)]
    command += ["--config", str(settings), "--data", str(directory / "data")]
    command += ["--log-level", "warning"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


async def call(client: httpx2.AsyncClient, number: int, seen: Online) -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": f"online {number}"}]}
    began = time.perf_counter()
    answer = await client.post("/v1/chat/completions", json=body)
    seen.sent += 1
    if answer.status_code == 429:
        seen.refused += 1
    else:
        answer.raise_for_status()
        seen.latencies_ms.append(1000 * (time.perf_counter() - began))


async def crowd(address: str, seconds: float, seed: int) -> Online:
    """Callers that come by chance, at the same moments for the same seed."""
    rng = random.Random(seed)
    seen = Online([], 0, 0)
    under_way: set[asyncio.Task[None]] = set()
    async with httpx2.AsyncClient(base_url=address, timeout=60, trust_env=False) as client:
        began, at, number = time.perf_counter(), 0.0, 0
        while True:
            at += rng.expovariate(ONLINE_RPM / 60)
            if at >= seconds:
                break
            await asyncio.sleep(max(0.0, began + at - time.perf_counter()))
            number += 1
            task = asyncio.create_task(call(client, number, seen))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        await asyncio.gather(*under_way)
    return seen


def enqueue(address: str) -> None:
    """A batch that is longer than the measurement."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": "line"}]}
    lines = (
        json.dumps(
            {"custom_id": str(n), "method": "POST", "url": "/v1/chat/completions", "body": body}
        )
        for n in range(LINES)
    )
    with httpx2.Client(base_url=address, timeout=120, trust_env=False) as client:
        files = {"file": ("lines.jsonl", "\n".join(lines).encode())}
        file = client.post("/v1/files", files=files, data={"purpose": "batch"}).raise_for_status()
        about = {"input_file_id": file.json()["id"], "endpoint": "/v1/chat/completions",
                 "completion_window": "24h"}  # fmt: skip
        client.post("/v1/batches", json=about).raise_for_status()


def left_over(calls: list[dict[str, Any]], since: float, until: float) -> tuple[float, float]:
    """How many calls online ones left over of the limit in this time, and how many the queue
    made of that.
    """
    inside = [each for each in calls if since <= each["at"] < until and each["status"] == 200]
    online = sum(1 for each in inside if each["asked"].startswith("online"))
    room = RPM * (until - since) / 60 - online
    return room, len(inside) - online


def run(scenario: str, measure_s: float, warm_s: float) -> dict[str, Any]:
    limits = {"rpm": RPM, "window": "sliding", "latency_ms": LATENCY_MS, "jitter_ms": JITTER_MS,
              "headers": "openai" if scenario == "headers" else "none", "keys": [KEY]}  # fmt: skip
    with (
        tempfile.TemporaryDirectory() as directory,
        LlmUpstream(**limits) as provider,
        served(Path(directory), provider.url, documented=scenario == "documented") as address,
    ):
        alone = asyncio.run(crowd(address, measure_s, 1))
        print(f"{scenario}: alone p50 {percentile(alone.latencies_ms, 0.5):.0f} ms", flush=True)
        enqueue(address)
        asyncio.run(crowd(address, warm_s, 2))
        since = time.time()
        beside = asyncio.run(crowd(address, measure_s, 1))
        room, used = left_over(provider.calls(), since, since + measure_s)
    p99 = percentile(beside.latencies_ms, 0.99) / percentile(alone.latencies_ms, 0.99)
    extra = beside.refused_share - alone.refused_share
    return {
        "scenario": scenario,
        "online_calls": beside.sent,
        "alone_p50_ms": round(percentile(alone.latencies_ms, 0.5), 1),
        "alone_p99_ms": round(percentile(alone.latencies_ms, 0.99), 1),
        "beside_p50_ms": round(percentile(beside.latencies_ms, 0.5), 1),
        "beside_p99_ms": round(percentile(beside.latencies_ms, 0.99), 1),
        "p99_ratio": round(p99, 3),
        "extra_refused": round(extra, 4),
        "used_of_left_over": round(used / room, 3),
        "holds": p99 <= P99_RATIO and extra < EXTRA_REFUSED
        and used / room >= LEAST_USED[scenario],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", default="headers,documented")
    parser.add_argument("--measure", type=float, default=240.0, metavar="SECONDS")
    parser.add_argument("--warm", type=float, metavar="SECONDS", help="before it counts")
    said = parser.parse_args()
    found = []
    for scenario in said.scenario.split(","):
        warm_s = WARM_S[scenario] if said.warm is None else said.warm
        found.append(run(scenario, said.measure, warm_s))
        print(json.dumps(found[-1], indent=1), flush=True)
    print(json.dumps({"protection": found}))


if __name__ == "__main__":
    main()
