"""Outbound HTTP to addresses that users name: it reaches the public Internet, and nothing else.

The guard stands where a connection is made, so every hop of a redirect passes it. A name is looked
up once, each of its addresses is judged, and the connection goes to one that has passed: a name
that leads elsewhere a moment later changes nothing. What else is meant to be reached is `Allowed`.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing, contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import ip_address
from socket import SOCK_STREAM

import httpcore2
import httpx2

from headway.errors import HeadwayError
from headway.net.addresses import Address, Allowed, closed_because

__all__ = [
    "Allowed",
    "BodyTooLong",
    "Refused",
    "check_url",
    "guarded_client",
    "look_up",
    "read_limited",
]

Resolve = Callable[[str, int], Awaitable[Iterable[str]]]  # the addresses of a name, best first

MAX_ADDRESSES = 8  # of one name that are tried
MAX_CONNECTIONS = 100
MAX_IDLE_CONNECTIONS = 20
IDLE_S = 5.0


class Refused(HeadwayError):
    """This address may not be called. Asking again does not help; the message says what would."""


class BodyTooLong(HeadwayError):
    """The answer is longer than the limit; the rest of it was not read."""


# ---------------------------------------------------------------------- the guard


def check_url(url: str, allowed: Allowed) -> None:
    """Refuse what can be refused without looking up a name, such as when a user enters it."""
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:
        raise Refused("this is no address; write it as https://host/path") from None
    host, port = _place(parsed)
    try:
        address = ip_address(host)
    except ValueError:
        return  # a name, which is looked up when it is called
    _passed(host, port, [address], allowed)


def _place(url: httpx2.URL) -> tuple[str, int]:
    """Nothing of the address but its host is ever quoted: there may be a secret in it."""
    if url.scheme not in ("http", "https"):
        raise Refused("only http and https are called; write the address as https://host/path")
    if url.userinfo:
        raise Refused("an address may not carry a user name or password; take them out of it")
    if not url.host:
        raise Refused("this address names no host; write it as https://host/path")
    port = url.port if url.port is not None else {"http": 80, "https": 443}[url.scheme]
    if not 1 <= port <= 65_535:
        raise Refused("there is no such port; write one from 1 to 65535, or none")
    return url.raw_host.decode("ascii"), port


def _passed(host: str, port: int, addresses: list[Address], allowed: Allowed) -> list[Address]:
    """Those that may be called. At least one, or it is refused."""
    passed, closed = [], ""
    for address in addresses:
        kind = closed_because(address)
        if kind is None or allowed.covers(host, port, address):
            passed.append(address)
        else:
            closed = closed or kind
    if not passed:
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        # Which address a name has here may be nobody's business, so it is not said.
        raise Refused(
            f"{place} leads to {closed}, which may not be called from here; "
            f"whoever runs this server can allow {place}"
        )
    return passed


async def look_up(host: str, port: int) -> Iterable[str]:
    """As the system resolves names."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=SOCK_STREAM)
    return dict.fromkeys(str(place[0]) for *_, place in found)


class _GuardedNetwork(httpcore2.AsyncNetworkBackend):
    def __init__(self, allowed: Allowed, resolve: Resolve) -> None:
        self._allowed = allowed
        self._resolve = resolve
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        end = None if timeout is None else time.monotonic() + timeout
        found = await self._addresses(host, port, timeout)
        passed = _passed(host, port, found, self._allowed)[:MAX_ADDRESSES]
        for left in range(len(passed), 0, -1):
            # One that does not answer leaves the others their share of the time.
            share = None if end is None else max((end - time.monotonic()) / left, 0.001)
            try:
                return await self._network.connect_tcp(
                    str(passed[-left]), port, share, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if left == 1:
                    raise
        raise AssertionError("something has passed, or it was refused")

    async def _addresses(self, host: str, port: int, timeout: float | None) -> list[Address]:
        try:
            return [ip_address(host)]
        except ValueError:
            pass  # a name
        try:
            async with asyncio.timeout(timeout):
                found = [ip_address(text) for text in await self._resolve(host, port)]
        except TimeoutError:
            raise httpcore2.ConnectTimeout(f"{host} was not looked up in time") from None
        except (OSError, ValueError) as error:
            raise httpcore2.ConnectError(f"{host} cannot be looked up: {error}") from None
        if not found:
            raise httpcore2.ConnectError(f"{host} has no address")
        return found

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        raise Refused("sockets of this machine may not be called")

    async def sleep(self, seconds: float) -> None:
        await self._network.sleep(seconds)


# ---------------------------------------------------------------------- the client


def guarded_client(
    allowed: Allowed,
    *,
    timeout_s: float = 30.0,
    max_redirects: int = 0,
    verify: bool | ssl.SSLContext = True,
    resolve: Resolve = look_up,
) -> httpx2.AsyncClient:
    """A client for addresses that users name. What it may not call raises `Refused`. `timeout_s` is
    for each step (connect, each piece of the answer); put `asyncio.timeout` around the whole. Read
    with `client.stream` and `read_limited`. It keeps no cookies and uses no proxy.
    """
    return httpx2.AsyncClient(
        transport=_GuardedTransport(_GuardedNetwork(allowed, resolve), verify),
        timeout=timeout_s,
        follow_redirects=max_redirects > 0,
        max_redirects=max_redirects,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        trust_env=False,
    )


class _GuardedTransport(httpx2.AsyncBaseTransport):
    """One of our own, since httpx2's takes no network backend; replacing its pool from outside
    would come undone without a sound once it has another name for it.
    """

    def __init__(self, network: _GuardedNetwork, verify: bool | ssl.SSLContext) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=httpx2.create_ssl_context(verify),
            max_connections=MAX_CONNECTIONS,
            max_keepalive_connections=MAX_IDLE_CONNECTIONS,
            keepalive_expiry=IDLE_S,
            network_backend=network,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        _place(request.url)
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        url = request.url
        asked = httpcore2.Request(
            request.method,
            httpcore2.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _raised_by_httpx2():
            answer = await self._pool.handle_async_request(asked)
        assert isinstance(answer.stream, AsyncIterable)
        response = httpx2.Response(
            answer.status, headers=answer.headers, extensions=answer.extensions,
            stream=_Body(answer),
        )  # fmt: skip
        if response.has_redirect_location:
            # The client would read all of it before it goes on, however long it is.
            response.stream = _Body(answer, unread=True)
        return response

    async def aclose(self) -> None:
        await self._pool.aclose()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, answer: httpcore2.Response, unread: bool = False) -> None:
        self._answer = answer
        self._unread = unread

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._unread:
            return
        with _raised_by_httpx2():
            async with aclosing(self._answer.aiter_stream()) as pieces:
                async for piece in pieces:
                    yield piece

    async def aclose(self) -> None:
        with _raised_by_httpx2():
            await self._answer.aclose()


_HTTPX2 = {
    getattr(httpcore2, name): getattr(httpx2, name)
    for name in (
        "TimeoutException", "ConnectTimeout", "ReadTimeout", "WriteTimeout", "PoolTimeout",
        "NetworkError", "ConnectError", "ReadError", "WriteError",
        "ProtocolError", "LocalProtocolError", "RemoteProtocolError", "UnsupportedProtocol",
    )
}  # fmt: skip


@contextmanager
def _raised_by_httpx2() -> Iterator[None]:
    try:
        yield
    except tuple(_HTTPX2) as error:
        nearest = next(_HTTPX2[kind] for kind in type(error).__mro__ if kind in _HTTPX2)
        raise nearest(str(error)) from error


# ---------------------------------------------------------------------- bodies


async def read_limited(response: httpx2.Response, limit_bytes: int) -> bytes:
    """The body of a streamed response, decompressed. `BodyTooLong` as soon as it is, whatever its
    length on the way: at most a few MiB more than the limit are ever held.
    """
    if not response.is_stream_consumed:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        # Compressed it is shorter, but for little; some never gives anything, however long.
        response.stream = _AtMost(response.stream, limit_bytes, limit_bytes // 100 + 4_096)
    body = bytearray()
    async with aclosing(response.aiter_bytes()) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) > limit_bytes:
                raise _too_long(limit_bytes)
    return bytes(body)


class _AtMost(httpx2.AsyncByteStream):
    """A body on its way to us. Where nobody sees the pieces, their number is limited here."""

    def __init__(self, stream: httpx2.AsyncByteStream, limit_bytes: int, slack_bytes: int) -> None:
        self._stream = stream
        self._limit_bytes = limit_bytes
        self._slack_bytes = slack_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = 0
        async for piece in self._stream:
            seen += len(piece)
            if seen > self._limit_bytes + self._slack_bytes:
                raise _too_long(self._limit_bytes)
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


def _too_long(limit_bytes: int) -> BodyTooLong:
    return BodyTooLong(f"the answer is longer than {limit_bytes} bytes; the rest was not read")
