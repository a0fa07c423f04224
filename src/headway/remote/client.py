"""Talking to a server: from any thread, loop or process, each with connections of its own.

A question may be asked again when its answer was lost. An order may not: it is sent again only when
it is certain that the server never saw it.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
import weakref
from collections.abc import AsyncGenerator, Mapping
from importlib.metadata import version
from typing import Any, TypeVar, overload

import httpx2
import msgspec

from headway import errors
from headway.remote.address import checked_addresses, checked_token, on_loopback
from headway.remote.answers import PASSING, UNSURE, data_of, error_of

T = TypeVar("T")

USER_AGENT = f"headway/{version('headway')}"
CONNECT_S = 5.0
ANSWER_S = 40.0  # a little longer than a server waits for its engine
POOL_S = 60.0  # for one of the connections, when all are in use
PATIENCE_S = 3.0  # with a server that cannot be reached
LIMITS = httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=15.0)
NO_LIMIT = httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=15.0)

# Nothing of the request has reached the server.
NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError,
              httpx2.UnsupportedProtocol, httpx2.LocalProtocolError)  # fmt: skip
# And it makes no sense to try again.
HOPELESS = (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, httpx2.PoolTimeout)

_clients: weakref.WeakSet[Client] = weakref.WeakSet()


class Ask:
    """One request. `repeats`: asking twice does no harm."""

    __slots__ = ("answer_s", "content", "method", "path", "query", "repeats", "verb")

    def __init__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        verb: str = "",
        repeats: bool | None = None,
        answer_s: float = ANSWER_S,
    ) -> None:
        self.method = method
        self.path = path
        self.content = None if body is None else msgspec.json.encode(body)
        self.query = {k: v for k, v in (query or {}).items() if v is not None}
        self.verb = verb
        self.repeats = method == "GET" if repeats is None else repeats
        self.answer_s = answer_s

    def options(self) -> dict[str, Any]:
        return {
            "content": self.content,
            "params": self.query or None,
            "headers": None if self.content is None else {"Content-Type": "application/json"},
            "timeout": httpx2.Timeout(self.answer_s, connect=CONNECT_S, pool=POOL_S),
        }


class Client:
    """`transport` and `async_transport` take the place of the network, in tests."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        patience_s: float = PATIENCE_S,
        transport: httpx2.BaseTransport | None = None,
        async_transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._urls = checked_addresses(url)
        self._at = 0  # which of them is called
        self._token = checked_token(token)
        self._patience_s = patience_s
        self._transport = transport
        self._async_transport = async_transport
        self._limits = LIMITS
        self._lock = threading.Lock()
        self._sync: httpx2.Client | None = None
        self._by_loop: dict[asyncio.AbstractEventLoop, httpx2.AsyncClient] = {}
        self._guards: list[AsyncGenerator[None, None]] = []
        self._inherited: list[Any] = []
        _clients.add(self)

    @property
    def url(self) -> str:
        """The server that is called now."""
        return self._urls[self._at % len(self._urls)]

    def call_another(self, than: str) -> None:
        """This one could not be reached, or cannot answer. Others may have noticed it before."""
        with self._lock:
            if self.url == than:
                self._at += 1

    def __repr__(self) -> str:
        return f"<server {self.url}>"

    def for_waiting(self) -> Client:
        """Another one, with as many connections as it takes: for questions that wait so long that
        nobody may stand behind them.
        """
        made = Client(",".join(self._urls), self._token, patience_s=self._patience_s,
                      transport=self._transport, async_transport=self._async_transport)  # fmt: skip
        made._limits = NO_LIMIT
        return made

    # ------------------------------------------------------------------ asking

    @overload
    def call(self, ask: Ask, type: type[T], *, patience_s: float | None = None) -> T: ...
    @overload
    def call(self, ask: Ask, *, patience_s: float | None = None) -> Any: ...
    def call(self, ask: Ask, type: Any = Any, *, patience_s: float | None = None) -> Any:
        patience = Patience(self, ask, self._patience_s if patience_s is None else patience_s)
        while True:
            url = self.url
            try:
                response = self._send(ask, url)
            except httpx2.HTTPError as error:
                wait_s = patience.after(error, url)
            else:
                if response.is_success:
                    return data_of(response, url, type)
                wait_s = patience.after_refusal(response, url)
            time.sleep(wait_s)

    def _send(self, ask: Ask, url: str) -> httpx2.Response:
        return self._client().request(ask.method, url + ask.path, **ask.options())

    @overload
    async def acall(self, ask: Ask, type: type[T], *, patience_s: float | None = None) -> T: ...
    @overload
    async def acall(self, ask: Ask, *, patience_s: float | None = None) -> Any: ...
    async def acall(self, ask: Ask, type: Any = Any, *, patience_s: float | None = None) -> Any:
        patience = Patience(self, ask, self._patience_s if patience_s is None else patience_s)
        while True:
            client = await self._async_client()
            url = self.url
            try:
                response = await client.request(ask.method, url + ask.path, **ask.options())
            except httpx2.HTTPError as error:
                wait_s = patience.after(error, url)
            else:
                if response.is_success:
                    return data_of(response, url, type)
                wait_s = patience.after_refusal(response, url)
            await asyncio.sleep(wait_s)

    # ------------------------------------------------------------------ connections

    def _headers(self) -> dict[str, str]:
        headers = {"User-Agent": USER_AGENT, "Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        return headers

    def _options(self) -> dict[str, Any]:
        return {
            "headers": self._headers(),
            "limits": self._limits,
            "timeout": ANSWER_S,
            "trust_env": not all(map(on_loopback, self._urls)),
            "verify": self.url.lower().startswith("https:"),  # else there is nothing to verify
        }

    def _client(self) -> httpx2.Client:
        client = self._sync
        if client is None:
            with self._lock:
                client = self._sync
                if client is None:
                    client = self._sync = httpx2.Client(
                        transport=self._transport, **self._options()
                    )
                    weakref.finalize(self, client.close)
        return client

    async def _async_client(self) -> httpx2.AsyncClient:
        loop = asyncio.get_running_loop()
        client = self._by_loop.get(loop)
        if client is None:
            for each in [each for each in self._by_loop if each.is_closed()]:
                del self._by_loop[each]
            client = self._by_loop[loop] = httpx2.AsyncClient(
                transport=self._async_transport, **self._options()
            )
            guard = _closes_with_its_loop(client)
            self._guards.append(guard)
            await anext(guard)
        return client

    def close(self) -> None:
        """It may be used again afterwards, and then connects anew."""
        with self._lock:
            client, self._sync = self._sync, None
            loops, self._by_loop = self._by_loop, {}
            self._guards = []
        if client is not None:
            client.close()
        for loop, each in loops.items():
            if loop.is_running():
                asyncio.run_coroutine_threadsafe(each.aclose(), loop)

    def after_fork(self) -> None:
        """The connections belong to the other process; they are not touched, not even closed."""
        self._inherited.append((self._sync, self._by_loop, self._guards))
        self._lock = threading.Lock()
        self._sync, self._by_loop, self._guards = None, {}, []


async def _closes_with_its_loop(client: httpx2.AsyncClient) -> AsyncGenerator[None, None]:
    """A loop that ends in an orderly way closes the generators that were begun in it, and that is
    the last moment at which connections can be closed.
    """
    try:
        yield
    finally:
        await client.aclose()


def _after_fork() -> None:
    for client in list(_clients):
        client.after_fork()


os.register_at_fork(after_in_child=_after_fork)


class Patience:
    """How long one request is tried, and what is raised then. Each server that is named is asked
    once, however long it took the others not to answer.
    """

    def __init__(self, client: Client, ask: Ask, limit_s: float) -> None:
        self._client = client
        self._ask = ask
        self._until = time.monotonic() + limit_s
        self._backoff = Backoff(longest_s=1.0)
        self._tried: set[str] = set()

    def after(self, error: httpx2.HTTPError, url: str) -> float:
        """How long to wait before the next try, or what is to be raised instead."""
        self._tried.add(url)
        self._client.call_another(url)
        never_sent = isinstance(error, NEVER_SENT)
        if (never_sent or self._ask.repeats) and not isinstance(error, HOPELESS):
            wait_s = self._wait()
            if wait_s is not None:
                return wait_s
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        if never_sent or self._ask.method == "GET":
            raise errors.StoreUnavailable(
                f"{url} cannot be reached ({said}); start the server, or name another one"
            ) from error
        raise errors.OutcomeUnknown(
            f"the connection to {url} was lost before its answer ({said}), and {UNSURE}"
        ) from error

    def after_refusal(self, response: httpx2.Response, url: str) -> float:
        self._tried.add(url)
        if response.status_code in PASSING:
            self._client.call_another(url)
        if self._ask.repeats and response.status_code in PASSING:
            wait_s = self._wait()
            if wait_s is not None:
                return wait_s
        writes = self._ask.method != "GET"
        raise error_of(response, url, self._ask.verb, writes=writes)

    def _wait(self) -> float | None:
        if self._client.url not in self._tried:  # to connect to the others may have taken long
            return 0.0
        wait_s = self._backoff.next_s()
        return wait_s if time.monotonic() + wait_s < self._until else None


class Backoff:
    """Waits that grow, each a little different, so that many who failed together do not come back
    together.
    """

    def __init__(self, longest_s: float = 5.0, first_s: float = 0.05) -> None:
        self.longest_s = longest_s
        self._first_s = first_s
        self._failures = 0

    def next_s(self) -> float:
        wait_s = min(self.longest_s, self._first_s * 2.0 ** min(self._failures, 30))
        self._failures += 1
        return wait_s * random.uniform(0.5, 1.0)

    def reset(self) -> None:
        self._failures = 0
