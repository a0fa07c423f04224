"""The benchmark beside the peers: its servers, and what a measurement is told of them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psycopg
import pytest

from bench.peers import load, raw_postgres, servers, surroundings
from bench.peers.postgres_server import PostgresServer, postgres_server
from bench.peers.products import HEADWAY, HEADWAY_PG, PRODUCTS, Product
from bench.peers.redis_server import RedisServer
from bench.peers.servers import Servers, servers_for

ROOT = Path(__file__).resolve().parents[2]
REDIS_SERVER = RedisServer("redis://there", 11, "7")
POSTGRES_SERVER = PostgresServer("postgresql://there/postgres", 12, "18")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happened to servers that are none."""
    happened: list[str] = []

    def server(name: str, made: object) -> Callable[[Path], AbstractContextManager[object]]:
        @contextmanager
        def run(_directory: Path) -> Iterator[object]:
            happened.append(f"{name} started")
            yield made
            happened.append(f"{name} ended")

        return run

    monkeypatch.setattr(servers, "redis_server", server("redis", REDIS_SERVER))
    monkeypatch.setattr(servers, "postgres_server", server("postgres", POSTGRES_SERVER))
    return happened


@pytest.mark.parametrize(
    ("products", "expected"),
    [
        ([HEADWAY], Servers()),
        ([HEADWAY, PRODUCTS["rq"]], Servers(redis=REDIS_SERVER)),
        ([HEADWAY_PG], Servers(postgres=POSTGRES_SERVER)),
        ([PRODUCTS["chancy"], PRODUCTS["arq"]], Servers(REDIS_SERVER, POSTGRES_SERVER)),
    ],
)
def test_only_the_servers_that_are_needed_are_started(
    started: list[str], products: list[Product], expected: Servers
) -> None:
    with servers_for(products, Path()) as found:
        assert found == expected
        assert len(started) == len(expected.pids())

    assert len(started) == 2 * len(expected.pids())


def test_a_measurement_is_told_where_the_servers_are() -> None:
    both = Servers(REDIS_SERVER, POSTGRES_SERVER)

    assert both.environment() == {
        surroundings.REDIS_URL: REDIS_SERVER.url,
        surroundings.POSTGRES_URL: POSTGRES_SERVER.url,
    }
    assert both.versions() == {"redis-server": "7", "postgres-server": "18"}
    assert set(Servers().environment().values()) == {""}


def test_what_is_measured_has_a_database_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(surroundings.POSTGRES_URL, "postgresql://me@there:54/postgres")

    assert surroundings.postgres_url() == "postgresql://me@there:54/bench"


@pytest.mark.skipif(not load.STAT.exists(), reason="only Linux tells")
def test_the_time_of_a_server_is_also_that_of_its_children() -> None:
    burn = "import time; end = time.process_time() + 0.2\nwhile time.process_time() < end: pass"
    child = f"{burn}\nprint(); input()"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    parent += "\nprint(); input()"
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdout.readline()
        while_it_runs = load.Watch((server.pid,)).own_s - load.Watch().own_s
        server.stdin.write("\n")
        server.stdin.flush()
        server.stdout.readline()
        when_it_has_ended = load.Watch((server.pid,)).own_s - load.Watch().own_s
        server.kill()

    assert while_it_runs > 0.15
    assert when_it_has_ended > 0.15


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    with postgres_server(tmp_path_factory.mktemp("bench")) as running:
        yield running


def test_postgres_is_durable(server: PostgresServer) -> None:
    with psycopg.connect(server.url) as db:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            assert db.execute(f"show {setting}").fetchone() == ("on",)


def test_each_reset_makes_an_empty_database(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(surroundings.POSTGRES_URL, server.url)
    for workload, warm_up in (("w1", 50), ("w1b", 50 * 64), ("w1c", 50 * 1_000)):
        assert raw_postgres.rows_per_s(workload, 1_000) > 0
        jobs = surroundings.postgres_count("select count(*) from jobs")
        assert warm_up < jobs <= warm_up + 1_000
    with psycopg.connect(surroundings.postgres_url()):  # nobody's connection is in the way
        surroundings.new_database()

    tables = "select count(*) from pg_tables where schemaname = 'public'"
    assert surroundings.postgres_count(tables) == 0


def test_the_server_ends_with_the_run(tmp_path: Path) -> None:
    with postgres_server(tmp_path) as brief:
        psycopg.connect(brief.url).close()

    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(brief.url)


@pytest.mark.parametrize(
    "variant",
    ["sqlite", "sqlite-open", "sqlite-limits", "postgres", "postgres-open", "postgres-limits"],
)
def test_headway_is_measured_on_each_store_with_and_without_limits(
    variant: str, server: PostgresServer, tmp_path: Path
) -> None:
    environment = Servers(postgres=server).environment() | {
        "PYTHONPATH": str(ROOT),
        surroundings.DIRECTORY: str(tmp_path),
        surroundings.VARIANT: variant,
    }

    done = subprocess.run(
        [sys.executable, "-m", "bench.peers.measure", "headway", "w2", "200"],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    run = json.loads(done.stdout)
    assert run.get("figure", 0) > 0, run
    assert run["twice"] == 0
