"""What stands between the routes of slots and the engine's desk for them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from fastapi import Request, Response

from headway.api.auth import Principal
from headway.api.problems import Problem
from headway.api.site import Reply, Site
from headway.api.slot_bodies import SlotReleaseBody, SlotReportBody, SlotWishBody
from headway.api.slot_views import granted_view, pending_view
from headway.api.slot_waiting import SlotRequest
from headway.api.turns import in_turn
from headway.core import Outcome, Refused
from headway.core.ticket import Traffic
from headway.engine.slots import LEASE, OWN, Answer, Phase, Session, SlotDesk, Terms, Wish
from headway.net.redaction import redact
from headway.outcomes import outcome_of_status, rates_in, with_rates

logger = logging.getLogger("headway.api")

T = TypeVar("T")


def wish_of(body: SlotWishBody, tenant: str, lease_s: float) -> Wish:
    """What is asked for, if it makes sense."""
    if body.upstream is not None and body.upstreams:
        raise _wrong("upstream and upstreams say the same thing; send one of them")
    upstreams = tuple(body.upstreams) if body.upstream is None else (body.upstream,)
    named = {"lane", "key", "tools"} & body.model_fields_set
    if not upstreams and not named:
        raise _wrong("name an upstream, or else a lane, a key or tools")
    if len(set(upstreams)) != len(upstreams) or len(set(body.tools)) != len(body.tools):
        raise _wrong("an upstream or a tool is named twice")
    return Wish(
        kind=LEASE, upstreams=upstreams, tenant=tenant, lane=body.lane, tools=tuple(body.tools),
        key=body.key, weight=body.weight, priority=body.priority, cost=body.cost,
        traffic=Traffic.NORMAL if body.traffic == "normal" else Traffic.LEFTOVER,
        holder=redact(body.holder),
        terms=Terms(lease_s=body.lease_s or lease_s, max_wait_s=body.timeout_s),
    )  # fmt: skip


def _wrong(detail: str) -> Problem:
    return Problem(422, detail, kind="wrong-input")


def unknown(number: int | str) -> Problem:
    return Problem(404, f"there is no slot {str(number)[:40]}; it has ended, or never was",
                   kind="unknown-slot")  # fmt: skip


def stale(number: int, fence: int) -> Problem:
    return Problem(409, f"slot {number} is not held under the fence {fence} any more; stop working",
                   kind="stale-fence")  # fmt: skip


def lease_of(desk: SlotDesk, number: int, tenant: str | None) -> Session | None:
    """A slot that is held, waited for or was reclaimed, and that this tenant may speak for. Those
    of other kinds have clients that name them in another way.
    """
    session = desk.sessions.get(number) or desk.reclaimed.get(number)
    if session is None or session.wish.kind != LEASE or tenant not in (None, session.wish.tenant):
        return None
    return session


# ---------------------------------------------------------------------- waiting


class Waiting:
    """For a slot that is named by its number."""

    def __init__(self, site: Site, request: Request) -> None:
        self._site = site
        self._request = request

    async def open(self, wish: Wish, wait_s: float) -> Answer:
        asked = SlotRequest(self._site, self._request, known=False)

        def ask(now: float) -> None:
            asked.session = asked.desk.open(wish, asked.waiter, asked.until(wait_s, now), now)

        try:
            return await self._answer(asked, ask)
        except Refused as error:
            raise Problem(429, f"{error}; try again later", kind="queue-full",
                          headers={"Retry-After": "5"}) from error  # fmt: skip
        except (ValueError, TypeError) as error:
            raise _wrong(str(error)) from error

    async def poll(self, number: int, tenant: str | None, wait_s: float) -> Answer:
        asked = SlotRequest(self._site, self._request, known=True)

        def ask(now: float) -> None:
            asked.session = lease_of(asked.desk, number, tenant)
            asked.desk.poll(asked.session, asked.waiter, asked.until(wait_s, now), now)

        return await self._answer(asked, ask)

    async def _answer(self, asked: SlotRequest, ask: Callable[[float], None]) -> Answer:
        site = self._site
        if site.stopping:
            raise Problem(503, "the server is stopping; ask again when it is back",
                          kind="unavailable", headers={"Retry-After": "1"})  # fmt: skip
        if site.slot_waiters >= site.config.max_slot_waiters:
            raise Problem(503, f"{site.slot_waiters} requests wait for slots already; try again",
                          kind="busy", headers={"Retry-After": "5"})  # fmt: skip
        site.slot_waiters += 1
        try:
            return await asked.answer(ask)
        finally:
            site.slot_waiters -= 1


def reply(site: Site, answer: Answer, number: int = 0) -> Response:
    """As it goes over the wire."""
    session, permit = answer.session, answer.permit
    match answer.what:
        case "granted" if session is not None and permit is not None:
            return Reply(granted_view(session, permit))
        case "pending" if session is not None:
            unplaced = "stopping" if site.stopping else "asked_again"
            return Reply(pending_view(session, answer.place, unplaced), 202)
        case "timeout":
            raise Problem(409, "no slot was granted within timeout_s; ask anew", kind="timeout")
        case "cancelled":
            raise Problem(409, "somebody has ended this wait for a slot; ask anew", kind="ended")
        case "overloaded":
            raise Problem(503, "as many clients as there may be want slots already; try again",
                          kind="busy", headers={"Retry-After": "5"})  # fmt: skip
        case "gone":
            return Response(status_code=204)  # nobody reads it
    raise unknown(number)


# ---------------------------------------------------------------------- holding


class Renewal(NamedTuple):
    id: int
    fence: int
    lease_s: float | None = None
    expires_at: float | None = None


class Holding:
    """What holders say about their slots. None: there is no such slot, for this tenant."""

    def __init__(self, site: Site, principal: Principal) -> None:
        self._site = site
        self._engine = site.engine
        self._desk = site.engine.brain.slots
        self._tenant = principal.tenant

    async def renew(self, said: list[tuple[int, int, float | None]]) -> list[Renewal | None]:
        desk = self._desk

        def renew_all(now: float) -> list[Renewal | None]:
            found: list[Renewal | None] = []
            for number, fence, lease_s in said:
                session = lease_of(desk, number, self._tenant)
                if session is None:
                    found.append(None)
                    continue
                ends_at = desk.renew(session, fence, lease_s, now)
                lasts_s = None if ends_at is None else round(ends_at - now, 3)
                found.append(Renewal(number, fence, lasts_s, ends_at))
            return found

        return await in_turn(self._engine, renew_all)

    async def report(self, number: int, body: SlotReportBody) -> bool | None:
        outcome = outcome_of_status(
            body.status, body.retry_after_s, body.headers, now=self._site.now()
        )

        def hear(now: float) -> bool | None:
            session = lease_of(self._desk, number, self._tenant)
            if session is None:
                return None
            return self._desk.report(session, body.fence, outcome, now)

        return await in_turn(self._engine, hear)

    async def release(self, said: list[tuple[int, SlotReleaseBody]]) -> list[bool | None]:
        desk = self._desk
        at = self._site.now()
        judged = [(number, body.fence, outcome_said(body, at)) for number, body in said]

        def release_all(now: float) -> list[bool | None]:
            found: list[bool | None] = []
            for number, fence, outcome in judged:
                session = lease_of(desk, number, self._tenant)
                if session is None:
                    found.append(None)
                elif session.fence != fence:  # nor may it be counted as an overshoot
                    found.append(False)
                else:
                    found.append(desk.release(session, fence, outcome, now))
            return found

        return await in_turn(self._engine, release_all)


def outcome_said(body: SlotReleaseBody, now: float) -> Outcome:
    """How the work under a slot ended, by what its holder says."""
    error = redact(body.error)
    if body.status is not None:
        outcome = outcome_of_status(
            body.status, body.retry_after_s, body.headers, now=now,
            error=error or f"HTTP {body.status}",
        )  # fmt: skip
    elif body.retry_after_s is not None:
        outcome = Outcome.pushback(retry_after_s=body.retry_after_s, error=error)
    else:
        outcome = Outcome.failed(error) if error else Outcome.ok()
    outcome = with_rates(outcome, rates_in(body.headers, now))
    return outcome if body.hit_at is None else replace(outcome, hit_at=body.hit_at)


# ---------------------------------------------------------------------- ending


async def end(site: Site, principal: Principal, number: int) -> bool:
    """Somebody waits or holds no more, by an order. It stands in the audit trail."""
    brain = site.engine.brain
    desk = brain.slots

    def leave(now: float) -> bool:
        session = desk.sessions.get(number) or desk.reclaimed.get(number)
        if session is None or principal.tenant not in (None, session.wish.tenant):
            raise unknown(number)
        _check_end(session, principal)
        before = session.phase.value
        where = session.upstream or " or ".join(session.wish.upstreams)
        ended = desk.leave(session, now) == "cancelled"
        if ended:
            with brain.controls.acting(principal.who):
                brain.record(now, "slot_end", subject=f"slot:{number}",
                             detail=f"{before} at {where}" if where else before)  # fmt: skip
        return ended

    return await in_turn(site.engine, leave)


def _check_end(session: Session, principal: Principal) -> None:
    wish = session.wish
    if wish.kind == OWN:
        raise Problem(409, "it is held in the server's own process; stop what holds it",
                      kind="own-slot")  # fmt: skip
    waits = session.phase is Phase.WAITING
    own = waits if principal.tenant is None else principal.tenant == wish.tenant
    if not principal.may("operate") and (wish.kind != LEASE or not own):
        raise Problem(403, "this needs a token with the scope 'operate'; who holds the slot can "
                      "give it back", kind="scope")  # fmt: skip


def as_word(number: int, fence: int, accepted: bool | None) -> dict[str, Any]:
    return {"id": number, "fence": fence, "accepted": bool(accepted)}
