"""A site with videos for members, and an archive of it that grows slowly. It needs yt-dlp."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from importlib.util import find_spec
from random import Random
from xml.sax.saxutils import escape

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from headway.demo import words
from headway.demo.stage import Stage
from headway.demo.town import Town

SIZE, BLOCK = 240_000, 20_000
SEND_S = 2.4  # that a video takes to arrive
DAY_S = 86_400.0
MOST = 150  # videos of the site, however long the demo runs
NEW_S = 30.0  # between two new ones
LATER_S = 25.0  # until the last list is subscribed to, with the second account
BROKEN = (7, 3)  # one of so many, which is in the last list first
PACE = {"every": "5s", "jitter": 0.2, "ban": "30s"}  # each visit is a program, which costs
COOKIE = "member"
MEMBER, STRANGER = "harbour-club-2026", "expired-in-spring"

LISTS = {"harbour": "Harbour cameras", "trains": "Night trains", "workshop": "The workshop"}


def is_installed() -> bool:
    return find_spec("yt_dlp") is not None


@dataclass
class Video:
    number: int
    title: str
    published_at: float


@dataclass
class Playlist:
    title: str
    videos: list[Video] = field(default_factory=list)


class VideoSite:
    """Lists are RSS with enclosures, at /LIST.rss; the videos behind them are for members."""

    def __init__(self, town: Town, chance: Random, now: float, speed: float) -> None:
        self.lists = {name: Playlist(title) for name, title in LISTS.items()}
        self.host = town.open(self._answer)
        self._chance = chance
        self._send_s = SEND_S / speed
        self._count = 0
        for age, name in enumerate(("harbour", "trains", "workshop") * 3):
            self.publish(name, now - (9 - age) * DAY_S)

    def publish(self, name: str, at: float) -> None:
        if self._count < MOST:
            self._count += 1
            title = words.video_title(self._chance)
            self.lists[name].videos.append(Video(self._count, title, at))

    def url(self, name: str) -> str:
        return f"http://{self.host}/{name}.rss"

    async def _answer(self, request: Request) -> Response:
        name, _, kind = request.url.path.strip("/").partition(".")
        if kind == "rss" and name in self.lists:
            return Response(self._document(self.lists[name]), media_type="application/rss+xml")
        number = name.removeprefix("videos/")
        if kind != "mp4" or not number.isdecimal():
            return Response(status_code=404)
        if request.cookies.get(COOKIE) != MEMBER:
            return Response(status_code=403)
        if int(number) % BROKEN[0] == BROKEN[1]:
            return Response(status_code=404)  # still in the list, and not there any more
        headers = {"Content-Length": str(SIZE)}
        if request.method == "HEAD":
            return Response(media_type="video/mp4", headers=headers)
        return StreamingResponse(self._film(int(number)), media_type="video/mp4", headers=headers)

    async def _film(self, number: int) -> AsyncIterator[bytes]:
        for _ in range(SIZE // BLOCK):
            yield bytes((number % 251,)) * BLOCK
            await asyncio.sleep(self._send_s * BLOCK / SIZE)

    def _document(self, list: Playlist) -> str:
        items = "".join(
            f"<item><title>{escape(each.title)}</title><guid isPermaLink='false'>v{each.number}"
            f"</guid><pubDate>{format_datetime(datetime.fromtimestamp(each.published_at, UTC))}"
            f"</pubDate><enclosure url='http://{self.host}/videos/{each.number}.mp4' "
            f"type='video/mp4' length='{SIZE}'/></item>"
            for each in reversed(list.videos)
        )
        return (f"<rss version='2.0'><channel><title>{escape(list.title)}</title>{items}"
                "</channel></rss>")  # fmt: skip


class Archivist:
    """Has two accounts there, one of which is too old to be of use."""

    def __init__(self, stage: Stage, site: VideoSite) -> None:
        self._stage = stage
        self._site = site
        self._chance = stage.chance("archivist")
        self._ids: dict[str, int] = {}  # of the subscriptions at the server

    async def collect(self) -> None:
        if not self._ids:
            await self._log_in("club card", MEMBER)
        for name in LISTS:
            if name not in self._ids:
                await self._subscribe(name)
        while True:
            await self._stage.rest(NEW_S)
            name = self._chance.choice(list(LISTS))
            self._site.publish(name, time.time())
            await self._stage.ask("POST", f"/api/subscriptions/{self._ids[name]}/download")

    async def _log_in(self, name: str, cookie: str) -> None:
        domain = self._site.host.partition(":")[0]
        account = {"name": name, "site": domain, "cookies": f"{COOKIE}={cookie}"}
        await self._stage.ask("POST", "/api/archive/accounts", account, who="operator")

    async def _subscribe(self, name: str) -> None:
        if name == "workshop":
            await self._stage.rest(LATER_S)
            await self._log_in("old card", STRANGER)
        wanted = {"url": self._site.url(name), "quality": "720p", "interval_s": 0,
                  "template": "{subscription}/{date} {title} [{id}]"}  # fmt: skip
        made = await self._stage.ask("POST", "/api/subscriptions", wanted)
        self._ids[name] = made["id"]
