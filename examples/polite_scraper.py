"""A scraper that never annoys its site, however many jobs wait.

A small site on loopback stands for a real one: it allows one request every 100 ms, answers 429
with a Retry-After when it is asked too often, and once says "not now" for no reason at all. The
scraper declares the pace and the pushback; Headway keeps both. At the end the site tells what it
has seen.

    python examples/polite_scraper.py
"""

from __future__ import annotations

import tempfile
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import ClassVar
from urllib.error import HTTPError
from urllib.parse import urlsplit

from headway import App, check_status

PAGES = 12
INTERVAL_S = 0.1
UNWELL_AT = 4  # the request that is answered with "not now"
RETRY_AFTER_S = 1


class Site(BaseHTTPRequestHandler):
    """Remembers when it was called, and pushes back."""

    asked_at: ClassVar[list[float]] = []
    pushed_back = 0
    too_early = 0
    lock = threading.Lock()

    def do_GET(self) -> None:
        with self.lock:
            now = time.monotonic()
            gap_s = now - self.asked_at[-1] if self.asked_at else INTERVAL_S
            self.asked_at.append(now)
            unwell = len(self.asked_at) == UNWELL_AT
            # Both ends run on one busy machine, so the site is a little lenient.
            hasty = gap_s < INTERVAL_S / 2
            Site.pushed_back += unwell or hasty
            Site.too_early += hasty
        body = f"page {self.path}".encode()
        self.send_response(429 if unwell or hasty else 200)
        if unwell or hasty:
            self.send_header("Retry-After", str(RETRY_AFTER_S))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet: the numbers at the end say it all."""


def host_of(url: str) -> str:
    return urlsplit(url).hostname or ""


def scrape(site_url: str, store: str) -> list[str]:
    app = App(f"sqlite:///{store}/scraper.db")
    app.upstream(host_of(site_url), every="0.1s", limit=2)

    @app.job(type="fetch", upstream=host_of, unique=True)
    def fetch(url: str) -> str:
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return str(answer.read().decode())
        except HTTPError as error:
            check_status(error.code, dict(error.headers))  # 429 becomes a pushback
            raise

    with app.running():
        urls = [f"{site_url}/{number}" for number in range(PAGES)]
        jobs = app.enqueue_many(fetch.call(url) for url in urls)
        again = fetch.enqueue(urls[-1])  # asked twice, fetched once
        assert again.joined
        pages = [job.result(timeout=30) for job in jobs]
    app.close()
    return pages


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as store:
        pages = scrape(f"http://127.0.0.1:{server.server_port}", store)
    server.shutdown()
    server.server_close()
    asked = Site.asked_at
    gaps = [after - before for before, after in pairwise(asked)]
    print(f"pages: {len(pages)} of {PAGES}")
    print(f"requests: {len(asked)}, pushed back: {Site.pushed_back}, too early: {Site.too_early}")
    print(f"shortest gap: {min(gaps) * 1000:.0f} ms")
    print(f"rest after the pushback: {gaps[UNWELL_AT - 1]:.1f} s")


if __name__ == "__main__":
    main()
