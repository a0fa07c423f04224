"""A server with feeds, tenants that sign in there, and a site on loopback that does as it is told.

The site answers under any address of loopback. Each feed that a test makes is at one of its own, so
that no test waits for the pace that another one's visits have to keep.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from time import time
from typing import Any

import jwt

from tests.contract.kit import JSON, Api, new_name
from tests.feeds.documents import item, rss
from tests.hands.kit import eventually
from tests.servers import Server, server_on

SECRET = "a-secret-of-more-than-thirty-two-characters"
FEEDS = "/api/backend/feeds"
LOOPBACK = "127.0.0.0/8"

Says = Callable[[BaseHTTPRequestHandler], None]


def signed(tenant: str, *scopes: str) -> str:
    """A JWT for somebody who may read and submit, or whatever is named."""
    scope = " ".join(scopes or ("read", "submit"))
    return jwt.encode({"sub": tenant, "exp": time() + 3_600, "scope": scope}, SECRET, "HS256")


def document(*titles: str, name: str = "A site", channel: str = "") -> bytes:
    """A feed with an article for each title."""
    items = "".join(
        item(f"<guid>{title}</guid><title>{title}</title><link>https://blog.example/{title}</link>"
             f"<description>All about {title}</description>")
        for title in titles
    )  # fmt: skip
    return rss(items, channel).replace("A site", name).encode()


def answers(body: bytes = b"", status: int = 200, **headers: str) -> Says:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for header, value in {"Content-Type": "application/rss+xml", **headers}.items():
            handler.send_header(header.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


@dataclass
class Page:
    """One address of the site, and who was there."""

    url: str
    says: Says
    visits: list[dict[str, str]] = field(default_factory=list)  # headers of each request

    def publish(self, *titles: str, name: str = "A site") -> None:
        self.says = answers(document(*titles, name=name))


class LoopbackSite:
    def __init__(self) -> None:
        site = self
        self.pages: dict[str, Page] = {}  # by host and path
        self._hosts = count(2)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page = site.pages.get(f"http://{self.headers['host']}{self.path}")
                if page is None:
                    return answers(b"nothing is here", 404)(self)
                page.visits.append({name.lower(): value for name, value in self.headers.items()})
                page.says(self)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("0.0.0.0", 0), Handler)
        self.http.daemon_threads = True
        self.port = int(self.http.server_address[1])

    def host(self) -> str:
        """An address of loopback that nobody else uses."""
        number = next(self._hosts)
        return f"http://127.0.{number // 250}.{number % 250 + 2}:{self.port}"

    def page(self, *titles: str, path: str = "/feed", host: str = "") -> Page:
        """A new feed with these articles, at a host of its own unless one is named."""
        url = (host or self.host()) + path
        self.pages[url] = Page(url, answers(document(*titles)))
        return self.pages[url]


@contextmanager
def loopback_site() -> Iterator[LoopbackSite]:
    site = LoopbackSite()
    thread = threading.Thread(target=site.http.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield site
    finally:
        site.http.shutdown()
        thread.join()
        site.http.server_close()


@contextmanager
def held(page: Page) -> Iterator[threading.Event]:
    """Whoever asks this page has its answer when the block ends; the event: somebody does."""
    asked, go = threading.Event(), threading.Event()
    before = page.says

    def wait(handler: BaseHTTPRequestHandler) -> None:
        asked.set()
        go.wait(30)
        before(handler)

    page.says = wait
    try:
        yield asked
    finally:
        page.says = before
        go.set()


class Reader(Api):
    """A client of one tenant."""

    tenant: str

    def add(self, page: Page | str, **more: Any) -> JSON:
        url = page if isinstance(page, str) else page.url
        return self.post(FEEDS, {"url": url, **more}, 201)

    def feed(self, id: str) -> JSON:
        return self.get(f"{FEEDS}/{id}")

    def feeds(self, **filters: Any) -> list[JSON]:
        found: list[JSON] = self.get(FEEDS, **filters)["feeds"]
        return found

    def change(self, id: str, **changes: Any) -> JSON:
        return self.ok("PATCH", f"{FEEDS}/{id}", json=changes)

    def remove(self, id: str) -> JSON:
        return self.ok("DELETE", f"{FEEDS}/{id}")

    def force(self, id: str, force: bool = True) -> JSON:
        said = {"feed_id": id, "force_immediate": force}
        return self.post("/api/backend/queue/schedule-feed", said)

    def settled(self, id: str) -> JSON:
        """The feed, once somebody was there."""
        found: JSON = eventually(lambda: (seen := self.feed(id))["last_tried"] and seen)
        return found


@dataclass
class Desk:
    """A server, a site, and anybody who signs in. Each test has tenants of its own."""

    server: Server
    site: LoopbackSite
    _open: ExitStack

    def reader(self, tenant: str = "", *scopes: str) -> Reader:
        """Somebody of this tenant, or of a new one."""
        tenant = tenant or new_name("tenant")
        reader = self._open.enter_context(Reader(self.server.url, signed(tenant, *scopes)))
        assert isinstance(reader, Reader)
        reader.tenant = tenant
        return reader

    def admin(self) -> Reader:
        return self.reader("chief", "admin")


@contextmanager
def feeds_desk(store: str = "sqlite", file: str = "", **settings: object) -> Iterator[Desk]:
    told = {"auth": "required", "jwt_secret": SECRET, "outbound_allow": LOOPBACK, **settings}
    with ExitStack() as stack:
        site = stack.enter_context(loopback_site())
        server = stack.enter_context(server_on(store, file=file, **told))
        yield Desk(server, site, stack.enter_context(ExitStack()))
