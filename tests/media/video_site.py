"""A site with videos, on this machine, that does as the test says and remembers every request.

What yt-dlp reads there with its own generic extractor: a collection is an RSS feed (`/c/NAME.rss`),
whose items are media files or, with `pages`, pages of videos (`/watch/ID`) that describe
themselves as pages do for search engines.
"""

from __future__ import annotations

import hashlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit
from xml.sax.saxutils import escape, quoteattr

NEWEST = 1_790_000_000  # when the newest video was published
DAY_S = 86_400
SIZE = 200_000
BLOCK = 16_384
WAIT_S = 30.0
JPEG = b"\xff\xd8\xff\xe0" + b"\x00" * 500 + b"\xff\xd9"
HEADERS = ("User-Agent", "Cookie", "Referer", "Range")


@dataclass
class Exchange:
    """One request. It is in the log from its beginning; `ended_at` is None while it is answered."""

    at: float
    method: str
    path: str
    headers: dict[str, str]
    under_way: int  # requests at that moment, this one included
    by: int  # the port it came from
    host: str
    status: int = 0
    sent_bytes: int = 0
    ended_at: float | None = None
    last_at: float | None = None  # just before its last bytes went: after them the client goes on


@dataclass
class Video:
    id: str
    title: str
    published_at: float
    duration_s: int = 90
    views: int = 1_000
    size: int = SIZE
    uploader: str = "An uploader"
    edition: str = ""  # another one has another content
    heights: tuple[int, ...] = ()  # one media file for each, instead of a single one
    is_page: bool = False
    thumbnail: bool = True
    more: dict[str, Any] = field(default_factory=dict)  # further fields of its description

    def content(self, file: str | None = None) -> bytes:
        return hashlib.shake_256(((file or self.id) + self.edition).encode()).digest(self.size)

    def sha256(self, file: str | None = None) -> str:
        return hashlib.sha256(self.content(file)).hexdigest()


@dataclass
class Collection:
    name: str
    title: str
    videos: list[Video]
    newest_first: bool = True


@dataclass
class Rule:
    """Something other than the usual answer, as long as it holds."""

    paths: str
    status: int = 0
    retry_after: str | None = None
    count: int | None = None
    until: Callable[[], bool] | None = None
    ends_at: float | None = None

    def applies(self, path: str) -> bool:
        if not path.startswith(self.paths):
            return False
        if self.until is not None and self.until():
            return False
        if self.ends_at is not None and time.monotonic() >= self.ends_at:
            return False
        if self.count is not None:
            self.count -= 1
            return self.count >= 0
        return True


@dataclass
class Rate:
    paths: str
    between_s: float
    status: int
    retry_after: str | None
    last: float = float("-inf")


class VideoSite:
    """Use it as a context manager. All settings are plain attributes or methods, at any time."""

    def __init__(self, *more_hosts: str) -> None:
        self.log: list[Exchange] = []
        self.videos: dict[str, Video] = {}
        self.collections: dict[str, Collection] = {}
        self.pages: dict[str, tuple[int, str, bytes, dict[str, str]]] = {}
        self.redirects: dict[str, str] = {}
        self.needs_cookie = False
        self.cookie_name = "SESSDATA"
        self.cookie_status = 403
        self.cookie_paths: tuple[str, ...] = ("/media/",)
        self.good_cookies = {"good-cookie-0123456789"}
        self.ranges = True  # whether a file can be continued
        self.changed = threading.Condition()
        self._pushing: list[Rule] = []
        self._failing: list[Rule] = []
        self._cutting: list[Rule] = []
        self._rates: list[Rate] = []
        self._slow: list[tuple[str, float]] = []
        self._held: list[tuple[str, bool]] = []
        self._closing = threading.Event()
        first = _Server(("127.0.0.1", 0), self)
        self.port = int(first.server_address[1])
        self._servers = [first, *(_Server((host, self.port), self) for host in more_hosts)]
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> VideoSite:
        for server in self._servers:
            thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self.let_go()
        for server in self._servers:
            server.shutdown()
            server.server_close()
        for thread in self._threads:
            thread.join(WAIT_S)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def allowed(self) -> tuple[str, ...]:
        """What an operator would have to allow."""
        return tuple(f"{server.server_address[0]}:{self.port}" for server in self._servers)

    # ------------------------------------------------------------------ what there is

    def video(self, id: str, *, title: str | None = None, pages: bool = True, **more: Any) -> Video:
        """A video of its own, at `watch_url`."""
        published_at = more.pop("published_at", NEWEST)
        video = Video(id, title or f"Video {id}", published_at, is_page=pages, **more)
        self.videos[id] = video
        return video

    def collection(
        self, name: str, count: int = 3, *, newest_first: bool = True, pages: bool = False,
        title: str | None = None, **more: Any,
    ) -> Collection:  # fmt: skip
        """Videos NAME-1 (the oldest) to NAME-COUNT (the newest), a day apart."""
        made = Collection(name, title or f"Collection {name}", [], newest_first)
        self.collections[name] = made
        for number in range(1, count + 1):
            age_s = (count - number) * DAY_S
            self.add(name, f"{name}-{number}", pages=pages, published_at=NEWEST - age_s, **more)
        return made

    def add(self, name: str, id: str, *, pages: bool = False, **more: Any) -> Video:
        """A new video at the head of a collection."""
        video = self.video(id, pages=pages, **more)
        self.collections[name].videos.append(video)
        return video

    def remove(self, name: str, id: str) -> None:
        made = self.collections[name]
        made.videos = [video for video in made.videos if video.id != id]

    def collection_url(self, name: str) -> str:
        return f"{self.url}/c/{name}.rss"

    def url_of(self, video: Video) -> str:
        """Where a list says that it is."""
        return self.watch_url(video.id) if video.is_page else self.media_url(video.id)

    def watch_url(self, id: str) -> str:
        return f"{self.url}/watch/{id}"

    def media_url(self, id: str) -> str:
        return f"{self.url}/media/{id}.mp4"

    def page(
        self, path: str, body: str | bytes, *, kind: str = "text/html", status: int = 200,
        headers: dict[str, str] | None = None,
    ) -> str:  # fmt: skip
        """Any page at all. Its address."""
        content = body.encode() if isinstance(body, str) else body
        self.pages[path] = (status, kind, content, headers or {})
        return self.url + path

    # ------------------------------------------------------------------ how it behaves

    def push_back(
        self, status: int = 412, count: int | None = 1, *, until: Callable[[], bool] | None = None,
        for_s: float | None = None, retry_after: str | int | None = None, paths: str = "/",
    ) -> None:  # fmt: skip
        """Answer so: `count` times, or until something is so, or for some time."""
        if until is not None or for_s is not None:
            count = None
        ends_at = None if for_s is None else time.monotonic() + for_s
        after = None if retry_after is None else str(retry_after)
        self._pushing.append(Rule(paths, status, after, count, until, ends_at))

    def rate_limit(
        self, per_s: float, status: int = 412, *, retry_after: str | None = None, paths: str = "/"
    ) -> None:
        """Whoever comes sooner after the last one that was let in is answered so."""
        self._rates.append(Rate(paths, 1 / per_s, status, retry_after))

    def fail(self, paths: str, how: int | str, count: int | None = None) -> None:
        """A status, or "cut": half of the body, and the connection is closed."""
        if how == "cut":
            self._cutting.append(Rule(paths, count=count))
        else:
            self._failing.append(Rule(paths, int(how), count=count))

    def hold(self, paths: str, *, half: bool = False) -> None:
        """Requests there wait until `let_go`; with `half` after half of the body was sent."""
        with self.changed:
            self._held.append((paths, half))

    def let_go(self) -> None:
        with self.changed:
            self._held.clear()
            self.changed.notify_all()

    def slow(self, bytes_per_s: float, paths: str = "/media/") -> None:
        self._slow.append((paths, bytes_per_s))

    def redirect(self, path: str, to: str) -> str:
        self.redirects[path] = to
        return self.url + path

    def well_again(self) -> None:
        """Forget all that was said about how it behaves."""
        for rules in (self._pushing, self._failing, self._cutting, self._rates, self._slow):
            rules.clear()
        self.let_go()

    # ------------------------------------------------------------------ what was seen

    def asked(self, prefix: str = "/") -> list[Exchange]:
        with self.changed:
            return [each for each in self.log if each.path.startswith(prefix)]

    def served(self, prefix: str = "/") -> list[Exchange]:
        """Those that were answered well, and to the end."""
        return [each for each in self.asked(prefix)
                if each.status in (200, 206) and each.ended_at is not None]  # fmt: skip

    def most_at_once(self, prefix: str = "/") -> int:
        changes = []
        for each in self.asked(prefix):
            changes.append((each.at, 1))
            if each.ended_at is not None:
                changes.append((each.last_at or each.ended_at, -1))
        most = now = 0
        for _, change in sorted(changes):
            now += change
            most = max(most, now)
        return most

    def gaps(self, prefix: str = "/") -> list[float]:
        """Seconds from the beginning of one request to the beginning of the next."""
        starts = [each.at for each in self.asked(prefix)]
        return [later - earlier for earlier, later in pairwise(starts)]

    def wait_for(self, happened: Callable[[], Any], timeout_s: float = WAIT_S) -> None:
        """Look after each request, at its beginning and at its end."""
        with self.changed:
            assert self.changed.wait_for(happened, timeout_s), "it has not happened"

    # ------------------------------------------------------------------ for the handler

    @contextmanager
    def recorded(self, handler: _Handler) -> Iterator[Exchange]:
        headers = {name: value for name in HEADERS
                   if (value := handler.headers.get(name)) is not None}  # fmt: skip
        with self.changed:
            open_now = sum(each.ended_at is None for each in self.log)
            exchange = Exchange(
                time.monotonic(), handler.command, handler.path, headers, open_now + 1,
                handler.client_address[1], str(handler.server.server_address[0]),
            )  # fmt: skip
            self.log.append(exchange)
            self.changed.notify_all()
        try:
            yield exchange
        finally:
            with self.changed:
                exchange.ended_at = time.monotonic()
                self.changed.notify_all()

    def refusal(self, path: str, cookie: str) -> Rule | None:
        with self.changed:
            for rate in self._rates:
                if path.startswith(rate.paths):
                    now = time.monotonic()
                    if now - rate.last < rate.between_s:
                        return Rule(rate.paths, rate.status, rate.retry_after)
                    rate.last = now
            for rule in (*self._pushing, *self._failing):
                if rule.applies(path):
                    return rule
        if self.needs_cookie and path.startswith(self.cookie_paths):
            pairs = dict(pair.strip().partition("=")[::2] for pair in cookie.split(";"))
            if pairs.get(self.cookie_name) not in self.good_cookies:
                return Rule("/", self.cookie_status)
        return None

    def is_cut(self, path: str) -> bool:
        with self.changed:
            return any(rule.applies(path) for rule in self._cutting)

    def wait_while_held(self, path: str, *, half: bool) -> None:
        with self.changed:
            self.changed.wait_for(
                lambda: not any(path.startswith(p) and half == h for p, h in self._held)
            )

    def pause_after(self, path: str, sent: int) -> None:
        for paths, bytes_per_s in self._slow:
            if path.startswith(paths):
                self._closing.wait(sent / bytes_per_s)

    def answer(self, path: str) -> tuple[int, str, bytes, dict[str, str]]:
        """Status, kind, content and further headers."""
        path = urlsplit(path).path
        if path in self.pages:
            return self.pages[path]
        kind, _, name = path.removeprefix("/").partition("/")
        stem, _, ext = name.rpartition(".")
        if kind == "c" and ext == "rss" and stem in self.collections:
            return 200, "application/rss+xml", self._feed(self.collections[stem]), {}
        if kind == "watch" and name in self.videos:
            return 200, "text/html; charset=utf-8", self._watch_page(self.videos[name]), {}
        if kind == "media" and (video := self._video_of(stem)) is not None:
            return 200, "video/mp4", video.content(stem), {}
        if kind == "thumb" and stem in self.videos:
            return 200, "image/jpeg", JPEG, {}
        return 404, "text/html", b"<html><title>Nothing is here</title></html>", {}

    def _video_of(self, stem: str) -> Video | None:
        """A media file is called ID, or ID_HEIGHT."""
        return self.videos.get(stem) or self.videos.get(stem.rpartition("_")[0])

    def _feed(self, made: Collection) -> bytes:
        ordered = reversed(made.videos) if made.newest_first else made.videos
        items = "".join(self._item(video) for video in ordered)
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0" '
            'xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel>'
            f"<title>{escape(made.title)}</title><link>{self.url}</link>{items}</channel></rss>"
        ).encode()

    def _item(self, video: Video) -> str:
        date = format_datetime(datetime.fromtimestamp(video.published_at, UTC))
        url = self.url_of(video)
        place = f"<link>{escape(url)}</link>"
        if not video.is_page:
            place = f'<enclosure url={quoteattr(url)} length="{video.size}" type="video/mp4"/>'
        return (
            f"<item><title>{escape(video.title)}</title><guid isPermaLink='false'>{video.id}</guid>"
            f"<pubDate>{date}</pubDate>{place}"
            f"<itunes:duration>{video.duration_s}</itunes:duration></item>"
        )

    def _watch_page(self, video: Video) -> bytes:
        head = f"<html><head><title>{escape(video.title)}</title>"
        if video.heights:
            sources = "".join(
                f'<source src="{self.media_url(f"{video.id}_{height}")}" type="video/mp4" '
                f'label="{height}p" res="{height}">'
                for height in video.heights
            )
            poster = f"{self.url}/thumb/{video.id}.jpg"
            return f'{head}</head><video poster="{poster}">{sources}</video></html>'.encode()
        described = {
            "@context": "https://schema.org", "@type": "VideoObject", "name": video.title,
            "description": f"About {video.title}",
            "uploadDate": datetime.fromtimestamp(video.published_at, UTC).isoformat(),
            "duration": f"PT{video.duration_s}S", "contentUrl": self.media_url(video.id),
            "encodingFormat": "video/mp4", "author": {"@type": "Person", "name": video.uploader},
            "interactionStatistic": {
                "@type": "InteractionCounter", "userInteractionCount": video.views,
                "interactionType": "https://schema.org/WatchAction",
            },
            **({"thumbnailUrl": f"{self.url}/thumb/{video.id}.jpg"} if video.thumbnail else {}),
            **video.more,
        }  # fmt: skip
        script = json.dumps(described).replace("</", "<\\/")
        return f'{head}<script type="application/ld+json">{script}</script></head></html>'.encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, place: tuple[str, int], site: VideoSite) -> None:
        self.site = site
        super().__init__(place, _Handler)

    def server_bind(self) -> None:  # without asking a name server who we are
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "site", self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are what the tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    timeout = WAIT_S

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:
        """The site has a log of its own."""

    def _answer(self) -> None:
        site = self.server.site
        with site.recorded(self) as exchange, suppress(OSError):
            site.wait_while_held(self.path, half=False)
            refused = site.refusal(self.path, self.headers.get("Cookie", ""))
            if refused is not None:
                headers = {"Retry-After": refused.retry_after} if refused.retry_after else {}
                # Words that must not be believed: only the status says what is meant.
                body = b"<html><title>unavailable, private, deleted, 404</title></html>"
                self._send(exchange, refused.status, "text/html", body, headers)
            elif (to := site.redirects.get(self.path)) is not None:
                self._send(exchange, 302, "text/html", b"", {"Location": to})
            else:
                self._send(exchange, *self._ranged(*site.answer(self.path)))

    def _ranged(
        self, status: int, kind: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, str, bytes, dict[str, str]]:
        asked = self.headers.get("Range", "")
        if status != HTTPStatus.OK or not asked.startswith("bytes=") or not self.server.site.ranges:
            return status, kind, body, headers
        first, _, last = asked.removeprefix("bytes=").partition("-")
        start, end = int(first or 0), min(int(last or len(body) - 1), len(body) - 1)
        if start > end:
            return 416, kind, b"", {"Content-Range": f"bytes */{len(body)}"}
        said = {**headers, "Content-Range": f"bytes {start}-{end}/{len(body)}"}
        return 206, kind, body[start : end + 1], said

    def _send(
        self, exchange: Exchange, status: int, kind: str, body: bytes, headers: dict[str, str]
    ) -> None:
        site = self.server.site
        exchange.status = status
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            **headers,
        }.items():
            self.send_header(name, value)
        if self.command == "HEAD" or not body:
            exchange.last_at = time.monotonic()
        self.end_headers()
        if self.command == "HEAD":
            return
        half, is_cut = len(body) // 2, site.is_cut(self.path)
        for start in range(0, len(body), BLOCK):
            if start >= half:
                if is_cut:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                site.wait_while_held(self.path, half=True)
            block = body[start : start + BLOCK]
            at = time.monotonic()
            if start + BLOCK >= len(body):
                exchange.last_at = at
            try:
                self.wfile.write(block)
            except OSError:  # the client has hung up meanwhile, and perhaps gone on
                exchange.last_at = at
                raise
            exchange.sent_bytes += len(block)
            with site.changed:
                site.changed.notify_all()
            site.pause_after(self.path, len(block))
