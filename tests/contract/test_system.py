"""How the server is, and its pages."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from headway import __version__
from tests.contract.kit import Api, problem_in, worker_of
from tests.servers import NewServer, Server


def test_it_says_that_it_lives_and_that_it_is_ready(api: Api) -> None:
    assert api.get("/healthz") == {"status": "ok"}
    ready = {"status": "ready", "engine": "running", "store": "reachable"}
    assert api.get("/readyz") == ready


def test_info_says_which_server_and_who_is_asking(api: Api, server: Server) -> None:
    info = api.get("/api/info")
    assert info["version"] == __version__
    assert info["store"] == ("postgresql" if server.dsn else "sqlite")
    assert (info["who"], info["tenant"], info["open"]) == ("loopback", None, True)
    assert info["scopes"] == ["admin", "operate", "read", "submit"]


def test_metrics_for_prometheus(api: Api, kind: str) -> None:
    api.enqueue(kind)
    with worker_of(api, kind) as worker:
        worker.complete(worker.take_one())
    plain = api.send("GET", "/metrics")
    assert plain.headers["content-type"].startswith("text/plain")
    samples = [line for line in plain.text.splitlines() if line and not line.startswith("#")]
    assert samples
    sample = re.compile(r"[a-z_]+(\{[^{}]*\})? [-+.\deInfNa]+")
    assert [line for line in samples if not sample.fullmatch(line)] == []
    grants = next(line for line in samples if line.startswith("headway_grants_total"))
    assert float(grants.split()[-1]) >= 1
    openmetrics = api.send("GET", "/metrics", headers={"Accept": "application/openmetrics-text"})
    assert openmetrics.headers["content-type"].startswith("application/openmetrics-text")
    assert openmetrics.text.endswith("# EOF\n")


@pytest.mark.parametrize("path", ["/", "/docs", "/login", "/favicon.ico"])
def test_pages_are_there_and_load_nothing_from_elsewhere(api: Api, path: str) -> None:
    page = api.send("GET", path)
    assert page.status_code == 200
    assert page.headers["content-security-policy"].startswith("default-src 'self'")
    assert page.headers["x-content-type-options"] == "nosniff"
    assert re.findall(r"(?:src|href)=\"(?:https?:)?//[^\"]*", page.text) == []
    for asset in re.findall(r"(?:src|href)=\"(/static/[^\"#?]+)", page.text):
        assert api.send("GET", asset).status_code == 200, asset


@pytest.mark.parametrize(
    "path", ["/static/nothing.js", "/static/__init__.py", "/static/..%2Fapi%2Fsite.py", "/nowhere"]
)
def test_what_is_not_there_is_404(api: Api, path: str) -> None:
    api.problem(404, "GET", path)


def test_answers_of_the_api_are_not_stored(api: Api) -> None:
    assert api.send("GET", "/api/info").headers["cache-control"] == "no-store"


STOPPED_AT_ONCE = """
import os, signal, sys
from headway import App
from headway.api.config import Config
from headway.api.serving import serve

serve(Config(data=sys.argv[1], port=0), App(f"sqlite:///{sys.argv[1]}/headway.db"),
      ready=lambda _: os.kill(os.getpid(), signal.SIGTERM))
"""


def test_one_that_is_told_to_stop_while_it_starts_ends_in_order(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", STOPPED_AT_ONCE, tmp_path / "data"], timeout=60,
                           capture_output=True, text=True, check=False)  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_data_directory_says_where_the_server_is(new_sqlite_server: NewServer) -> None:
    server = new_sqlite_server()
    assert server.state_file() == {"url": server.url, "pid": server.pid, "open": True}
    assert server.stop() == 0
    assert not (server.data / "server.json").exists()


def test_it_stops_at_once_though_somebody_listens(new_sqlite_server: NewServer) -> None:
    server = new_sqlite_server()
    with httpx2.stream("GET", f"{server.url}/api/events") as answer:
        lines = answer.iter_lines()
        next(lines)
        assert server.stop() == 0
        assert "" in list(lines)  # it ends in order, not in the middle


def test_a_page_of_another_site_may_not_call(api: Api) -> None:
    for headers, status, kind in (
        ({"Origin": "https://evil.example"}, 403, "wrong-origin"),
        ({"Sec-Fetch-Site": "cross-site"}, 403, "wrong-origin"),
        ({"Host": "evil.example"}, 421, "wrong-host"),
        ({"X-Forwarded-For": "10.0.0.1"}, 403, "proxy"),
    ):
        problem_in(api.send("POST", "/api/batches", headers=headers), kind)
        assert api.send("POST", "/api/batches", headers=headers).status_code == status


def test_a_second_server_on_the_same_data_is_refused_and_does_no_harm(
    new_sqlite_server: NewServer,
) -> None:
    server = new_sqlite_server()
    command = [sys.executable, "-m", "headway", "serve", "--port", "0", "--data", str(server.data)]
    second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode == 1
    assert "an engine runs on" in second.stderr
    assert server.state_file()["pid"] == server.pid
