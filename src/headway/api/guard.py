"""The first to see a request: limits, where it came from, and who is asking.

On loopback anybody may ask, so the dangers are web pages: one that lets its own name point to
127.0.0.1 (its Host is not ours), and one that sends requests across (its Origin is not ours).
"""

from __future__ import annotations

import logging
import re
from time import perf_counter
from typing import Any, Protocol
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headway.api.auth import COOKIE, EVERYTHING, Authenticator, Principal, no_token, token_in
from headway.api.config import Config
from headway.api.fairqueue.door import MAX_BODY, PREFIX, Door
from headway.api.logs import access
from headway.api.problems import Problem, answer, bug, problem_of, shape_at
from headway.api.quick import Endpoint, find
from headway.api.tokens import parse

logger = logging.getLogger("headway.access")

PEER = b"x-headway-peer"  # what another server says of a request that it passes on
NOT_LEADING = b"x-headway-not-leading"  # in an answer: nothing was done, ask the leader
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
# Requests that wait; they have limits of their own. Applications add theirs.
LONG = {"/api/v0/fairqueue/acquire", "/api/work/take", "/api/events", "/api/requests/events"}
# Bodies that may be large, and are read as they come. Applications add theirs.
UPLOADS: set[str] = set()
# Where somebody unknown shows a token in other ways than a header. Applications add theirs.
LOGINS: set[str] = set()
SLOTS = "/api/slots"
OURS = frozenset({"localhost", "127.0.0.1", "::1"})
FORWARDED = frozenset({
    b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip", b"forwarded",
    b"via",
})  # fmt: skip
ONCE = (b"host", b"origin", b"authorization", b"cookie", b"content-type", b"sec-fetch-site")
MAX_ANONYMOUS = 16_384  # bytes of a body from somebody unknown: the form of the login page
HEALTH = "/healthz"  # is answered when nothing else is: whoever asks may restart the server
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy",
     b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"),
]  # fmt: skip
NO_STORE = (b"cache-control", b"no-store")

_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)


class Forward(Protocol):
    """Passes requests on to the server that leads."""

    def is_ours(self, scope: Scope) -> bool: ...
    async def __call__(
        self, scope: Scope, receive: Receive, send: Send, otherwise: ASGIApp
    ) -> None: ...


class Peers(Protocol):
    """Knows the other servers."""

    def let_in(self, scope: Scope, header: bytes) -> Principal | None: ...


class Gone(Exception):
    """The client has hung up in the middle of its request."""


class Guard:
    def __init__(
        self, app: ASGIApp, config: Config, authenticator: Authenticator, door: Door,
        peers: Peers | None = None, forward: Forward | None = None,
    ) -> None:  # fmt: skip
        """`forward`: another server leads, and gets what this one cannot answer."""
        self._app = app
        self._config = config
        self._authenticator = authenticator
        self._door = door
        self._peers = peers
        self._forward = forward
        self._at_work = 0
        own = {host.lower() for host in config.allowed_hosts}
        self._open = config.open
        self._hosts = OURS | own | {config.host.strip("[]").lower()} if self._open else own

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        began = perf_counter()
        status = 0

        async def send_safely(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = message.setdefault("headers", [])
                headers += HEADERS
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append(NO_STORE)
            await send(message)

        waits = _waits(scope)
        if not waits:
            self._at_work += 1
        try:
            await self._pass(scope, receive, send_safely)
        finally:
            if not waits:
                self._at_work -= 1
            if status >= 500 or logger.isEnabledFor(logging.DEBUG):
                self._log(scope, status, perf_counter() - began)

    def _log(self, scope: Scope, status: int, took_s: float) -> None:
        principal: Principal | None = scope.get("principal")
        path = scope["path"]
        if scope["query_string"]:
            path += "?" + scope["query_string"].decode("latin-1")
        access(
            logger, scope["method"], path, status, took_s * 1000.0,
            "" if principal is None else principal.name, _client(scope),
        )  # fmt: skip

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            headers = self._headers(scope)
            if self._at_work > self._config.max_requests and scope["path"] != HEALTH:
                raise Problem(503, "too many requests at once; try again", kind="busy",
                              headers={"Retry-After": "1"})  # fmt: skip
            scope["principal"] = principal = await self._who(scope, headers)
            path = scope["path"]
            if principal is None and _is_api(path) and path not in LOGINS:
                raise no_token()  # before its body is read
            if scope["path"] in UPLOADS and principal is not None:
                receive = _bounded(headers, receive, self._config.max_file)
            elif b"content-length" in headers or b"transfer-encoding" in headers:
                limit = MAX_ANONYMOUS if principal is None else self._config.max_body
                if scope["path"].startswith(PREFIX):
                    limit = min(limit, MAX_BODY)
                receive = await self._whole_body(headers, receive, limit)
                if _is_api(scope["path"]):
                    scope["headers"] = _as_json(scope["headers"])
        except Gone:
            return
        except Exception as error:
            problem = problem_of(error)
            if problem is None:
                raise
            await answer(problem, scope["path"])(scope, receive, send)
            return
        forward = self._forward
        if forward is not None and not forward.is_ours(scope):
            await forward(scope, receive, send, self._go_in)
            return
        await self._go_in(scope, receive, send)

    async def _go_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = find(scope)
        if endpoint is None:
            await self._app(scope, receive, send)
        else:
            await self._answer(endpoint, scope, receive, send)

    async def _answer(self, endpoint: Endpoint, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            reply = await endpoint(Request(scope, receive))
        except Exception as error:
            path = scope["path"]
            reply = answer(problem_of(error) or bug(scope["method"], path, error), path)
        await reply(scope, receive, send)

    # ------------------------------------------------------------------ where it came from

    def _headers(self, scope: Scope) -> dict[bytes, bytes]:
        listed: list[tuple[bytes, bytes]] = scope["headers"]
        size = sum(len(name) + len(value) for name, value in listed)
        if size + len(scope["query_string"]) + len(scope["path"]) > self._config.max_headers:
            raise Problem(431, "the headers and the address are too large together")
        headers = dict(listed)
        if len(headers) != len(listed):
            _check_once([name for name, _ in listed])
        return headers

    def _check_host(self, headers: dict[bytes, bytes]) -> None:
        if not self._hosts:
            return
        host = host_name(headers.get(b"host", b"").decode("latin-1"))
        if host not in self._hosts:
            raise Problem(421, f"this server does not go by the name {host!r}; call it localhost, "
                          "or start it with --allowed-host NAME", kind="wrong-host")  # fmt: skip

    def _check_origin(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """For requests that a browser would send on behalf of any page."""
        origin = headers.get(b"origin", b"").decode("latin-1")
        site = headers.get(b"sec-fetch-site", b"")
        if origin:
            own = f"{scope['scheme']}://{headers.get(b'host', b'').decode('latin-1')}"
            foreign = origin.lower() != own.lower() and origin not in self._config.allowed_origins
        else:
            # Links to our pages may stand anywhere.
            linked = scope["method"] in SAFE and headers.get(b"sec-fetch-dest") == b"document"
            foreign = site not in (b"", b"same-origin", b"none") and not linked
        if foreign:
            raise Problem(
                403,
                "a page of another site may not do this; call the API directly, or start the "
                "server with --allowed-origin ORIGIN",
                kind="wrong-origin",
            )

    async def _who(self, scope: Scope, headers: dict[bytes, bytes]) -> Principal | None:
        """Whom another server passes on, that server has looked at."""
        passed = headers.get(PEER)
        if passed is None or self._peers is None:
            self._check_host(headers)
            return await self._principal(scope, headers)
        principal = self._peers.let_in(scope, passed)
        if self._forward is not None:
            raise Problem(503, "this server does not lead; ask the one that does",
                          kind="unavailable", headers={NOT_LEADING.decode(): "1"})  # fmt: skip
        return principal

    async def _principal(self, scope: Scope, headers: dict[bytes, bytes]) -> Principal | None:
        if scope["path"].startswith(PREFIX):
            known = self._door.principal(scope["path"], headers, _client(scope))
            if known is not None:
                if known.by_cookie:
                    self._check_origin(scope, headers)
                return known
        authorization = headers.get(b"authorization", b"").decode("latin-1")
        if self._open and shape_at(scope["path"]) and not self._may_be_ours(authorization):
            authorization = ""  # such clients always send a key, though none is needed
        cookie = cookie_of(headers.get(b"cookie", b"").decode("latin-1"))
        client = _client(scope)
        principal = await self._authenticator.principal(authorization, cookie, client)
        if principal is None and self._open:
            if not FORWARDED.isdisjoint(headers):
                raise Problem(
                    403,
                    "a proxy forwards to this server, which is open to whoever reaches it; start "
                    "it with --auth required",
                    kind="proxy",
                )
            principal = Principal("loopback", EVERYTHING, None, client, by_cookie=True)
        if principal is None or principal.by_cookie:
            self._check_origin(scope, headers)
        return principal

    def _may_be_ours(self, authorization: str) -> bool:
        """Whether it looks like a token that could be checked here."""
        text = token_in(authorization) or authorization.partition(" ")[2].strip()
        signed = self._config.signed_tokens and text.count(".") == 2
        return signed or parse(text) is not None

    # ------------------------------------------------------------------ what it brings

    async def _whole_body(
        self, headers: dict[bytes, bytes], receive: Receive, limit: int
    ) -> Receive:
        """Read it here, so that nothing behind sees one that is too large or too deep."""
        _check_length(headers, limit)
        body = b""
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise Gone
            body = message.get("body", b"")
            size += len(body)
            if size > limit:
                raise _too_large(limit)
            chunks.append(body)
            if not message.get("more_body", False):
                break
        if len(chunks) > 1:
            body = b"".join(chunks)
        if too_deep(body, self._config.max_depth):
            raise Problem(
                400, f"JSON may be at most {self._config.max_depth} levels deep", kind="too-deep"
            )
        return _again({"type": "http.request", "body": body, "more_body": False}, receive)


def _waits(scope: Scope) -> bool:
    path = scope["path"]
    if path.startswith(SLOTS) and scope["method"] == "POST":
        return len(path) == len(SLOTS) or path.endswith("/poll")
    return path in LONG


def _is_api(path: str) -> bool:
    """Whether nobody unknown may even ask what is there."""
    return path.startswith("/api/") or shape_at(path) is not None


def _check_once(names: list[bytes]) -> None:
    """Of two that contradict each other, a proxy may have believed the other one."""
    for name in ONCE:
        if names.count(name) > 1:
            raise Problem(400, f"the header {name.decode()} came twice; send it once",
                          kind="twice")  # fmt: skip


def _as_json(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The API takes JSON and nothing else, so it need not be said (`curl -d` says otherwise)."""
    kept = [each for each in headers if each[0] != b"content-type"]
    return [*kept, (b"content-type", b"application/json")]


def _check_length(headers: dict[bytes, bytes], limit: int) -> None:
    length = headers.get(b"content-length", b"")
    if length and (not length.isdigit() or int(length) > limit):
        raise _too_large(limit)


def _bounded(headers: dict[bytes, bytes], receive: Receive, limit: int) -> Receive:
    """As it comes, and no more than this."""
    _check_length(headers, limit)
    size = 0

    async def receive_some() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > limit:
            raise _too_large(limit)
        return message

    return receive_some


def _too_large(limit: int) -> Problem:
    return Problem(413, f"the body may have at most {limit} bytes", kind="too-large")


def _again(message: Message, receive: Receive) -> Receive:
    """What was read already, then whatever comes."""
    read = False

    async def receive_again() -> Message:
        nonlocal read
        if read:
            return await receive()
        read = True
        return message

    return receive_again


def too_deep(body: bytes, limit: int) -> bool:
    """Whether JSON is nested deeper than this. Text inside of strings does not count."""
    if body.count(b"[") + body.count(b"{") <= limit:
        return False
    depth = 0
    for match in _BRACKETS.finditer(body):
        mark = match.group()
        if mark in (b"[", b"{"):
            depth += 1
            if depth > limit:
                return True
        elif mark in (b"]", b"}"):
            depth -= 1
    return False


def host_name(host: str) -> str:
    """The name in a Host header, without its port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def cookie_of(header: str) -> str:
    for part in header.split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value
    return ""


def _client(scope: Scope) -> str:
    client: Any = scope.get("client")
    return str(client[0]) if client else ""
