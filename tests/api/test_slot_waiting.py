"""A request that waits for a slot, and what becomes of it when its client hangs up: before the
engine has heard of it, while it waits, and when its answer is on its way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from fastapi import Request

from headway import App
from headway.api.config import Config
from headway.api.problems import Problem
from headway.api.site import Site
from headway.api.slot_waiting import GONE
from headway.api.slotting import Waiting
from headway.api.turns import in_turn
from headway.engine.slots import LEASE, Answer, Phase, Session, Wish
from tests.hands.kit import WAIT_S

HOST = "files.example.com"
WISH = Wish(kind=LEASE, upstreams=(HOST,))
LONG_S = 60.0  # far longer than a test may last


class Client:
    """As much of a request as is watched: whether somebody is still there."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()

    async def receive(self) -> dict[str, str]:
        await self.gone.wait()
        return {"type": "http.disconnect"}


class Pause:
    """Another thread stands still until it is over."""

    def __init__(self) -> None:
        self.began, self.over = asyncio.Event(), asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def here(self) -> None:
        self._loop.call_soon_threadsafe(self.began.set)
        asyncio.run_coroutine_threadsafe(self.over.wait(), self._loop).result(WAIT_S)


class Desk:
    def __init__(self, site: Site) -> None:
        self.site = site
        self.desk = site.engine.brain.slots

    def waiting(self, client: Client) -> Waiting:
        return Waiting(self.site, cast("Request", client))

    async def look(self, see: Callable[[dict[int, Session]], Any]) -> Any:
        return await in_turn(self.site.engine, lambda _: see(self.desk.sessions))

    async def until(self, see: Callable[[dict[int, Session]], Any]) -> Any:
        async with asyncio.timeout(WAIT_S):
            while not (found := await self.look(see)):
                pass
        return found

    async def granted(self) -> Answer:
        answer = await self.waiting(Client()).open(WISH, LONG_S)
        assert answer.what == "granted"
        return answer

    async def pending(self) -> Session:
        answer = await self.waiting(Client()).open(WISH, 0.0)
        assert (answer.what, answer.session is None) == ("pending", False)
        return cast("Session", answer.session)

    async def held_up(self, asked: Awaitable[Answer], meanwhile: Callable[[], None]) -> Answer:
        """The brain does not come to it until the client is gone."""
        pause, loop = Pause(), asyncio.get_running_loop()
        self.site.engine.ask(lambda _: pause.here())
        await pause.began.wait()
        waiting = asyncio.ensure_future(asked)
        loop.call_soon(meanwhile)  # when it has asked
        loop.call_soon(pause.over.set)
        return await waiting


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    app.upstream(HOST, limit=1)
    app.start()
    try:
        yield Site(app, Config(max_slot_waiters=3))
    finally:
        app.stop()
        app.close()


def run(site: Site, play: Callable[[Desk], Awaitable[None]]) -> None:
    async def playing() -> None:
        await play(Desk(site))

    asyncio.run(playing())


def nobody(sessions: dict[int, Session]) -> bool:
    return not sessions


def test_a_grant_whose_client_is_gone_goes_back_if_nobody_knows_its_number(site: Site) -> None:
    async def play(desk: Desk) -> None:
        client = Client()
        answer = await desk.held_up(desk.waiting(client).open(WISH, LONG_S), client.gone.set)
        assert answer.what == "granted"
        await desk.until(nobody)
        assert desk.desk.counts.released == 1

    run(site, play)


def test_whoever_hangs_up_while_it_waits_for_its_first_answer_is_forgotten(site: Site) -> None:
    async def play(desk: Desk) -> None:
        held = await desk.granted()
        client = Client()
        waiting = asyncio.create_task(desk.waiting(client).open(WISH, LONG_S))
        await desk.until(lambda sessions: len(sessions) == 2)
        client.gone.set()
        assert await waiting is GONE
        await desk.until(lambda sessions: list(sessions.values()) == [held.session])

    run(site, play)


def test_a_grant_that_is_on_its_way_when_the_client_hangs_up_goes_back(site: Site) -> None:
    async def play(desk: Desk) -> None:
        client, pause = Client(), Pause()
        site.engine.brain.committed = pause.here  # is called before anybody hears
        waiting = asyncio.create_task(desk.waiting(client).open(WISH, LONG_S))
        await pause.began.wait()
        client.gone.set()
        assert await waiting is GONE
        site.engine.brain.committed = site.hub.committed
        pause.over.set()
        await desk.until(nobody)
        assert desk.desk.counts.released == 1

    run(site, play)


def test_a_grant_that_a_poll_did_not_hear_of_is_kept_for_a_moment(site: Site) -> None:
    async def play(desk: Desk) -> None:
        held, session = await desk.granted(), await desk.pending()
        assert held.session is not None
        fence, holder, client = held.session.fence, held.session, Client()
        await in_turn(site.engine, lambda now: desk.desk.leave(holder, now))
        poll = desk.waiting(client).poll(session.number, None, LONG_S)
        assert (await desk.held_up(poll, client.gone.set)).what == "granted"
        await desk.until(lambda _: session.phase is Phase.GRANTED and not session.claimed)
        again = await desk.waiting(Client()).poll(session.number, None, LONG_S)
        assert (again.what, again.session) == ("granted", session)
        assert session.fence > fence
        assert session.claimed

    run(site, play)


def test_a_poll_that_is_cut_off_leaves_its_session_in_line(site: Site) -> None:
    async def play(desk: Desk) -> None:
        await desk.granted()
        session = await desk.pending()
        poll = asyncio.create_task(desk.waiting(Client()).poll(session.number, None, LONG_S))
        await desk.until(lambda _: session.waiter is not None)
        poll.cancel()
        with pytest.raises(asyncio.CancelledError):
            await poll
        await desk.until(lambda _: session.waiter is None)
        assert session.phase is Phase.WAITING
        assert session.ticket is not None

    run(site, play)


def test_a_first_request_that_is_cut_off_leaves_nothing(site: Site) -> None:
    async def play(desk: Desk) -> None:
        waiting = asyncio.ensure_future(desk.waiting(Client()).open(WISH, LONG_S))

        def cut_off() -> None:
            waiting.cancel()

        with pytest.raises(asyncio.CancelledError):
            await desk.held_up(waiting, cut_off)
        await desk.granted()  # its place is free

    run(site, play)


def test_those_who_wait_are_counted_and_limited(site: Site) -> None:
    async def play(desk: Desk) -> None:
        await desk.granted()
        clients = [Client() for _ in range(3)]
        waiting = [asyncio.create_task(desk.waiting(each).open(WISH, LONG_S)) for each in clients]
        await desk.until(lambda sessions: len(sessions) == 4)
        assert site.slot_waiters == 3
        with pytest.raises(Problem, match="3 requests wait for slots already"):
            await desk.pending()
        for client in clients:
            client.gone.set()
        await asyncio.gather(*waiting)
        assert site.slot_waiters == 0
        await desk.until(lambda sessions: len(sessions) == 1)

    run(site, play)


def test_a_server_that_stops_lets_nobody_wait(site: Site) -> None:
    async def play(desk: Desk) -> None:
        await desk.granted()
        session = await desk.pending()
        polls = [desk.waiting(Client()).poll(session.number, None, LONG_S) for _ in range(2)]
        first = asyncio.create_task(polls[0])
        await desk.until(lambda _: session.waiter is not None)
        site.stop_waiting()
        assert (await first).what == "pending"
        with pytest.raises(Problem, match="the server is stopping"):
            await polls[1]
        assert session.phase is Phase.WAITING

    run(site, play)


def test_a_request_that_comes_while_the_server_begins_to_stop_does_not_wait(site: Site) -> None:
    async def play(desk: Desk) -> None:
        await desk.granted()
        session = await desk.pending()
        poll = desk.waiting(Client()).poll(session.number, None, LONG_S)
        answer = await desk.held_up(poll, lambda: setattr(site, "stopping", True))
        assert answer.what == "pending"

    run(site, play)
