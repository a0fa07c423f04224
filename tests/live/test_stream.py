"""The live stream: every event exactly once, in order, whatever happens to the connection."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import urllib.request
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.live.listener import Listener
from tests.servers import NewServer, Server

pytestmark = pytest.mark.timeout(240)


def call(server: Server, method: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, data, method=method)
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def enqueue(server: Server, many: int, **more: Any) -> None:
    """Jobs that nobody runs: one event each."""
    for start in range(0, many, 1_000):
        jobs = [{"type": "nobody", **more} for _ in range(min(1_000, many - start))]
        call(server, "POST", "/api/work/put", {"jobs": jobs})


def newest(server: Server) -> int:
    return int(call(server, "GET", "/api/trail?limit=1")["newest"])


async def crowd(server: Server, listeners: list[Listener], until: int, many: int) -> None:
    """All of them listen while the events are made, and are cut off at random."""
    tasks = [asyncio.create_task(each.listen(until)) for each in listeners]
    await asyncio.to_thread(enqueue, server, many)
    await asyncio.gather(*tasks)


@pytest.mark.parametrize("many", [2_000, pytest.param(10_000, marks=pytest.mark.soak)])
def test_thousands_of_events_reach_a_hundred_listeners_once_and_in_order(
    new_server: NewServer, many: int
) -> None:
    server = new_server()
    path = "/api/events?after=0"
    listeners = [Listener(server.url, path, seed=seed, reads=False) for seed in range(100)]
    asyncio.run(crowd(server, listeners, many, many))
    for each in listeners:
        assert each.seen == list(range(1, many + 1))
    # They were really cut off.
    assert sum(each.connections for each in listeners) > (300 if many == 10_000 else 75)


async def restarts(server: Server, listeners: list[Listener], parts: int, many: int) -> None:
    tasks = [asyncio.create_task(each.listen(parts * many)) for each in listeners]
    for part in range(parts):
        await asyncio.to_thread(enqueue, server, many)
        if part % 2:
            server.kill()
            await asyncio.to_thread(server.start)
        else:
            await asyncio.to_thread(server.restart)
    await asyncio.gather(*tasks)


def test_listeners_go_on_where_they_were_when_the_server_comes_back(new_server: NewServer) -> None:
    server = new_server()
    listeners = [Listener(server.url, "/api/events?after=0", seed=seed) for seed in range(20)]
    asyncio.run(restarts(server, listeners, 4, 250))
    for each in listeners:
        assert each.seen == list(range(1, 1_001))
        assert not each.resets


def test_a_request_stream_has_the_same_numbers_and_the_words_of_its_contract(
    new_server: NewServer,
) -> None:
    server = new_server()
    body = {"type": "parse", "requires_cookie": True, "subscription_id": 7, "url": "https://a.b/"}
    call(server, "POST", "/api/requests/enqueue", body)
    call(server, "POST", "/api/requests/1/prioritize")  # no change of state
    call(server, "POST", "/api/requests/1/cancel")
    last = newest(server)
    listener = Listener(server.url, "/api/requests/events")
    listener.last = "0"
    asyncio.run(listener.listen(last - 1, cuts=False))
    assert [(each["id"], each["previous"], each["status"]) for each in listener.events] == [
        (1, None, "queued"),
        (1, "queued", "canceled"),
    ]
    assert listener.events[0]["subscription_id"] == 7


def test_who_comes_from_the_future_or_from_what_is_gone_starts_afresh(
    new_server: NewServer,
) -> None:
    server = new_server()
    enqueue(server, 3)
    listener = Listener(server.url)
    listener.last = "999"

    async def hear() -> None:
        task = asyncio.create_task(listener.listen(4, cuts=False))
        await listener.reset.wait()
        await asyncio.to_thread(enqueue, server, 1)
        await task

    asyncio.run(hear())
    assert listener.resets[0]["newest"] == 3
    assert listener.resets[0]["snapshot"]["counts"]["queued"] == 3
    assert listener.seen == [4]


def test_two_hundred_listen_at_once_and_the_next_is_told_to_come_later(
    new_server: NewServer,
) -> None:
    server = new_server(max_clients=200)
    listeners = [Listener(server.url, "/api/events?after=0", seed=seed) for seed in range(200)]

    async def hear() -> None:
        tasks = [asyncio.create_task(each.listen(50, cuts=False)) for each in listeners]
        await asyncio.gather(*(each.connected.wait() for each in listeners))
        with pytest.raises(AssertionError, match="503"):
            await Listener(server.url).listen(50)
        await asyncio.to_thread(enqueue, server, 50)
        await asyncio.gather(*tasks)

    asyncio.run(hear())
    assert all(each.seen == list(range(1, 51)) for each in listeners)


def listening(server: Server) -> int:
    with urllib.request.urlopen(server.url + "/metrics", timeout=60) as page:
        found = re.search(r"^headway_sse_clients (\d+)", page.read().decode(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def test_a_listener_that_does_not_read_is_dropped_and_the_others_notice_nothing(
    new_server: NewServer,
) -> None:
    server = new_server(slow_client_s=1)
    address = urlsplit(server.url)
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        deaf.connect((address.hostname, address.port))
        deaf.sendall(f"GET /api/events HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode())
        deaf.recv(16)
        listener = Listener(server.url, "/api/events?after=0")

        async def hear() -> None:
            heard = asyncio.create_task(listener.listen(8_000, cuts=False))
            # More than the kernel keeps for a connection.
            await asyncio.to_thread(enqueue, server, 8_000, key="k" * 2_000)
            await heard

        asyncio.run(hear())
        assert listener.seen == list(range(1, 8_001))
        while listening(server):
            pass  # the time it may take is the timeout of this test
        with pytest.raises(ConnectionResetError):
            read_on(deaf)


def read_on(connection: socket.socket) -> None:
    while connection.recv(65_536):
        pass
    raise ConnectionResetError  # it was told that it is over
