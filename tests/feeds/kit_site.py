"""A site on loopback with feeds that behave, and pages that do not."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from headway.apps.feeds.fetching import Fetched, Fetcher, FetchLimits
from headway.net.outbound import Allowed
from tests.net.kit import Answer, Names, Site, says, site

T = TypeVar("T")
LONG_S = 20.0  # for what comes at once, unless something is broken
TRUSTS_NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which is made faster than the usual one
NOW = 1_790_000_000.0  # a Monday, 14:13:20 UTC
FEED = b"<rss><channel><title>\xe9t\xe9</title></channel></rss>"  # latin-1, and says nothing of it


def run(work: Callable[[], Awaitable[T]]) -> T:
    async def in_time() -> T:
        async with asyncio.timeout(LONG_S):
            return await work()

    return asyncio.run(in_time())


def header(head: str, name: str) -> str | None:
    """What a request said under this name."""
    for line in head.split("\r\n")[1:]:
        said, _, value = line.partition(":")
        if said.lower() == name.lower():
            return value.strip()
    return None


def moved(status: int, address: str) -> Answer:
    return says(b"<html>it is elsewhere</html>", f"{status} Elsewhere", Location=address)


def raw(*pieces: bytes) -> Answer:
    """Exactly these bytes, then the connection ends."""

    async def answer(_head: str, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()

    return answer


def stays_silent(*first: bytes) -> Answer:
    """So much of an answer, and then nothing for ever."""

    async def answer(_head: str, writer: asyncio.StreamWriter) -> None:
        for piece in first:
            writer.write(piece)
        await writer.drain()
        await asyncio.Event().wait()

    return answer


def with_validators(etag: str | None, modified: str | None, body: bytes = FEED) -> Answer:
    """Answers 304 to whoever sends both back as they were."""
    named = {"ETag": etag, "Last_Modified": modified}
    headers = {name: value for name, value in named.items() if value is not None}

    async def answer(head: str, writer: asyncio.StreamWriter) -> None:
        said = (header(head, "if-none-match"), header(head, "if-modified-since"))
        if said == (etag, modified):
            await raw(b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n")(head, writer)
        else:
            await says(body, **headers)(head, writer)

    return answer


@dataclass
class Visited:
    """A site, and somebody who reads there."""

    site: Site
    fetcher: Fetcher
    names: Names
    pages: dict[str, Answer]

    def at(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.site.port}{path}"

    async def fetch(self, path: str, **options: Any) -> Fetched:
        return await self.fetcher.fetch(self.at(path), **options)


@asynccontextmanager
async def visited(
    pages: Mapping[str, Answer],
    *,
    allowed: str = "127.0.0.1",
    names: Names | None = None,
    limits: FetchLimits | None = None,
    verify: ssl.SSLContext = TRUSTS_NOBODY,
    **options: Any,
) -> AsyncIterator[Visited]:
    known = dict(pages)
    resolve = names or Names()

    async def answer(head: str, writer: asyncio.StreamWriter) -> None:
        path = head.split(" ", 2)[1]
        found = known.get(path) or known.get(path.partition("?")[0]) or says(b"", "404 Not Found")
        await found(head, writer)

    async with (
        site(answer) as there,
        Fetcher(
            Allowed([allowed]),
            limits=limits,
            verify=verify,
            resolve=resolve,
            clock=lambda: NOW,
            **options,
        ) as fetcher,
    ):
        yield Visited(there, fetcher, resolve, known)


def fetch(page: Answer, limits: FetchLimits | None = None, **options: Any) -> Fetched:
    """One page, fetched once."""

    async def ask() -> Fetched:
        async with visited({"/feed": page}, limits=limits) as here:
            return await here.fetch("/feed", **options)

    return run(ask)
