"""How one server believes another: what it passes on is signed with a key that both have from their
store, together with who is asking.

So the server that a client has reached looks at its token, its Host and its Origin, and the leader
does not have to do it again.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import msgspec

from headway.api.auth import Principal
from headway.api.problems import Problem
from headway.store import Store

KEY = "peer-key"
VALID_S = 60.0  # for clocks that differ, and requests that wait in line


class Passed(msgspec.Struct, frozen=True):
    """Who is asking, as the server says that it has asked."""

    at: float
    client: str
    principal: dict[str, Any] | None


class Peers:
    """Asks the store for the key, and nobody afterwards."""

    def __init__(self, store: Store) -> None:
        self._key = store.secret(KEY, secrets.token_urlsafe(32)).encode()

    def seal(self, principal: Principal | None, client: str, method: str, target: str) -> bytes:
        """The header for a request that is passed on."""
        asks = None if principal is None else _as_data(principal)
        text = urlsafe_b64encode(msgspec.json.encode(Passed(time.time(), client, asks)))
        return text + b"." + self._sign(text, method, target)

    def opened(self, header: bytes, method: str, target: str) -> Passed | None:
        """None: no server of ours has said so, or it was long ago."""
        text, _, mark = header.partition(b".")
        if not hmac.compare_digest(mark, self._sign(text, method, target)):
            return None
        passed = msgspec.json.decode(urlsafe_b64decode(text), type=Passed)
        return passed if abs(time.time() - passed.at) < VALID_S else None

    def let_in(self, scope: Any, header: bytes) -> Principal | None:
        """Who asks through another server, and from where. Problem: it is none of ours."""
        passed = self.opened(header, scope["method"], target_of(scope))
        if passed is None:
            raise Problem(403, "this is for the servers that share a store, and their clocks must "
                          "agree within a minute", kind="peer")  # fmt: skip
        scope["client"] = (passed.client, 0) if passed.client else None
        return principal_of(passed)

    def _sign(self, text: bytes, method: str, target: str) -> bytes:
        said = b"\n".join((text, method.encode(), target.encode()))
        return hmac.new(self._key, said, hashlib.sha256).hexdigest().encode()


def principal_of(passed: Passed) -> Principal | None:
    said = passed.principal
    if said is None:
        return None
    return Principal(**{**said, "scopes": frozenset(said["scopes"])})


def _as_data(principal: Principal) -> dict[str, Any]:
    return {
        "name": principal.name, "scopes": sorted(principal.scopes), "tenant": principal.tenant,
        "client": principal.client, "by_cookie": principal.by_cookie, "token": principal.token,
        "ends_at": principal.ends_at,
    }  # fmt: skip


def target_of(scope: Any) -> str:
    """The path and the query of a request, as they were sent."""
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope["query_string"]
    return (path + b"?" + query if query else path).decode("latin-1")
