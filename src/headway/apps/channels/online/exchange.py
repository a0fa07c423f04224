"""One call of a client, from its question to the last byte of the answer.

An `Exchange` makes an `Attempt` at one channel after the other, until one has answered. Whatever
happens, an attempt is settled once: the gate hears how it ended, and what it cost is written down
in the same turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import httpx2
import msgspec
from fastapi import Request, Response
from starlette.types import Receive, Scope, Send

from headway.api.hanging_up import Watch
from headway.api.problems import answer, bug, problem_of
from headway.api.site import ANSWER_S, Site
from headway.api.turns import in_turn
from headway.apps.channels.calling import (
    Answer,
    answer_in,
    body_for,
    outcome_of_answer,
    outcome_of_error,
)
from headway.apps.channels.channel import Channel
from headway.apps.channels.directory import Entry
from headway.apps.channels.money.billing import ONLINE, Usage, bill_of, usage_of
from headway.apps.channels.online.failing import Failure, is_failure, last_word
from headway.apps.channels.online.streaming import Client, ClientGone, Count, Events, passed
from headway.apps.channels.online.waiting import USUAL_S, Passage, stopping
from headway.core import Outcome
from headway.core.change import Refusal
from headway.errors import EngineStopped

if TYPE_CHECKING:
    from headway.apps.channels.online.gateway import Gateway

CHAT = "/v1/chat/completions"
REST_S = 1.0  # for a provider to end a stream of which it has said that this is all
NETWORK = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client wants."""

    endpoint: str
    body: dict[str, Any]
    size: int  # of what was sent, in bytes
    model: str
    tenant: str
    cost: float
    channels: tuple[Channel, ...]
    wait_s: float | None  # None: it has not said anything

    @property
    def streams(self) -> bool:
        return self.body.get("stream") is True and self.endpoint == CHAT

    @property
    def wants_usage(self) -> bool:
        options = self.body.get("stream_options")
        return isinstance(options, dict) and options.get("include_usage") is True

    def body_at(self, channel: Channel) -> bytes:
        """As it is sent there. A stream says what it has used, so that it can be billed."""
        options = self.body.get("stream_options")
        if self.streams and (options is None or isinstance(options, dict)):
            told = {**(options or {}), "include_usage": True}
            return body_for(channel, self.body, stream_options=told)
        return body_for(channel, self.body)

    def places(self) -> tuple[str, ...]:
        """Where it waits in line: at all that serve it, or at those that wait by themselves."""
        return tuple(
            each.code for each in self.channels if self.wait_s is not None or each.lines_up
        )


class Attempt:
    """A call to one channel."""

    def __init__(self, gateway: Gateway, site: Site, asked: Asked, entry: Entry,
                 passage: Passage) -> None:  # fmt: skip
        self.entry = entry
        self.channel = entry.channel
        self.sent = asked.body_at(entry.channel)
        self.outcome = Outcome.cancelled()  # if it is broken off now
        self.count: Count | None = None  # of a stream of which something was passed on
        self._billing = gateway.billing
        self._engine = site.engine
        self._asked = asked
        self._passage = passage
        self._settled = False

    async def settle(self, outcome: Outcome, usage: Usage | None) -> None:
        """How it ended and what it cost is committed when this returns. If the store is away, the
        brain does it as soon as that is back, and nobody waits for so long.
        """
        self._settled = True
        with suppress(TimeoutError):
            await in_turn(self._engine, self._closing(outcome, usage), ANSWER_S)

    def abandon(self) -> None:
        """Nobody waits for its end any more. What was passed on was paid for."""
        if not self._settled:
            self._settled = True
            usage = None if self.count is None else self.count.usage()
            with suppress(EngineStopped):  # then nothing is held, and nothing can be written
                self._engine.ask(self._closing(self.outcome, usage))

    def _closing(self, outcome: Outcome, usage: Usage | None) -> Callable[[float], None]:
        asked, bill_id = self._asked, f"online:{uuid4().hex}"

        def close(now: float) -> None:
            self._passage.end(outcome if usage is None else usage.told_in(outcome), now)
            if usage is not None:
                bill = bill_of(
                    bill_id, self.channel, usage, kind=ONLINE, tenant=asked.tenant,
                    endpoint=asked.endpoint, now=now,
                )  # fmt: skip
                self._billing.charge(bill, now)

        return close


class Exchange(Response):
    """All of it happens while the answer is sent: what never begins holds nothing."""

    def __init__(self, gateway: Gateway, site: Site, request: Request, asked: Asked) -> None:
        super().__init__()
        self._gateway = gateway
        self._site = site
        self._request = request
        self._asked = asked
        self._passage = Passage(site.engine, asked.tenant, asked.cost)
        self._failures: list[Failure] = []
        self._refusal: Refusal | None = None
        self._gone = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = Client(scope, send, self._site.config.slow_client_s)
        task = asyncio.current_task()
        assert task is not None

        def hung_up() -> None:
            if not client.complete:
                self._gone = True
                task.cancel()

        watch = Watch(self._request, hung_up)
        self._gateway.under_way += 1
        self._gateway.bytes_under_way += self._asked.size
        try:
            await self._answer(client)
        except ClientGone:
            pass
        except asyncio.CancelledError:
            if not self._gone and not self._site.stopping:
                raise
            task.uncancel()
            if not self._gone:  # the server stops, and has waited for this as long as it may
                await self._break_off(client, scope, receive, send)
        except Exception as error:
            if client.started:
                client.cut_off()
                raise
            path = scope["path"]
            problem = problem_of(error) or bug(scope["method"], path, error)
            await answer(problem, path)(scope, receive, send)
        finally:
            watch.end()
            self._gateway.under_way -= 1
            self._gateway.bytes_under_way -= self._asked.size
            self._passage.leave()

    async def _break_off(self, client: Client, scope: Scope, receive: Receive, send: Send) -> None:
        if client.started:
            client.cut_off()
        else:
            await answer(stopping(), scope["path"])(scope, receive, send)

    async def _answer(self, client: Client) -> None:
        codes = [each.code for each in self._asked.channels]
        ends_at = monotonic() + (USUAL_S if self._asked.wait_s is None else self._asked.wait_s)
        left = list(codes)
        while True:
            while left:
                self._refusal = await self._passage.go(tuple(left))
                if self._refusal is not None:
                    break
                left.remove(self._passage.upstream)
                if await self._attempt(client):
                    return
            if not await self._lined_up(ends_at - monotonic()):
                break
            left = [code for code in codes if code != self._passage.upstream]
            if await self._attempt(client):
                return
        now = self._site.now()
        await last_word(self._asked.model, self._failures, self._refusal, now, client)

    async def _lined_up(self, left_s: float) -> bool:
        """Whether it has waited, and may go now."""
        places = tuple(code for code in self._asked.places() if self._serving(code) is not None)
        last = self._failures[-1] if self._failures else None
        worth_it = self._refusal is not None or (last is not None and last.may_pass)
        if not places or not worth_it or left_s <= 0:
            return False
        return await self._passage.line_up(places, left_s, self._gateway.line)

    async def _attempt(self, client: Client) -> bool:
        """Whether that was the answer."""
        entry = self._serving(self._passage.upstream)
        if entry is None:
            self._failures.append(Failure(self._passage.upstream, error="it was taken away"))
            self._passage.leave(Outcome.returned())
            return False
        attempt = Attempt(self._gateway, self._site, self._asked, entry, self._passage)
        try:
            failure = await self._call(attempt, client)
        except NETWORK as error:
            outcome = outcome_of_error(error)
            await attempt.settle(outcome, None if attempt.count is None else attempt.count.usage())
            if client.started:
                client.cut_off()  # as the provider did
                raise ClientGone from None
            late = isinstance(error, httpx2.TimeoutException | TimeoutError)
            failure = Failure(entry.channel.code, error=outcome.error, late=late)
        finally:
            attempt.abandon()
        if failure is not None:
            self._failures.append(failure)
        return failure is None

    def _serving(self, code: str) -> Entry | None:
        """The channel, if it still serves this: much can change while a call waits in line."""
        entry = self._gateway.entry(code)
        if entry is None or not entry.channel.enabled or entry.channel.model != self._asked.model:
            return None
        return entry

    async def _call(self, attempt: Attempt, client: Client) -> Failure | None:
        """None: the answer was passed on. It has the time of the channel; a stream has so much
        between any two of its parts.
        """
        channel, key = attempt.channel, attempt.entry.key
        opened = self._gateway.caller.opened(channel, key, self._asked.endpoint, attempt.sent)
        async with asyncio.timeout(channel.timeout_s) as limit, opened as response:
            status, headers = response.status_code, response.headers
            kind = headers.get("content-type", "")
            if status < 300 and self._asked.streams and kind.startswith("text/event-stream"):
                limit.reschedule(None)
                await self._pass_stream(attempt, response, client)
                return None
            said = await answer_in(response, key)
        outcome = outcome_of_answer(status, headers, said.body, self._site.now())
        if is_failure(status):
            await attempt.settle(outcome, None)
            return Failure(channel.code, said)
        await attempt.settle(outcome, _usage(said, len(attempt.sent)))
        await client.whole(status, passed(headers, channel.code), said.body)
        return None

    async def _pass_stream(
        self, attempt: Attempt, response: httpx2.Response, client: Client
    ) -> None:
        """Each event the moment it is complete. What it cost is stored before the last one."""
        outcome = outcome_of_answer(200, response.headers, b"", self._site.now())
        events = Events()
        count = Count(len(attempt.sent), wanted=self._asked.wants_usage)
        parts = response.aiter_bytes().__aiter__()
        last = b""
        async for part in parts:
            ready = [event for event in events.feed(part) if count.keeps(event)]
            if count.done:
                last = b"".join(ready)
                break
            if ready:
                if not client.started:
                    attempt.outcome, attempt.count = outcome, count
                    await client.begin(200, passed(response.headers, attempt.channel.code))
                await client.pass_on(b"".join(ready))
        await attempt.settle(outcome, count.usage())
        if not client.started:
            await client.begin(200, passed(response.headers, attempt.channel.code))
        await client.end(last or events.rest())
        with suppress(TimeoutError, *NETWORK):  # so that the connection can be used again
            async with asyncio.timeout(REST_S):
                async for _ in parts:
                    pass


class _Counted(msgspec.Struct):
    """All that is read of an answer that says what it has used."""

    usage: dict[str, Any] | None = None


_counted = msgspec.json.Decoder(_Counted)


def _usage(answer: Answer, sent: int) -> Usage | None:
    """None: it cost nothing."""
    try:
        said = _counted.decode(answer.body).usage
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        said = None
    if said is not None:
        return usage_of({"usage": said}, sent)
    return usage_of(answer.json(), sent) if answer.status < 300 else None
