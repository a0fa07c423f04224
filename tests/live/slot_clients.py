"""Clients of the fair queue over connections that they keep: light enough for hundreds of them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
QUEUE = "/api/v0/fairqueue"
INTERNAL_TOKEN = "the-token-of-the-controller"

_encode = msgspec.json.encode
_decode = msgspec.json.decode


class Unreachable(Exception):
    """Nobody listens there: nothing was heard of what was to be said."""


class Unanswered(Exception):
    """The connection broke: what was said may have been heard, or not."""


class Connection(asyncio.Protocol):
    """One request at a time."""

    def __init__(self) -> None:
        self._received = b""
        self._waiting: asyncio.Future[tuple[int, Any]] | None = None
        self.is_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.is_open = True

    def send(self, request: bytes) -> asyncio.Future[tuple[int, Any]]:
        self._waiting = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self._waiting

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        length = LENGTH.search(self._received, 0, end + 2) if end >= 0 else None
        if length is not None and len(self._received) >= end + 4 + int(length[1]):
            whole, self._received = self._received, b""
            if self._waiting is not None and not self._waiting.done():
                self._waiting.set_result((int(whole[9:12]), _decode(whole[end + 4 :] or b"null")))

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(Unanswered())


class Caller:
    """A connection that is made again when it has broken."""

    def __init__(self, url: str) -> None:
        self._place = urlsplit(url)
        self._connection: Connection | None = None

    async def post(self, path: str, body: Mapping[str, Any] | bytes) -> tuple[int, Any]:
        """The status and what came with it."""
        connection = self._connection
        if connection is None or not connection.is_open:
            try:
                _, connection = await asyncio.get_running_loop().create_connection(
                    Connection, self._place.hostname, self._place.port
                )
            except OSError:
                raise Unreachable from None
            self._connection = connection
        content = body if isinstance(body, bytes) else _encode(body)
        head = f"POST {path} HTTP/1.1\r\nHost: {self._place.netloc}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        try:
            return await connection.send(head.encode() + content)
        except asyncio.CancelledError:
            self.hang_up()  # an answer that is still to come would be taken for the next one's
            raise

    def hang_up(self) -> None:
        if self._connection is not None:
            self._connection.transport.abort()
            self._connection = None

    async def __aenter__(self) -> Caller:
        return self

    async def __aexit__(self, *_: object) -> None:
        connection = self._connection
        self.hang_up()
        while connection is not None and connection.is_open:
            await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class Grant:
    """A slot. Its lease began between these two moments; nobody outside knows better."""

    slot_token: str
    query_token: str
    asked_at: float
    heard_at: float


class SlotClient:
    """Somebody at one IP bucket who wants slots of one host, by a clock that may be wrong."""

    def __init__(self, url: str, host: str, ip: str, *, ahead_s: float = 0.0) -> None:
        self.caller = Caller(url)
        self.ip = ip
        self.query_token: str | None = None
        self.asked = 0  # requests for slots, polls included
        self._host = {"hostname": host, "hostnameHash": hashlib.sha256(host.encode()).hexdigest()}
        self._ahead_s = ahead_s
        self.asked_at = time.monotonic()  # since then a grant may be on its way
        self._answered = True

    def now_ms(self) -> int:
        return int((time.time() + self._ahead_s) * 1000)

    async def ask(self) -> Grant | str:
        """Once, for a slot or whether there is one by now: a grant, or what else was answered."""
        body: dict[str, Any]
        if self.query_token is None:
            body = {**self._host, "ipBucket": self.ip, "now": self.now_ms()}
        else:
            body = {"queryToken": self.query_token, "now": self.now_ms()}
        if self.query_token is None or self._answered:
            self.asked_at = time.monotonic()
        self.asked += 1
        self._answered = False
        status, answer = await self.caller.post(QUEUE + "/acquire", body)
        self._answered, heard_at = True, time.monotonic()
        assert status == 200, answer
        self.query_token = answer["queryToken"] if answer["result"] == "pending" else None
        if answer["result"] != "granted":
            return str(answer["result"])
        return Grant(answer["slotToken"], answer["queryToken"], self.asked_at, heard_at)

    async def acquire(self) -> Grant:
        """Whoever has waited for too long begins again."""
        while not isinstance(answer := await self.ask(), Grant):
            assert answer in ("pending", "timeout"), answer
        return answer

    async def release(self, slot_token: str, **more: Any) -> None:
        now = self.now_ms()
        body = {**self._host, "ipBucket": self.ip, "slotToken": slot_token, "now": now}
        status, answer = await self.caller.post(
            QUEUE + "/release", {**body, "hitUpstreamAtMs": now, **more}
        )
        assert (status, answer) == (200, {"result": "ok"})

    async def cancel(self, query_token: str) -> str:
        status, answer = await self.caller.post(QUEUE + "/cancel", {"queryToken": query_token})
        assert status == 200, answer
        return str(answer["result"])


async def pause(seconds: float, over: asyncio.Event | None = None) -> None:
    """A client does nothing for a while, or until all is over. No test waits for anything here."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await (over or asyncio.Event()).wait()


def config_file(directory: Path, **fair_queue: Any) -> Path:
    """What a fair queue is told when it starts."""
    file = directory / "config.json"
    told = {"internalApiToken": INTERNAL_TOKEN, "fairQueue": fair_queue}
    file.write_text(json.dumps(told), "utf-8")
    return file


def stats(url: str) -> dict[str, Any]:
    """What the service itself says about slots."""
    with urllib.request.urlopen(f"{url}/api/slots/stats", timeout=30) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def flush(url: str) -> None:
    """Have the service clean up now."""
    said = {"Authorization": f"Bearer {INTERNAL_TOKEN}"}
    request = urllib.request.Request(f"{url}/api/v0/flush", b"", said, method="POST")
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 204
