"""What a worker and a server say to each other: `POST /api/work/*`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from headway.core import Outcome
from headway.core.rate_headers import RateHeaders
from headway.engine.hands import RemoteWork
from headway.errors import StoreUnavailable
from headway.remote.client import CONNECT_S, Ask, Client
from headway.remote.looking import path

T = TypeVar("T")

MAX_ERROR = 20_000  # characters
LARGEST_STATUS = 599


class Hello(msgspec.Struct):
    server: str
    lease_s: float


class Given(msgspec.Struct):
    """A job, as it is handed to a worker."""

    id: int
    fence: int
    type: str
    args: msgspec.Raw
    attempt: int
    timeout_s: float
    lease_s: float
    upstream: str | None = None
    tenant: str = ""
    key: str | None = None
    lane: str = "default"
    checkpoint: msgspec.Raw = msgspec.Raw(b"null")

    def work(self) -> RemoteWork:
        kept = bytes(self.checkpoint).decode()
        return RemoteWork(
            self.id, self.fence, self.type, bytes(self.args).decode(), self.attempt, self.upstream,
            self.tenant, self.key, self.lane, self.timeout_s, self.lease_s,
            None if kept == "null" else kept,
        )  # fmt: skip


class Order(msgspec.Struct):
    id: int
    fence: int
    why: str


class Taken(msgspec.Struct):
    server: str
    jobs: list[Given]
    stops: list[Order]


class Beat(msgspec.Struct):
    id: int
    fence: int
    lease_s: float | None = None  # None: it is over
    stop: str | None = None


class Beats(msgspec.Struct):
    server: str
    jobs: list[Beat]


class Ending(msgspec.Struct):
    id: int
    fence: int
    accepted: bool
    state: str | None = None


class Endings(msgspec.Struct):
    server: str
    jobs: list[Ending]


def outcome_body(outcome: Outcome) -> dict[str, Any]:
    """The whole of it, without what it does not say."""
    body: dict[str, Any] = {"kind": outcome.kind.value}
    for name in ("fatal", "ban", "upstream_fault"):
        if getattr(outcome, name):
            body[name] = True
    if outcome.scope.value != "upstream":
        body["scope"] = outcome.scope.value
    if outcome.status is not None and 100 <= outcome.status <= LARGEST_STATUS:
        body["status"] = outcome.status
    if outcome.retry_after_s is not None:
        body["retry_after_s"] = outcome.retry_after_s
    if outcome.hit_at is not None:
        body["hit_at"] = outcome.hit_at
    if outcome.error:
        body["error"] = outcome.error[:MAX_ERROR]
    return body


def rate_words(rates: RateHeaders) -> dict[str, str]:
    """As headers that say the same, whatever the upstream's own were called."""
    words: dict[str, str] = {}
    if rates.requests is not None:
        each = rates.requests
        words["ratelimit-policy"] = f'"requests";q={_plain(each.limit)};w={_plain(each.window_s)}'
        words["ratelimit"] = f'"requests";r={_plain(each.remaining)};t={_plain(each.reset_s)}'
    if rates.tokens is not None:
        words["x-ratelimit-limit-tokens"] = _plain(rates.tokens.limit)
        words["x-ratelimit-remaining-tokens"] = _plain(rates.tokens.remaining)
        words["x-ratelimit-reset-tokens"] = f"{_plain(rates.tokens.reset_s)}s"
    if rates.retry_after_s is not None:
        words["retry-after"] = _plain(rates.retry_after_s)
    return words


def _plain(number: float) -> str:
    return f"{number:.3f}".rstrip("0").rstrip(".")


class Line:
    """A worker's line to its server. Each call is tried once; StoreUnavailable: try again later."""

    def __init__(self, client: Client, worker: str) -> None:
        self._client = client
        self._worker = worker

    @property
    def url(self) -> str:
        """The server that is called now."""
        return self._client.url

    async def hello(
        self, types: list[dict[str, Any]], settings: list[dict[str, Any]],
        schedules: list[dict[str, Any]], answer_s: float,
    ) -> Hello:  # fmt: skip
        body = {"types": types, "settings": settings, "schedules": schedules}
        return await self._say("hello", body, Hello, answer_s)

    async def take(self, types: Iterable[str], size: int, wait_s: float, answer_s: float) -> Taken:
        body = {"types": list(types), "size": size, "wait_ms": int(wait_s * 1_000)}
        return await self._say("take", body, Taken, wait_s + answer_s)

    async def heartbeat(self, jobs: list[dict[str, Any]], answer_s: float) -> Beats:
        return await self._say("heartbeat", {"jobs": jobs}, Beats, answer_s)

    async def complete(self, jobs: list[dict[str, Any]], answer_s: float) -> Endings:
        return await self._say("complete", {"jobs": jobs}, Endings, answer_s)

    async def _say(self, what: str, body: dict[str, Any], type: type[T], answer_s: float) -> T:
        ask = Ask("POST", path("work", what), {"worker": self._worker, **body}, answer_s=answer_s)
        url = self.url
        try:
            # The client's own limits hold for each step; this one is for all of them together.
            async with asyncio.timeout(answer_s + CONNECT_S):
                return await self._client.acall(ask, type, patience_s=0.0)
        except TimeoutError:
            self._client.call_another(url)
            raise StoreUnavailable(f"{url} took longer than {answer_s:g} s to answer") from None
