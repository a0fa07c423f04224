"""One request of a client of the fair queue, from its body to its answer."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from typing import Any

from fastapi import Request

from headway.api.fairqueue.bodies import AcquireBody, ReleaseBody, ReportBody, hit_at, host_of
from headway.api.fairqueue.profiles import IP
from headway.api.hanging_up import Watch
from headway.api.site import Site
from headway.core import Outcome
from headway.core.kinds import UPSTREAM
from headway.core.outcome import Kind
from headway.engine.loop_future import LoopFuture
from headway.engine.slots import FAIRQUEUE, Answer, Session, Wish
from headway.engine.slots.session import new_secret
from headway.errors import HeadwayError

logger = logging.getLogger("headway.fairqueue")

LANE = "fairqueue"
REPLY_S = 7.8  # clients give up after 8 s, so whatever happens they hear before
DONE_S = 5.0  # for what else they say
BAD = frozenset({429, 500, 503})
MAX_RETRY_AFTER_S = 86_400.0
OVERLOADED = {"result": "overloaded", "reason": "slot_handler_overloaded", "retryAfter": 30}

Reply = dict[str, Any]


class Acquiring:
    def __init__(self, site: Site, request: Request, body: AcquireBody) -> None:
        self._engine = site.engine
        self._desk = site.engine.brain.slots
        self._queue = site.fairqueue
        self._site = site
        self._request = request
        self._body = body
        self._session: Session | None = None
        self._waiter = LoopFuture(missed=self._missed)

    async def run(self) -> Reply:
        body, waiter = self._body, self._waiter
        call = self._ask() if body.query_token is None else self._poll(body.query_token)
        self._engine.ask_for(waiter, call, later=True)
        late = Answer("late")
        alarm = asyncio.get_running_loop().call_later(REPLY_S, waiter.answer_here, late)
        watch = Watch(self._request, self._gone)
        try:
            answer: Answer = await waiter
        except BaseException:
            self._gone()
            raise
        finally:
            alarm.cancel()
            watch.end()
        if answer is late:
            self._leave()
            return (
                {"result": "pending", "queryToken": body.query_token}
                if body.query_token
                else OVERLOADED
            )
        if answer.what == "granted" and watch.hung_up():
            self._missed(answer)
        return reply(answer, body.query_token, self._engine.brain.clock.now())

    # ------------------------------------------------------------------ in the brain's turn

    def _ask(self) -> Callable[[float], None]:
        body = self._body
        host = host_of(body.hostname, body.hostname_hash)
        profile = self._queue.config.profile(host)
        wish = Wish(
            kind=FAIRQUEUE, upstreams=(host,), tenant=IP + (body.ip_bucket or "").strip(),
            terms=profile.terms, lane=LANE, secret=new_secret(),
        )  # fmt: skip
        window_s, open_s = self._window_s(host), body.throttle_time_window_seconds

        def ask(now: float) -> None:
            if open_s is not None and 0 < open_s < MAX_RETRY_AFTER_S:
                self._engine.brain.core.gates.keep_breaker_open(host, open_s, now)
            self._session = self._desk.open(wish, self._waiter, now + window_s, now)

        return ask

    def _poll(self, token: str) -> Callable[[float], None]:
        def poll(now: float) -> None:
            session = self._session = self._desk.by_token(token)
            window_s = 0.0
            if session is not None:
                window_s = self._window_s(session.wish.upstreams[0])
            self._desk.poll(session, self._waiter, now + window_s, now)

        return poll

    def _window_s(self, host: str) -> float:
        """How long a request waits; not at all when the server is to stop."""
        return 0.0 if self._site.stopping else self._queue.config.profile(host).window_s

    # ------------------------------------------------------------------ nobody listens any more

    def _gone(self) -> None:
        """The client has hung up while it waited."""
        if self._waiter.cancel():
            self._leave()
        self._waiter.answer_here(Answer("pending", self._session))

    def _missed(self, answer: Answer) -> None:
        """An answer has come too late to be heard."""
        if answer.what == "granted":
            self._leave()

    def _leave(self) -> None:
        """Who has heard of its token may come back; of the others nobody knows any more."""
        known, waiter, desk = self._body.query_token is not None, self._waiter, self._desk

        def leave(now: float) -> None:
            session = self._session
            if session is not None and known:
                desk.hang_up(session, waiter, now)
            elif session is not None:
                desk.leave(session, now)

        try:
            self._engine.ask(leave)
        except HeadwayError as error:
            logger.warning("a client has hung up, and %s", error)


def reply(answer: Answer, token: str | None, now: float) -> Reply:
    session = answer.session
    match answer.what:
        case "granted" if session is not None:
            return {"result": "granted", "slotToken": session.slot_token,
                    "queryToken": session.query_token}  # fmt: skip
        case "pending" if session is not None:
            return {"result": "pending", "queryToken": session.query_token}
        case "pending":
            return {"result": "pending", "queryToken": token}
        case "throttled":
            after_s = max(1, math.ceil(answer.until - now))
            found = {"result": "throttled", "throttleCode": answer.status,
                     "throttleRetryAfter": after_s}  # fmt: skip
            return {**found, "reason": answer.why} if answer.why else found
        case "overloaded":
            return OVERLOADED
    return {"result": "timeout"}


# ---------------------------------------------------------------------- what clients report


async def release(site: Site, body: ReleaseBody) -> None:
    """The slot itself opens when its time has come; nobody waits for that here. Whatever goes wrong
    is ours: a client could do nothing about it.
    """
    desk = site.engine.brain.slots

    def give_back(now: float) -> None:
        session, fence = desk.by_slot_token(body.slot_token or "")
        if session is not None:
            at = hit_at(body.hit_upstream_at_ms, body.now, now)
            desk.release(session, fence, outcome(body.status, body.retry_after, at), now)

    try:
        await _done(site, give_back)
    except HeadwayError as error:
        logger.warning("a slot could not be given back: %s", error)


async def report(site: Site, body: ReportBody) -> None:
    """An outcome of somebody who holds no slot."""
    host = host_of(body.hostname, body.hostname_hash)
    brain = site.engine.brain
    heard = outcome(body.status, body.retry_after, None)

    def hear(now: float) -> None:
        gates = brain.core.gates
        brain.policies.hosts.use(host, now)
        gates.report(host, heard, now)
        if heard.retry_after_s:
            why = f"{body.status} pushback, Retry-After {heard.retry_after_s:g} s"
            gates.close(UPSTREAM, host, now, until=now + heard.retry_after_s, why=why)

    await _done(site, hear)


async def cancel(site: Site, token: str | None) -> str:
    desk = site.engine.brain.slots
    if not token:
        return "noop"

    def leave(now: float) -> str:
        session = desk.by_token(token)
        if session is None:
            return "gone"
        if session.permit is not None and now > session.granted_at + session.wish.terms.keep_s:
            return "noop"  # whoever holds it has had it for long, and gives it back itself
        return "canceled" if desk.leave(session, now) == "cancelled" else "gone"

    result: str = await _done(site, leave, late="canceled")
    return result


async def _done(site: Site, call: Callable[[float], Any], late: Any = None) -> Any:
    """While the store is away clients hear this, since it is done as soon as the store is back."""
    waiter = LoopFuture()
    alarm = asyncio.get_running_loop().call_later(DONE_S, waiter.answer_here, late)
    try:
        site.engine.ask_for(waiter, call)
        return await waiter
    finally:
        alarm.cancel()


def outcome(status: int | None, retry_after: float | None, at: float | None) -> Outcome:
    """What the breaker hears of it. Without a status nothing is known, neither good nor bad."""
    if status is None:
        return Outcome(Kind.RETURNED, hit_at=at)
    if status not in BAD:
        return Outcome(Kind.OK, status=status, hit_at=at)
    if retry_after is not None and retry_after > 0:
        after_s = min(retry_after, MAX_RETRY_AFTER_S)
        return Outcome(Kind.PUSHBACK, status=status, retry_after_s=after_s, upstream_fault=True,
                       hit_at=at)  # fmt: skip
    return Outcome(Kind.FAILED, status=status, upstream_fault=True, hit_at=at)
