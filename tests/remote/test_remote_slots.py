"""Slots over HTTP, as programs hold them at a server that really runs, and really goes away."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from headway import App, Pushback, SlotLost
from headway.core import Refused
from headway.remote.client import Ask, Client
from headway.remote.slots import RemoteSlot
from tests.hands.kit import WAIT_S, eventually
from tests.servers import Server, server_on

Told = dict[str, Any]
STORES = ["sqlite", pytest.param("postgres", marks=pytest.mark.soak)]


@pytest.fixture(scope="module", params=STORES)
def served(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server for all tests that do no harm to it: its address."""
    with server_on(request.param) as server:
        yield server.url


@pytest.fixture
def app(served: str) -> Iterator[App]:
    with_it = App(served)
    yield with_it
    with_it.close()


@pytest.fixture
def host(app: App) -> str:
    """An upstream with one place, which no other test knows."""
    name = f"{uuid4().hex[:12]}.example"
    app.set(f"upstream:{name}", limit=1)
    return name


def listed(app: App, host: str) -> list[Told]:
    """Who waits and who holds there."""
    found: list[Told] = app.store._get("slots", upstream=host)["items"]  # type: ignore[attr-defined]
    return found


def states(app: App, host: str) -> list[str]:
    return [each["state"] for each in listed(app, host)]


def end(app: App, slot: Told) -> None:
    app.store._client.call(Ask("DELETE", f"/api/slots/{slot['id']}"))  # type: ignore[attr-defined]


class Waiter:
    """Wants a slot in a thread of its own, and gives it back at once."""

    def __init__(self, app: App, host: str, *, seen: bool = True) -> None:
        self.has_gone = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._wait, args=(app, host))
        self._thread.start()
        if seen:
            eventually(lambda: any(each["attached"] for each in listed(app, host)))

    def _wait(self, app: App, host: str) -> None:
        try:
            with app.slot(host, timeout=WAIT_S):
                self.has_gone.set()
        except BaseException as error:
            self._error = error

    def goes(self) -> None:
        """Raises what it has met instead."""
        self._thread.join(WAIT_S)
        if self._error is not None:
            raise self._error
        assert self.has_gone.is_set()


def keepers() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("headway-slot")]


class Crowd:
    """Counts who is at an upstream at the same time."""

    def __init__(self) -> None:
        self.most = self.came = 0
        self._inside = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            self.came += 1
            self.most = max(self.most, self._inside)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1


# ---------------------------------------------------------------------- holding


def test_two_clients_never_hold_together(served: str, app: App, host: str) -> None:
    crowd = Crowd()

    def in_threads(mine: App) -> None:
        for _ in range(5):
            with mine.slot(host, tenant="threads", timeout=WAIT_S), crowd:
                threading.Event().wait(0.005)

    async def hold(mine: App) -> None:
        async with mine.slot(host, tenant="loop", timeout=WAIT_S):
            with crowd:
                await asyncio.to_thread(threading.Event().wait, 0.005)

    async def on_loop(mine: App) -> None:
        await asyncio.gather(*(hold(mine) for _ in range(20)))

    other = App(served)
    threads = [threading.Thread(target=in_threads, args=(app,)) for _ in range(4)]
    threads.append(threading.Thread(target=lambda: asyncio.run(on_loop(other))))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.close()
    assert (crowd.came, crowd.most) == (40, 1)
    assert listed(app, host) == []
    assert keepers() == []


def test_a_slot_says_what_it_is(app: App, host: str) -> None:
    slot = app.slot(["elsewhere.example", host], tenant="ann", holder="the night run", lease="1m")
    with pytest.raises(RuntimeError, match="not held"):
        assert slot.fence
    app.pause("upstream:elsewhere.example")
    with slot as held:
        assert held is slot
        assert slot.upstream == host
        [seen] = listed(app, host)
        assert seen["fence"] == slot.fence
        assert (seen["tenant"], seen["holder"]) == ("ann", "the night run")
        assert not slot.lost.is_set()
    app.resume("upstream:elsewhere.example")
    assert listed(app, host) == []


def test_it_is_renewed_for_as_long_as_the_block_runs(app: App, host: str) -> None:
    async def hold() -> None:
        async with app.slot(host, lease=1) as slot:
            await asyncio.to_thread(threading.Event().wait, 2.2)
            assert not slot.lost.is_set()
            assert states(app, host) == ["granted"]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with app.slot("another.example", lease=1) as slot:
        asyncio.run(hold())
        assert not slot.lost.is_set()
    assert keepers() == []


@pytest.mark.parametrize("says", ["report", "raise"])
def test_what_the_upstream_says_is_heard_by_all(app: App, host: str, says: str) -> None:
    if says == "report":
        with app.slot(host) as slot:
            slot.report(429, retry_after="1h")
    else:
        with pytest.raises(Pushback), app.slot(host):
            raise Pushback("not now", retry_after="1h")
    with pytest.raises(TimeoutError, match=f"no slot at {host} within 0.2 s"):
        app.slot(host, timeout=0.2).__enter__()
    app.open(f"upstream:{host}")
    with app.slot(host, timeout=WAIT_S):
        pass


def test_errors_of_the_block_are_judged_like_those_of_jobs(app: App, host: str) -> None:
    app.set(f"upstream:{host}", limit=1, breaker={"in_a_row": 3})
    for error in (LookupError, ConnectionError, LookupError, TimeoutError, ConnectionError):
        with pytest.raises(error), app.slot(host, timeout=WAIT_S):
            raise error
    with pytest.raises(TimeoutError), app.slot(host, timeout=0.2):
        raise AssertionError


# ---------------------------------------------------------------------- waiting


def test_who_waits_too_long_leaves_the_line(app: App, host: str) -> None:
    async def wait(timeout: float) -> None:
        async with app.slot(host, timeout=timeout):
            raise AssertionError

    with app.slot(host):
        for timeout in (0.3, 0):
            with pytest.raises(TimeoutError, match=f"no slot at {host} within {timeout} s"):
                asyncio.run(wait(timeout))
            with pytest.raises(TimeoutError), app.slot(host, timeout=timeout):
                raise AssertionError
        assert states(app, host) == ["granted"]
    with app.slot(host, timeout=0):
        pass


def test_a_task_that_is_cancelled_leaves_the_line(app: App, host: str) -> None:
    async def play() -> None:
        waiting = asyncio.ensure_future(app.slot(host).__aenter__())
        await asyncio.to_thread(eventually, lambda: "waiting" in states(app, host))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await asyncio.to_thread(states, app, host) == ["granted"]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with app.slot(host):
        asyncio.run(play())


def test_ctrl_c_leaves_the_line(served: str, app: App, host: str) -> None:
    def interrupted(_: object) -> None:
        assert "waiting" in states(app, host)
        raise KeyboardInterrupt

    with app.slot(host):
        impatient = RemoteSlot(Client(served), {"upstreams": [host]}, heard=interrupted)
        with pytest.raises(KeyboardInterrupt):
            impatient.__enter__()
        assert states(app, host) == ["granted"]


def test_where_too_many_wait_nobody_else_may(app: App, host: str) -> None:
    app.set(f"upstream:{host}", limit=1, max_waiters=1)
    with app.slot(host):
        first = Waiter(app, host)
        with pytest.raises(Refused), app.slot(host):
            raise AssertionError
    first.goes()


def test_an_operator_ends_a_wait_or_takes_a_slot_back(app: App, host: str) -> None:
    def hold() -> None:
        with app.slot(host, lease=1.5) as slot:
            waiter = Waiter(app, host)
            held, waiting = listed(app, host)
            end(app, waiting)
            with pytest.raises(SlotLost, match="ended the wait"):
                waiter.goes()
            end(app, held)
            assert slot.lost.wait(WAIT_S)

    with pytest.raises(SlotLost, match="was lost"):
        hold()


# ---------------------------------------------------------------------- a server that goes away


@pytest.fixture(scope="module", params=STORES)
def fragile(request: pytest.FixtureRequest) -> Iterator[Server]:
    with server_on(request.param) as server:
        yield server


@pytest.fixture
def server(fragile: Server) -> Iterator[Server]:
    """It may be killed, and is there again for the next test."""
    yield fragile
    if fragile._process is None:
        fragile.start()


@pytest.fixture
def far(server: Server) -> Iterator[App]:
    """An app on that server, where x.example has one place."""
    app = App(server.url)
    app.set("upstream:x.example", limit=1)
    yield app
    app.close()


def test_waiting_and_holding_go_on_over_a_crash_of_the_server(server: Server, far: App) -> None:
    with far.slot("x.example", lease=9) as slot:
        fence = slot.fence
        waiter = Waiter(far, "x.example")
        before = listed(far, "x.example")
        server.kill()
        server.start()
        eventually(lambda: [each["attached"] for each in listed(far, "x.example")][1:] == [True])
        held, waiting = listed(far, "x.example")
        assert (held["fence"], held["state"]) == (fence, "granted")
        assert [held["id"], waiting["id"]] == [each["id"] for each in before]
        ends_at = held["lease_ends_at"]
        eventually(lambda: listed(far, "x.example")[0]["lease_ends_at"] > ends_at)  # renewed
        assert not slot.lost.is_set()
        assert not waiter.has_gone.is_set()
    waiter.goes()
    assert listed(far, "x.example") == []


def test_a_slot_is_lost_when_its_lease_ends_by_our_own_clock(server: Server, far: App) -> None:
    told = threading.Semaphore(0)

    def in_plain_code() -> None:
        with far.slot("x.example", lease=1, on_lost=told.release) as slot:
            with pytest.raises(LookupError):
                asyncio.run(on_a_loop())
            assert slot.lost.wait(WAIT_S)

    async def on_a_loop() -> None:
        async with far.slot("y.example", lease=1, on_lost=told.release) as slot:
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(slot.lost.wait, WAIT_S)
            raise LookupError("the block's own error")

    with pytest.raises(SlotLost, match=r"the slot at x\.example was lost: .*cannot be reached"):
        in_plain_code()
    for _ in range(2):
        assert told.acquire(timeout=WAIT_S)
    assert keepers() == []


def test_a_server_that_is_away_is_waited_for_until_time_is_over(server: Server, far: App) -> None:
    server.kill()
    with pytest.raises(TimeoutError, match=r"within 0\.5 s; .*cannot be reached"):
        far.slot("x.example", timeout=0.5).__enter__()
    waiter = Waiter(far, "x.example", seen=False)
    server.start()
    waiter.goes()
