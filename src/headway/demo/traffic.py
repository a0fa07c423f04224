"""A stream of jobs that never ends and never grows: of several types, lanes and tenants."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from headway.demo import words
from headway.demo.sites import API, DOWNLOADS, MAPS, VIDEOS
from headway.demo.stage import Stage

LOOK_S = 2.0
AT_ONCE = 5  # jobs of a type that are added at a time, and the first time thrice that
# How many of each type are open at most. More wait than can run, so that there are lines to see.
MOST = {"fetch-video": 36, "mirror-file": 45, "sync-order": 24, "render-map": 30}

Job = dict[str, Any]


class Traffic:
    def __init__(self, stage: Stage, sites: dict[str, str]) -> None:
        self._stage = stage
        self._sites = sites
        self._chance: Random = stage.chance("traffic")
        self._number = 0
        self._makers: dict[str, Callable[[], Job]] = {
            "fetch-video": self._video, "mirror-file": self._file, "sync-order": self._order,
            "render-map": self._map,
        }  # fmt: skip

    async def flow(self) -> None:
        most = AT_ONCE * 3
        while True:
            for type in self._makers:
                await self._fill(type, most)
            most = AT_ONCE
            await self._stage.rest(LOOK_S)

    async def _fill(self, type: str, most: int) -> None:
        query = {"q": f"type:{type} status:open", "size": 1}
        there = (await self._stage.ask("GET", "/api/jobs", params=query))["total"]
        for _ in range(min(MOST[type] - there, self._chance.randint(1, most))):
            await self._stage.ask("POST", "/api/jobs", self._with_whims(self._makers[type]()))

    def _with_whims(self, job: Job) -> Job:
        """Some may wait, some must not, some come twice."""
        chance, roll = self._chance, self._chance.random()
        job.setdefault("tenant", chance.choice(words.TENANTS[:5]))
        job["labels"] = {"project": chance.choice(words.PROJECTS), **job.get("labels", {})}
        if roll < 0.08:
            job["delay_s"] = chance.randint(20, 90) / self._stage.speed
        elif roll < 0.14:
            job["within_s"] = chance.randint(20, 60) / self._stage.speed
        elif roll < 0.20:
            job["unique"] = {"key": str(job["args"])}
        return job

    def _url(self, site: str, path: str) -> str:
        return f"http://{self._sites[site]}/{path}"

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _video(self) -> Job:
        title, album = words.video_title(self._chance), self._chance.randint(1, 12)
        args = {
            "url": self._url(VIDEOS, f"watch/{self._next()}"), "title": title,
            "parts": self._chance.randint(3, 9), "part_s": 0.8 / self._stage.speed,
        }  # fmt: skip
        return {
            "type": "fetch-video", "args": args, "upstream": VIDEOS, "lane": "bulk",
            "key": f"album-{album}", "priority": self._chance.randint(3, 8),
            "labels": {"album": str(album)},
        }  # fmt: skip

    def _file(self) -> Job:
        name = words.file_name(self._chance)
        args = {
            "url": self._url(DOWNLOADS, f"files/{self._next()}"), "name": name,
            "size_mb": self._chance.randint(20, 160), "mb_per_s": 10.0 * self._stage.speed,
        }  # fmt: skip
        lane = "nightly" if self._chance.random() < 0.2 else "bulk"
        return {"type": "mirror-file", "args": args, "upstream": DOWNLOADS, "lane": lane}

    def _order(self) -> Job:
        order = 4_000 + self._next()
        args = {
            "url": self._url(API, f"orders/{order}"),
            "order": order,
            "think_s": self._chance.uniform(1.5, 4.0) / self._stage.speed,
        }
        return {
            "type": "sync-order", "args": args, "upstream": API, "lane": "interactive",
            "priority": self._chance.choice((1, 3, 5, 5)),
        }  # fmt: skip

    def _map(self) -> Job:
        region = self._chance.choice(words.REGIONS)
        args = {
            "url": self._url(MAPS, f"tiles/{self._next()}"), "region": region,
            "tiles": self._chance.randint(2, 4),
        }  # fmt: skip
        return {"type": "render-map", "args": args, "upstream": MAPS, "lane": "interactive",
                "key": region, "labels": {"region": region}}  # fmt: skip
