"""An hour of everything at once: all applications under load, and things that break.

    python -m tests.endurance.hour [--minutes 60] [--speed 2]

The world of `headway demo` (jobs, slots, LLM channels, feeds, archive, operators) at twice its
speed; beside it live listeners that come and go, and workers that are killed. Every half minute
something breaks: the server is stopped for two seconds, a program that it runs is killed, a worker
is killed, a crowd of clients hangs up in the middle. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from random import Random

import httpx2
import psutil

from headway.demo.world import World
from tests.endurance.watching import Watcher, complaints, thirds
from tests.live.test_fleet import Fleet
from tests.servers import Server

BREAK_S = 30.0
LISTENERS = 20


class Place:
    """What the fleet needs to know of a server."""

    def __init__(self, url: str) -> None:
        self.url = url


class Breaking:
    """What goes wrong, again and again."""

    def __init__(self, url: str, pid: int, fleet: Fleet, seed: int) -> None:
        self._url = url
        self._pid = pid
        self._fleet = fleet
        self._random = Random(seed)
        self._pause = threading.Event()  # never set
        self.done: Counter[str] = Counter()

    def one(self) -> None:
        faults: tuple[Callable[[], None], ...] = (
            self.stopped_server, self.killed_program, self.killed_worker, self.rude_crowd,
        )  # fmt: skip
        fault = self._random.choice(faults)
        fault()
        self.done[fault.__name__] += 1

    def stopped_server(self) -> None:
        os.kill(self._pid, signal.SIGSTOP)
        self._pause.wait(2.0)
        os.kill(self._pid, signal.SIGCONT)

    def killed_program(self) -> None:
        programs = psutil.Process(self._pid).children(recursive=True)
        with suppress(psutil.Error, IndexError):
            self._random.choice(programs).kill()

    def killed_worker(self) -> None:
        self._fleet.kill_one(self._random)
        self._fleet.start_one()

    def rude_crowd(self) -> None:
        """Requests that are begun and never ended, and streams that nobody reads."""
        host, _, port = self._url.removeprefix("http://").partition(":")
        crowd = []
        for number in range(LISTENERS):
            line = socket.create_connection((host, int(port)), 5.0)
            path = "/api/events" if number % 2 else "/api/jobs"
            line.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n".encode())
            if number % 3:
                line.sendall(b"\r\n")
            crowd.append(line)
        self._pause.wait(1.0)
        for line in crowd:
            line.close()


def keep_working(url: str, journal: Path, end: threading.Event) -> None:
    """Jobs for the fleet, as fast as it does them."""
    random = Random(1)
    with httpx2.Client(base_url=url, timeout=30.0, trust_env=False) as http:
        while not end.wait(1.0):
            jobs = [{"type": "wait", "args": {"journal": str(journal),
                                              "seconds": round(random.uniform(0.05, 1.0), 2)}}
                    for _ in range(20)]  # fmt: skip
            with suppress(httpx2.HTTPError):
                http.post("/api/work/put", json={"jobs": jobs})


def run(minutes: float, speed: float) -> tuple[dict[str, object], list[str]]:
    with tempfile.TemporaryDirectory(prefix="headway-hour-") as own, World(
        port=0, seed=5, speed=speed, directory=Path(own) / "world"
    ) as world:  # fmt: skip
        url = world.address
        pid = _listening_at(int(url.rpartition(":")[2]))
        place: Server = Place(url)  # type: ignore[assignment]
        fleet = Fleet(place, Path(own) / "workers.log")
        for _ in range(2):
            fleet.start_one()
        end = threading.Event()
        working = threading.Thread(target=keep_working, args=(url, Path(own) / "journal", end))
        working.start()
        breaking = Breaking(url, pid, fleet, 3)
        watcher = Watcher(url, pid)
        until = time.monotonic() + minutes * 60
        try:
            while time.monotonic() < until:
                world.wait(min(BREAK_S, max(0.0, until - time.monotonic())))
                breaking.one()
                if len(watcher.samples) >= 6 and sum(breaking.done.values()) % 10 == 0:
                    last = watcher.samples[-1]
                    print(f"{last.at / 60:5.1f} min: {last.rss_mb:.0f} MB, {last.files} files, "
                          f"{last.threads} threads", flush=True)  # fmt: skip
        finally:
            end.set()
            working.join(60)
            watcher.end()
            fleet.end()
        counts = httpx2.get(f"{url}/api/queue/stats", timeout=30, trust_env=False).json()["counts"]
        parts = thirds(watcher.samples)
        figures = {
            "minutes": minutes, "speed": speed, "jobs": counts["total"], "done": counts["done"],
            "faults": dict(breaking.done), "thirds": [asdict(each) for each in parts],
        }  # fmt: skip
        return figures, list(complaints(parts))


def _listening_at(port: int) -> int:
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if any(each.laddr and each.laddr.port == port for each in child.net_connections()):
                return int(child.pid)
    raise RuntimeError(f"nobody listens at {port}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--speed", type=float, default=2.0)
    told = parser.parse_args()
    figures, found = run(told.minutes, told.speed)
    for each in found:
        print(each)
    print(json.dumps(figures))
    if found:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
