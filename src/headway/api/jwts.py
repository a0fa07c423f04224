"""Tokens that somebody else has signed: HS256 with a shared secret, or a key from a JWKS document.

Which algorithms count is decided by the settings, never by the token.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

import jwt

from headway.api.config import Config
from headway.api.problems import Problem
from headway.api.tokens import SCOPES
from headway.errors import BadSettings

PUBLIC = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
USUAL = frozenset({"read", "submit"})  # what a token may do that names no scope
LEEWAY_S = 30.0
TIMEOUT_S = 5
KEYS_S = 300.0  # how long keys from an address are believed
ASK_S = 5.0  # between two requests for them
MAX_TOKEN = 8_192
MAX_NAME = 200  # characters


@dataclass(frozen=True, slots=True)
class SignedToken:
    subject: str
    tenant: str | None
    scopes: frozenset[str]
    expires_at: float


class RemoteKeys:
    """Keys from an address. It is asked once at a time and at most every few seconds, whatever keys
    are named: those who know no key could otherwise keep both servers busy.
    """

    def __init__(self, url: str) -> None:
        self._client = jwt.PyJWKClient(url, timeout=TIMEOUT_S, cache_jwk_set=False)
        self._keys: dict[str, Any] = {}
        self._asked_at = -inf
        self._read_at = -inf
        self._lock = asyncio.Lock()

    async def key(self, kid: str) -> Any:
        if kid not in self._keys or monotonic() - self._read_at > KEYS_S:
            async with self._lock:
                await self._read()
        if monotonic() - self._read_at > KEYS_S:
            raise jwt.PyJWKClientConnectionError("the keys cannot be fetched")
        if kid not in self._keys:
            raise jwt.InvalidKeyError("nobody knows its key")
        return self._keys[kid]

    async def _read(self) -> None:
        if monotonic() - self._asked_at < ASK_S:
            return
        try:
            keys = await asyncio.to_thread(self._client.get_signing_keys, refresh=True)
        finally:
            self._asked_at = monotonic()
        self._keys = {key.key_id: key.key for key in keys if key.key_id}
        self._read_at = monotonic()


class Keys:
    def __init__(self, config: Config) -> None:
        self._config = config
        self._remote: RemoteKeys | None = None
        self._local: jwt.PyJWKSet | None = None
        if config.jwks.startswith(("http://", "https://")):
            self._remote = RemoteKeys(config.jwks)
        elif config.jwks:
            try:
                self._local = jwt.PyJWKSet.from_dict(json.loads(Path(config.jwks).read_text()))
            except (OSError, ValueError, AttributeError, jwt.PyJWTError) as error:
                raise BadSettings(f"jwks: {config.jwks} has no keys: {error}") from error

    async def verify(self, text: str) -> SignedToken:
        if len(text) > MAX_TOKEN:
            raise _not_valid("it is too long")
        try:
            if self._remote is None:
                return self._claims(text, self._key(text))
            return self._claims(text, await self._remote.key(_kid(text)))
        except jwt.PyJWKClientConnectionError as error:
            raise Problem(503, "the keys of signed tokens cannot be fetched now", kind="jwks",
                          headers={"Retry-After": "5"}) from error  # fmt: skip
        except jwt.ExpiredSignatureError as error:
            raise _not_valid("it has expired; get a new one") from error
        except (jwt.PyJWTError, ValueError, KeyError, TypeError, OverflowError) as error:
            raise _not_valid(str(error)) from error

    def _key(self, text: str) -> Any:
        if self._local is None:
            return self._config.jwt_secret
        return self._local[_kid(text)].key

    def _claims(self, text: str, key: Any) -> SignedToken:
        config = self._config
        claims = jwt.decode(
            text,
            key,
            algorithms=["HS256"] if config.jwt_secret else PUBLIC,
            audience=config.jwt_audience or None,
            issuer=config.jwt_issuer or None,
            leeway=LEEWAY_S,
            options={"require": ["exp", "sub"], "verify_aud": bool(config.jwt_audience)},
        )
        return _token(claims)


def _kid(text: str) -> str:
    return str(jwt.get_unverified_header(text)["kid"])


def _token(claims: dict[str, Any]) -> SignedToken:
    subject = _name(claims["sub"], "sub")
    said = claims.get("scope", claims.get("scopes"))
    if isinstance(said, str):
        said = said.split()
    if said is None:
        scopes = USUAL
    elif isinstance(said, list):
        scopes = frozenset(each for each in said if each in SCOPES)
    else:
        raise _not_valid("its `scope` is neither text nor a list")
    tenant = None
    if "admin" not in scopes:
        tenant = _name(claims.get("tenant") or subject, "tenant")
    return SignedToken(subject, tenant, scopes, float(claims["exp"]) + LEEWAY_S)


def _name(value: Any, claim: str) -> str:
    """Stands in the audit trail, and owns jobs."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_NAME or not value.isprintable():
        raise _not_valid(f"its `{claim}` is no name of at most {MAX_NAME} printable characters")
    return value


def _not_valid(why: str) -> Problem:
    headers = {"WWW-Authenticate": 'Bearer error="invalid_token"'}
    return Problem(401, f"this signed token is not valid: {why}", kind="no-token", headers=headers)
