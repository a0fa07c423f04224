"""A client that was written for the slot handler gets its slots."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.contract.fairqueue_kit import new_host, shared_service
from tests.contract.slot_handler_client import ATTEMPTS, TIMEOUT_S, NoSlot, SlotHandlerClient
from tests.servers import STORES

CLIENTS = 12
SLOTS = 2


class Host:
    """It counts who calls it at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self.most = 0
        self.calls = 0

    def answer(self, after_s: float) -> None:
        with self._lock:
            self._inside += 1
            self.calls += 1
            self.most = max(self.most, self._inside)
        threading.Event().wait(after_s)
        with self._lock:
            self._inside -= 1


@pytest.mark.parametrize("store", STORES)
def test_one_after_the_other(store: str) -> None:
    service, name, host = shared_service(store), new_host("one"), Host()
    client = SlotHandlerClient(service.server.url, "203.0.113.4/32")
    for _ in range(3):
        with client.slot(name) as slot:
            slot.hits_upstream()
            host.answer(0.0)
        assert client.requests == 1
    assert (host.calls, service.queue.holders(name)) == (3, 0)


@pytest.mark.parametrize(("profile", "hold_s"), [
    ("polled", 0.4),
    # Told to let them wait for a minute, it still answers before they give up.
    pytest.param("endless", 1.55, marks=pytest.mark.soak),
])  # fmt: skip
def test_all_of_a_crowd_are_served_within_three_requests_of_eight_seconds(
    profile: str, hold_s: float
) -> None:
    service, name, host = shared_service(), new_host(profile), Host()
    clients = [SlotHandlerClient(service.server.url, f"203.0.113.{n}/32") for n in range(CLIENTS)]

    def download(client: SlotHandlerClient) -> float:
        began = time.monotonic()
        with client.slot(name) as slot:
            waited_s = time.monotonic() - began
            slot.hits_upstream()
            host.answer(hold_s)
        return waited_s

    with ThreadPoolExecutor(CLIENTS) as pool:
        waits = list(pool.map(download, clients))
    assert host.calls == CLIENTS
    assert host.most == SLOTS
    assert max(client.slowest_s for client in clients) < TIMEOUT_S
    assert max(client.requests for client in clients) <= ATTEMPTS
    assert any(client.requests > 1 for client in clients)  # or nobody had to wait that long
    assert max(waits) < (CLIENTS / SLOTS) * hold_s + 1.0
    assert service.queue.holders(name) == 0


def test_it_is_told_when_there_will_be_none() -> None:
    service, name = shared_service(), new_host("one")
    client = SlotHandlerClient(service.server.url, "203.0.113.4/32")
    service.queue.report(name, 503, 4)
    with pytest.raises(NoSlot, match="throttled"), client.slot(name):
        pass
    hasty = new_host("hasty")
    service.queue.hold(hasty)
    with pytest.raises(NoSlot, match="timeout"), client.slot(hasty):
        pass


def test_who_asks_often_enough_gives_up_by_itself() -> None:
    service, name = shared_service(), new_host("one")
    service.queue.hold(name)
    client = SlotHandlerClient(service.server.url, "203.0.113.4/32")
    with pytest.raises(NoSlot, match="asked often enough"), client.slot(name):
        pass
    assert client.requests == ATTEMPTS
