"""Requests of clients for the archive, `POST /api/requests/enqueue`, as jobs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from headway.api.auth import Principal
from headway.api.problems import Problem
from headway.api.routes.requests import EnqueueBody
from headway.api.site import RequestMaker
from headway.api.views import USUAL_RANK
from headway.apps.media.jobs import COUNT, DOWNLOAD, LIST, TYPES, new_request
from headway.apps.media.model import Subscription
from headway.apps.media.register import Register
from headway.net.addresses import Allowed
from headway.net.outbound import Refused, check_url
from headway.net.urls import plain_url
from headway.store.records import NewJob

OF_SUBSCRIPTIONS = frozenset({COUNT, LIST})


def makers(
    register: Register, allowed: Allowed, now: Callable[[], float]
) -> dict[str, RequestMaker]:
    return {type: partial(_make, register, allowed, now) for type in TYPES}


def _make(
    register: Register, allowed: Allowed, now: Callable[[], float], body: EnqueueBody,
    principal: Principal,
) -> NewJob:  # fmt: skip
    row = _subscription(register, body, principal)
    url = row.url if row is not None and not body.url else usable_url(body.url or "", allowed)
    if row is None and body.type in OF_SUBSCRIPTIONS:
        raise _wrong("subscription_id", f"{body.type} is about a subscription; name its number")
    if row is not None and body.type in OF_SUBSCRIPTIONS:
        if body.url and url != row.url:
            raise _wrong("url", f"subscription {row.id} is at another address; leave out url")
        url = row.url
    if row is not None and body.type == DOWNLOAD and not body.url:
        raise _wrong(
            "url", "name the address of one video; POST /api/subscriptions/ID/download gets all"
        )
    return new_request(
        body.type, url, now(), subscription=row, tenant=principal.tenant or "",
        cookie=body.requires_cookie, ua_profile=body.ua_profile,
        priority=USUAL_RANK - body.priority, max_attempts=body.max_attempts,
    )  # fmt: skip


def _subscription(
    register: Register, body: EnqueueBody, principal: Principal
) -> Subscription | None:
    if body.subscription_id is None:
        return None
    text = str(body.subscription_id)
    number = int(text) if text.isdecimal() and text.isascii() else -1
    row = register.get(number, principal.tenant)
    if row is None:
        raise Problem(404, f"there is no subscription {text}", kind="unknown-subscription")
    return row


def usable_url(url: str, allowed: Allowed, where: str = "url") -> str:
    """In its plain form. Problem: it may not be called, or is no address."""
    try:
        plain = plain_url(url)
        check_url(plain, allowed)
    except (ValueError, Refused) as error:
        raise _wrong(where, str(error)) from error
    return plain


def _wrong(where: str, what: str) -> Problem:
    errors = [{"where": f"body.{where}", "what": what}]
    return Problem(422, f"body.{where}: {what}", kind="bad-request", errors=errors)
