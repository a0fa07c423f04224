"""The line between two servers, at a leader that is scripted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from headway.api.problems import Problem
from headway.api.together.line import Answer, Broken, Line
from tests.hands.kit import WAIT_S
from tests.together.own_loop import OwnLoop

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
NO = b"HTTP/1.1 415 No\r\nContent-Length: 2\r\n\r\nno"


class Leader(OwnLoop):
    """Answers `refused` before it has seen the end of a chunked body, and all else when it is
    whole. `gone` hangs up in the middle.
    """

    def __init__(self) -> None:
        super().__init__()
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if b"/refused" in head:
                    await reader.readuntil(b"\r\na\r\n")
                    writer.write(NO)
                    continue
                if b"/gone" in head:
                    await reader.readuntil(b"\r\n")
                    break
                if b"chunked" in head:
                    await reader.readuntil(b"0\r\n\r\n")
                writer.write(OK)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        writer.close()


async def answered(line: Line, method: str, path: str, *pieces: AsyncIterator[bytes]) -> int:
    answer: Answer = await line.ask(method, path, [(b"host", b"x")], pieces[0] if pieces else b"")
    try:
        async for _ in answer.pieces():
            pass
    finally:
        answer.close()
    return answer.status


async def some(*pieces: bytes) -> AsyncIterator[bytes]:
    for each in pieces:
        yield each


async def endless(first: bytes) -> AsyncIterator[bytes]:
    """A client that has stopped in the middle."""
    yield first
    await asyncio.Event().wait()


Talk = Callable[[Line], Awaitable[None]]


def connections(talk: Talk) -> int:
    """How many the leader has seen."""

    async def go(port: int) -> None:
        line = Line(f"http://127.0.0.1:{port}")
        async with asyncio.timeout(WAIT_S):
            await talk(line)
        line.close()
        await asyncio.sleep(0)  # what was aborted is closed now

    with Leader() as leader:
        asyncio.run(go(leader.port))
        return leader.connections


def test_a_connection_is_kept_if_the_request_was_sent_whole() -> None:
    async def talk(line: Line) -> None:
        assert await answered(line, "POST", "/", some(b"a", b"", b"b")) == 200
        assert await answered(line, "GET", "/") == 200

    assert connections(talk) == 1


def test_an_upload_that_is_refused_early_is_heard_at_once_and_spoils_nothing() -> None:
    """What was sent of it must not stand before the next request."""

    async def talk(line: Line) -> None:
        assert await answered(line, "POST", "/refused", endless(b"a")) == 415
        assert await answered(line, "GET", "/") == 200

    assert connections(talk) == 2


def test_a_line_that_breaks_during_an_upload_is_broken_and_no_fault() -> None:
    async def talk(line: Line) -> None:
        with pytest.raises(Broken):
            await answered(line, "POST", "/gone", endless(b"a"))

    assert connections(talk) == 1


def test_an_upload_that_its_client_breaks_off_leaves_nothing_behind() -> None:
    async def too_large() -> AsyncIterator[bytes]:
        yield b"a"
        raise Problem(413, "too large")

    async def talk(line: Line) -> None:
        with pytest.raises(Problem):
            await answered(line, "POST", "/", too_large())
        assert await answered(line, "GET", "/") == 200

    assert connections(talk) == 2
