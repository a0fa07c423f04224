"""A real server, the real yt-dlp, and a site that counts: what the site sees of us.

A program takes about a second, so each test gets as few videos as it needs; all 999 of the large
collection are for `make soak`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.contract.kit import JSON, Api
from tests.hands.kit import eventually
from tests.media.video_site import Exchange, VideoSite
from tests.servers import Server

LONG_S = 120.0
COOKIE = "good-cookie-0123456789"
CARELESS = 'every = "0.05s"'


class Archive:
    """A server with an archive, and a site that it may call."""

    def __init__(self, directory: Path, site: VideoSite, pace: str = CARELESS) -> None:
        self.site = site
        self.host = site.url.removeprefix("http://")
        self.server = Server(
            directory, file=f'[upstream."{self.host}"]\n{pace}\n', media_on="yes",
            outbound_allow=",".join(site.allowed), media_min_free_mb=1,
        )  # fmt: skip
        self.library = self.server.data / "archive"
        self.api: Any = None

    def start(self) -> None:
        self.server.start()
        self.close()
        self.api = Api(self.server.url)

    def close(self) -> None:
        if self.api is not None:
            self.api.http.close()

    def account(self, name: str = "ann", cookie: str = COOKIE) -> JSON:
        body = {"name": name, "site": "127.0.0.1", "cookies": f"SESSDATA={cookie}", "check_url": ""}
        return self.api.post("/api/archive/accounts", body, 201)

    def subscribe(self, collection: str, **more: Any) -> int:
        body = {
            "url": self.site.collection_url(collection),
            "start": False,
            "interval_s": 0,
            **more,
        }
        return int(self.api.post("/api/subscriptions", body, 201)["id"])

    def counts(self, id: int) -> JSON:
        found: JSON = self.api.get(f"/api/subscriptions/{id}")["counts"]
        return found

    def wait_on_disk(self, id: int, count: int, within_s: float = LONG_S) -> None:
        eventually(lambda: self.counts(id)["on_disk"] == count, within_s)

    def requests(self, **filters: Any) -> list[JSON]:
        found: list[JSON] = self.api.get("/api/requests", size=200, **filters)["items"]
        return found

    def videos(self) -> list[Path]:
        return [each for each in self.library.rglob("*.mp4") if ".headway" not in each.parts]


@contextmanager
def archive_of(directory: Path, pace: str = CARELESS) -> Iterator[Archive]:
    with VideoSite() as site:
        archive = Archive(directory, site, pace)
        try:
            archive.start()
            yield archive
        finally:
            archive.close()
            archive.server.close()


def programs_in(library: Path) -> list[int]:
    """Those that download into it, whoever their parent is by now."""
    found = []
    for each in psutil.process_iter():
        with suppress(psutil.Error):
            if each.environ().get("HOME", "").startswith(str(library)):
                found.append(each.pid)
    return found


def check_all_here(archive: Archive, ids: list[str]) -> None:
    """Each video once, as the site has it, with what belongs to it."""
    hashes = Counter(hashlib.sha256(each.read_bytes()).hexdigest() for each in archive.videos())
    assert hashes == Counter(archive.site.videos[id].sha256() for id in ids)
    for each in archive.videos():
        assert each.with_suffix(".info.json").is_file()
        assert each.with_suffix(".nfo").is_file()


def a_collection_survives_a_kill(directory: Path, count: int) -> None:
    with archive_of(directory) as archive:
        site, api = archive.site, archive.api
        wanted = site.collection("big", count=999).videos[-count:]
        site.needs_cookie = True
        archive.account()
        id = archive.subscribe("big", depth=0 if count == 999 else count)
        total = api.get(f"/api/subscriptions/{id}/expected-total", sync=True)
        assert (total["expected_total"], total["cached"]) == (999, False)
        assert api.get(f"/api/subscriptions/{id}/expected-total")["cached"] is True
        api.post(f"/api/subscriptions/{id}/download", {}, 202)
        middle = wanted[count // 2]
        middle.size = 4_000_000
        site.hold(f"/media/{middle.id}", half=True)
        site.wait_for(lambda: site.asked(f"/media/{middle.id}"), max(LONG_S, 3.0 * count))
        eventually(lambda: any(each.stat().st_size for each in archive.library.rglob("*.part")))
        archive.server.kill()
        eventually(lambda: not programs_in(archive.library))  # they go with the server
        site.let_go()
        site.wait_for(lambda: all(each.ended_at is not None for each in site.log))
        archive.start()
        archive.wait_on_disk(id, count, max(LONG_S, 3.0 * count))
        assert not list((archive.server.data / "cookies").glob("*"))
        check_all_here(archive, [each.id for each in wanted])
        counts = archive.counts(id)
        assert (counts["listed"], counts["pending"], counts["failed"]) == (999, 0, 0)
        # As the site saw it: one at a time, each file once; the one in the middle was gone on with.
        assert site.most_at_once() == 1
        asked = Counter(each.path for each in site.asked("/media/"))
        begun, looked, gone_on = site.asked(f"/media/{middle.id}.mp4")
        assert asked - Counter({begun.path: 2}) == Counter(
            f"/media/{each.id}.mp4" for each in wanted
        )
        assert not {"Range"} & {*begun.headers, *looked.headers}
        assert int(gone_on.headers["Range"].removeprefix("bytes=").partition("-")[0]) > 0
        assert all(COOKIE in each.headers["Cookie"] for each in site.asked("/media/"))
        assert not any("Cookie" in each.headers for each in site.asked("/c/"))


@pytest.mark.timeout(400)
def test_a_collection_survives_a_kill(tmp_path: Path) -> None:
    a_collection_survives_a_kill(tmp_path, 5)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_collection_of_999_survives_a_kill(tmp_path: Path) -> None:
    a_collection_survives_a_kill(tmp_path, 999)


@pytest.mark.timeout(300)
def test_people_steer_it_while_it_runs(tmp_path: Path) -> None:
    with archive_of(tmp_path) as archive:
        site, api = archive.site, archive.api
        first = site.collection("first", count=3)
        site.collection("second", count=3)
        ids = [archive.subscribe(name) for name in ("first", "second")]
        site.hold("/media/", half=True)
        for id in ids:
            api.post(f"/api/subscriptions/{id}/download", {}, 202)
        site.wait_for(lambda: site.asked("/media/"), LONG_S)
        eventually(lambda: len(archive.requests(type="download")) == 6, LONG_S)

        # One at a time, though both lanes have work: the pool of programs has one place.
        running = archive.requests(type="download", status="running")
        assert len(running) == 1
        api.post("/api/queue/capacity", {"requires_cookie": 2})
        api.ok("PUT", "/api/tools/yt-dlp/settings", json={"limit": 2})
        site.wait_for(lambda: len(site.asked("/media/")) == 2, LONG_S)
        under_way = archive.requests(type="download", status="running")
        assert len({each["subscription_id"] for each in under_way}) == 2  # each has its own line

        # Cancelled: the connection ends at once, and nobody takes its place while all is paused.
        api.post("/api/queue/pause?scope=all")
        for each in under_way:
            api.post(f"/api/requests/{each['id']}/cancel")
        eventually(lambda: not archive.requests(status="running"), LONG_S)
        assert not programs_in(archive.library)
        cancelled = {each["url"] for each in under_way}
        seen = len(site.asked("/media/"))

        # Pinned: the last of the second goes first when it goes on.
        waiting = [each for each in archive.requests(type="download", status="queued")
                   if each["subscription_id"] == ids[1]]  # fmt: skip
        last = max(waiting, key=lambda each: int(each["id"]))
        api.post(f"/api/requests/{last['id']}/prioritize")
        site.let_go()
        api.post("/api/queue/capacity", {"requires_cookie": 1})
        assert len(site.asked("/media/")) == seen
        api.post("/api/queue/resume?scope=all")
        archive.wait_on_disk(ids[0], 2)
        archive.wait_on_disk(ids[1], 2)
        after = [each.path for each in site.asked("/media/")[seen:]]
        assert site.url + after[0] == last["url"]
        assert not cancelled & {site.url + each for each in after}
        assert len(after) == len(set(after)) == 4
        assert first.videos


@pytest.mark.timeout(300)
def test_412_makes_the_site_quiet_and_then_it_goes_on(tmp_path: Path) -> None:
    with archive_of(tmp_path, f'{CARELESS}\nban = "4s"') as archive:
        site, api = archive.site, archive.api
        site.collection("videos", count=4, pages=True)
        id = archive.subscribe("videos")
        api.post(f"/api/subscriptions/{id}/download", {}, 202)
        site.wait_for(lambda: len(site.served("/media/")) >= 2, LONG_S)
        site.push_back(412, paths="/watch/", until=lambda: len(refused()) >= 1)

        def refused() -> list[Exchange]:
            return [each for each in site.log if each.status == 412]

        archive.wait_on_disk(id, 4)
        (no,) = refused()  # one request, and silence
        following = min(each.at for each in site.log if each.at > no.at)
        assert following - no.at >= 4.0
        downloads = archive.requests(type="download")
        assert {each["status"] for each in downloads} == {"done"}
        assert {each["attempts"] for each in downloads} <= {0, 1}
        items = api.get(f"/api/subscriptions/{id}/items")["items"]
        assert {each["failures"] for each in items} == {0}
        for each in archive.videos():  # with pages there are thumbnails, so four files of one name
            assert sorted(other.name.removeprefix(each.stem) for other in each.parent.iterdir()
                          if other.name.startswith(each.stem)) == [
                ".info.json", ".jpg", ".mp4", ".nfo"]  # fmt: skip


@pytest.mark.timeout(300)
def test_many_clicks_are_one_and_strictly_serial(tmp_path: Path) -> None:
    with archive_of(tmp_path, 'every = "1.5s"') as archive:
        site, api = archive.site, archive.api
        site.collection("videos", count=3)
        id = archive.subscribe("videos")
        url = f"/api/subscriptions/{id}"
        clicks = [("POST", f"{url}/download"), ("POST", f"{url}/refresh-list"),
                  ("GET", f"{url}/expected-total"),
                  ("GET", f"{url}/expected-total?sync=true")] * 5  # fmt: skip

        def click(what: tuple[str, str]) -> JSON:
            answer = api.http.request(what[0], what[1], timeout=60.0)
            assert answer.status_code in (200, 202), answer.text
            found: JSON = answer.json()
            return found

        site.hold("/c/")
        with ThreadPoolExecutor(len(clicks)) as pool:
            answers = [pool.submit(click, each) for each in clicks]
            site.wait_for(lambda: site.asked("/c/"), LONG_S)
            eventually(lambda: len(archive.requests()) == 2, LONG_S)
            site.let_go()
            said = [each.result() for each in answers]
        counted = [each["expected_total"] for each in said if each.get("cached") is not None]
        assert set(counted) <= {3, None}
        assert counted.count(3) >= 5  # all who waited are told together
        archive.wait_on_disk(id, 3)
        assert len(site.asked("/c/")) == 2  # one list, one count
        assert site.most_at_once() == 1
        # Programs are let go 1.5 s apart, and take half a second, more or less, to begin.
        assert min(site.gaps()) >= 1.0
