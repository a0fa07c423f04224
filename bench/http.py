"""Enqueueing over HTTP, beside a bare FastAPI route that validates the same body and returns it.

    python -m bench.http [--seconds 10] [--rounds 3] [--steady 60] [--url postgresql://...]

Both servers run on loopback with uvicorn, uvloop and httptools, and take turns under wrk with 64
connections. Then Headway alone gets half of the rate that it reached, while a worker of its own
drains the jobs. The targets are 0.5 of the bare route, and a p99 below 50 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

CONNECTIONS = 64
START_S = 60.0
ON_THE_DISK = "/var/tmp"  # unlike /tmp never in memory, which syncs in no time
SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local number = 0
function request()
  number = number + 1
  local body = '{"type": "%s", "args": {"number": ' .. number .. '}, "priority": 4}'
  return wrk.format(nil, nil, nil, body)
end
function delay() return %d end
"""


@dataclass
class Run:
    """What wrk has measured."""

    per_s: float
    p50_ms: float
    p99_ms: float
    failed: int


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def serving(command: list[str], port: int, **more: str) -> Iterator[str]:
    """A server process, once it answers."""
    process = subprocess.Popen(command, env={**os.environ, **more}, stdout=subprocess.DEVNULL)
    until = time.monotonic() + START_S
    try:
        while True:
            try:
                with socket.create_connection(("127.0.0.1", port), 1.0):
                    break
            except OSError:
                if process.poll() is not None or time.monotonic() > until:
                    raise SystemExit(f"{' '.join(command)} did not start") from None
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def servers(stack: ExitStack, url: str | None) -> Iterator[tuple[str, str]]:
    """(the bare route's address, Headway's)"""
    bare_port, port = free_port(), free_port()
    data = stack.enter_context(tempfile.TemporaryDirectory(dir=ON_THE_DISK))
    bare = [sys.executable, "-m", "bench.http_app", str(bare_port)]
    ours = [sys.executable, "-m", "headway", "serve", "--port", str(port), "--data", data,
            "--app", "bench.http_app:app", "--log-level", "warning"]  # fmt: skip
    if url is not None:
        ours += ["--dsn", url]
    with serving(bare, bare_port) as one, serving(ours, port) as other:
        yield one, other


def load(address: str, type: str, seconds: int, delay_ms: int = 0) -> Run:
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(SCRIPT % (type, delay_ms))
        script.flush()
        said = subprocess.run(
            ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", "-s", script.name,
             f"{address}/api/jobs"],
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    lost = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", said)
    return Run(
        float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1]),  # type: ignore[index]
        _ms(re.search(r"(?m)^\s+50%\s+(\S+)", said)[1]),  # type: ignore[index]
        _ms(re.search(r"(?m)^\s+99%\s+(\S+)", said)[1]),  # type: ignore[index]
        (int(failed[1]) if failed else 0) + (sum(map(int, lost.groups())) if lost else 0),
    )


def _ms(text: str) -> float:
    for unit, factor in (("us", 0.001), ("ms", 1.0), ("s", 1000.0)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * factor
    raise ValueError(text)


def open_jobs(address: str) -> int:
    with urllib.request.urlopen(f"{address}/api/queue/stats") as answer:
        counts = json.load(answer)["counts"]
    return int(counts["queued"] + counts["running"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steady", type=int, default=60)
    parser.add_argument("--url", help="a PostgreSQL database instead of SQLite")
    given = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is not there; install it from the packages of your system")
    if not Path(ON_THE_DISK).is_dir():
        raise SystemExit(f"{ON_THE_DISK} is not there")
    with ExitStack() as stack, servers(stack, given.url) as (bare, ours):
        rates: dict[str, list[float]] = {"bare": [], "queue": [], "drain": []}
        for _ in range(given.rounds):
            for name, address, type in (
                ("bare", bare, "nothing"),
                ("queue", ours, "nobody-knows"),
                ("drain", ours, "nothing"),
            ):
                run = load(address, type, given.seconds)
                rates[name].append(run.per_s)
                print(f"{name:6} {run.per_s:8.0f}/s   p50 {run.p50_ms:6.1f} ms   "
                      f"p99 {run.p99_ms:6.1f} ms   failed {run.failed}", flush=True)  # fmt: skip
        best = {name: statistics.median(each) for name, each in rates.items()}
        print(f"enqueue {best['queue'] / best['bare']:.2f} of the bare route; "
              f"{best['drain'] / best['bare']:.2f} while the jobs run")  # fmt: skip
        rate = best["drain"] / 2
        run = load(ours, "nothing", given.steady, round(1000.0 * CONNECTIONS / rate))
        print(
            f"steady at {run.per_s:.0f}/s for {given.steady} s: p50 {run.p50_ms:.1f} ms, "
            f"p99 {run.p99_ms:.1f} ms, failed {run.failed}, still open {open_jobs(ours)}"
        )


if __name__ == "__main__":
    main()
