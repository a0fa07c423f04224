"""One receiver of alerts: what it has not heard yet, tried again until it has, never faster than it
should be told. What has piled up meanwhile is one summary.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import httpx2
import msgspec

from headway.apps.alerts.ledger import Message
from headway.core.classify import parse_retry_after
from headway.net.outbound import Refused
from headway.net.redaction import redact
from headway.net.webhooks import headers

STEP_S = 10.0  # to connect, and for each piece of the answer
WHOLE_S = 20.0
FIRST_S, LONGEST_S = 1.0, 300.0  # between two attempts
DAY_S = 86_400.0  # what could not be told for so long is given up
MOST = 1_000  # messages that wait; the oldest go
TOLD = 20  # of a summary, in words
GONE = 410
MINUTE_S = 60.0

logger = logging.getLogger("headway.alerts")

# Also of what it will never hear; one that is `gone` has not heard it.
Heard = Callable[[Message, "Receiver"], None]


class Trouble(Exception):
    """It was not told. `wait_s`: how long it wants to be left alone; `over`: for ever."""

    def __init__(self, why: str, wait_s: float | None = None, *, over: bool = False) -> None:
        super().__init__(why)
        self.wait_s = wait_s
        self.over = over


class Receiver:
    def __init__(
        self, url: str, secret: str, instance: str, per_minute: int, now: Callable[[], float]
    ) -> None:
        self.host = urlsplit(url).netloc.rpartition("@")[2]  # all that is ever shown of it
        self._url = url
        self._secrets = (secret,) if secret else ()
        self._instance = instance
        self._per_minute = per_minute
        self._now = now
        self._tokens = float(per_minute)
        self._filled_at = monotonic()
        self._pending: deque[Message] = deque()
        self._tried: list[Message] = []  # and not taken: the next attempt is the same message
        self._wake = asyncio.Event()
        self._delay_s = FIRST_S
        self.gone = ""  # why nothing is sent any more
        self.failing_since: float | None = None
        self.last_error = ""
        self.last_told_at: float | None = None
        self.told = 0
        self.dropped = 0

    def tell(self, messages: Sequence[Message]) -> list[Message]:
        """In the server's loop. Those that it will not hear, since they are too many."""
        if self.gone:
            return list(messages)
        self._pending.extend(messages)
        dropped = [self._pending.popleft() for _ in range(len(self._pending) - MOST)]
        self.dropped += len(dropped)
        self._wake.set()
        return dropped

    @property
    def waiting(self) -> int:
        return len(self._pending)

    async def run(self, client: httpx2.AsyncClient, heard: Heard) -> None:
        """Until it is cancelled."""
        while not self.gone:
            self._wake.clear()
            while self._pending and not self.gone:
                await self._one_turn(client, heard)
            await self._wake.wait()

    async def _one_turn(self, client: httpx2.AsyncClient, heard: Heard) -> None:
        await self._allowance()
        self._give_up_old(heard)
        some = self._next()
        if not some:
            return
        self._tokens -= 1
        try:
            await self.post(client, some)
        except Trouble as trouble:
            if trouble.over:
                self.gone = str(trouble)
                logger.error("alerts to %s are over: %s", self.host, trouble)
                while self._pending:
                    heard(self._pending.popleft(), self)
                return
            wait_s = max(self._delay_s, min(trouble.wait_s or 0.0, LONGEST_S))
            self._delay_s = min(LONGEST_S, self._delay_s * 2)
            await asyncio.sleep(wait_s)
            return
        self._delay_s = FIRST_S
        self._tried = []
        for message in some:
            with suppress(ValueError):  # it was one too many meanwhile
                self._pending.remove(message)
            heard(message, self)

    def _next(self) -> list[Message]:
        """What was tried, as long as all of it is wanted: a receiver that has taken it and could
        not say so knows it by its id. Then one, or all of them if they would be too many, or have
        waited.
        """
        waiting = {each.key for each in self._pending}
        if not self._tried or any(each.key not in waiting for each in self._tried):
            many = len(self._pending)
            at_once = many > 1 and (self.failing_since is not None or many > self._tokens)
            self._tried = list(self._pending)[: many if at_once else 1]
        return self._tried

    def _give_up_old(self, heard: Heard) -> None:
        while self._pending and self._now() - self._pending[0].at > DAY_S:
            self.dropped += 1
            heard(self._pending.popleft(), self)

    async def _allowance(self) -> None:
        """Wait until one more may be sent."""
        self._fill()
        while self._tokens < 1:
            await asyncio.sleep((1 - self._tokens) * MINUTE_S / self._per_minute)
            self._fill()

    def _fill(self) -> None:
        now = monotonic()
        more = (now - self._filled_at) * self._per_minute / MINUTE_S
        self._tokens, self._filled_at = min(float(self._per_minute), self._tokens + more), now

    async def post(self, client: httpx2.AsyncClient, messages: Sequence[Message]) -> None:
        """Trouble, if it was not taken."""
        now = self._now()
        body = msgspec.json.encode({**summary(messages), "sent_at": now})
        key = hashlib.sha256("\n".join(each.key for each in messages).encode()).hexdigest()[:20]
        signed = headers(self._secrets, f"msg_{self._instance}_{key}", int(now), body)
        try:
            await self._send(client, body, signed, now)
        except Trouble as trouble:
            self.last_error = str(trouble)
            if self.failing_since is None:
                self.failing_since = now
                logger.warning("alerts do not reach %s: %s; it is tried again", self.host, trouble)
            raise
        if self.failing_since is not None:
            logger.info("alerts reach %s again", self.host)
        self.failing_since, self.last_error, self.last_told_at = None, "", now
        self.told += 1

    async def _send(
        self, client: httpx2.AsyncClient, body: bytes, signed: dict[str, str], now: float
    ) -> None:
        try:
            async with (
                asyncio.timeout(WHOLE_S),
                client.stream("POST", self._url, content=body, headers=signed) as response,
            ):
                status = response.status_code
                told_s = parse_retry_after(response.headers.get("retry-after", ""), now)
        except Refused as error:
            raise Trouble(str(error)) from None
        except TimeoutError:
            raise Trouble("it has not answered in time") from None
        except (httpx2.HTTPError, OSError) as error:
            raise Trouble(redact(f"{type(error).__name__}: {error}".rstrip(": "))) from None
        if status == GONE:
            raise Trouble("the receiver wants no more of them (410)", over=True)
        if not 200 <= status < 300:
            raise Trouble(f"it has answered {status}", told_s)


def summary(messages: Sequence[Message]) -> dict[str, Any]:
    """One message as it is; several as how many there are, and the first of them in words."""
    if len(messages) == 1:
        return messages[0].view()
    by_type: dict[str, int] = {}
    for each in messages:
        by_type[each.what.value] = by_type.get(each.what.value, 0) + 1
    texts = [{"type": each.what.value, "at": each.at, "kind": each.alert["kind"],
              "level": each.alert["level"], "text": each.alert["text"]}
             for each in messages[:TOLD]]  # fmt: skip
    return {
        "type": "alert.summary", "count": len(messages), "by_type": by_type, "alerts": texts,
        "more": max(0, len(messages) - TOLD),
    }  # fmt: skip
