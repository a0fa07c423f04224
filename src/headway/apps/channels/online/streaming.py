"""Answers on their way to the client: whole, or event by event as they come.

A stream is cut into its events, each is passed on the moment it is complete, and what was counted
is kept for the bill.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from typing import Any

import httpx2
import msgspec
from starlette.types import Scope, Send

from headway.apps.channels.money.billing import CHARACTERS_PER_TOKEN, Usage, usage_of

MOST_PENDING = 8_388_608  # bytes of an event that is not complete
DONE = b"[DONE]"
CHANNEL = b"x-headway-channel"
PASSED = frozenset({"content-type", "x-request-id", "retry-after", "retry-after-ms"})

Headers = list[tuple[bytes, bytes]]

_CLEAN = re.compile(r"[\t\x20-\x7e\xa0-\uffff]*")  # what may stand in a header
# A line that is empty, whatever ends lines here.
_END = re.compile(rb"\r\n(?:\r\n|\n)|\n(?:\r\n|\n)|\r\r")


def passed(headers: Mapping[str, str], code: str) -> Headers:
    """Of a provider's headers those that concern the client, and which channel it was."""
    kept = [
        (name.encode("latin-1"), value.encode("latin-1", "replace"))
        for name, value in headers.items()
        if (name in PASSED or name.startswith("x-ratelimit-")) and _CLEAN.fullmatch(value)
    ]
    return [*kept, (CHANNEL, code.encode())]


class ClientGone(Exception):
    """Nobody reads the answer any more."""


class Client:
    """Whoever has asked: what is sent to it, and how it is cut off."""

    def __init__(self, scope: Scope, send: Send, slow_s: float) -> None:
        self._scope = scope
        self._send = send
        self._slow_s = slow_s  # it may not take longer to read something
        self.started = False
        self.complete = False

    async def whole(self, status: int, headers: Headers, body: bytes) -> None:
        await self.begin(status, [*headers, (b"content-length", b"%d" % len(body))])
        await self._pass(body, more=False)
        self.complete = True

    async def begin(self, status: int, headers: Headers) -> None:
        self.started = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def pass_on(self, data: bytes) -> None:
        await self._pass(data, more=True)

    async def end(self, data: bytes = b"") -> None:
        self.complete = True  # first: from then on it may go away
        await self._pass(data, more=False)

    async def _pass(self, data: bytes, *, more: bool) -> None:
        try:
            async with asyncio.timeout(self._slow_s):
                await self._send({"type": "http.response.body", "body": data, "more_body": more})
        except TimeoutError:
            self.cut_off()
            raise ClientGone from None

    def cut_off(self) -> None:
        """End the connection, so that nobody takes half an answer for a whole one."""
        self.complete = True
        abort = self._scope.get("headway.abort")
        if abort is None:
            raise ClientGone
        abort()


class Events:
    """Cuts what comes into events."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """All that are complete now, each with the empty line behind it."""
        pending = self._pending
        looked = max(0, len(pending) - 3)  # the end may have come in two parts
        pending += data
        begin = 0
        while (found := _END.search(pending, max(begin, looked))) is not None:
            yield bytes(pending[begin : found.end()])
            begin = found.end()
        del pending[:begin]
        if len(pending) > MOST_PENDING:
            raise httpx2.RemoteProtocolError(f"an event has more than {MOST_PENDING} bytes")

    def rest(self) -> bytes:
        """What was not complete when the stream ended."""
        return bytes(self._pending)


class Count:
    """What an answer has used, as far as it has come."""

    def __init__(self, sent: int, *, wanted: bool) -> None:
        self._sent = sent
        self._wanted = wanted  # the client has asked to be told
        self._characters = 0
        self._said: dict[str, Any] | None = None
        self.done = False  # the provider has said that this is all

    def keeps(self, event: bytes) -> bool:
        """Look at an event, and say whether the client gets it."""
        data = data_of(event)
        if not data:
            return True
        if data == DONE:
            self.done = True
            return True
        try:
            chunk = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return True  # whatever that is, it is for the client
        if not isinstance(chunk, dict):
            return True
        said, choices = chunk.get("usage"), chunk.get("choices")
        if isinstance(said, dict):
            self._said = said
            if choices == [] and not self._wanted:
                return False
        self._characters += sum(map(len, _texts(choices)))
        return True

    def usage(self) -> Usage:
        if self._said is not None:
            usage = usage_of({"usage": self._said}, self._sent)
            if not usage.estimated:
                return usage
        characters = self._characters
        return Usage(
            self._sent // CHARACTERS_PER_TOKEN, characters // CHARACTERS_PER_TOKEN, estimated=True
        )


def data_of(event: bytes) -> bytes:
    """What an event says; nothing, if it is a comment."""
    lines = [line for line in event.splitlines() if line.startswith(b"data:")]
    if len(lines) == 1:
        return lines[0][5:].strip()
    return b"\n".join(line[5:].removeprefix(b" ") for line in lines)


def _texts(choices: Any) -> Iterator[str]:
    """All that was said in a chunk: words, thoughts, and what tools are called with."""
    for choice in choices if isinstance(choices, list) else ():
        delta = choice.get("delta") if isinstance(choice, dict) else None
        if not isinstance(delta, dict):
            continue
        for name in ("content", "reasoning_content", "refusal"):
            if isinstance(text := delta.get(name), str):
                yield text
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict) and isinstance(said := function.get("arguments"), str):
                yield said
