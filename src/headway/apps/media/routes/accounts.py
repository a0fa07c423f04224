"""Accounts over HTTP: for operators who are bound to no tenant, since all of them share the pool.

Cookies are written and never read: they are in no answer, no error and no trail.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from headway.api import models
from headway.api.auth import Keeper
from headway.api.bodies import MAX_ID
from headway.api.problems import Problem, documented
from headway.api.site import Reply, Site, TheSite
from headway.api.turns import in_own_name
from headway.apps.media.accounts.cookies import plain_site
from headway.apps.media.accounts.pool import Account
from headway.apps.media.accounts.schedule import CHECK, KEY
from headway.apps.media.requesting import usable_url
from headway.apps.media.routes.account_views import (
    AccountBody,
    AccountChangeBody,
    AccountDetails,
    AccountList,
    CookiesBody,
    account_view,
)
from headway.apps.media.routes.reach import TheMedia
from headway.core import State
from headway.errors import BadSettings, HeadwayError, SealedElsewhere
from headway.store.records import Query as JobQuery

router = APIRouter(tags=["Archive accounts"])

PATH = "/api/archive/accounts"

AccountId = Annotated[int, Path(ge=1, le=MAX_ID, description="The number of an account.")]


def unknown(id: int) -> Problem:
    return Problem(404, f"there is no account {id}", kind="unknown-account")


@contextmanager
def refusals() -> Iterator[None]:
    """What the pool does not take, as an answer."""
    try:
        yield
    except ValueError as error:
        raise Problem(422, str(error), kind="bad-account") from None
    except (BadSettings, SealedElsewhere) as error:
        raise Problem(503, str(error), kind="no-secret-key") from error


# ---------------------------------------------------------------------- looking


def _view(media: TheMedia, account: Account, now: float) -> dict[str, Any]:
    """In the brain's turn, which knows when it is checked next."""
    brain = media.accounts.brain
    ticket = brain.core.tickets.get(media.checker.schedule.jobs.get(account.id, 0))
    waits = ticket is not None and ticket.state is not State.RUNNING
    next_at = max(ticket.not_before, ticket.since) if waits and ticket is not None else None
    return account_view(account, now, next_at, media.accounts.in_use(account.id))


def _details(site: Site, media: TheMedia, id: int) -> dict[str, Any]:
    def look(now: float) -> dict[str, Any]:
        account = media.accounts.get(id)
        if account is None:
            raise unknown(id)
        return _view(media, account, now)

    view = site.wait(site.engine.ask(look))
    return {**view, "cookie_names": _cookie_names(media, id)}


def _cookie_names(media: TheMedia, id: int) -> list[str] | None:
    try:
        return sorted({cookie.name for cookie in media.accounts.cookies_of(id)})
    except KeyError:
        raise unknown(id) from None
    except (HeadwayError, ValueError):
        return None


@router.get(
    PATH,
    summary="List accounts",
    operation_id="listAccounts",
    response_class=Reply,
    responses={200: {"model": AccountList}, **documented(409)},
)
def list_accounts(
    principal: Keeper,  # noqa: ARG001
    site: TheSite,
    media: TheMedia,
    of: Annotated[
        str | None, Query(alias="site", max_length=253, description="Those that serve this site.")
    ] = None,
) -> Response:
    def look(now: float) -> list[dict[str, Any]]:
        return [_view(media, each, now) for each in media.accounts.list(of)]

    return Reply({"items": site.wait(site.engine.ask(look))})


@router.get(
    PATH + "/{id}",
    summary="Look at an account",
    operation_id="getAccount",
    response_class=Reply,
    responses={200: {"model": AccountDetails}, **documented(404, 409)},
)
def get_account(
    id: AccountId, principal: Keeper, site: TheSite, media: TheMedia  # noqa: ARG001
) -> Response:  # fmt: skip
    return Reply(_details(site, media, id))


# ---------------------------------------------------------------------- changing


@router.post(
    PATH,
    status_code=201,
    summary="Add an account",
    operation_id="addAccount",
    response_class=Reply,
    responses={201: {"model": AccountDetails}, **documented(409)},
)
def add_account(body: AccountBody, principal: Keeper, site: TheSite, media: TheMedia) -> Response:
    """It is used at once, and checked soon."""
    check_url = body.check_url
    if "check_url" in body.model_fields_set:
        check_url = usable_url(check_url, media.allowed, "check_url") if check_url else ""

    def add(now: float) -> Account:
        site_name = plain_site(body.site)
        if any((each.name, each.site) == (body.name, site_name) for each in media.accounts.list()):
            raise Problem(409, f"there is an account {body.name!r} at {site_name} already; replace "
                          "its cookies, or choose another name", kind="duplicate")  # fmt: skip
        return media.accounts.add(body.name, body.site, body.cookies, check_url, now)

    with refusals():
        made = in_own_name(site, principal, add)
    headers = {"Location": f"{PATH}/{made.id}"}
    return Reply(_details(site, media, made.id), 201, headers=headers)


@router.patch(
    PATH + "/{id}",
    summary="Change an account",
    operation_id="changeAccount",
    response_class=Reply,
    responses={200: {"model": AccountDetails}, **documented(404, 409)},
)
def change_account(
    id: AccountId, body: AccountChangeBody, principal: Keeper, site: TheSite, media: TheMedia
) -> Response:
    """What is left out stays. What runs with an account that is disabled may end."""
    sent = body.model_dump(exclude_unset=True)
    if "check_url" in sent:
        url = sent["check_url"]
        sent["check_url"] = usable_url(url, media.allowed, "check_url") if url else ""

    def change(now: float) -> Account:
        if media.accounts.get(id) is None:
            raise unknown(id)
        return media.accounts.change(id, now, **sent)

    with refusals():
        in_own_name(site, principal, change)
    return Reply(_details(site, media, id))


@router.put(
    PATH + "/{id}/cookies",
    summary="Replace the cookies of an account",
    operation_id="replaceAccountCookies",
    response_class=Reply,
    responses={200: {"model": AccountDetails}, **documented(404, 409)},
)
def replace_cookies(
    id: AccountId, body: CookiesBody, principal: Keeper, site: TheSite, media: TheMedia
) -> Response:
    """It may be used again at once, whatever was said of the old ones."""

    def replace(now: float) -> Account:
        if media.accounts.get(id) is None:
            raise unknown(id)
        return media.accounts.replace_cookies(id, body.cookies, now)

    with refusals():
        in_own_name(site, principal, replace)
    return Reply(_details(site, media, id))


@router.delete(
    PATH + "/{id}",
    status_code=204,
    summary="Remove an account",
    operation_id="removeAccount",
    response_class=Response,
    responses=documented(404, 409),
)
def remove_account(id: AccountId, principal: Keeper, site: TheSite, media: TheMedia) -> Response:
    """With its cookies. What runs with it may end."""

    def remove(now: float) -> None:
        if media.accounts.get(id) is None:
            raise unknown(id)
        media.accounts.remove(id, now)

    in_own_name(site, principal, remove)
    return Response(status_code=204)


# ---------------------------------------------------------------------- trying


@router.post(
    PATH + "/{id}/check",
    status_code=202,
    summary="Check an account now",
    operation_id="checkAccount",
    response_class=Reply,
    responses={202: {"model": models.JobModel}, **documented(404, 409)},
)
def check_account(id: AccountId, principal: Keeper, site: TheSite, media: TheMedia) -> Response:
    """The job that asks the site; a check that waits for its time goes now."""
    brain = media.accounts.brain

    def check(now: float) -> int | None:
        account = media.accounts.get(id)
        if account is None:
            raise unknown(id)
        if not account.enabled:
            raise Problem(409, f"{account.label} is switched off; send enabled: true first",
                          kind="account-off")  # fmt: skip
        media.checker.schedule.check_now(id, now)
        brain.record(now, "account_check_asked", subject=f"account:{account.label}")
        return media.checker.schedule.jobs.get(id)

    number = in_own_name(site, principal, check)
    if number is None:  # it was stored just now
        found = site.store.jobs(JobQuery(type=CHECK, key=f"{KEY}{id}", limit=1))
        number = found[0].id if found else None
    row = None if number is None else site.store.job(number)
    if row is None:
        raise Problem(503, f"the check of account {id} is not in line yet; ask again",
                      kind="unavailable", headers={"Retry-After": "1"})  # fmt: skip
    return Reply(site.view(row), 202, headers={"Location": f"/api/jobs/{row.id}"})
