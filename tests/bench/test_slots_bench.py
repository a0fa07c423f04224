"""The benchmark of slots: who is measured, how clients loop, and what becomes of the numbers."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, nullcontext, suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from bench import slots, slots_drive, slots_http, slots_report
from bench.peers import surroundings
from bench.peers.leases import (
    CONTENDERS,
    HEADWAY,
    HEADWAY_PG,
    PEERS,
    Contender,
    Leases,
    chosen,
    compared_with,
)
from bench.peers.postgres_server import PostgresServer, postgres_server
from bench.peers.products import POSTGRES, REDIS
from bench.peers.redis_server import redis_server
from bench.slots_http import ACQUIRE, Connection, drive
from bench.slots_report import Results, report, summary, verdicts

ROOT = Path(__file__).resolve().parents[2]
WITHOUT_SERVER = [each for each in CONTENDERS.values() if each.store not in (REDIS, POSTGRES)]
ON_POSTGRES = [each for each in CONTENDERS.values() if each.store == POSTGRES]
ON_REDIS = [each for each in CONTENDERS.values() if each.store == REDIS]


def by_name(contender: Contender) -> str:
    return contender.name


# Who is measured


def test_contenders_are_chosen_by_name_or_by_store_and_headway_comes_along() -> None:
    assert [each.name for each in chosen(["redis-lua"])] == [HEADWAY.name, "redis-lua"]
    assert HEADWAY_PG in chosen([POSTGRES])
    assert HEADWAY not in chosen([POSTGRES])
    assert chosen([]) == list(CONTENDERS.values())


def test_a_misspelt_contender_says_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"'rediss'; there are: .*redis-lua"):
        chosen(["rediss"])


def test_each_store_has_a_durable_lease_to_be_ahead_of() -> None:
    for ours in (HEADWAY, HEADWAY_PG):
        beside = [peer for peer in PEERS if compared_with(peer) is ours]
        assert any(peer.durable and peer.expires for peer in beside)


@pytest.mark.parametrize("contender", CONTENDERS.values(), ids=by_name)
def test_every_contender_has_an_adapter(contender: Contender) -> None:
    module, _, name = contender.adapter.partition(":")
    found = find_spec(f"bench.peers.{module}")

    assert found is not None
    assert found.origin is not None
    assert f"class {name}(" in Path(found.origin).read_text("utf-8")


# How clients loop


class Anybody(Leases):
    """Gives a place to whoever asks."""

    async def open(self, keys: int) -> None:
        pass

    def hold(self, client: int, key: int) -> nullcontext[None]:
        return nullcontext()


def test_a_holder_beyond_the_cap_is_seen() -> None:
    run = asyncio.run(slots_drive.drive(Anybody().hold, keys=1, seconds=0.05))

    assert run["jobs"] > 0
    assert run["overlaps"] > 0


def test_fewer_clients_than_places_are_never_too_many() -> None:
    run = asyncio.run(slots_drive.drive(Anybody().hold, keys=1, seconds=0.05, clients=4))

    assert run["overlaps"] == 0


def test_a_pair_counts_only_within_the_time() -> None:
    tally = slots_drive.Tally(keys=1, clients=2)

    assert "error" in tally.run(1.0, 0.5)
    tally.taken(0, 0.002)
    tally.pairs[:] = [1, 3]
    run = tally.run(2.0, 0.5)
    assert (run["figure"], run["least"], run["p50"]) == (2.0, 1 / 3, 2.0)
    assert run["cpu_us"] == 125_000.0


def test_the_error_of_one_client_is_told_without_the_group_around_it() -> None:
    group = ExceptionGroup("many", [ExceptionGroup("more", [OSError("no route")])])

    assert slots_drive.failed(group)["error"] == "OSError: no route"


def measured(contender: Contender, keys: int) -> dict[str, Any]:
    return asyncio.run(slots_drive.measure(contender, keys, 0.2))


@pytest.mark.parametrize("contender", WITHOUT_SERVER, ids=by_name)
@pytest.mark.parametrize("keys", [1, 3])
def test_those_without_a_server_keep_the_cap(
    contender: Contender, keys: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(surroundings.DIRECTORY, str(tmp_path))

    run = measured(contender, keys)

    assert run["jobs"] > 0
    assert run["overlaps"] == 0


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    with postgres_server(tmp_path_factory.mktemp("bench")) as running:
        yield running


@pytest.mark.soak
@pytest.mark.parametrize("contender", ON_POSTGRES, ids=by_name)
def test_those_on_postgres_keep_the_cap(
    contender: Contender, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(surroundings.POSTGRES_URL, postgres.url)

    run = measured(contender, 2)

    assert run["jobs"] > 0
    assert run["overlaps"] == 0


@pytest.mark.soak
@pytest.mark.parametrize("contender", ON_REDIS, ids=by_name)
def test_those_on_redis_keep_the_cap(
    contender: Contender, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with redis_server(tmp_path) as server:
        monkeypatch.setenv(surroundings.REDIS_URL, server.url)

        run = measured(contender, 2)

    assert run["jobs"] > 0
    assert run["overlaps"] == 0


# Over HTTP


class Routes:
    """The two routes as a client sees them. Who finds no place is told so, and asks again."""

    def __init__(self, cap: int = 4, refuse: str = "") -> None:
        self.cap = cap
        self.refuse = refuse
        self.numbers = count(1)
        self.waiting: dict[str, str] = {}  # query token, host
        self.held: dict[str, str] = {}  # slot token, host
        self.buckets: set[str] = set()

    def acquire(self, body: dict[str, Any]) -> dict[str, Any]:
        if self.refuse:
            return {"result": self.refuse}
        token = body.get("queryToken")
        if token is None:
            assert body["now"] > 0
            assert len(body["hostnameHash"]) == 64
            self.buckets.add(body["ipBucket"])
            token = f"query-{next(self.numbers)}"
            self.waiting[token] = body["hostname"]
            return {"result": "pending", "queryToken": token}
        host = self.waiting[token]
        if list(self.held.values()).count(host) >= self.cap:
            return {"result": "pending", "queryToken": token}
        del self.waiting[token]
        slot = f"slot-{next(self.numbers)}"
        self.held[slot] = host
        return {"result": "granted", "slotToken": slot, "queryToken": token}

    def release(self, body: dict[str, Any]) -> dict[str, Any]:
        assert body["hitUpstreamAtMs"] <= body["now"]
        assert self.held.pop(body["slotToken"]) == body["hostname"]
        return {"result": "ok"}

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                body = json.loads(await reader.readexactly(length))
                said = self.acquire(body) if ACQUIRE.encode() in head else self.release(body)
                content = json.dumps(said).encode()
                half = len(content) // 2  # an answer may come in parts
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content))
                writer.write(content[:half])
                await asyncio.sleep(0)
                writer.write(content[half:])


Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[tuple[str, int]]:
    """Ends when all connections have."""
    ended: list[asyncio.Future[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        ended.append(end)
        try:
            await answer(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            end.set_result(None)

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        yield host, port
        await asyncio.gather(*ended)


def driven(routes: Routes, hosts: int) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        async with serving(routes.answer) as (host, port):
            return await drive(f"http://{host}:{port}", hosts, 0.2, clients=8)

    return asyncio.run(run())


@pytest.mark.parametrize("hosts", [1, 3])
def test_clients_poll_until_they_are_granted_and_release_what_they_got(hosts: int) -> None:
    routes = Routes()

    run = driven(routes, hosts)

    assert run["jobs"] > 0
    assert run["overlaps"] == 0
    assert run["asked"] >= 2.0  # the first call was never granted
    assert routes.held == {}
    assert len(routes.buckets) == 8


def test_a_server_that_grants_too_many_is_seen() -> None:
    assert driven(Routes(cap=8), hosts=1)["overlaps"] > 0


def test_a_result_that_no_client_should_see_is_an_error() -> None:
    with pytest.raises(ExceptionGroup) as raised:
        driven(Routes(refuse="overloaded"), hosts=1)

    assert "overloaded" in slots_drive.failed(raised.value)["error"]


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", "503"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "without a length"),
        (b"", "closed the connection"),
    ],
)
def test_an_answer_that_is_none_fails_the_request(said: bytes, complaint: str) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if said:
            writer.write(said)
            await reader.read()  # until the client goes

    async def run() -> None:
        async with serving(answer) as address:
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_connection(lambda: Connection("there"), *address)
            with pytest.raises((slots_http.Refused, ConnectionError), match=complaint):
                await connection.post(ACQUIRE, {})
            connection.close()

    asyncio.run(run())


def test_the_bare_exchange_answers_every_pair() -> None:
    with slots_http.bare_server() as served:
        run = asyncio.run(drive(served.address, 2, 0.2, clients=4))

        assert run["jobs"] > 0
        assert run["asked"] == 1.0
        assert served.cpu_s() > 0.0


@pytest.mark.soak
def test_a_real_server_keeps_the_cap(tmp_path: Path) -> None:
    with slots_http.headway_server(tmp_path) as served:
        for hosts in (1, 3):
            run = asyncio.run(drive(served.address, hosts, 0.3, clients=16))

            assert run["jobs"] > 0
            assert run["overlaps"] == 0


# What becomes of the numbers


def results(figures: dict[str, float], keys: int = 1, **more: Any) -> Results:
    found = Results()
    for name, figure in figures.items():
        found.runs[keys, name] = [{"turn": 0, "figure": figure, "jobs": 10, **more}]
    found.samples["fdatasync_per_s"] = [{"figure": 2_000.0}]
    return found


def met(found: Results, bar: str) -> bool | None:
    [verdict] = [each for each in verdicts(found) if bar in f"{each.product}: {each.bar}"]
    return verdict.met


@pytest.mark.parametrize(("figure", "expected"), [(4_999.0, False), (5_000.0, True)])
def test_in_process_a_rate_is_asked_for(figure: float, expected: bool) -> None:
    assert met(results({"headway": figure}), "headway: pairs/s, 1 key") is expected


def test_the_closest_durable_lease_decides() -> None:
    ahead = {"headway": 100.0, "pg-rows": 10.0, "redis-lua-always": 90.0}
    behind = ahead | {"redis-lua-always": 110.0}

    assert met(results(ahead), "headway: ahead of every durable lease, 1 key") is True
    assert met(results(behind), "headway: ahead of every durable lease, 1 key") is False


def test_what_may_be_lost_or_never_expires_is_no_durable_lease() -> None:
    beside = {"headway": 100.0, "pg-rows": 10.0, "redis-lua": 500.0, "redis-tokens-always": 500.0}

    assert met(results(beside), "headway: ahead of every durable lease, 1 key") is True


def test_headway_on_postgres_is_compared_with_leases_there() -> None:
    beside = {"headway-pg": 50.0, "pg-rows": 10.0, "redis-lua-always": 90.0}

    assert met(results(beside), "headway-pg: ahead of every durable lease, 1 key") is True


@pytest.mark.parametrize(
    ("ours", "bare", "expected"),
    [(2_100.0, 9_000.0, True), (1_000.0, 2_500.0, True), (1_000.0, 9_000.0, False)],
)
def test_over_http_a_rate_or_a_share_of_the_bare_exchange_is_enough(
    ours: float, bare: float, expected: bool
) -> None:
    found = results({"http headway": ours, "http bare": bare})

    assert met(found, "http headway: pairs/s, 1 key") is expected


def test_a_broken_cap_is_loud_and_the_bare_exchange_has_none() -> None:
    found = results({"headway": 9_000.0, "http bare": 9_000.0}, overlaps=3)

    assert met(found, "headway: holders beyond 4 at a key, 1 key") is False
    assert not any("bare" in each.product for each in verdicts(found))
    assert any("MISSED" in line and "holders" in line for line in report(found, quick=True))


def test_the_report_shows_the_best_first_with_its_promises_and_ratio() -> None:
    found = results({"headway": 100.0, "redis-lua": 50.0}, p50=1.0, p99=2.0, least=1.0, cpu_us=9.0)

    lines = report(found, quick=False)
    [first, second] = [line for line in lines if "fair share" in line or "by chance" in line]

    assert first.split()[:4] == ["headway", "on", "disk", "yes"]
    assert second.split()[0] == "redis-lua"
    assert " 2.00 " in second


def test_the_summary_is_json_and_says_what_failed() -> None:
    found = results({"headway": 100.0, "pg-rows": 50.0})
    found.runs[100, "headway"] = [{"turn": 0, "jobs": 0, "error": "no disk"}]

    said = json.loads(json.dumps(summary(found, {"seconds": 3.0})))

    assert said["figures"]["1"]["headway"]["median"] == 100.0
    assert said["runs"]["100 headway"][0]["error"] == "no disk"
    assert any("no disk" in line for line in report(found, quick=False))


# The way in


def test_http_is_measured_unless_one_says_otherwise() -> None:
    assert slots.arguments([]).http
    assert not slots.arguments(["--no-http"]).http


def test_a_quick_run_is_one_short_round() -> None:
    quick, full = slots.arguments(["--quick"]), slots.arguments([])

    assert (quick.seconds, quick.rounds) == (slots.QUICK_S, 1)
    assert (full.seconds, full.rounds) == (slots.SECONDS, slots.ROUNDS)


def test_a_run_ends_with_one_line_of_json() -> None:
    words = ["--quick", "--seconds", "0.1", "--only", slots_report.HEADWAY.name, "--no-http"]
    done = subprocess.run(
        [sys.executable, "-m", "bench.slots", *words], cwd=ROOT, env=os.environ, check=False,
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["figures"]["100"]["headway"]["overlaps"] == 0
    assert not list(ROOT.glob(".bench-*/slots.db"))
