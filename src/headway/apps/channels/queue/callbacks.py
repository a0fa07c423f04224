"""Telling somebody that a call has ended: a job of its own, enqueued in the commit that ends it.

Messages are signed in the way of the Standard Webhooks specification, so its libraries verify them.
They go to addresses that users have named, and so only where users may send us.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx2
import msgspec

from headway.apps.channels.calling import outcome_of_error
from headway.apps.channels.queue.calls import outcome_shown
from headway.apps.channels.tables import ADD_CALLBACK_SECRET, PUT_CALLBACK_SECRET
from headway.core import Outcome, RetryPolicy
from headway.core.change import Change
from headway.core.classify import classify_status, outcome_of, parse_retry_after
from headway.engine.brain import Brain
from headway.engine.hands.context import job
from headway.engine.tickets import names_text
from headway.net.outbound import Allowed, Refused, guarded_client
from headway.net.redaction import SECRETS
from headway.net.sealing import Vault
from headway.net.webhooks import headers, new_secret
from headway.outcomes import Answered, Fail
from headway.sdk.app import App
from headway.store import Store
from headway.store.records import NewJob

CALLBACK = "llm.callback"
LANE = "callbacks"
HOST = "callback"  # the label of a call that says whom to tell
RECEIVER = "/callback"  # behind the host: the name of its upstream
AT_ONCE = 8  # to one receiver, so that a slow one takes no hands from the others
DAY_S = 86_400.0
STEP_S = 20.0  # to connect, and for each piece of the answer
WHOLE_S = 45.0
GONE = 410
SELECT = "select sealed, sealed_before, made_at from llm_callback_secrets where tenant = ?"

POLICY = RetryPolicy(
    timeout_s=60.0, retries=200, delay_s=5.0, growth=2.0, max_delay_s=3_600.0,
    max_pushbacks=10_000, max_pushed_back_s=DAY_S,
)  # fmt: skip


def upstream_of(host: str) -> str:
    """What a receiver is called, so that one that is slow or unwell holds up nobody else."""
    return f"{host}{RECEIVER}"


class SigningSecrets:
    """One for each tenant, made when it is first asked for. Blocking, from any thread."""

    def __init__(self, store: Store, vault: Callable[[], Vault]) -> None:
        self._store = store
        self._vault = vault

    def current(self, tenant: str, now: float) -> str:
        return self.valid(tenant, now)[0]

    def valid(self, tenant: str, now: float) -> list[str]:
        """The current one, and for a day the one before, so that receivers can change over."""
        rows = self._store.rows(SELECT, (tenant,))
        if not rows:
            made = self._sealed(tenant)
            self._store.write([(ADD_CALLBACK_SECRET, [(tenant, made, None, now)])])
            rows = self._store.rows(SELECT, (tenant,))  # of whoever was first
        sealed, before, made_at = rows[0]
        found = [self._opened(sealed, tenant)]
        if before is not None and now < made_at + DAY_S:
            found.append(self._opened(before, tenant))
        return found

    def renew(self, tenant: str, now: float) -> str:
        rows = self._store.rows(SELECT, (tenant,))
        before = rows[0][0] if rows else None
        row = (tenant, self._sealed(tenant), before, now)
        self._store.write([(PUT_CALLBACK_SECRET, [row])])
        return self.current(tenant, now)

    def _sealed(self, tenant: str) -> str:
        return self._vault().seal(new_secret(), about_secret(tenant))

    def _opened(self, sealed: str, tenant: str) -> str:
        secret = self._vault().unseal(sealed, about_secret(tenant))
        SECRETS.add(secret)
        return secret


def about_secret(tenant: str) -> str:
    """What the secret of a tenant is sealed for."""
    return f"callbacks of {tenant}"


class Callbacks:
    def __init__(
        self, store: Store, vault: Callable[[], Vault], allowed: Allowed, instance: str
    ) -> None:
        self.secrets = SigningSecrets(store, vault)
        self.allowed = allowed
        self._store = store
        self._instance = instance
        self._client: tuple[asyncio.AbstractEventLoop, httpx2.AsyncClient] | None = None
        self.brain: Brain  # from the moment that an engine is about to start

    def register(self, app: App) -> None:
        app.job(type=CALLBACK, policy=POLICY)(self.run)
        app.settings.declare("code", "lane", LANE, {})
        app.settings.declare("code", "upstream", f"*{RECEIVER}", {"limit": AT_ONCE})

    def ended(self, batch: int | None, change: Change, now: float) -> None:
        """In the turn that ends a call which somebody wants to hear of, however it ended."""
        ticket = change.ticket
        number: Any = ticket.id
        host = dict(ticket.labels).get(HOST)
        self.brain.batch.jobs.append(
            NewJob(
                CALLBACK, msgspec.json.encode({"call": number}).decode(), created_at=now,
                lane=LANE, tenant=ticket.tenant, key=key_of(number), deadline=now + DAY_S,
                upstreams=None if host is None else names_text((upstream_of(host),)),
            )
        )  # fmt: skip

    async def run(self, call: int) -> Answered:
        now = self.brain.clock.now()
        url, tenant, message = await asyncio.to_thread(self._message, call)
        valid = await asyncio.to_thread(self.secrets.valid, tenant, now)
        id, timestamp = f"msg_{self._instance}_{job.id}", int(now)
        signed = headers(valid, id, timestamp, message)
        try:
            async with (
                asyncio.timeout(WHOLE_S),
                self._http().stream("POST", url, content=message, headers=signed) as response,
            ):
                return Answered(_meaning(response, now))
        except Refused as error:
            raise Fail(str(error)) from None
        except (httpx2.HTTPError, OSError, TimeoutError) as error:
            return Answered(outcome_of_error(error))

    def _message(self, call: int) -> tuple[str, str, bytes]:
        """Where to send it, whose it is, and what it says."""
        row, payload = self._store.job(call), self._store.payload(call)
        if row is None or payload is None:
            raise Fail(f"there is no job {call} any more, so nothing can be said about it")
        url = msgspec.json.decode(payload)["callback"]
        return url, row.tenant, msgspec.json.encode(outcome_shown(self._store, row))

    def _http(self) -> httpx2.AsyncClient:
        """Of the loop that runs this."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._client[0] is not loop:
            self._client = (loop, guarded_client(self.allowed, timeout_s=STEP_S))
        return self._client[1]


def key_of(call: int) -> str:
    """Of the jobs that tell about a call: one after the other, and found by it."""
    return f"callback of {call}"


def _meaning(response: httpx2.Response, now: float) -> Outcome:
    """2xx: it was heard. 410: nobody wants to hear it. All others are asked again."""
    status = response.status_code
    if 200 <= status < 300:
        return Outcome.ok(status=status)
    if status == GONE:
        return Outcome.failed("the receiver wants no more of them (410)", fatal=True, status=status)
    if status in (429, 503):
        told_s = parse_retry_after(response.headers.get("retry-after", ""), now)
        return outcome_of(classify_status(status, retry_after_s=told_s), error=f"HTTP {status}")
    return Outcome.failed(f"HTTP {status}", status=status, upstream_fault=status >= 500)
