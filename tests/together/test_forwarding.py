"""What a client of a follower hears, whatever becomes of the leader that its request went to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Any

import pytest

from headway import App
from headway.api.problems import Problem
from headway.api.site import Site
from headway.api.together import forwarding
from headway.api.together import standing as standings
from headway.api.together.forwarding import Forwarder
from headway.api.together.standing import Standing
from headway.errors import EngineStopped
from headway.store.records import Leader
from tests.hands.kit import WAIT_S

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
BEGUN = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"


class Peers:
    def seal(self, *_: object) -> bytes:
        return b"x"


class World:
    """A follower, a client of it, and leaders that do as they are told."""

    def __init__(self) -> None:
        store: Any = None
        peers: Any = Peers()
        self.standing = Standing(store, "http://here", leads=False)
        self.forwarder = Forwarder(self.standing, peers, self._elsewhere, lambda _: None)
        self.sent: list[dict[str, Any]] = []
        self.said = asyncio.Event()  # the client has heard something
        self.aborted = asyncio.Event()
        self._term = 0
        self._servers: list[asyncio.Server] = []

    async def led_by(self, serve: Serve) -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        self._servers.append(server)
        self.lead(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")

    def lead(self, url: str) -> None:
        self._term += 1
        self.standing.leader = Leader(self._term, url, f"process 7 on far ({url})", url)
        self.standing._tell()

    def stop(self) -> None:
        self.standing._loop = asyncio.get_running_loop()
        self.standing.stop()

    async def ask(self, method: str, path: str, *pieces: bytes | Exception, query: str = "") -> Any:
        """What the client hears: a status and what came with it."""
        messages = list(pieces) or [b""]

        async def receive() -> dict[str, Any]:
            if not messages:
                await asyncio.Event().wait()
            piece = messages.pop(0)
            if isinstance(piece, Exception):
                raise piece
            return {"type": "http.request", "body": piece, "more_body": bool(messages)}

        async def send(message: dict[str, Any]) -> None:
            self.sent.append(message)
            if message.get("body") or message.get("status", 200) != 200:
                self.said.set()

        scope = {"type": "http", "method": method, "path": path, "query_string": query.encode(),
                 "headers": [], "principal": None, "client": None,
                 "headway.abort": self.aborted.set}  # fmt: skip
        async with asyncio.timeout(WAIT_S):
            await self.forwarder(scope, receive, send, self._elsewhere)  # type: ignore[arg-type]
        status = self.sent[0]["status"]
        return status, b"".join(each.get("body", b"") for each in self.sent[1:])

    async def _elsewhere(self, *_: object) -> None:
        raise AssertionError("this is for the leader alone")

    async def end(self) -> None:
        self.forwarder.close()
        for each in self._servers:
            each.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0)


def in_world(go: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        world = World()
        try:
            await go(world)
        finally:
            await world.end()

    asyncio.run(run())


def problem(answer: tuple[int, bytes]) -> tuple[int, str, str]:
    said = json.loads(answer[1])
    return answer[0], said["type"], said["detail"]


async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Reads, and does not answer."""
    try:
        await reader.read(-1)
    finally:
        writer.transport.abort()


def test_an_upload_that_turns_out_to_be_too_large_is_refused_as_by_the_leader() -> None:
    async def go(world: World) -> None:
        await world.led_by(never)
        large = Problem(413, "the body may have at most 5 bytes", kind="too-large")
        status, said = await world.ask("POST", "/v1/files", b"abc", large, b"def")
        assert status == 413
        assert b"at most 5 bytes" in said  # in whichever shape those have who ask there

    in_world(go)


def test_an_engine_that_is_no_server_is_named_since_nobody_can_ask_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To wait for it would not help."""
    monkeypatch.setattr(forwarding, "PATIENCE_S", 0.0)

    async def go(world: World) -> None:
        world.lead("")
        status, kind, detail = problem(await world.ask("GET", "/api/upstreams"))
        assert (status, kind) == (503, "unavailable")
        assert "process 7 on far () leads, and has no address" in detail
        assert "`headway serve`" in detail

    in_world(go)


def test_a_follower_that_stops_sends_who_waits_to_another_server() -> None:
    async def go(world: World) -> None:
        heard = asyncio.Event()

        async def hears(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.set()
            await never(reader, writer)

        await world.led_by(hears)
        asking = asyncio.ensure_future(world.ask("POST", "/api/work/take"))
        await heard.wait()
        world.stop()
        status, kind, detail = problem(await asking)
        assert (status, kind) == (503, "unavailable")
        assert "this server stops; ask another one" in detail

    in_world(go)


def test_an_order_that_may_not_come_twice_is_heard_out_though_the_follower_stops() -> None:
    async def go(world: World) -> None:
        async def stops_it(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            world.stop()
            await answers_now(writer)

        await world.led_by(stops_it)
        assert await world.ask("POST", "/api/tokens") == (200, b"{}")

    in_world(go)


@pytest.mark.parametrize(
    ("method", "path", "query"),
    [("POST", "/api/work/take", ""), ("GET", "/api/jobs/7", "wait_s=60")],
)
def test_who_has_waited_long_for_an_answer_still_waits_for_the_next_leader(
    method: str, path: str, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A poll that its leader has kept for longer than anybody waits for a leader."""
    clock = [0.0]
    monkeypatch.setattr(forwarding, "monotonic", lambda: clock[0])
    monkeypatch.setattr(standings, "monotonic", lambda: clock[0])

    async def go(world: World) -> None:
        async def dies(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            clock[0] += 25.0
            world.standing.leader = None
            writer.transport.abort()
            asyncio.get_running_loop().call_later(0.05, lambda: tasks.append(
                asyncio.ensure_future(world.led_by(answers))))  # fmt: skip

        tasks: list[object] = []
        await world.led_by(dies)
        assert await world.ask(method, path, query=query) == (200, b"{}")

    in_world(go)


async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    await answers_now(writer)


async def answers_now(writer: asyncio.StreamWriter) -> None:
    writer.write(OK)
    await writer.drain()
    writer.close()


def test_an_answer_that_was_begun_by_a_leader_before_does_not_hang_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That one was stopped, or its machine is off. The client comes again."""
    monkeypatch.setattr(forwarding, "LAST_WORDS_S", 0.05)

    async def go(world: World) -> None:
        async def begins(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(BEGUN)
            await never(reader, writer)

        await world.led_by(begins)
        asking = asyncio.ensure_future(world.ask("GET", "/v1/models"))
        await world.said.wait()
        world.lead("http://127.0.0.1:1")
        await asking
        assert world.aborted.is_set()

    in_world(go)


def test_an_answer_that_was_begun_by_a_leader_before_may_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forwarding, "LAST_WORDS_S", 5 * WAIT_S)
    go_on = asyncio.Event()

    async def go(world: World) -> None:
        async def begins(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(BEGUN)
            await go_on.wait()
            writer.write(b"3\r\ndef\r\n0\r\n\r\n")
            await never(reader, writer)

        await world.led_by(begins)
        asking = asyncio.ensure_future(world.ask("GET", "/v1/models"))
        await world.said.wait()
        world.lead("http://127.0.0.1:1")
        go_on.set()
        assert await asking == (200, b"abcdef")
        assert not world.aborted.is_set()

    in_world(go)


@pytest.mark.parametrize(
    ("follows", "stops", "said"),
    [
        (True, False, "no server leads at the moment"),
        (True, True, "the server is stopping"),
        (False, False, "the server is stopping"),
    ],
)
def test_a_follower_says_why_it_has_no_engine(*, follows: bool, stops: bool, said: str) -> None:
    site = object.__new__(Site)
    site.app = App()
    site.stopping = stops
    store: Any = None
    site.standing = None
    with closing(site.app):
        if follows:
            site.standing = Standing(store, "http://here", leads=False)
        with pytest.raises(EngineStopped, match=said):
            assert site.engine
