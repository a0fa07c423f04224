"""Servers behind a balancer that sends each request to the next of them: nobody notices."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from headway import App
from tests.contract.slot_handler_client import ATTEMPTS, TIMEOUT_S, SlotHandlerClient
from tests.contract.test_fairqueue_handler_client import Host
from tests.hands.kit import WAIT_S, eventually
from tests.live.listener import Listener
from tests.together.balancer import Balancer
from tests.together.conftest import NewGroup
from tests.together.group import Group, ask

CLIENTS = 16
SLOTS = 2


@pytest.fixture
def group(new_group: NewGroup) -> Group:
    group = new_group(2, file=f'[upstream."host.example"]\nlimit = {SLOTS}\n')
    eventually(lambda: len(ask(group.urls[1], "GET", "/api/servers")[1]["items"]) == 2)
    return group


@pytest.fixture
def balancer(group: Group) -> Iterator[Balancer]:
    with Balancer(group.urls) as balancer:
        yield balancer


def test_clients_of_slots_notice_nothing(balancer: Balancer, group: Group) -> None:
    """They know one address. Each of their requests comes to another server than the one before."""
    host = Host()
    clients = [SlotHandlerClient(balancer.url, f"203.0.113.{n}/32") for n in range(CLIENTS)]

    def download(client: SlotHandlerClient) -> None:
        for _ in range(2):
            with client.slot("host.example") as slot:
                slot.hits_upstream()
                host.answer(0.05)

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(download, clients))
    assert (host.calls, host.most) == (2 * CLIENTS, SLOTS)
    assert max(client.slowest_s for client in clients) < TIMEOUT_S
    assert max(client.requests for client in clients) <= ATTEMPTS
    [upstream] = ask(balancer.url, "GET", "/api/upstreams")[1]["items"]
    assert upstream["running"] == 0
    shares = [balancer.passed[url] for url in group.urls]
    assert max(shares) - min(shares) <= 1, "each request went to the next one"


def test_whoever_listens_hears_every_event_once_and_in_order(
    balancer: Balancer, group: Group
) -> None:
    """Also who is cut off again and again, and comes back to the other server."""
    jobs = [{"type": "nobody-knows", "args": {}} for _ in range(300)]

    async def listen() -> list[Listener]:
        steady = [Listener(url) for url in group.urls]
        restless = [Listener(balancer.url, seed=seed) for seed in range(3)]
        everybody = [*steady, *restless]
        hearing = [asyncio.ensure_future(each.listen(len(jobs), cuts=each in restless))
                   for each in everybody]  # fmt: skip
        for each in everybody:
            await each.connected.wait()
        for number, each in enumerate(jobs):
            url = group.urls[number % 2]
            await asyncio.to_thread(ask, url, "POST", "/api/jobs", each)
        async with asyncio.timeout(WAIT_S):
            await asyncio.gather(*hearing)
        return everybody

    everybody = asyncio.run(listen())
    for each in everybody:
        assert all(after == before + 1 for before, after in pairwise(each.seen)), each.seen
        assert each.resets == []
    assert sum(each.connections for each in everybody[2:]) > 3


def test_workers_and_slots_of_python_programs_notice_nothing(balancer: Balancer) -> None:
    app = App(balancer.url)
    app.upstream("far.example", limit=2)
    inside, most = 0, 0
    lock = threading.Lock()

    @app.job(upstream="far.example")
    def fetch(number: int) -> int:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        threading.Event().wait(0.01)
        with lock:
            inside -= 1
        return number * 2

    with app.running():
        handles = app.enqueue_many([fetch.call(number) for number in range(40)])
        assert [handle.result(WAIT_S) for handle in handles] == [n * 2 for n in range(40)]
        with app.slot("far.example", timeout=WAIT_S):
            pass
    assert most == 2
    app.close()


def test_a_program_that_knows_all_servers_calls_those_that_are_there(group: Group) -> None:
    first, second = group.servers
    app = App(f"{first.url},{second.url}")

    @app.job()
    def double(number: int) -> int:
        return number * 2

    with app.running():
        assert double.enqueue(1).result(WAIT_S) == 2
        first.kill()
        assert double.enqueue(2).result(WAIT_S) == 4
        first.start()
        second.kill()
        assert double.enqueue(3).result(WAIT_S) == 6
    app.close()


def test_a_follower_lets_nobody_have_more_open_jobs_than_he_may(new_group: NewGroup) -> None:
    """It puts jobs into the store by itself, and runs no engine that would know how many."""
    group = new_group(2, max_open_per_tenant=3)
    [follower] = group.followers()
    job = {"type": "nobody-knows", "args": {}}
    answers = [ask(follower.url, "POST", "/api/jobs", job)[0] for _ in range(4)]
    assert answers == [202, 202, 202, 429]
    status, answer = ask(follower.url, "POST", "/api/work/put", {"jobs": [job]})
    assert (status, answer["type"]) == (429, "queue-full")
