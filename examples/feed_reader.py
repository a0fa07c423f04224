"""A feed reader that its sites like: subscribe, read, refresh, search, mark.

    python examples/feed_reader.py

Nothing leaves this machine: the site is a small one on loopback, which the server is allowed to
call. It counts who comes, how soon after the last visit, and whether he asks for what he has.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

PAGE = (
    '<html><head><link rel="alternate" type="application/rss+xml" href="/feed.xml"></head></html>'
)
FEED = "<rss version='2.0'><channel><title>The harbour</title>{items}</channel></rss>"
ITEM = "<item><guid>{n}</guid><title>{title}</title><description>{text}</description></item>"


class Site(ThreadingHTTPServer):
    """A front page that names its feed, and the feed with an ETag."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.entries: list[tuple[str, str]] = []
        self.visits: list[float] = []
        self.unchanged = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        site = self.server
        site.visits.append(time.monotonic())
        if self.path != "/feed.xml":
            return self.say(200 if self.path == "/" else 404, "text/html", PAGE)
        tag = f'"{len(site.entries)}"'
        if self.headers["If-None-Match"] == tag:
            site.unchanged += 1
            return self.say(304, "", "", ETag=tag)
        items = [
            ITEM.format(n=n, title=each[0], text=each[1]) for n, each in enumerate(site.entries)
        ]
        self.say(200, "application/rss+xml", FEED.format(items="".join(items)), ETag=tag)

    def say(self, status: int, kind: str, text: str, **headers: str) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(text)),
            **headers,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """It tells nobody."""


@contextmanager
def site() -> Iterator[Site]:
    with Site() as found:
        threading.Thread(target=found.serve_forever, args=(0.05,)).start()
        try:
            yield found
        finally:
            found.shutdown()


@contextmanager
def headway(allowed: str) -> Iterator[str]:
    """A server of its own. Private addresses are refused unless the operator names them."""
    with tempfile.TemporaryDirectory() as directory:
        settings = f"{directory}/headway.toml"
        with open(settings, "w", encoding="utf-8") as file:
            file.write(f'[server]\noutbound_allow = ["{allowed}"]\n')
        command = [sys.executable, "-m", "headway", "serve", "--port", "0", "--config", settings]
        command += ["--data", f"{directory}/data", "--log-level", "warning"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        try:
            yield server.stdout.readline().split()[-1]  # "Headway is at http://..."
        finally:
            server.terminate()
            server.wait()
            server.stdout.close()


class Reader:
    def __init__(self, address: str) -> None:
        self._api = f"{address}/api/backend"

    def ask(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(
            self._api + path, data, {"Content-Type": "application/json"}, method=method
        )
        with urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def first_visit(self, feed: str) -> Any:
        """The feed, once somebody was there."""
        while (found := self.ask("GET", f"/feeds/{feed}"))["status"] == "new":
            time.sleep(0.1)
        return found

    def refresh(self, feed: str) -> str:
        """As soon as the site allows; how that went, in short."""
        round = self.ask("POST", "/queue/schedule-all", {"feed_ids": [feed]})["round_id"]
        text: str = self.ask("GET", f"/queue/rounds/{round}?wait_s=30")["text"]
        return text

    def titles(self, search: str = "") -> list[str]:
        return [each["title"] for each in self.articles(search)]

    def articles(self, search: str = "") -> list[Any]:
        found: list[Any] = self.ask("GET", f"/articles?q={quote(search)}")["items"]
        return found


def main() -> None:
    with site() as there, headway(there.address) as address:
        there.entries = [("Tide tables", "High water at noon"), ("A new crane", "It is yellow")]
        reader = Reader(address)

        made = reader.ask("POST", "/rss/subscribe", {"url": f"http://{there.address}/"})
        feed = reader.first_visit(made["id"])
        print(f"subscribed to {feed['title']}, with {feed['article_count']} articles:")
        for title in reader.titles():
            print(f"  {title}")

        there.entries.append(("Fog tonight", "Ships wait for high water"))
        print(f"refreshed: {reader.refresh(feed['id'])}")
        print(f"refreshed: {reader.refresh(feed['id'])}")

        found = reader.articles('"high water" -tide')
        print(f"found: {', '.join(each['title'] for each in found)}")
        marks = {"is_read": True, "is_starred": True}
        reader.ask("PATCH", "/articles", {"ids": [each["id"] for each in found], **marks})
        stats = reader.ask("GET", "/articles/stats")
        print(f"{stats['total']} articles, {stats['unread']} unread, {stats['starred']} starred")

    gaps = [after - before for before, after in zip(there.visits, there.visits[1:], strict=False)]
    print(f"the site was asked {len(there.visits)} times, at least {min(gaps):.2f} s apart")
    print(f"answers that nothing was new: {there.unchanged}")


if __name__ == "__main__":
    main()
