"""Accounts as operators see them, and what they send. Cookies go in, and never come out."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints

from headway.api.bodies import NO_NUL, Body
from headway.api.models import Moment
from headway.api.views import moment
from headway.apps.media.accounts.cookies import MAX_TEXT_BYTES
from headway.apps.media.accounts.pool import (
    STRIKES_WITHIN_S,
    Account,
    is_usable,
    status_at,
    strikes_of,
)
from headway.apps.media.accounts.register import LONGEST_NAME, LONGEST_URL

Words = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME, pattern=NO_NUL)]
Host = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=NO_NUL)]
Link = Annotated[str, StringConstraints(max_length=LONGEST_URL, pattern=NO_NUL)]
Cookies = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT_BYTES)]

COOKIES = (
    "A cookies.txt file, the value of a Cookie header, or JSON as browser extensions export it. "
    "Sealed when it is stored, and never shown again."
)
CHECK_URL = "Where it can be tried whether somebody is logged in, at the same site; null: nowhere."


class AccountBody(Body):
    """A new account: the cookies of somebody who is logged in at a site."""

    name: Words = Field(description="To tell it from others of the site.")
    site: Host = Field(description="The domain that the cookies are for, such as bilibili.com.")
    cookies: Cookies = Field(description=COOKIES)
    check_url: Link | None = Field(
        None, description=f"{CHECK_URL} Left out: the usual one of the site, if it is known."
    )


class AccountChangeBody(Body):
    """What changes. All that is left out stays."""

    name: Words = Field("", description="To tell it from others of the site.")
    enabled: bool = Field(
        True,
        description="Whether it may be used. Enabling one that was disabled or has expired vouches "
        "for it until the next check.",
    )
    check_url: Link | None = Field(None, description=CHECK_URL)


class CookiesBody(Body):
    """New cookies of an account, in place of the old ones."""

    cookies: Cookies = Field(description=COOKIES)


class AccountModel(BaseModel):
    id: int
    name: str
    site: str
    status: Literal["unchecked", "healthy", "cooling", "disabled", "expired"]
    reason: str = Field(description="Why it is not used, and what to do; empty: nothing is wrong.")
    enabled: bool = Field(description="Whether its operator wants it used.")
    usable: bool = Field(description="Whether it may be used at this moment.")
    in_use: int = Field(description="Jobs that use it now.")
    uses: int
    failures: int = Field(description="Refusals and pushbacks, since ever.")
    last_used_at: Moment
    cooled_until: Moment = Field(description="Until when it rests; null: it does not.")
    strikes: int = Field(description="Refusals within the last 15 minutes; three disable it.")
    checked_at: Moment = Field(description="When a check last had an answer.")
    next_check_at: Moment = Field(description="Null: none is planned, or it is going on.")
    expires_at: Moment = Field(description="When its cookies end, as they say; null: never.")
    check_url: str | None
    created_at: Moment


class AccountDetails(AccountModel):
    cookie_names: list[str] | None = Field(
        description="What its cookies are called; null: they cannot be opened here."
    )


class AccountList(BaseModel):
    items: list[AccountModel]


def account_view(
    account: Account, now: float, next_check_at: float | None, in_use: int
) -> dict[str, Any]:
    recent = [at for at in strikes_of(account) if now - at <= STRIKES_WITHIN_S]
    return {
        "id": account.id,
        "name": account.name,
        "site": account.site,
        "status": status_at(account, now).value,
        "reason": account.reason,
        "enabled": bool(account.enabled),
        "usable": is_usable(account, now),
        "in_use": in_use,
        "uses": account.uses,
        "failures": account.failures,
        "last_used_at": moment(account.last_used_at),
        "cooled_until": moment(account.cooled_until) if account.cooled_until > now else None,
        "strikes": len(recent),
        "checked_at": moment(account.checked_at),
        "next_check_at": moment(next_check_at),
        "expires_at": moment(account.expires_at),
        "check_url": account.check_url,
        "created_at": moment(account.created_at),
    }
