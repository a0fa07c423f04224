"""Who is asking, and what they may do.

Three ways lead in: a token of ours, a token that somebody else has signed (JWT), and the cookie
that the login page sets. On loopback a server is open to whoever reaches it, unless told otherwise.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import APIKeyCookie, HTTPBearer

from headway.api.config import Config
from headway.api.jwts import Keys, SignedToken
from headway.api.problems import Problem
from headway.api.tokens import (
    NOBODY,
    RESERVED,
    SCOPES,
    fits,
    is_reserved,
    is_valid,
    parse,
    scopes_of,
)
from headway.errors import StoreError
from headway.store import Store
from headway.store.records import Token

COOKIE = "headway"
SESSION_S = 7 * 86_400.0
KNOWN_S = 2.0  # how long a token that was looked up is believed; revoking it here is at once
MAX_KNOWN = 10_000
USED_S = 60.0  # how exactly it is kept when a token was used last


@dataclass(frozen=True, slots=True)
class Principal:
    """Whoever is asking. `tenant` None: it may see and do things for all of them."""

    name: str
    scopes: frozenset[str]
    tenant: str | None = None
    client: str = ""
    by_cookie: bool = False  # a browser sends it by itself, so the page must be one of ours
    token: str | None = None  # the id of the token that it has shown
    ends_at: float | None = None  # of what it has shown; a token of ours may end earlier

    @property
    def who(self) -> str:
        """For the audit trail."""
        return f"{self.name} from {self.client}" if self.client else self.name

    def may(self, scope: str) -> bool:
        return scope in self.scopes or "admin" in self.scopes


EVERYTHING = frozenset(SCOPES)


def refused(detail: str) -> Problem:
    return Problem(401, detail, kind="no-token", headers={"WWW-Authenticate": "Bearer"})


def no_token() -> Problem:
    return refused(
        "send a token in the header Authorization, after the word Bearer, or log in at /login"
    )


def token_in(authorization: str) -> str:
    """What the header shows after the word Bearer; feed readers say `GoogleLogin auth=` instead.
    Empty: nothing that we know.
    """
    kind, _, text = authorization.partition(" ")
    match kind.lower():
        case "bearer":
            return text.strip()
        case "googlelogin":
            name, _, value = text.strip().partition("=")
            return value.strip() if name.lower() == "auth" else ""
    return ""


class Authenticator:
    def __init__(self, config: Config, store: Store, now: Callable[[], float]) -> None:
        self._config = config
        self._store = store
        self._now = now
        self._known: dict[str, tuple[float, Token | None]] = {}
        self._revoked = 0  # how many were revoked here
        self._keys = Keys(config) if config.signed_tokens else None
        self._key: bytes | None = None  # that signs cookies

    async def principal(self, authorization: str, cookie: str, client: str) -> Principal | None:
        """None: nothing was shown. Problem: what was shown is not valid."""
        if authorization:
            token = token_in(authorization)
            if not token:
                raise refused("send the token in the header Authorization, after the word Bearer")
            return await self._by_token(token, client)
        if cookie:
            return await self._by_cookie(cookie, client)
        return None

    async def _by_token(self, text: str, client: str) -> Principal:
        parsed = parse(text)
        if parsed is not None:
            # An unknown id costs as much as a wrong secret.
            row = await self._token(parsed[0]) or NOBODY
            if fits(row, parsed[1], self._now()):
                await self._used(row)
                return _from_row(row, client)
        elif self._keys is not None and text.count(".") == 2:
            return _from_signed(await self._keys.verify(text), client)
        raise refused("this token is unknown, revoked or expired; ask for a new one")

    async def _token(self, id: str) -> Token | None:
        now = self._now()
        looked_at, row = self._known.get(id, (0.0, None))
        if 0.0 <= now - looked_at < KNOWN_S:
            return row
        revoked = self._revoked
        row = await asyncio.to_thread(self._store.token, id)
        if revoked == self._revoked:  # else what was read may be from before
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[id] = (now, row)
        return row

    async def _used(self, row: Token) -> None:
        """By somebody who knows its secret."""
        now = self._now()
        if now - (row.last_used_at or 0.0) > USED_S:
            if row.id in self._known:
                self._known[row.id] = (self._known[row.id][0], row._replace(last_used_at=now))
            with suppress(StoreError):  # a store that is full lets people look at it
                await asyncio.to_thread(self._store.used_token, row.id, now)

    def forget(self, id: str) -> None:
        """A token was revoked here."""
        self._revoked += 1
        self._known.pop(id, None)

    async def still_in(self, principal: Principal) -> bool:
        """Whether what was shown when a long answer began would let it in now."""
        now = self._now()
        if principal.ends_at is not None and principal.ends_at <= now:
            return False
        if principal.token is None:
            return True
        row = await self._token(principal.token)
        return row is not None and is_valid(row, now)

    # ------------------------------------------------------------------ the login page

    async def session(self, text: str, client: str) -> tuple[str, int]:
        """The cookie for whoever has shown this token, and for how many seconds."""
        principal = await self._by_token(text, client)
        if principal.name.startswith("jwt:"):
            assert principal.ends_at is not None  # it says itself when that is
            return text, int(min(SESSION_S, max(0.0, principal.ends_at - self._now())))
        parsed = parse(text)
        assert parsed is not None
        ends = int(self._now() + SESSION_S)
        said = f"{parsed[0]}.{ends}"
        return f"{said}.{await self._sign(said)}", int(SESSION_S)

    async def _by_cookie(self, cookie: str, client: str) -> Principal | None:
        id, _, rest = cookie.partition(".")
        ends, _, mark = rest.partition(".")
        if ends.isdecimal() and len(ends) < 15:
            same = hmac.compare_digest(mark.encode(), (await self._sign(f"{id}.{ends}")).encode())
            row = await self._token(id) if same and float(ends) > self._now() else None
            if row is not None and is_valid(row, self._now()):
                await self._used(row)
                return _from_row(row, client, by_cookie=True, ends_at=float(ends))
        elif self._keys is not None and cookie.count(".") == 2:
            try:
                return _from_signed(await self._keys.verify(cookie), client, by_cookie=True)
            except Problem:
                return None
        return None  # as if it were not there: the login page makes a new one

    async def _sign(self, text: str) -> str:
        if self._key is None:
            stored = await asyncio.to_thread(
                self._store.secret, "session-key", secrets.token_urlsafe(32)
            )
            self._key = stored.encode()
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()


def _from_row(
    row: Token, client: str, *, by_cookie: bool = False, ends_at: float | None = None
) -> Principal:
    _check_tenant(row.tenant)
    return Principal(
        f"token:{row.name}", scopes_of(row), row.tenant, client, by_cookie, row.id, ends_at
    )


def _from_signed(token: SignedToken, client: str, *, by_cookie: bool = False) -> Principal:
    _check_tenant(token.tenant)
    return Principal(
        f"jwt:{token.subject}", token.scopes, token.tenant, client, by_cookie,
        ends_at=token.expires_at,
    )  # fmt: skip


def _check_tenant(tenant: str | None) -> None:
    if is_reserved(tenant):
        raise refused(f"{RESERVED}; ask for a token with another one")


# ---------------------------------------------------------------------- for routes

BEARER = HTTPBearer(auto_error=False, description="A token of `headway tokens create`, or a JWT.")
SESSION = APIKeyCookie(name=COOKIE, auto_error=False, description="What the login page sets.")


def needs(scope: str, *, all_tenants: bool = False) -> Any:
    """A dependency: the principal, if it may do this."""

    async def check(request: Request) -> Principal:
        return allowed(request.scope["principal"], scope, all_tenants=all_tenants)

    return Depends(check)


def allowed(principal: Principal | None, scope: str, *, all_tenants: bool = False) -> Principal:
    if principal is None:
        raise no_token()
    if not principal.may(scope):
        raise Problem(403, f"this needs a token with the scope {scope!r}", kind="scope")
    if all_tenants and principal.tenant is not None:
        raise Problem(
            403, "this concerns all tenants, and your token is bound to one", kind="tenant"
        )
    return principal


Reader = Annotated[Principal, needs("read")]
Submitter = Annotated[Principal, needs("submit")]
Operator = Annotated[Principal, needs("operate")]
Overseer = Annotated[Principal, needs("read", all_tenants=True)]
Keeper = Annotated[Principal, needs("operate", all_tenants=True)]
Admin = Annotated[Principal, needs("admin", all_tenants=True)]
