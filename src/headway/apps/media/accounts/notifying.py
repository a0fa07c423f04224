"""Telling the operator that an account has ended, or is well again: one job for each transition,
enqueued in the commit of the transition. Messages name the account, and never a cookie.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import httpx2
import msgspec

from headway.apps.media.accounts.pool import AWAY, Account, Status
from headway.apps.media.accounts.register import Accounts
from headway.apps.media.accounts.schedule import COUNTED_FOR
from headway.core import Outcome, RetryPolicy
from headway.core.classify import classify_status, outcome_of, parse_retry_after
from headway.engine.brain import Brain
from headway.engine.hands.context import job
from headway.engine.tickets import names_text
from headway.net.outbound import Allowed, Refused, guarded_client
from headway.net.redaction import redact
from headway.outcomes import Answered, Fail
from headway.sdk.app import App
from headway.store.records import NewJob

NOTIFY = "media.notify"
LANE = "notifications"
RECEIVER = "/notify"  # behind the host: the name of its upstream
DAY_S = 86_400.0
STEP_S = 20.0  # to connect, and for each piece of the answer
WHOLE_S = 45.0
GONE = 410
POLICY = RetryPolicy(
    timeout_s=60.0, retries=200, delay_s=5.0, growth=2.0, max_delay_s=3_600.0,
    max_pushbacks=10_000, max_pushed_back_s=DAY_S,
)  # fmt: skip

# Of a message's id, the time in seconds and its bytes: what stands in the header.
Sign = Callable[[str, int, bytes], str]
# Of an address, a body, headers and the time: what came of sending it there.
Post = Callable[[str, bytes, dict[str, str], float], Awaitable[Outcome]]


def event_of(before: Account | None, account: Account | None) -> str | None:
    """What is told of a transition. That one has rested is no news; that one works is, if nobody
    knew.
    """
    if before is None or account is None or before.status == account.status:
        return None
    heals = account.status == Status.HEALTHY and before.status != Status.COOLING
    return f"account.{account.status}" if heals or account.status in AWAY else None


class Notifier:
    def __init__(
        self, accounts: Accounts, url: Callable[[], str | None], allowed: Allowed, *,
        instance: str = "", sign: Sign | None = None,
    ) -> None:  # fmt: skip
        """`url`: whom to tell, at this moment; None: nobody. `instance` tells our ids from those of
        other servers.
        """
        self._url = url
        self._allowed = allowed
        self._instance = instance
        self._sign = sign
        self._client: tuple[asyncio.AbstractEventLoop, httpx2.AsyncClient] | None = None
        self.brain: Brain  # from the moment that an engine is about to start
        self.post: Post = self._post
        accounts.on_change.append(self._changed)

    def register(self, app: App) -> None:
        app.job(type=NOTIFY, policy=POLICY)(self.notify)
        app.settings.declare("code", "lane", LANE, {})

    def meet(self, brain: Brain) -> None:
        self.brain = brain

    def _changed(self, before: Account | None, account: Account | None, now: float) -> None:
        event, url = event_of(before, account), self._url()
        if event is None or account is None or not url:
            return
        message = {"type": event, "account": account.name, "site": account.site,
                   "reason": account.reason, "at": now}  # fmt: skip
        self.brain.batch.jobs.append(
            NewJob(
                NOTIFY, msgspec.json.encode({"message": message}).decode(), created_at=now,
                lane=LANE, tenant=COUNTED_FOR, key=f"notices of {account.id}",
                deadline=now + DAY_S, upstreams=names_text((upstream_of(url),)),
            )
        )  # fmt: skip

    async def notify(self, message: dict[str, Any]) -> Answered | dict[str, Any]:
        url = self._url()
        if not url:
            return {"sent": False, "reason": "nobody wants to be told any more"}
        now = self.brain.clock.now()
        id, timestamp = f"msg_{self._instance}_{job.id}", int(now)
        body = msgspec.json.encode(message)
        headers = {
            "content-type": "application/json",
            "user-agent": "headway",
            "webhook-id": id,
            "webhook-timestamp": str(timestamp),
        }
        if self._sign is not None:
            headers["webhook-signature"] = self._sign(id, timestamp, body)
        return Answered(await self.post(url, body, headers, now))

    async def _post(self, url: str, body: bytes, headers: dict[str, str], now: float) -> Outcome:
        try:
            async with (
                asyncio.timeout(WHOLE_S),
                self._http().stream("POST", url, content=body, headers=headers) as response,
            ):
                told_s = parse_retry_after(response.headers.get("retry-after", ""), now)
                return meaning(response.status_code, told_s)
        except Refused as error:
            raise Fail(str(error)) from None
        except TimeoutError:
            return Outcome.failed("it has not answered in time", upstream_fault=True)
        except (httpx2.HTTPError, OSError) as error:
            said = redact(f"{type(error).__name__}: {error}".rstrip(": "))
            return Outcome.failed(said, upstream_fault=True)

    def _http(self) -> httpx2.AsyncClient:
        """Of the loop that runs this."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._client[0] is not loop:
            self._client = (loop, guarded_client(self._allowed, timeout_s=STEP_S))
        return self._client[1]

    async def close(self) -> None:
        if self._client is not None and self._client[0] is asyncio.get_running_loop():
            await self._client[1].aclose()
            self._client = None


def upstream_of(url: str) -> str:
    """What a receiver is called, apart from a site of the same name."""
    return f"{urlsplit(url).hostname or 'nobody'}{RECEIVER}"


def meaning(status: int, retry_after_s: float | None) -> Outcome:
    """2xx: it was heard. 410: nobody wants to hear it. All others are asked again."""
    if 200 <= status < 300:
        return Outcome.ok(status=status)
    if status == GONE:
        return Outcome.failed("the receiver wants no more of them (410)", fatal=True, status=status)
    if status in (429, 503):
        answer = classify_status(status, retry_after_s=retry_after_s)
        return outcome_of(answer, error=f"HTTP {status}")
    return Outcome.failed(f"HTTP {status}", status=status, upstream_fault=status >= 500)
