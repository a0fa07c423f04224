"""Passing requests on to the server that leads, and its answers back, as they come.

When the leader goes away before it has answered, a request that may be asked twice is asked of the
next one. Another is answered with what is known: that it may have been done, or not.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from time import monotonic
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headway.api.guard import HEADERS, NOT_LEADING, PEER
from headway.api.problems import Problem
from headway.api.problems import answer as problem_answer
from headway.api.site import Reply
from headway.api.together.absence import reply_at
from headway.api.together.line import Answer, Broken, Header, Line, NotReached
from headway.api.together.peers import Peers, target_of
from headway.api.together.standing import Standing
from headway.store.records import Leader

PATIENCE_S = 10.0  # until somebody leads: longer than it takes another server to take over
SLOT_PATIENCE_S = 7.0  # clients of the fair queue give up after 8
READ_S = 1.5  # for somebody who only reads: the store knows most of it
AGAIN_S = 0.1
LAST_WORDS_S = 5.0  # in which a server that does not lead any more must go on with its answer
FAIRQUEUE = "/api/v0/"
TOKENS = "/api/tokens/"
# What every server answers by itself: files, streams of the trail that all share, its own state,
# and new jobs, which go straight into the store.
ALONE = frozenset({
    "/", "/docs", "/favicon.ico", "/login", "/logout", "/healthz", "/readyz", "/metrics",
    "/api/events", "/api/requests/events",
})  # fmt: skip
PUTS = frozenset({"/api/jobs", "/api/work/put"})
# What it can answer from the store, without what only an engine knows, while nobody leads.
READS = ("/api/jobs", "/api/tasks", "/api/requests", "/api/trail", "/api/audit", "/api/info",
         "/api/batches", "/api/queue/stats", "/api/servers", "/openapi.json")  # fmt: skip
# Orders that do no harm when they come twice: most carry a fence or a token. Work that is taken
# twice, or a first wish for a slot, can leave one lease that nobody knows of; it runs out unused.
REPEATS = re.compile(
    r"/api/v0/fairqueue/\w+|/api/slots/[^/]+/(poll|heartbeat|release)|/api/celery/(claim|here|types)"
    r"|/api/work/(take|heartbeat|complete|hello|\d+/(heartbeat|complete))"
)
# Between two servers, and not from one end to the other.
HOP = frozenset({
    b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te", b"trailer",
    b"transfer-encoding", b"upgrade", b"expect", PEER,
})  # fmt: skip
ADDED = frozenset(name for name, _ in HEADERS)  # to every answer, by the server that gives it
NOBODY = Problem(
    503, "no server leads at the moment, and one will in some seconds; try again",
    kind="unavailable", headers={"Retry-After": "1"},
)  # fmt: skip
STOPS = Problem(
    503, "this server stops; ask another one", kind="unavailable", headers={"Retry-After": "1"},
)  # fmt: skip
UNKNOWN = Problem(
    503, "the server that leads was lost while it worked on this; look what is there before you "
    "send it again", kind="outcome-unknown", headers={"Retry-After": "1"},
)  # fmt: skip


class NotDone(Exception):
    """The leader has not seen it, or says that it does not lead."""


class Lost(Exception):
    """The leader has seen it, perhaps, and there is no answer."""


class Asked:
    """A request that can be sent more than once, unless its body is an upload."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.target = target_of(scope)
        self._receive = receive
        self._body: bytes | None = None
        self._streams = False
        self._begun = False

    @property
    def repeats(self) -> bool:
        """Whether it does no harm to ask again, though it may have been heard."""
        if self.is_spent:
            return False
        return self.method in ("GET", "HEAD") or REPEATS.fullmatch(self.path) is not None

    @property
    def is_spent(self) -> bool:
        """An upload that was begun cannot be sent once more: nobody has kept it."""
        return self._streams and self._begun

    @property
    def patience_s(self) -> float:
        if self.is_for_slots:
            return SLOT_PATIENCE_S
        waits = b"wait_s=" in self.scope["query_string"]
        return READ_S if self.from_store and not waits else PATIENCE_S

    @property
    def is_for_slots(self) -> bool:
        return self.path.startswith(FAIRQUEUE)

    @property
    def from_store(self) -> bool:
        return self.method in ("GET", "HEAD") and self.path.startswith(READS)

    async def body(self) -> bytes:
        """What was read already. The guard has the whole of it, unless it is an upload."""
        if self._body is None:
            message = await self._receive()
            self._body = message.get("body", b"")
            self._streams = bool(message.get("more_body", False))
        return self._body

    @property
    def length(self) -> int | None:
        """Of the body. None: it comes in chunks."""
        return None if self._streams else len(self._body or b"")

    async def content(self) -> bytes | AsyncIterator[bytes]:
        first = await self.body()
        return self._pieces(first) if self._streams else first

    async def _pieces(self, first: bytes) -> AsyncIterator[bytes]:
        self._begun = True
        yield first
        more = True
        while more:
            message = await self._receive()
            if message["type"] != "http.request":
                raise ConnectionResetError("the client has hung up")
            yield message.get("body", b"")
            more = message.get("more_body", False)

    async def gone(self) -> None:
        """Until the client has hung up."""
        if self._streams:
            await asyncio.Event().wait()  # what it sends is read elsewhere
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def again(self) -> Receive:
        """For the routes of this server itself."""
        body, self._body = self._body, None

        async def receive() -> Message:
            nonlocal body
            if body is None:
                return await self._receive()
            read, body = body, None
            return {"type": "http.request", "body": read, "more_body": self._streams}

        return receive


class Forwarder:
    """`here` is the front of this server, which may lead meanwhile."""

    def __init__(
        self, standing: Standing, peers: Peers, here: ASGIApp, revoked: Callable[[str], None]
    ) -> None:
        """`revoked` hears of tokens that were revoked through this server."""
        self._revoked = revoked
        self._standing = standing
        self._peers = peers
        self._here = here
        self._lines: dict[str, Line] = {}

    def is_ours(self, scope: Scope) -> bool:
        """Whether this server answers it, whoever leads."""
        path = scope["path"]
        return path in ALONE or path.startswith("/static/") or (
            path in PUTS and scope["method"] == "POST"
        )  # fmt: skip

    def close(self) -> None:
        for each in self._lines.values():
            each.close()

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send, otherwise: ASGIApp
    ) -> None:
        """`otherwise` answers from the store, if that can be."""
        try:
            await self._answer(Asked(scope, receive), send, otherwise)
        except Problem as problem:  # an upload is too large, which is noticed as it comes
            await problem_answer(problem, scope["path"])(scope, receive, send)

    async def _answer(self, asked: Asked, send: Send, otherwise: ASGIApp) -> None:
        scope = asked.scope
        body = await asked.body()
        until = monotonic() + asked.patience_s
        while True:
            leader = await self._standing.found(until)
            if leader is None:
                break
            began_at = monotonic()
            try:
                await self._pass_on(leader, asked, send)
                if asked.method == "DELETE" and asked.path.startswith(TOKENS):
                    self._revoked(asked.path.removeprefix(TOKENS))
                return None
            except NotDone:
                if asked.is_spent:
                    reply = problem_answer(self._why_not(), asked.path)
                    return await reply(scope, asked.again(), send)
            except Lost:
                if not asked.repeats:
                    return await problem_answer(UNKNOWN, asked.path)(scope, asked.again(), send)
                if not asked.is_for_slots:  # it has waited for an answer, and not for a leader
                    until += monotonic() - began_at
            if monotonic() > until:
                break
            with suppress(TimeoutError):
                async with asyncio.timeout(AGAIN_S):
                    await self._standing.changed.wait()
        if self._standing.leads:
            return await self._here(_as_it_came(scope), asked.again(), send)
        if asked.from_store:
            return await otherwise(scope, asked.again(), send)
        said = reply_at(asked.path, body)
        reply = Reply(said) if said else problem_answer(self._why_not(), asked.path)
        return await reply(scope, asked.again(), send)

    def _why_not(self) -> Problem:
        """Why nobody answers."""
        leader = self._standing.leader
        if self._standing.stopping:
            return STOPS
        if leader is None or leader.url:
            return NOBODY
        return Problem(
            503, f"{leader.name} leads, and has no address, since it is no server; stop it, or run "
            "it as `headway serve`", kind="unavailable", headers={"Retry-After": "1"},
        )  # fmt: skip

    # ------------------------------------------------------------------ one attempt

    async def _pass_on(self, leader: Leader, asked: Asked, send: Send) -> None:
        """Until it is answered, the client hangs up, there is another leader, or this server is to
        stop and another one can be asked.
        """
        heard = Heard()
        sending = asyncio.ensure_future(self._exchange(leader, asked, send, heard))
        gone = asyncio.ensure_future(asked.gone())
        try:
            while not sending.done() and not gone.done():
                await self._changed_or(sending, gone)
                if sending.done() or gone.done():
                    break
                if not heard.began and (asked.repeats or not self._standing.follows(leader)):
                    raise Lost
                if not self._standing.follows(leader):
                    await _last_words(heard, sending, gone, asked.scope)
                    break
            if sending.done():
                return sending.result()
        finally:
            for each in (sending, gone):
                each.cancel()
            await asyncio.gather(sending, gone, return_exceptions=True)

    async def _changed_or(self, *others: asyncio.Future[Any]) -> None:
        """Until one of these is done, another server leads, or this one is to stop."""
        changed: asyncio.Future[Any] = asyncio.ensure_future(self._standing.changed.wait())
        await asyncio.wait({changed, *others}, return_when=asyncio.FIRST_COMPLETED)
        changed.cancel()

    async def _exchange(self, leader: Leader, asked: Asked, send: Send, heard: Heard) -> None:
        line = self._line_to(leader)
        try:
            answer = await line.ask(
                asked.method, asked.target, self._headers(asked), await asked.content()
            )
        except NotReached as error:
            raise NotDone from error
        except (Broken, ConnectionError) as error:
            raise Lost from error
        try:
            if any(name == NOT_LEADING for name, _ in answer.headers):
                raise NotDone
            heard.began = True
            await _pass_back(answer, heard, asked.scope, send)
        finally:
            answer.close()

    def _headers(self, asked: Asked) -> Iterator[Header]:
        scope = asked.scope
        client = scope.get("client")
        for each in scope["headers"]:
            if each[0] not in HOP and each[0] != b"content-length":
                yield each
        if asked.length is not None:
            yield b"content-length", b"%d" % asked.length
        yield (
            PEER,
            self._peers.seal(
                scope["principal"], str(client[0]) if client else "", asked.method, asked.target
            ),
        )

    def _line_to(self, leader: Leader) -> Line:
        """The line to another leader is another one, and that to the last is of no use any more."""
        if leader.url not in self._lines:
            self.close()
            self._lines = {leader.url: Line(leader.url)}
        return self._lines[leader.url]


class Heard:
    """How much of an answer has come. Once it has begun, nobody else can be asked."""

    began = False
    pieces = 0


async def _last_words(
    heard: Heard, sending: asyncio.Future[None], gone: asyncio.Future[None], scope: Scope
) -> None:
    """Another server leads. The one before may end what it says; but one that was stopped, or
    whose machine is off, never will, and the client must not wait for it for ever.
    """
    pieces = -1
    while not sending.done() and not gone.done():
        if heard.pieces == pieces:
            return _hang_up(scope)
        pieces = heard.pieces
        await asyncio.wait({sending, gone}, timeout=LAST_WORDS_S,
                           return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
    return None


async def _pass_back(answer: Answer, heard: Heard, scope: Scope, send: Send) -> None:
    headers = [each for each in answer.headers if each[0] not in HOP and each[0] not in ADDED]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    try:
        async for piece in answer.pieces():
            heard.pieces += 1
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    except Broken:
        return _hang_up(scope)
    await send({"type": "http.response.body", "body": b"", "more_body": False})
    return None


def _hang_up(scope: Scope) -> None:
    """The client must not take half of an answer for the whole, and may ask again."""
    abort: Any = scope.get("headway.abort")
    if abort is not None:
        abort()


def _as_it_came(scope: Scope) -> Scope:
    """Without what the guard has found out: another one looks at it."""
    return {name: value for name, value in scope.items() if name not in ("principal", "route")}
