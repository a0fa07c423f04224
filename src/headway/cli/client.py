"""Asking the API: JSON in, JSON out, and every problem as one clear sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from time import time
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2

from headway.errors import HeadwayError

PAGE = 200
TIMEOUT = httpx2.Timeout(120.0, connect=5.0)
ALIVE_S = 40.0  # a stream says something every 15 s; one that is silent for so long is gone


class CommandFailed(HeadwayError):
    """A command cannot do what it was asked; the message says what to do."""


class Refused(CommandFailed):
    """The API has answered with a problem."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class Unreachable(CommandFailed):
    """Nobody answers; perhaps somebody will later."""


class Client:
    """`direct`: nobody serves, the API is built in this process."""

    def __init__(
        self,
        http: httpx2.Client,
        name: str,
        *,
        direct: bool = False,
        idle: bool = False,
        close: Callable[[], None] | None = None,
    ) -> None:
        self.name = name
        self.direct = direct
        self.idle = idle  # no engine runs anywhere, so nothing will happen by itself
        self._http = http
        self._close = close

    def get(self, path: str, **query: Any) -> Any:
        return self._ask("GET", path, params=_said(query))

    def post(self, path: str, body: Any = None, **query: Any) -> Any:
        return self._ask("POST", path, json=body, params=_said(query))

    def send(self, path: str, document: bytes, kind: str, **query: Any) -> Any:
        """Something that is no JSON."""
        return self._ask(
            "POST", path, content=document, headers={"Content-Type": kind}, params=_said(query)
        )

    def fetch(self, path: str) -> bytes:
        """The answer as it is."""
        response = self._request("GET", path)
        if not response.is_success:
            self._read(response)
        return response.content

    def put(self, path: str, body: Any) -> Any:
        return self._ask("PUT", path, json=body)

    def patch(self, path: str, body: Any) -> Any:
        return self._ask("PATCH", path, json=body)

    def delete(self, path: str) -> Any:
        return self._ask("DELETE", path)

    def pages(self, path: str, most: int | None = None, **query: Any) -> Iterator[dict[str, Any]]:
        """One page after the other, until there are no more or so many items."""
        number, left = 1, most
        while left is None or left > 0:
            size = PAGE if most is None else min(PAGE, most)
            answer = self.get(path, page=number, size=size, **query)
            if left is not None:
                answer["items"] = answer["items"][:left]
                left -= len(answer["items"])
            yield answer
            if len(answer["items"]) < size or number * size >= answer["total"]:
                return
            number += 1

    def follow(self, after: int | None) -> Iterator[tuple[int, str, Any]]:
        """(number, name, data) of each event after this one, until the stream ends."""
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        timeout = httpx2.Timeout(ALIVE_S, connect=TIMEOUT.connect)
        try:
            with self._http.sse("/api/events", headers=headers, timeout=timeout) as source:
                if source.response.status_code != 200:
                    source.response.read()
                    self._read(source.response)
                for event in source:
                    if event.data:
                        yield int(event.id), event.event, event.json()
        except httpx2.HTTPError as error:
            raise self._unreachable(error) from error

    def skew_s(self) -> float | None:
        """How far the server's clock is ahead of ours; None: it does not say."""
        try:
            said = self._http.get("/healthz").headers.get("date")
            return None if said is None else parsedate_to_datetime(said).timestamp() - time()
        except (httpx2.HTTPError, ValueError):
            return None

    def close(self) -> None:
        self._http.close()
        if self._close is not None:
            self._close()

    # ------------------------------------------------------------------ inside

    def _ask(self, method: str, path: str, **more: Any) -> Any:
        return self._read(self._request(method, path, **more))

    def _request(self, method: str, path: str, **more: Any) -> httpx2.Response:
        try:
            return self._http.request(method, path, **more)
        except httpx2.TimeoutException as error:
            raise Unreachable(f"{self.name} does not answer in time; is it busy?") from error
        except httpx2.HTTPError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: httpx2.HTTPError) -> Unreachable:
        return Unreachable(
            f"{self.name} cannot be reached ({error or type(error).__name__}); is the server "
            "running, and is its address right?"
        )

    def _read(self, response: httpx2.Response) -> Any:
        if response.status_code == 204:
            return None
        try:
            body = response.json()
        except ValueError:
            body = None
        if response.is_success and body is not None:
            return body
        raise self._refusal(response.status_code, body)

    def _refusal(self, status: int, body: Any) -> Refused:
        if not isinstance(body, dict) or "detail" not in body:
            return Refused(status, f"{self.name} has answered {status}, and not as Headway does; "
                           "is its address right?")  # fmt: skip
        detail = str(body["detail"])
        if status == 401:
            detail = (f"{self.name} wants a valid token; name one with --token or HEADWAY_TOKEN, "
                      "or make one with `headway tokens create` on its machine")  # fmt: skip
        errors = body.get("errors") or []
        if len(errors) > 1:
            detail = "; ".join(f"{each['where']}: {each['what']}" for each in errors)
        return Refused(status, detail)


def _said(query: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None and value != ""}


def part(name: str | int) -> str:
    """A name as one part of a path."""
    return quote(str(name), safe="")


def over_http(url: str, token: str | None, transport: httpx2.BaseTransport | None = None) -> Client:
    address = urlsplit(url if "://" in url else f"http://{url}")
    if address.scheme not in ("http", "https") or not address.hostname:
        raise CommandFailed(f"{url!r} is no address of a server; write http://host:8000")
    if token is not None and not (token.isascii() and token.isprintable() and token.strip()):
        raise CommandFailed("the token has characters that no token has; copy it once more")
    headers = {"Authorization": f"Bearer {token.strip()}"} if token else {}
    base = f"{address.scheme}://{address.netloc.rpartition('@')[2]}{address.path.rstrip('/')}"
    http = httpx2.Client(
        base_url=base, headers=headers, timeout=TIMEOUT, transport=transport, follow_redirects=False
    )
    return Client(http, base)
