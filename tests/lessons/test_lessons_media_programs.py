"""Lessons 4, 6, 11, 12 and 14 of docs/lessons.md where only a real program can show them: yt-dlp
itself, and a site on this machine.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest

from headway import App
from headway.api.config import Config
from headway.apps.media import items
from headway.apps.media.application import Media
from headway.apps.media.jobs import COUNT, DOWNLOAD, new_request
from headway.apps.media.model import Item
from tests.hands.kit import eventually
from tests.media.video_site import VideoSite

T = TypeVar("T")
LONG_S = 60.0
COOKIE = "good-cookie-0123456789"
HEADER = "# Netscape HTTP Cookie File"


class Archive:
    """The real thing, without a server around it."""

    def __init__(self, directory: Path, site: VideoSite) -> None:
        self.data = directory / "data"
        self.site = site
        self.app = App(f"sqlite:///{directory / 'jobs.db'}")
        self.media = Media()
        self.app.settings.declare("code", "lane", "requires_cookie", {"limit": 1})
        self.app.settings.declare("code", "lane", "no_cookie", {"limit": 2})
        config = Config(data=str(self.data), outbound_allow=site.allowed)
        self.media.prepare(self.app, config, None)
        host = site.url.removeprefix("http://")
        self.app.upstream(host, every="0.05s", ban="1s", hold="1s")
        self.app.start()

    def turn(self, call: Callable[[float], T]) -> T:
        assert self.app.engine is not None
        return self.app.engine.ask(call).result(LONG_S)

    def put(self, type: str, url: str, **more: Any) -> int:
        job = new_request(type, url, self.app.now(), **more)
        id = self.app.store.insert([job])[0].id
        assert self.app.engine is not None
        self.app.engine.brain.heard()
        return id

    def wait_for(self, job: int, *states: str) -> str:
        return str(eventually(lambda: (found := self.state(job)) in states and found, LONG_S))

    def state(self, job: int) -> str:
        return self.app.handle(job).state

    def item(self, url: str) -> Item:
        found = items.item_of_url(self.app.store, "", 0, url)
        assert found is not None
        return found

    def programs(self) -> list[psutil.Process]:
        """That are ours and alive."""
        return [
            each
            for each in psutil.Process().children(recursive=True)
            if each.status() != psutil.STATUS_ZOMBIE and "boot.py" in " ".join(each.cmdline())
        ]


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Archive]:
    monkeypatch.setenv("HEADWAY_MEDIA_MIN_FREE_MB", "1")
    monkeypatch.setenv("HEADWAY_MEDIA_COUNT_TIMEOUT_S", "3")
    with VideoSite() as site:
        made = Archive(tmp_path, site)
        try:
            yield made
        finally:
            site.let_go()
            made.app.close()
            assert not made.programs()


def test_lesson_04_a_cancelled_program_is_gone_before_the_next_one_starts(
    archive: Archive,
) -> None:
    """Cancelling freed the place while yt-dlp went on, and its success overwrote `canceled`."""
    site = archive.site
    for id in ("one", "two", "three"):
        site.video(id, pages=False)
    site.hold("/media/one", half=True)
    jobs = [archive.put(DOWNLOAD, site.media_url(id)) for id in ("one", "two", "three")]
    site.wait_for(lambda: site.asked("/media/one") and site.asked("/media/one")[-1].sent_bytes)
    (program,) = archive.programs()
    site.hold("/media/three")
    archive.app.cancel(jobs[1])  # it waits
    archive.app.cancel(jobs[0])  # it runs
    site.wait_for(lambda: site.asked("/media/three"), LONG_S)
    assert not psutil.pid_exists(program.pid)  # before the next one has called anybody
    site.let_go()
    archive.wait_for(jobs[2], "completed")
    site.wait_for(lambda: all(each.ended_at is not None for each in site.log))
    assert [archive.state(each) for each in jobs] == ["cancelled", "cancelled", "completed"]
    assert not site.asked("/media/two")
    assert len(site.asked("/media/one")) == 1
    item = archive.item(site.media_url("one"))
    assert (item.state, item.failure) == ("skipped", "cancelled")
    assert len([each for each in archive.media.library.root.rglob("*.mp4")
                if ".headway" not in each.parts]) == 1  # fmt: skip


def test_lesson_06_a_time_out_ends_the_program(archive: Archive) -> None:
    """A time-out gave the place back and left its process running."""
    site = archive.site
    site.collection("slow")
    site.hold("/c/")
    row = archive.turn(lambda now: archive.media.register.add("", site.collection_url("slow"), now))
    job = archive.put(COUNT, row.url, subscription=row, max_attempts=1)
    site.wait_for(lambda: site.asked("/c/"))
    (program,) = archive.programs()
    assert archive.wait_for(job, "failed") == "failed"
    assert not archive.programs()
    assert not psutil.pid_exists(program.pid)
    error = archive.app.handle(job).row().error or ""
    assert "3" in error, error


def test_lesson_11_and_12_pages_of_errors_are_read_by_their_status_alone(
    archive: Archive,
) -> None:
    """A 503 page with "unavailable" in it gave a video up for good, and each format was tried in
    turn while the site pushed back.
    """
    site = archive.site
    site.video("a", heights=(360, 720, 1080))
    url = site.watch_url("a")
    site.push_back(503, paths="/media/", retry_after=2)  # its page is full of words
    job = archive.put(DOWNLOAD, url)
    archive.wait_for(job, "completed", "failed")
    asked = site.asked("/media/")
    assert [each.status for each in asked] == [503, 200]  # one request, and silence
    assert asked[1].at - asked[0].at >= 2.0
    item = archive.item(url)
    assert (item.state, item.failures) == ("done", 0)


def test_lesson_14_the_real_program_reads_the_file_that_we_write(archive: Archive) -> None:
    """Without its first line the file of cookies broke every download; and a secret stood in a file
    that was committed.
    """
    site = archive.site
    site.needs_cookie = True
    site.video("a", pages=False)
    bare = f"127.0.0.1\tFALSE\t/\tFALSE\t0\tSESSDATA\t{COOKIE}\n"  # without the line
    archive.turn(lambda now: archive.media.accounts.add("ann", "127.0.0.1", bare, "", now))
    site.hold("/media/", half=True)
    job = archive.put(DOWNLOAD, site.media_url("a"))
    site.wait_for(lambda: site.asked("/media/") and site.asked("/media/")[-1].sent_bytes)
    (file,) = (archive.data / "cookies").iterdir()
    assert file.read_text().startswith(f"{HEADER}\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    site.let_go()
    assert archive.wait_for(job, "completed", "failed") == "completed"
    assert not list((archive.data / "cookies").iterdir())
    assert COOKIE in site.asked("/media/")[-1].headers["Cookie"]
    kept = [each for each in archive.data.parent.rglob("*") if each.is_file()]
    assert len(kept) > 4
    assert not [each for each in kept if COOKIE.encode() in each.read_bytes()]
