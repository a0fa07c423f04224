"""Calls as jobs: the lines of batches, and single calls. They run on what online calls leave over,
on any channel that serves their model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx2
import msgspec

from headway.apps.channels.calling import (
    Answer,
    Caller,
    body_for,
    outcome_of_answer,
    outcome_of_error,
)
from headway.apps.channels.channel import route_of
from headway.apps.channels.directory import Directory, Entry
from headway.apps.channels.money.billing import (
    BATCH,
    QUEUED,
    Billing,
    Usage,
    bill_of,
    tokens_of,
    usage_of,
)
from headway.apps.channels.tables import PUT_ANSWER
from headway.core import Kind, Outcome, RetryPolicy
from headway.core.change import Change
from headway.engine.brain import Brain
from headway.engine.hands.context import job
from headway.engine.tickets import Spec, names_text, spec_text
from headway.outcomes import Answered
from headway.sdk.app import App
from headway.store.records import NewJob

LANE = "llm"
PREFIX = "llm."  # of the types of jobs that are ours
LINE, CALL, CALL_BACK = "llm.line", "llm.call", "llm.call_back"
# A channel has its own, shorter time-out. That a server dies is not the fault of a call, and how
# long it may be pushed back is said by its deadline.
RULES = RetryPolicy(
    timeout_s=3600.0, retries=4, delay_s=5.0, growth=3.0, max_lost=20, max_pushbacks=10_000,
    max_pushed_back_s=8 * 86_400.0,
)  # fmt: skip
GONE_S = 1.0  # until a job looks again whose channel was removed at this very moment

Ended = Callable[[int | None, Change, float], None]


def queued_call(
    type: str, endpoint: str, body: dict[str, Any], *, tenant: str, now: float,
    priority: int = 5, deadline: float | None = None, number: int | None = None, **more: Any,
) -> NewJob:  # fmt: skip
    """A job for this call. `more` goes into its payload; `number` is the engine's batch."""
    args = msgspec.json.encode({"endpoint": endpoint, "body": body, **more})
    spec = Spec(traffic="leftover", cost=tokens_of(body, len(args)))
    return NewJob(
        type, args.decode(), created_at=now, lane=LANE, tenant=tenant,
        upstreams=names_text((route_of(str(body["model"])),)), priority=priority,
        deadline=deadline, spec=spec_text(spec), batch=number,
    )  # fmt: skip


class QueuedCalls:
    def __init__(self, directory: Directory, billing: Billing, instance: str) -> None:
        self._directory = directory
        self._billing = billing
        self._instance = instance
        self._caller: tuple[asyncio.AbstractEventLoop, Caller] | None = None
        self.brain: Brain  # from the moment that an engine is about to start
        self.kept: Callable[[float], None] | None = None  # hears of answers to single calls

    def register(self, app: App, ended: dict[str, Ended]) -> None:
        """The types of jobs; `ended` hears of the ends of some of them."""
        for type in (LINE, CALL, CALL_BACK):
            app.job(type=type, policy=RULES)(self.run)
            app.registry.types[type].ended = ended.get(type)

    def caller(self) -> Caller:
        """Of the loop that runs this."""
        loop = asyncio.get_running_loop()
        if self._caller is None or self._caller[0] is not loop:
            self._caller = (loop, Caller())
        return self._caller[1]

    async def run(
        self, endpoint: str, body: dict[str, Any], batch: str | None = None, line: int = 0,
        custom_id: str = "", callback: str | None = None,
    ) -> Answered:  # fmt: skip
        entry = self._directory.get(job.upstream or "")
        if entry is None or entry.channel.model != body["model"]:
            return Answered(Outcome.returned(after_s=GONE_S))
        if entry.trouble:  # without its key nobody would answer
            return Answered(
                Outcome.pushback(status=401, ban=True, upstream_fault=False, error=entry.trouble)
            )
        sent = body_for(entry.channel, body, stream=False)
        mark = f"{self._instance}-{job.id}"
        try:
            answer = await self.caller().call(entry.channel, entry.key, endpoint, sent, mark=mark)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            return Answered(outcome_of_error(error))
        now = self.brain.clock.now()
        outcome = outcome_of_answer(answer.status, answer.headers, answer.body, now)
        if outcome.kind is Kind.PUSHBACK:
            return Answered(outcome)
        usage = usage_of(answer.json(), len(sent))
        keep = partial(self._keep, job.id, job.fence, job.tenant, entry, endpoint, answer, usage,
                       batch, line, custom_id)  # fmt: skip
        job.with_end(keep)
        return Answered(usage.told_in(outcome))

    def _keep(
        self, number: int, fence: int, tenant: str, entry: Entry, endpoint: str, answer: Answer,
        usage: Usage, batch: str | None, line: int, custom_id: str, now: float,
    ) -> None:  # fmt: skip
        """The answer and what it cost, in the transaction that ends the attempt."""
        text = answer.body.decode("utf-8", "replace")
        row = (number, batch, line, custom_id, answer.status, answer.request_id, text, now)
        self.brain.write(PUT_ANSWER, row)
        if batch is None and self.kept is not None:
            self.kept(now)
        if answer.status < 300 or not usage.estimated:
            self._billing.charge(
                bill_of(
                    f"job:{number}:{fence}", entry.channel, usage,
                    kind=QUEUED if batch is None else BATCH, tenant=tenant, endpoint=endpoint,
                    now=now, job=number, batch=batch,
                ),
                now,
            )  # fmt: skip
