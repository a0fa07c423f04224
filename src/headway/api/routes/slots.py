"""Slots for clients outside: wait for one, hold it, renew it, give it back. And who has which."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from headway.api import quick, slot_views
from headway.api.auth import Overseer, Principal, Reader, allowed
from headway.api.bodies import Name, Text
from headway.api.problems import Problem, documented
from headway.api.quick import read, whose
from headway.api.routes.jobs import Page, Size
from headway.api.site import AT_ONCE, Reply, Site, TheSite, number_of, paged
from headway.api.slot_bodies import (
    SlotPollBody,
    SlotReleaseBody,
    SlotRenewBody,
    SlotReportBody,
    SlotsToReleaseBody,
    SlotsToRenewBody,
    SlotWishBody,
)
from headway.api.slot_views import overshoot_view, slot_view
from headway.api.slotting import Holding, Waiting, as_word, end, reply, stale, unknown, wish_of
from headway.api.views import moment
from headway.engine.slots import Session
from headway.engine.slots.looking import (
    counts,
    is_there,
    overshoot,
    picture,
    sessions_in,
    tally,
)

router = APIRouter(tags=["Slots"])

MOST_UPSTREAMS = 1_000  # whose overshoot is listed


def number_in(request: Request) -> int:
    """The number that a path names."""
    id = request.path_params["id"]
    number = number_of(id)
    if number is None:
        raise unknown(id)
    return number


async def _number(
    request: Request,
    id: Annotated[str, Path(max_length=40, description="The number of a slot.")],  # noqa: ARG001
) -> int:
    return number_in(request)


async def _ender(request: Request) -> Principal:
    principal: Principal | None = request.scope["principal"]
    operates = principal is not None and principal.may("operate")
    return allowed(principal, "operate" if operates else "submit")


SlotId = Annotated[int, Depends(_number)]
Ender = Annotated[Principal, Depends(_ender)]
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"model": slot_views.SlotGrantedModel},
    202: {"model": slot_views.SlotPendingModel, "description": "Not yet: poll on."},
}


@quick.post(
    router,
    "/api/slots",
    SlotWishBody,
    summary="Ask for a slot, and wait for it",
    operation_id="acquireSlot",
    response_class=Reply,
    responses={**ANSWERS, **documented(409)},
)
async def acquire(request: Request) -> Response:
    """Answers as soon as it is granted, or with 202 when `wait_ms` are over: then poll on.
    409: `timeout_s` is over. 429: too many wait there already. A client that hangs up before its
    first answer is forgotten at once.
    """
    site, principal = whose(request, "submit")
    body = await read(request, SlotWishBody)
    tenant = site.tenant_for(body.tenant, principal)
    wish = wish_of(body, tenant, site.config.lease_s)
    return reply(site, await Waiting(site, request).open(wish, body.wait_ms / 1000.0))


@quick.post(
    router,
    "/api/slots/{id}/poll",
    SlotPollBody,
    needs_body=False,
    summary="Wait on for a slot",
    operation_id="pollSlot",
    response_class=Reply,
    responses={**ANSWERS, **documented(404, 409)},
)
async def poll(request: Request) -> Response:
    """Answers like the first request. Who is away for longer than two seconds keeps its place in
    time, but is granted nothing until it is back; after 90 seconds it is forgotten.
    """
    site, principal = whose(request, "submit")
    body = await read(request, SlotPollBody) if await request.body() else SlotPollBody()
    id = number_in(request)
    answer = await Waiting(site, request).poll(id, principal.tenant, body.wait_ms / 1000.0)
    return reply(site, answer, id)


# ---------------------------------------------------------------------- holding


@quick.post(
    router,
    "/api/slots/renew",
    SlotsToRenewBody,
    summary="Prolong leases",
    operation_id="renewSlots",
    response_class=Reply,
    responses={200: {"model": slot_views.SlotRenewalsModel}, **documented()},
)
async def renew_many(request: Request) -> Response:
    """Of a lease that is over, or that never was, `lease_s` is null: stop working."""
    site, principal = whose(request, "submit")
    body = await read(request, SlotsToRenewBody)
    said = [(each.id, each.fence, each.lease_s) for each in body.slots]
    renewals = await Holding(site, principal).renew(said)
    return Reply({
        "slots": [
            {"id": id, "fence": fence, "lease_s": None if found is None else found.lease_s,
             "expires_at": None if found is None else moment(found.expires_at)}
            for (id, fence, _), found in zip(said, renewals, strict=True)
        ]
    })  # fmt: skip


@quick.post(
    router,
    "/api/slots/{id}/renew",
    SlotRenewBody,
    summary="Prolong one lease",
    operation_id="renewSlot",
    response_class=Reply,
    responses={200: {"model": slot_views.SlotRenewalModel}, **documented(404, 409)},
)
async def renew(request: Request) -> Response:
    """409: the lease is over, and somebody else may hold the slot. Stop working."""
    site, principal = whose(request, "submit")
    body = await read(request, SlotRenewBody)
    id = number_in(request)
    (found,) = await Holding(site, principal).renew([(id, body.fence, body.lease_s)])
    if found is None:
        raise unknown(id)
    if found.lease_s is None:
        raise stale(id, body.fence)
    ends_at = moment(found.expires_at)
    return Reply({"id": id, "fence": body.fence, "lease_s": found.lease_s, "expires_at": ends_at})


@quick.post(
    router,
    "/api/slots/{id}/report",
    SlotReportBody,
    summary="Say what the upstream answered, and go on holding",
    operation_id="reportSlot",
    response_class=Reply,
    responses={200: {"model": slot_views.SlotWordModel}, **documented(404, 409)},
)
async def report(request: Request) -> Response:
    """429 and its like close the upstream for everybody at once."""
    site, principal = whose(request, "submit")
    body = await read(request, SlotReportBody)
    id = number_in(request)
    accepted = await Holding(site, principal).report(id, body)
    if accepted is None:
        raise unknown(id)
    if not accepted:
        raise stale(id, body.fence)
    return Reply(as_word(id, body.fence, accepted))


@quick.post(
    router,
    "/api/slots/release",
    SlotsToReleaseBody,
    summary="Give slots back",
    operation_id="releaseSlots",
    response_class=Reply,
    responses={200: {"model": slot_views.SlotWordsModel}, **documented()},
)
async def release_many(request: Request) -> Response:
    """What is not held, or never was, is not accepted."""
    site, principal = whose(request, "submit")
    body = await read(request, SlotsToReleaseBody)
    words = await Holding(site, principal).release([(each.id, each) for each in body.slots])
    said = zip(body.slots, words, strict=True)
    return Reply({"slots": [as_word(each.id, each.fence, accepted) for each, accepted in said]})


@quick.post(
    router,
    "/api/slots/{id}/release",
    SlotReleaseBody,
    summary="Give a slot back",
    operation_id="releaseSlot",
    response_class=Reply,
    responses={200: {"model": slot_views.SlotWordModel}, **documented(404)},
)
async def release(request: Request) -> Response:
    """Not accepted: the lease was over. That its holder went on is counted as overshoot. 404: it
    was given back already.
    """
    site, principal = whose(request, "submit")
    body = await read(request, SlotReleaseBody)
    id = number_in(request)
    (accepted,) = await Holding(site, principal).release([(id, body)])
    if accepted is None:
        raise unknown(id)
    return Reply(as_word(id, body.fence, accepted))


# ---------------------------------------------------------------------- looking and steering


@router.get(
    "/api/slots",
    summary="Who waits for slots, who holds them, why and how long",
    operation_id="listSlots",
    response_class=Reply,
    responses={200: {"model": slot_views.SlotPage}, **documented()},
)
def list_slots(
    site: TheSite,
    principal: Reader,
    state: Annotated[slot_views.State | None, Query(description="In this state.")] = None,
    upstream: Annotated[Name | None, Query(description="At this upstream.")] = None,
    tenant: Annotated[Text | None, Query(description="Of this tenant.")] = None,
    kind: Annotated[
        Literal["own", "lease", "fairqueue"] | None, Query(description="Asked for in this way.")
    ] = None,
    page: Page = 1,
    size: Size = 50,
) -> Response:
    """In the order in which they came; those whose lease is over at the end."""
    if principal.tenant is not None:
        if tenant not in (None, principal.tenant):
            raise Problem(403, "your token is bound to another tenant", kind="tenant")
        tenant = principal.tenant
    desk = site.engine.brain.slots
    found = [
        each
        for each in site.wait(site.engine.ask(lambda _: sessions_in(desk, state)))
        if is_there(each, state, upstream)
        and tenant in (None, each.wish.tenant)
        and kind in (None, each.wish.kind)
    ]
    some = found[(page - 1) * size : page * size]
    return paged(_pictures(site, some, state), len(found), page, size)


def _pictures(site: Site, sessions: list[Session], state: str | None) -> list[dict[str, Any]]:
    """As they are now. Who is not there any more is left out."""
    desk = site.engine.brain.slots
    items: list[dict[str, Any]] = []
    for start in range(0, len(sessions), AT_ONCE):
        some = sessions[start : start + AT_ONCE]

        def look(now: float, some: list[Session] = some) -> list[dict[str, Any]]:
            return [picture(desk, each, now) for each in some if is_there(each, state, None)]

        items += map(slot_view, site.wait(site.engine.ask(look)))
    return items


@router.get(
    "/api/slots/stats",
    summary="How many slots are waited for and held, and what became of the others",
    operation_id="slotStats",
    response_class=Reply,
    responses={200: {"model": slot_views.SlotStatsModel}, **documented()},
)
def stats(site: TheSite, principal: Overseer) -> Response:  # noqa: ARG001 - it is checked
    """Overshoot is counted since ever, at the upstreams with the most of it."""
    desk = site.engine.brain.slots

    def look(_: float) -> tuple[dict[str, dict[str, int]], int, dict[str, int], list[Any]]:
        return tally(desk), len(desk.reclaimed), counts(desk), overshoot(desk)[:MOST_UPSTREAMS]

    by_kind, reclaimed, counted, over = site.wait(site.engine.ask(look))
    states = ("waiting", "granted", "absent")
    sessions = {state: sum(each[state] for each in by_kind.values()) for state in states}
    return Reply({
        "sessions": {**sessions, "reclaimed": reclaimed},
        "by_kind": by_kind,
        "counts": counted,
        "overshoot": [overshoot_view(row) for row in over],
    })  # fmt: skip


@router.get(
    "/api/slots/{id}",
    summary="One slot",
    operation_id="getSlot",
    response_class=Reply,
    responses={200: {"model": slot_views.SlotModel}, **documented(404)},
)
def get_slot(principal: Reader, id: SlotId, site: TheSite) -> Response:
    desk = site.engine.brain.slots

    def look(now: float) -> dict[str, Any]:
        session = desk.sessions.get(id) or desk.reclaimed.get(id)
        if session is None or principal.tenant not in (None, session.wish.tenant):
            raise unknown(id)
        return picture(desk, session, now)

    return Reply(slot_view(site.wait(site.engine.ask(look))))


@router.delete(
    "/api/slots/{id}",
    summary="End a wait, or take a slot back",
    operation_id="endSlot",
    response_class=Reply,
    responses={200: {"model": slot_views.SlotEndModel}, **documented(404, 409)},
)
async def end_slot(principal: Ender, id: SlotId, site: TheSite) -> Response:
    """The scope `submit` is enough for a tenant's own, and to leave the line; all else needs
    `operate`. Whoever held it is not stopped by this, and must not go on.
    """
    return Reply({"id": id, "ended": await end(site, principal, id)})
