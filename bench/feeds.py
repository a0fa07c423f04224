"""How many feeds a server refreshes in a second, all included: fetching, parsing, storing, search.

    python -m bench.feeds [--feeds 1000] [--entries 20] [--dsn postgresql://...] [--spy FILE]

A thousand feeds of 20 entries on as many host names, which all lead to a site on loopback that
answers after 20 ms. They are imported as a list over HTTP, and the round says when all are there.
Then all are refreshed again: with an edition that is new, with the same (told by its hash), and
with ETags (told by a 304). The site is a process of its own on the same two cores. `--spy` writes
a profile of the server with py-spy, which must be installed. The target is 80 feeds a second for
the import.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import Request, urlopen

import psutil

from bench.feeds_server import OWN
from bench.http import ON_THE_DISK

TARGET = 80.0


def asked(url: str, body: bytes | None = None, kind: str = "application/json") -> dict[str, object]:
    request = Request(url, data=body, headers={"Content-Type": kind})
    with urlopen(request, timeout=60) as answer:
        text = answer.read()
    return json.loads(text) if text else {}  # type: ignore[no-any-return]


@contextmanager
def program(*words: str, **environment: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A program that prints its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", *words], stdout=subprocess.PIPE, text=True,
        env={**os.environ, **environment},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield "http://" + line.rpartition("http://")[2].strip(), process
    finally:
        process.terminate()
        process.wait(30)


def opml(feeds: int, port: str) -> bytes:
    rows = "".join(
        f'<outline type="rss" text="Feed {number}" '
        f'xmlUrl="http://f{number}{OWN}:{port}/feed/{number}"/>'
        for number in range(feeds)
    )
    return f'<opml version="2.0"><body>{rows}</body></opml>'.encode()


class Costs:
    """The CPU time of the server with its parsers, and of the site."""

    def __init__(self, server: int, site: int) -> None:
        self._server = psutil.Process(server)
        self._site = psutil.Process(site)
        self._last = self._now()

    def _now(self) -> dict[str, float]:
        def spent(process: psutil.Process) -> float:
            times = process.cpu_times()
            return float(times.user + times.system)

        parsers = self._server.children(recursive=True)
        gone = self._server.cpu_times()
        return {
            "server": spent(self._server),
            "parsers": sum(spent(each) for each in parsers)
            + float(gone.children_user + gone.children_system),
            "site": spent(self._site),
        }

    def since(self) -> dict[str, float]:
        before, self._last = self._last, self._now()
        return {name: after - before[name] for name, after in self._last.items()}


def finished(base: str, round: dict[str, object]) -> dict[str, object]:
    while round["finished_at"] is None:
        round = asked(f"{base}/api/backend/queue/rounds/{round['id']}?wait_s=10")
    return round


def report(name: str, feeds: int, took_s: float, costs: dict[str, float], said: object) -> float:
    rate = feeds / took_s
    spent = "  ".join(f"{each} {cost / feeds * 1000:5.2f}" for each, cost in costs.items())
    print(f"{name:22} {rate:7.1f} feeds/s   CPU ms a feed: {spent}   {said}", flush=True)
    return rate


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--feeds", type=int, default=1_000)
    parser.add_argument("--entries", type=int, default=20)
    parser.add_argument("--dsn", default="")
    parser.add_argument("--spy", default="")
    args = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(dir=ON_THE_DISK) as data,
        program("bench.feeds_site", "0", "--entries", str(args.entries)) as (site, its),
        program(
            "bench.feeds_server", "serve", "--port", "0", "--data", data,
            *(["--dsn", args.dsn] if args.dsn else []),
            HEADWAY_OUTBOUND_ALLOW="127.0.0.0/8", HEADWAY_LOG_LEVEL="error",
        ) as (base, ours),
    ):  # fmt: skip
        run(args, site, base, Costs(ours.pid, its.pid), ours.pid)


def run(args: argparse.Namespace, site: str, base: str, costs: Costs, pid: int) -> None:
    port = site.rpartition(":")[2]
    spy = None
    if args.spy:
        spy = subprocess.Popen(
            ["py-spy", "record", "-p", str(pid), "-o", args.spy, "-f", "raw", "-r", "200", "-d",
             "12", "--gil"],
        )  # fmt: skip
    began = time.perf_counter()
    round = asked(f"{base}/api/backend/opml", opml(args.feeds, port), "text/x-opml")
    last = finished(base, round)
    first = report("import", args.feeds, time.perf_counter() - began, costs.since(), last["text"])
    if spy is not None:
        spy.wait()
    for name, change in (("a new edition", "/next"), ("the same, by hash", ""),
                         ("with ETags", "/etags"), ("not modified, 304", "")):  # fmt: skip
        if change:
            asked(site + change)
        began = time.perf_counter()
        round = asked(f"{base}/api/backend/queue/schedule-all", b"{}")
        last = finished(base, {"id": round["round_id"], "finished_at": None})
        report(name, args.feeds, time.perf_counter() - began, costs.since(), last["text"])
    print(f"target for the import: {TARGET} feeds/s, reached {first / TARGET:.2f}x")


if __name__ == "__main__":
    main()
