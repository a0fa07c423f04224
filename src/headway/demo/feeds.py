"""Sites with feeds, and somebody who reads them: articles appear every few seconds."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from itertools import count
from random import Random
from xml.sax.saxutils import escape, quoteattr

from starlette.requests import Request
from starlette.responses import Response

from headway.demo import words
from headway.demo.stage import Stage
from headway.demo.town import Town

FIRST = 6  # articles that a feed has at the beginning, some hours apart
LONGEST = 20  # what a feed still shows
NEW_S = 4.0  # between two new articles, of all feeds
MINUTES = 1  # between two visits to a feed, the least there is
ROUND_EVERY = 4  # after so many new articles somebody does not want to wait for that
RETRY_AFTER_S = 20  # to every other visit of the busy one
KIND = "application/rss+xml; charset=utf-8"

# Title, folder, and the site that it is at.
FEEDS = (
    ("The harbour gazette", "News", 0), ("Night trains weekly", "News", 0),
    ("Lighthouse notices", "News/Coast", 0), ("Tide tables", "News/Coast", 0),
    ("Notes on queues", "Engineering", 1), ("The slow database", "Engineering", 1),
    ("Release notes, annotated", "Engineering", 1), ("Small machines", "Engineering", 1),
    ("北岸日报", "中文", 2), ("Kitchen experiments", "Leisure", 2),
    ("The busy one", "Leisure", 3), ("A blog that has ended", "Leisure", 2),
)  # fmt: skip
CHINESE, BUSY, GONE = 8, 10, 11
ALIVE = [number for number in range(len(FEEDS)) if number != GONE]


@dataclass
class Article:
    number: int
    title: str
    text: str
    published_at: float


@dataclass
class Feed:
    number: int
    title: str
    folder: str
    articles: list[Article] = field(default_factory=list)
    written: int = 0

    def write(self, chance: Random, published_at: float) -> None:
        chinese = self.number == CHINESE
        self.written += 1
        text = words.story(chance, chinese)
        made = Article(self.written, words.headline(chance, chinese), text, published_at)
        self.articles = [*self.articles[1 - LONGEST :], made]

    def document(self, host: str) -> str:
        items = "".join(
            f"<item><guid isPermaLink='false'>{self.number}-{each.number}</guid>"
            f"<title>{escape(each.title)}</title>"
            f"<link>http://{host}/{self.number}/{each.number}</link>"
            f"<pubDate>{format_datetime(datetime.fromtimestamp(each.published_at, UTC))}</pubDate>"
            f"<description>{escape(each.text)}</description></item>"
            for each in reversed(self.articles)
        )
        return (f"<rss version='2.0'><channel><title>{escape(self.title)}</title>"
                f"<link>http://{host}/</link>{items}</channel></rss>")  # fmt: skip


class FeedSites:
    """Four hosts, at /NUMBER.xml; a feed that has not changed is not sent again."""

    def __init__(self, town: Town, chance: Random, now: float) -> None:
        self.feeds = [Feed(n, title, folder) for n, (title, folder, _) in enumerate(FEEDS)]
        self.hosts = [town.open(self._answer) for _ in range(1 + max(at for *_, at in FEEDS))]
        self._visits_to_the_busy = 0
        for feed in self.feeds:
            for age in range(FIRST, 0, -1):
                feed.write(chance, now - age * chance.uniform(1.0, 5.0) * 3600.0)

    def url(self, number: int) -> str:
        return f"http://{self.hosts[FEEDS[number][2]]}/{number}.xml"

    async def _answer(self, request: Request) -> Response:
        name, _, kind = request.url.path.strip("/").partition(".")
        if kind != "xml" or not name.isdecimal() or int(name) >= len(self.feeds):
            return Response(status_code=404)
        feed = self.feeds[int(name)]
        if feed.number == GONE:
            return Response(status_code=410)
        if feed.number == BUSY:
            self._visits_to_the_busy += 1
            if self._visits_to_the_busy % 2:
                return Response(status_code=429, headers={"Retry-After": str(RETRY_AFTER_S)})
        tag = f'"{feed.number}-{feed.written}"'
        if request.headers.get("If-None-Match") == tag:
            return Response(status_code=304, headers={"ETag": tag})
        host = request.headers.get("Host", "")
        return Response(feed.document(host), media_type=KIND, headers={"ETag": tag})


class Reader:
    """Subscribes once, then looks at what is new, reads some of it, and keeps a little."""

    def __init__(self, stage: Stage, sites: FeedSites) -> None:
        self._stage = stage
        self._sites = sites
        self._chance = stage.chance("reader")

    async def read(self) -> None:
        if not (await self._stage.ask("GET", "/api/backend/feeds"))["feeds"]:
            await self._subscribe()
        for number in count(1):
            await self._stage.rest(NEW_S)
            self._sites.feeds[self._chance.choice(ALIVE)].write(self._chance, time.time())
            if number % ROUND_EVERY == 0:
                folder = {"folder": self._chance.choice(("News", "Engineering", "Leisure"))}
                await self._stage.ask("POST", "/api/backend/queue/schedule-all", folder)
            elif self._chance.random() < 0.5:
                await self._mark()

    async def _subscribe(self) -> None:
        """Most of them come from another reader."""
        query = {"refresh_interval": MINUTES}
        document = self._opml(range(len(FEEDS) - 3)).encode()
        headers = {"Content-Type": "text/x-opml"}
        await self._stage.ask("POST", "/api/backend/opml", params=query, content=document,
                              headers=headers)  # fmt: skip
        later = [
            {"url": self._sites.url(number), "title": FEEDS[number][0], "folder": FEEDS[number][1],
             "refresh_interval": MINUTES}
            for number in range(len(FEEDS) - 3, len(FEEDS))
        ]  # fmt: skip
        await self._stage.ask("POST", "/api/backend/feeds", later)

    def _opml(self, numbers: range) -> str:
        outlines = "".join(
            f"<outline text={quoteattr(FEEDS[n][1])}><outline type='rss' "
            f"text={quoteattr(FEEDS[n][0])} xmlUrl={quoteattr(self._sites.url(n))}/></outline>"
            for n in numbers
        )
        return f"<opml version='2.0'><body>{outlines}</body></opml>"

    async def _mark(self) -> None:
        found = (await self._stage.ask("GET", "/api/backend/articles?unread=true&limit=20"))[
            "items"
        ]
        if found:
            marks = {"is_read": True, "is_starred": self._chance.random() < 0.2}
            id = self._chance.choice(found)["id"]
            await self._stage.ask("PATCH", f"/api/backend/articles/{id}", marks)
