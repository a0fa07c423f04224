"""A call to a channel over HTTP, and what its answer means for the gate and for the job."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx2
import msgspec

from headway.apps.channels.channel import Channel
from headway.core import Outcome
from headway.core.classify import classify_status, outcome_of, parse_retry_after
from headway.core.rate_headers import parse_rate_headers
from headway.net.outbound import BodyTooLong, read_limited
from headway.net.redaction import MASK, MIN_SECRET, redact

CONNECT_S = 10.0
CONNECTIONS = 1_000
MOST_ANSWER = 134_217_728  # bytes of an answer, decompressed
MOST_SHOWN = 500  # characters of an answer that is no success
# A channel whose key is refused is of no use to anybody until that is put right.
KEY_REFUSED = frozenset({401, 403})
OK = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """What a provider has said, whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def request_id(self) -> str:
        return self.headers.get("x-request-id", "")

    def json(self) -> dict[str, Any] | None:
        """None: it is no JSON object."""
        try:
            found = msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None
        return found if isinstance(found, dict) else None


class Caller:
    """Calls channels from one loop. Connections are kept, and shared by all channels."""

    def __init__(self) -> None:
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=CONNECTIONS)
        self._client = httpx2.AsyncClient(
            limits=limits, trust_env=False, follow_redirects=False,
            timeout=httpx2.Timeout(None, connect=CONNECT_S),
        )  # fmt: skip

    async def close(self) -> None:
        await self._client.aclose()

    async def call(
        self, channel: Channel, key: str | None, endpoint: str, body: bytes, *, mark: str = ""
    ) -> Answer:
        """The whole answer, in the time of the channel. Errors of the network are those of httpx2,
        and TimeoutError.
        """
        async with (
            asyncio.timeout(channel.timeout_s),
            self.opened(channel, key, endpoint, body, mark=mark) as response,
        ):
            return await answer_in(response, key)

    @asynccontextmanager
    async def opened(
        self, channel: Channel, key: str | None, endpoint: str, body: bytes, *, mark: str = ""
    ) -> AsyncIterator[httpx2.Response]:
        """The answer as it comes. `mark`: the same for each attempt of one call, so that a provider
        which knows such marks does not do it twice.
        """
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        if key is not None:
            headers["authorization"] = f"Bearer {key}"
        if mark:
            headers["idempotency-key"] = mark
        url = channel.base_url.rstrip("/") + endpoint.removeprefix("/v1")
        request = self._client.build_request(
            "POST", url, content=body, headers=headers,
            timeout=httpx2.Timeout(channel.timeout_s, connect=CONNECT_S),
        )  # fmt: skip
        response = await self._client.send(request, stream=True)
        try:
            yield response
        finally:
            await response.aclose()


async def answer_in(response: httpx2.Response, key: str | None) -> Answer:
    """Read it to its end. An error that repeats the key it was sent does so without the key."""
    try:
        content = await read_limited(response, MOST_ANSWER)
    except BodyTooLong as error:
        raise httpx2.RemoteProtocolError(str(error)) from None
    if response.status_code >= 300 and key is not None and len(key) >= MIN_SECRET:
        content = content.replace(key.encode(), MASK.encode())
    return Answer(response.status_code, response.headers, content)


def body_for(channel: Channel, body: dict[str, Any], **changes: Any) -> bytes:
    """What is sent: the model by the provider's name for it."""
    return msgspec.json.encode({**body, "model": channel.name_upstream, **changes})


def outcome_of_answer(status: int, headers: Mapping[str, str], body: bytes, now: float) -> Outcome:
    """What an answer means: success, pushback that teaches, a fault, or an error for good."""
    rates = parse_rate_headers(headers, now)
    if 200 <= status < 300:
        return replace(Outcome.ok(status=status), rates=rates)
    told_s = parse_retry_after(headers.get("retry-after", ""), now)
    error = f"HTTP {status}: {said_in(body)}"
    if status < 400 or status >= 600:
        outcome = Outcome.failed(
            f"HTTP {status}, which leads nowhere; check base_url", status=status,
            upstream_fault=True,
        )  # fmt: skip
    elif status in KEY_REFUSED:
        outcome = Outcome.pushback(
            status=status, ban=True, upstream_fault=False, error=f"the key was refused: {error}"
        )
    elif status == 429:
        outcome = Outcome.pushback(
            status=status, retry_after_s=told_s, upstream_fault=False, error=error
        )
    else:
        outcome = outcome_of(classify_status(status, retry_after_s=told_s), error=error)
    return replace(outcome, rates=rates)


def outcome_of_error(error: Exception) -> Outcome:
    """The network, or a provider that broke off."""
    if isinstance(error, TimeoutError):
        return Outcome.failed("it has not answered in time", upstream_fault=True)
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return Outcome.failed(redact(what), upstream_fault=True)


def said_in(body: bytes) -> str:
    """What an error says, short and without secrets."""
    try:
        found: Any = msgspec.json.decode(body)
        message = found["error"]["message"]
    except (msgspec.DecodeError, UnicodeError, RecursionError, KeyError, TypeError):
        message = body[: 2 * MOST_SHOWN].decode("utf-8", "replace")
    return redact(str(message))[:MOST_SHOWN]
