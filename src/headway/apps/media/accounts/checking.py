"""Asking a site whether it still knows an account. What could not be asked says nothing: a network
that is down has once made every cookie an invalid one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import httpx2
import msgspec

from headway.apps.media.accounts.cookies import cookie_header
from headway.apps.media.accounts.pool import PUSHBACKS, REFUSALS, Account, Heard, Word
from headway.apps.media.accounts.register import CHECK_URLS, Accounts
from headway.apps.media.accounts.schedule import CHECK, CheckSchedule
from headway.core import Outcome, RetryPolicy
from headway.core.classify import parse_retry_after
from headway.engine.brain import Brain
from headway.engine.hands.context import job
from headway.errors import HeadwayError
from headway.net.outbound import Allowed, BodyTooLong, Refused, guarded_client, read_limited
from headway.net.redaction import redact
from headway.outcomes import Answered, Fail
from headway.sdk.app import App

MAX_BODY_BYTES = 262_144
STEP_S = 15.0  # to connect, and for each piece of the answer
WHOLE_S = 45.0
POLICY = RetryPolicy(timeout_s=60.0, retries=2, delay_s=300.0, growth=2.0)
EXPIRED = "its cookies have expired"
NOT_LOGGED_IN = -101  # as bilibili says it, in an answer that is fine otherwise
RISK_CONTROL = {-412: 412, -352: 412, -799: 429}


class Answer(NamedTuple):
    """What came of asking. No status: nothing came, and `error` says why."""

    status: int | None
    body: bytes = b""
    retry_after_s: float | None = None
    error: str = ""


Visit = Callable[[str, str], Awaitable[Answer]]  # an address, and the cookies to send there


# ---------------------------------------------------------------------- what an answer means


def judge(site: str, url: str, answer: Answer) -> Heard:
    """PUSHBACK and TROUBLE: it is not known yet. UNKNOWN: asking again says no more."""
    status = answer.status
    if status is None or status >= 500:
        said = answer.error or f"the site answered {status}"
        return Heard(Word.TROUBLE, status, answer.retry_after_s, said)
    if status in PUSHBACKS:
        return Heard(Word.PUSHBACK, status, answer.retry_after_s)
    if url == CHECK_URLS.get(site) and site == "bilibili.com":
        return _judge_bilibili(answer)
    if 200 <= status < 300:
        return Heard(Word.VALID, status)
    if status in REFUSALS:
        return Heard(Word.INVALID, status, reason=f"the site refuses it ({status})")
    said = "leads elsewhere" if 300 <= status < 400 else f"answers {status}"
    return Heard(
        Word.UNKNOWN, status,
        reason=f"the check URL {said}; name one that answers 200 to whoever is logged in, and "
        "401 or 403 to others",
    )  # fmt: skip


def _judge_bilibili(answer: Answer) -> Heard:
    try:
        told = msgspec.json.decode(answer.body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        told = {}
    code, data = told.get("code"), told.get("data")
    is_login = data.get("isLogin") if isinstance(data, dict) else None
    if isinstance(code, int) and code in RISK_CONTROL:
        return Heard(Word.PUSHBACK, RISK_CONTROL[code], answer.retry_after_s)
    if code == NOT_LOGGED_IN or (code == 0 and is_login is False):
        return Heard(Word.INVALID, answer.status)
    if code == 0 and is_login is True:
        return Heard(Word.VALID, answer.status)
    return Heard(Word.UNKNOWN, answer.status, reason="the site answered in words we do not know")


def outcome_of(heard: Heard) -> Outcome | None:
    """What an answer means for the job and for the site. None: it is done."""
    if heard.word is Word.PUSHBACK:
        status = heard.status or 429
        return Outcome.pushback(
            status=status, retry_after_s=heard.retry_after_s, ban=status == 412,
            upstream_fault=False, error=f"HTTP {status}",
        )  # fmt: skip
    if heard.word is Word.TROUBLE:
        return Outcome.failed(heard.reason, status=heard.status, upstream_fault=True)
    return None


# ---------------------------------------------------------------------- the job


class Checker:
    def __init__(self, accounts: Accounts, visit: Visit) -> None:
        self._accounts = accounts
        self.visit = visit
        self.schedule = CheckSchedule(accounts)
        self.brain: Brain  # from the moment that an engine is about to start

    def register(self, app: App) -> None:
        app.job(type=CHECK, policy=POLICY)(self.check)
        known = app.registry.types[CHECK]
        known.arrived = self.schedule.arrived
        known.ended = self.schedule.ended

    def meet(self, brain: Brain) -> None:
        """After `Accounts.meet`."""
        self.brain = brain
        self.schedule.meet(brain)

    async def check(self, account: int) -> dict[str, Any] | Answered:
        row = self._accounts.get(account)
        if row is None:
            return {"verdict": Word.UNKNOWN, "reason": "this account is gone"}
        heard = await self._heard(row)
        outcome = outcome_of(heard)
        if outcome is not None:
            return Answered(outcome)
        job.with_end(partial(self._end, row, heard))
        return {"verdict": heard.word, "reason": heard.reason}

    async def _heard(self, row: Account) -> Heard:
        now = self.brain.clock.now()
        has_expired = row.expires_at is not None and row.expires_at <= now
        if row.check_url is None:
            if has_expired:
                return Heard(Word.INVALID, reason=EXPIRED)
            return Heard(Word.UNKNOWN, reason="there is no check URL, so only its expiry is known")
        try:
            cookies = self._accounts.cookies_of(row.id)
        except (HeadwayError, ValueError) as error:
            raise Fail(str(error)) from None
        header = cookie_header(cookies, row.check_url, now)
        if not header:
            if cookie_header(cookies, row.check_url, 0.0):
                return Heard(Word.INVALID, reason=EXPIRED)
            return Heard(Word.UNKNOWN, reason="none of its cookies would be sent to the check URL")
        return judge(row.site, row.check_url, await self.visit(row.check_url, header))

    def _end(self, row: Account, heard: Heard, now: float) -> None:
        self._accounts.checked(row.id, heard, now, of=row.sealed)


# ---------------------------------------------------------------------- the network


class Visitor:
    """Asks, and follows nowhere: a page that one is led to may welcome anybody."""

    def __init__(self, allowed: Allowed, headers: Mapping[str, str], now: Callable[[], float]):
        """`headers`: as a browser would send them, such as User-Agent."""
        self._allowed = allowed
        self._headers = dict(headers)
        self._now = now
        self._clients: dict[asyncio.AbstractEventLoop, httpx2.AsyncClient] = {}

    async def visit(self, url: str, cookies: str) -> Answer:
        client = await self._client()
        headers = {**self._headers, "Cookie": cookies}
        try:
            async with (
                asyncio.timeout(WHOLE_S),
                client.stream("GET", url, headers=headers) as response,
            ):
                told = parse_retry_after(response.headers.get("retry-after", ""), self._now())
                body = b""
                if response.status_code == 200:
                    body = await read_limited(response, MAX_BODY_BYTES)
                return Answer(response.status_code, body, told)
        except Refused as error:
            raise Fail(str(error)) from None
        except BodyTooLong:
            # It has answered, so it is well; what it has said is not for us.
            return Answer(response.status_code)
        except TimeoutError:
            return Answer(None, error="the site has not answered in time")
        except (httpx2.HTTPError, OSError) as error:
            return Answer(None, error=redact(f"{type(error).__name__}: {error}".rstrip(": ")))

    async def _client(self) -> httpx2.AsyncClient:
        """Of the loop that runs this."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            # All certificates of the system are read, which would hold up everybody on this loop.
            tls = await asyncio.to_thread(httpx2.create_ssl_context)
            made = guarded_client(self._allowed, timeout_s=STEP_S, verify=tls)
            self._clients.setdefault(loop, made)
        return self._clients[loop]

    async def close(self) -> None:
        """Of the loop that runs this; the others go with theirs."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()
