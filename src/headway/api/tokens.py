"""Access tokens: how they look, and what of them is kept.

A token is `hw_<id>_<secret>`. The id finds its row, the secret has 256 random bits; only its
SHA-256 is stored. (A slow hash is for secrets that people make up.)
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable

import msgspec

from headway.errors import BadJob
from headway.store.records import Token

PREFIX = "hw"
SCOPES = ("read", "submit", "operate", "admin")
MAX_NAME = 100
RESERVED = "nobody signs in as this tenant: the server counts its own work for names like that"

_reserved: list[str] = []


def reserve_tenants(beginning: str) -> None:
    """An application counts its work for names that begin so, and they are nobody's."""
    _reserved.append(beginning)


def is_reserved(tenant: str | None) -> bool:
    return tenant is not None and tenant.startswith(tuple(_reserved))


def new_token(
    name: str,
    scopes: Iterable[str],
    now: float,
    *,
    tenant: str | None = None,
    expires_at: float | None = None,
) -> tuple[Token, str]:
    """The row to store, and the token itself, which nobody sees again."""
    wanted = sorted(set(scopes), key=SCOPES.index) if set(scopes) <= set(SCOPES) else None
    if not wanted:
        raise BadJob(f"a token needs one or more of the scopes {', '.join(SCOPES)}")
    if not name or len(name) > MAX_NAME or not name.isprintable():
        raise BadJob(f"a token needs a name of at most {MAX_NAME} printable characters")
    if is_reserved(tenant):
        raise BadJob(f"{RESERVED}; choose another one")
    if expires_at is not None and expires_at <= now:
        raise BadJob("this token would have expired already")
    id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    row = Token(
        id=id,
        name=name,
        hash=_hash(secret),
        scopes=msgspec.json.encode(wanted).decode(),
        tenant=tenant,
        created_at=now,
        expires_at=expires_at,
        revoked_at=None,
        last_used_at=None,
    )
    return row, f"{PREFIX}_{id}_{secret}"


def parse(text: str) -> tuple[str, str] | None:
    """(id, secret), or None when it is no token of ours."""
    prefix, _, rest = text.partition("_")
    id, _, secret = rest.partition("_")
    if prefix != PREFIX or not id or not secret or len(text) > 200:
        return None
    if not text.isascii() or not text.isprintable():  # no column could have it
        return None
    return id, secret


def fits(row: Token, secret: str, now: float) -> bool:
    """Whether the secret is this token's, and it may still be used. In constant time."""
    same = hmac.compare_digest(row.hash, _hash(secret))
    return same and is_valid(row, now)


def is_valid(row: Token, now: float) -> bool:
    return row.revoked_at is None and (row.expires_at is None or row.expires_at > now)


def scopes_of(row: Token) -> frozenset[str]:
    return frozenset(msgspec.json.decode(row.scopes, type=list[str]))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


# Stands in for a token that is not there; no secret fits.
NOBODY = Token("", "", _hash(""), "[]", "", created_at=0.0, revoked_at=0.0)
