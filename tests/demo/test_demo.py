"""`headway demo` as a newcomer types it: within half a minute each screen has something to show."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from headway.cli import main
from headway.demo.server import kept_environment
from headway.demo.world import World
from tests.hands.kit import eventually, is_alive

WITHIN_S = 30.0
STOPS_S = 20.0
# What would change the server, close it, or send it elsewhere, if any of it got through.
POISON = {
    "HEADWAY_AUTH": "required",
    "HEADWAY_DATA": "somewhere-else",
    "HEADWAY_LANE__bulk__limit": "1",
    "HEADWAY_MAX_OPEN_PER_TENANT": "1",
    "HEADWAY_MEDIA_ON": "no",
    "HEADWAY_PORT": "1",
    "HEADWAY_TOKEN": "hw_nobody_knows_this",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "OTEL_TRACES_EXPORTER": "otlp",
    "QUEUE_COOKIE_LANE_CONCURRENCY": "7",
}


@dataclass
class Demo:
    process: subprocess.Popen[str]
    place: Path  # where its temporary directory is made
    began_at: float  # when it said where the page is
    said: str
    address: str

    def get(self, path: str, **query: Any) -> Any:
        answer = httpx2.get(self.address + path, params=query, timeout=30, trust_env=False)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def soon(self, happens: Callable[[], Any]) -> Any:
        """Within half a minute of its beginning."""
        return eventually(happens, self.began_at + WITHIN_S - time.monotonic())

    def count(self, search: str) -> int:
        found: int = self.get("/api/jobs", q=search, size=1)["total"]
        return found


def begin(*options: str, cwd: Path, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "headway", "demo", "--port", "0", *options],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=cwd,
        env={**kept_environment(), **environment},
    )  # fmt: skip


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    place = tmp_path_factory.mktemp("demo")
    process = begin("--seconds", "90", cwd=place, TMPDIR=str(place), **POISON)
    assert process.stdout is not None
    said = ""
    while "Ctrl-C" not in said:
        line = process.stdout.readline()
        assert line, f"it did not begin: {said}"
        said += line
    address = re.search(r"http://127\.0\.0\.1:\d+", said)
    assert address is not None
    try:
        yield Demo(process, place, time.monotonic(), said, address.group())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_it_says_where_the_page_is_and_what_to_look_at(demo: Demo) -> None:
    for screen in ("Overview", "Upstreams", "Requests", "Slots", "Channels", "Feeds", "Archive"):
        assert screen in demo.said
    assert httpx2.get(f"{demo.address}/healthz", trust_env=False).status_code == 200


def test_jobs_run_wait_and_fail(demo: Demo) -> None:
    demo.soon(lambda: demo.count("status:running") >= 5)
    demo.soon(lambda: demo.count("status:queued") >= 20)
    demo.soon(lambda: demo.count("status:completed"))
    demo.soon(lambda: demo.count("status:failed"))
    demo.soon(lambda: len(demo.get("/api/queue/stats")["lanes"]) >= 3)


def test_slots_are_held_by_many_tenants(demo: Demo) -> None:
    def holders() -> set[str]:
        found = demo.get("/api/slots", size=200)["items"]
        return {each["tenant"] for each in found if each["state"] == "granted"}

    def waiting_of_the_greedy() -> int:
        found = demo.get("/api/slots", size=200)["items"]
        return sum(each["tenant"] == "magpie" and each["state"] == "waiting" for each in found)

    demo.soon(lambda: len(holders()) >= 8)
    demo.soon(lambda: waiting_of_the_greedy() >= 10)


def test_channels_have_calls_batches_and_costs(demo: Demo) -> None:
    def is_used(code: str) -> bool:
        seen = demo.get(f"/api/channels/{code}/capacity")
        return bool(seen["online"]["rpm"] and seen["queued"]["rpm"] and seen["believed"]["rpm"])

    demo.soon(lambda: is_used("demo-large") and is_used("demo-small"))
    demo.soon(lambda: any(each["request_counts"]["completed"]
                          for each in demo.get("/v1/batches")["data"]))  # fmt: skip
    demo.soon(lambda: any(float(each["spent"]) for each in demo.get("/api/budgets")["items"]))


def test_feeds_have_articles(demo: Demo) -> None:
    demo.soon(lambda: demo.get("/api/backend/articles/stats")["total"] >= 50)
    feeds = demo.get("/api/backend/feeds")["feeds"]
    assert len(feeds) == 12
    assert len({each["folder"] for each in feeds}) >= 4
    demo.soon(
        lambda: "gone" in {each["status"] for each in demo.get("/api/backend/feeds")["feeds"]}
    )


def test_the_archive_has_videos(demo: Demo) -> None:
    demo.soon(lambda: demo.get("/api/archive/accounts")["items"])
    demo.soon(lambda: any(each["counts"]["listed"]
                          for each in demo.get("/api/subscriptions")["items"]))  # fmt: skip


def test_there_are_schedules_and_one_is_paused(demo: Demo) -> None:
    demo.soon(lambda: len(demo.get("/api/schedules")["items"]) >= 5)
    demo.soon(lambda: any(each["paused"] for each in demo.get("/api/schedules")["items"]))


def test_upstreams_push_back_and_operators_act(demo: Demo) -> None:
    def closed() -> set[str]:
        found = demo.get("/api/upstreams")["items"]
        return {each["name"] for each in found if each["closed_until"]}

    demo.soon(lambda: "videos.example" in closed())
    demo.soon(lambda: len(demo.get("/api/audit", size=100)["items"]) >= 5)


def test_nothing_of_the_environment_reaches_it(demo: Demo) -> None:
    assert demo.get("/api/lanes/bulk")["limit"] >= 12
    assert demo.get("/api/lanes/requires_cookie")["limit"] == 1


def test_sigterm_ends_it_and_leaves_nothing(demo: Demo) -> None:
    [directory] = demo.place.glob("headway-demo-*")
    with open(directory / "demo.log") as of_the_scripts, open(directory / "server.log") as log:
        assert of_the_scripts.read() == ""
        assert "Traceback" not in log.read()
    children = [each.pid for each in psutil.Process(demo.process.pid).children(recursive=True)]
    assert children
    demo.process.send_signal(signal.SIGTERM)

    assert demo.process.wait(STOPS_S) == 0
    assert list(demo.place.iterdir()) == []
    eventually(lambda: not any(map(is_alive, children)))


@pytest.mark.parametrize("keep", [True, False])
def test_only_a_directory_that_was_named_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: bool
) -> None:
    made: list[Path] = []
    monkeypatch.setattr(World, "_begin", lambda world: made.append(world._made_directory()))
    with World(port=0, seed=1, directory=tmp_path / "kept" if keep else None):
        (made[0] / "something").write_text("in it")

    assert made[0].exists() == keep
    assert list(tmp_path.iterdir()) == ([tmp_path / "kept"] if keep else [])


def test_a_directory_that_is_in_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "headway.db").write_text("somebody's own")
    with pytest.raises(SystemExit) as ended:
        main(["demo", "--port", "0", "--keep", str(tmp_path)])

    assert ended.value.code == 1
    assert "name a new directory" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["headway.db"]


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit) as ended:
            main(["demo", "--port", str(port)])

    said = capsys.readouterr()
    assert ended.value.code == 1
    assert said.out == ""
    assert said.err.startswith(f"error: port {port} cannot be used: ")
    assert "headway demo --port" in said.err


def test_only_what_python_needs_is_kept() -> None:
    kept = kept_environment({**POISON, "PATH": os.defpath, "LC_ALL": "C", "PYTHONPATH": "here"})

    assert kept == {"PATH": os.defpath, "LC_ALL": "C", "PYTHONPATH": "here"}
