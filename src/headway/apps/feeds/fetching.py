"""Asking a site for a feed: politely, within limits, and with every outcome as a value.

Redirects are followed here and not by the client, since it matters whether they are permanent, and
because each hop may be paced. The guard of `headway.net.outbound` judges every connection.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import httpx2

from headway.apps.feeds.fetching_answers import (
    FAILURES,
    BadAnswer,
    BadRedirect,
    Fetched,
    Introduction,
    Kind,
    NameUnknown,
    fresh_until,
    kind_of_status,
    of_failure,
    raw_headers,
    said_by_status,
    validator,
)
from headway.core.classify import parse_retry_after
from headway.net.outbound import (
    Allowed,
    BodyTooLong,
    Resolve,
    check_url,
    guarded_client,
    look_up,
    read_limited,
)
from headway.net.urls import MAX_URL

__all__ = ["FEEDS", "PAGES", "FetchLimits", "Fetched", "Fetcher", "Introduction", "Kind"]

FEEDS = (
    "application/atom+xml, application/rss+xml, application/feed+json, application/rdf+xml;q=0.9, "
    "application/xml;q=0.9, text/xml;q=0.9, application/json;q=0.8, text/html;q=0.5, */*;q=0.1"
)
PAGES = "text/html, application/xhtml+xml, application/atom+xml, application/rss+xml, */*;q=0.1"

PERMANENT = frozenset({301, 308})
TEMPORARY = frozenset({302, 303, 307})
WHOLE_BODY = frozenset({200, 203})
NOT_MODIFIED = 304
COMPRESSIONS = frozenset({"gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress"})
MAX_ADDRESS = 4_096  # characters of one that a redirect names
HASH_BYTES = 16

LEAVES = "send_request_headers.started"  # as the client calls it, behind the name of a protocol

BeforeHop = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    body_bytes: int = 10_000_000  # after decompression; little more than that on the wire
    connect_s: float = 10.0
    piece_s: float = 30.0  # the wait for the head, and for each piece of the body
    whole_s: float = 90.0  # all redirects included
    hops: int = 5


@dataclass(slots=True)
class _Journey:
    """One fetch: what it wants, and the way it has come."""

    url: httpx2.URL
    headers: dict[str, str]
    etag: str | None
    modified: str | None
    validators_of: str
    seen: set[str]
    leaving: BeforeHop | None
    hops: int = 0
    permanent: bool = True
    downgraded: bool = False

    @property
    def is_conditional(self) -> bool:
        """Whether what we know is from this very address."""
        known = self.etag is not None or self.modified is not None
        return known and str(self.url) == self.validators_of

    def said(self) -> list[tuple[bytes, bytes]]:
        """The headers of the next request."""
        said = dict(self.headers)
        if self.is_conditional and self.etag is not None:
            said["If-None-Match"] = self.etag
        if self.is_conditional and self.modified is not None:
            said["If-Modified-Since"] = self.modified
        return [(name.encode("ascii"), value.encode("latin-1")) for name, value in said.items()]

    async def trace(self, event: str, _info: Any) -> None:
        """What the client does, step by step."""
        if self.leaving is not None and event.endswith(LEAVES):
            await self.leaving(str(self.url))

    def go_to(self, place: httpx2.URL, *, permanent: bool, most: int) -> None:
        if str(place) in self.seen:
            raise BadRedirect("leads in a circle")
        if self.hops >= most:
            raise BadRedirect(f"leads on more than {most} times")
        self.downgraded |= self.url.scheme == "https" and place.scheme == "http"
        self.permanent &= permanent
        self.hops += 1
        self.url = place
        self.seen.add(str(place))

    def ended(self, kind: Kind, **more: Any) -> Fetched:
        return Fetched(
            kind=kind, url=str(self.url), hops=self.hops, downgraded=self.downgraded, **more
        )

    def went_well(self, kind: Kind, **more: Any) -> Fetched:
        moved_to = str(self.url) if self.hops and self.permanent else None
        if moved_to is not None and len(moved_to) > MAX_URL:
            moved_to = None  # it can be asked, but nothing so long can be subscribed to
        return self.ended(kind, moved_to=moved_to, **more)


class Fetcher:
    """For one event loop. Its pool holds 100 connections: do not fetch more than that at once."""

    def __init__(
        self,
        allowed: Allowed,
        *,
        introduction: Introduction | None = None,
        limits: FetchLimits | None = None,
        verify: bool | ssl.SSLContext = True,
        resolve: Resolve = look_up,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._allowed = allowed
        self._introduction = introduction or Introduction()
        self._limits = limits or FetchLimits()
        self._clock = clock
        self._client = guarded_client(allowed, verify=verify, resolve=_names_told_apart(resolve))
        self._decodes = {
            name.strip() for name in self._client.headers["accept-encoding"].split(",")
        }
        # No limit on the wait for a free connection but the whole: the site is not to blame for it.
        self._timeout = httpx2.Timeout(
            self._limits.piece_s, connect=self._limits.connect_s, pool=None
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def __aenter__(self) -> Fetcher:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def fetch(
        self,
        url: str,
        *,
        etag: str | None = None,
        modified: str | None = None,
        validators_of: str | None = None,
        subscribers: int = 0,
        accept: str = FEEDS,
        before_hop: BeforeHop | None = None,
        leaving: BeforeHop | None = None,
    ) -> Fetched:
        """Ask, and follow where it leads. What goes wrong is a value too.

        `etag` and `modified` are sent to `validators_of` only, the `url` of the answer that they
        came with (this address, if not given): a feed that moved is asked for all of it.
        `before_hop` is awaited with each further address, so that its domain can be paced;
        `leaving` with each address when there is a connection, just before the request goes out.
        """
        asked_for = url
        try:
            check_url(url, self._allowed)
            plain = httpx2.URL(url).copy_with(fragment=None)
            asked_for = str(plain)
            journey = _Journey(
                url=plain,
                headers={
                    "User-Agent": self._introduction.user_agent(subscribers),
                    "Accept": accept,
                },
                etag=validator(etag),
                modified=validator(modified),
                validators_of=_without_fragment(validators_of) or asked_for,
                seen={asked_for},
                leaving=leaving,
            )
        except FAILURES as error:
            kind, said = of_failure(error, "this address")
            return Fetched(kind=kind, url=asked_for, error=said)
        try:
            async with asyncio.timeout(self._limits.whole_s):
                return await self._follow(journey, before_hop)
        except FAILURES as error:
            kind, said = of_failure(error, journey.url.host)
            return journey.ended(kind, error=said)

    async def _follow(self, journey: _Journey, before_hop: BeforeHop | None) -> Fetched:
        while True:
            came = await self._ask(journey)
            if came is not None:
                return came
            if before_hop is not None:
                await before_hop(str(journey.url))

    async def _ask(self, journey: _Journey) -> Fetched | None:
        """One request. None: the journey goes on, to another address."""
        check_url(str(journey.url), self._allowed)
        async with self._client.stream(
            "GET", journey.url, headers=journey.said(), timeout=self._timeout,
            extensions={"trace": journey.trace},
        ) as response:  # fmt: skip
            status = response.status_code
            if status in PERMANENT or status in TEMPORARY:
                journey.go_to(
                    _place(response, journey.url),
                    permanent=status in PERMANENT,
                    most=self._limits.hops,
                )
                return None
            if status in WHOLE_BODY:
                return await self._with_body(journey, response)
            return self._without_body(journey, response)

    async def _with_body(self, journey: _Journey, response: httpx2.Response) -> Fetched:
        headers = raw_headers(response)
        self._check_body(headers)
        body = await read_limited(response, self._limits.body_bytes)
        if not body:
            raise BadAnswer("sent an empty answer; that is no feed")
        return journey.went_well(
            Kind.FETCHED,
            status=response.status_code,
            body=body,
            body_hash=blake2b(body, digest_size=HASH_BYTES).hexdigest(),
            content_type=headers.get("content-type", ""),
            etag=validator(headers.get("etag")),
            modified=validator(headers.get("last-modified")),
            fresh_until=fresh_until(headers, self._clock()),
        )

    def _check_body(self, headers: dict[str, str]) -> None:
        """What can be said before the first byte of it is read."""
        length = headers.get("content-length", "").strip()
        if length.isdecimal() and len(length) < 20 and int(length) > self._limits.body_bytes:
            raise BodyTooLong(
                f"the answer is longer than {self._limits.body_bytes} bytes; it was not read"
            )
        # Some write a charset here, which does no harm.
        coded = {part.strip().lower() for part in headers.get("content-encoding", "").split(",")}
        if coded & COMPRESSIONS - self._decodes:
            raise BadAnswer("compressed its answer in a way that was not asked for")

    def _without_body(self, journey: _Journey, response: httpx2.Response) -> Fetched:
        """Pages that come with an error are not read: they are no feed with no articles."""
        status, headers = response.status_code, raw_headers(response)
        if status == NOT_MODIFIED:
            if not journey.is_conditional:
                raise BadAnswer("says that nothing has changed since a time we did not name")
            return journey.went_well(
                Kind.NOT_MODIFIED,
                status=status,
                etag=validator(headers.get("etag")) or journey.etag,
                modified=validator(headers.get("last-modified")) or journey.modified,
                fresh_until=fresh_until(headers, self._clock()),
            )
        kind = kind_of_status(status)
        if kind is Kind.GONE and not journey.permanent:
            kind = Kind.NOT_FOUND  # what is there for a time only cannot end the feed
        return journey.ended(
            kind,
            status=status,
            error=said_by_status(kind, status, journey.url.host),
            retry_after_s=parse_retry_after(headers.get("retry-after", ""), self._clock()),
        )


def _place(response: httpx2.Response, base: httpx2.URL) -> httpx2.URL:
    """Where a redirect leads, without its fragment."""
    location = raw_headers(response).get("location", "").strip()
    if not location:
        raise BadRedirect("leads on, but does not say where to")
    if len(location) > MAX_ADDRESS:
        raise BadRedirect(f"leads to an address of more than {MAX_ADDRESS} characters")
    raw = location.encode("latin-1")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:  # the bytes are sent back as they came, whatever they mean
        text = "".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in raw)
    try:
        return base.join(text).copy_with(fragment=None)
    except httpx2.InvalidURL:
        raise BadRedirect("leads to something that is no address") from None


def _without_fragment(url: str | None) -> str:
    try:
        return str(httpx2.URL(url or "").copy_with(fragment=None))
    except httpx2.InvalidURL:
        return "no address"  # which no request goes to


def _names_told_apart(resolve: Resolve) -> Resolve:
    """The same, but a name that leads nowhere can be told from a site that is down."""

    async def resolved(host: str, port: int) -> Iterable[str]:
        try:
            found = list(await resolve(host, port))
        except TimeoutError:
            raise
        except (OSError, ValueError) as error:
            raise NameUnknown(str(error)) from error
        if not found:
            raise NameUnknown("it has no address")
        return found

    return resolved
