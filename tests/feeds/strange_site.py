"""What a site on loopback may answer, from polite to hostile, and when it was asked.

Pages are those of `LoopbackSite`; here is what they say. Each `Says` writes the answer itself, so
that it can also break off, never end, or be no HTTP at all.
"""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from itertools import pairwise
from time import monotonic

from tests.contract.feeds_kit import LoopbackSite, Page, Says, answers
from tests.feeds.documents import item, rss

MODIFIED = "Wed, 01 Jan 2025 10:00:00 GMT"
ETAG = 'W/"one"'
MEGABYTE = b"x" * 1_000_000


@dataclass(frozen=True)
class Arrival:
    """A request, as the site saw it."""

    at: float
    host: str
    path: str
    agent: str


class StrangeSite:
    """A loopback site that keeps the time."""

    def __init__(self, site: LoopbackSite) -> None:
        self.site = site
        self.arrivals: list[Arrival] = []
        self.under_way: dict[str, int] = {}  # requests of each page, now
        self.most_at_once: dict[str, int] = {}
        self._lock = threading.Lock()

    def put(self, says: Says, *, path: str = "/feed", host: str = "") -> Page:
        """A page at a host of its own, unless one is named."""
        page = self.site.page(path=path, host=host)
        page.says = self._watched(page.url, says)
        return page

    def change(self, page: Page, says: Says) -> None:
        page.says = self._watched(page.url, says)

    def gaps_s(self) -> dict[str, float]:
        """The shortest time between two requests of each host that had some."""
        times: dict[str, list[float]] = {}
        for each in self.arrivals:
            times.setdefault(each.host, []).append(each.at)
        return {
            host: min(later - earlier for earlier, later in pairwise(sorted(at)))
            for host, at in times.items()
            if len(at) > 1
        }

    def _watched(self, url: str, says: Says) -> Says:
        def answer(handler: BaseHTTPRequestHandler) -> None:
            host, agent = handler.headers["host"], handler.headers["user-agent"]
            with self._lock:
                self.arrivals.append(Arrival(monotonic(), host, handler.path, agent))
                now = self.under_way[url] = self.under_way.get(url, 0) + 1
                self.most_at_once[url] = max(self.most_at_once.get(url, 0), now)
            try:
                says(handler)
            finally:
                with self._lock:
                    self.under_way[url] -= 1

        return answer


# ---------------------------------------------------------------------- what it says


def feed(*titles: str, about: str = "", **headers: str) -> Says:
    return answers(written(*titles, about=about), **headers)


def written(*titles: str, about: str = "") -> bytes:
    items = (item(f"<guid>{title}</guid><title>{title}</title>") for title in titles)
    return rss("".join(items), about).encode()


def in_turn(*says: Says) -> Says:
    """Each of them once; the last one again and again."""
    left = list(says)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        (left.pop(0) if len(left) > 1 else left[0])(handler)

    return answer


def with_validators(body: bytes) -> Says:
    """304 to whoever knows it."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        said = handler.headers["if-none-match"], handler.headers["if-modified-since"]
        known = said == (ETAG, MODIFIED)
        validators = {"ETag": ETAG, "Last_Modified": MODIFIED}
        answers(b"" if known else body, 304 if known else 200, **validators)(handler)

    return answer


def redirects(status: int, to: str) -> Says:
    return answers(b"<html>it is elsewhere</html>", status, Location=to, Content_Type="text/html")


def after(seconds: float, says: Says) -> Says:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        threading.Event().wait(seconds)
        says(handler)

    return answer


def silent(over: threading.Event) -> Says:
    """Says nothing at all until the test is over."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        over.wait(300)
        handler.close_connection = True

    return answer


def raw(*pieces: bytes) -> Says:
    """Exactly these bytes, and the connection ends."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        try:
            for piece in pieces:
                handler.wfile.write(piece)
        except OSError:
            return  # the other side has had enough

    return answer


def half(body: bytes) -> Says:
    """The answer ends in the middle of what it has promised."""
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
    return raw(head.encode(), body[: len(body) // 2])


def bomb(megabytes: int) -> Says:
    """Small on its way, and large when it is unpacked."""
    packed = gzip.compress(written("boom") + MEGABYTE * megabytes)
    return answers(packed, Content_Encoding="gzip")


def without_length(pieces: Iterable[bytes]) -> Says:
    return raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n\r\n", *pieces)
