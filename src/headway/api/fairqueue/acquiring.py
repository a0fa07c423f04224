"""What clients of the fair queue ask for, from a body to its answer."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from fastapi import Request

from headway.api.fairqueue.bodies import AcquireBody, ReleaseBody, ReportBody, hit_at, host_of
from headway.api.fairqueue.profiles import IP
from headway.api.site import Site
from headway.api.slot_waiting import LATE, SlotRequest
from headway.api.turns import in_turn
from headway.core import Outcome
from headway.core.gatekeeper import reason_for
from headway.core.kinds import UPSTREAM
from headway.core.outcome import Kind
from headway.engine.slots import FAIRQUEUE, Answer, Wish
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


async def acquire(site: Site, request: Request, body: AcquireBody) -> Reply:
    """The first request of a client, or one more."""
    token = body.query_token
    asked = SlotRequest(site, request, known=token is not None)
    ask = _first(asked, body) if token is None else _again(asked, token)
    answer = await asked.answer(ask, REPLY_S)
    if answer is LATE:
        return {"result": "pending", "queryToken": token} if token else OVERLOADED
    return reply(answer, token, site.engine.brain.clock.now())


def _first(asked: SlotRequest, body: AcquireBody) -> Callable[[float], None]:
    host = host_of(body.hostname, body.hostname_hash)
    profile = asked.site.fairqueue.config.profile(host)
    wish = Wish(
        kind=FAIRQUEUE, upstreams=(host,), tenant=IP + (body.ip_bucket or "").strip(),
        terms=profile.terms, lane=LANE, secret=new_secret(),
    )  # fmt: skip
    open_s = body.throttle_time_window_seconds

    def ask(now: float) -> None:
        if open_s is not None and 0 < open_s < MAX_RETRY_AFTER_S:
            asked.desk.core.gates.keep_breaker_open(host, open_s, now)
        until = asked.until(profile.window_s, now)
        asked.session = asked.desk.open(wish, asked.waiter, until, now)

    return ask


def _again(asked: SlotRequest, token: str) -> Callable[[float], None]:
    def poll(now: float) -> None:
        session = asked.session = asked.desk.by_token(token)
        window_s = 0.0
        if session is not None:
            window_s = asked.site.fairqueue.config.profile(session.wish.upstreams[0]).window_s
        asked.desk.poll(session, asked.waiter, asked.until(window_s, now), now)

    return poll


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
        await in_turn(site.engine, give_back, DONE_S)
    except (HeadwayError, TimeoutError) as error:
        logger.warning("a slot could not be given back yet: %s", error or "the store is away")


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
            why = reason_for(heard, heard.retry_after_s)
            gates.close(UPSTREAM, host, now, until=now + heard.retry_after_s, why=why)

    with suppress(TimeoutError):  # it is heard when the store is back
        await in_turn(site.engine, hear, DONE_S)


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

    try:
        return await in_turn(site.engine, leave, DONE_S)
    except TimeoutError:
        return "canceled"  # when the store is back


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
